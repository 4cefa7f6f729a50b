"""Find the rows of data files that match a condition, except those that deletion vectors delete.

Only row groups that the footer does not rule out are read, and only the columns of the condition. A
deletion vector is a 64-bit Roaring bitmap in the portable format: 32-bit bitmaps, each with the
upper half of its numbers, in containers of up to 65,536 numbers.
"""

import struct
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blizzard.model.predicate import Predicate, PredicateInvalid, columns_in
from blizzard.model.rewriting import ActiveFile
from blizzard.worker.table_file import Columns, RowGroup, TableFile, matches, may_match
from lakebed.columns.column_mapping import ColumnMapping, format_path
from lakebed.columns.schema import Schema
from lakebed.documents.deletion_vector import DeletionVector, from_z85
from lakebed.errors import DocumentUnreadable, LakeError, ObjectMissing, Whose
from lakebed.storage.objects import RandomAccessFile
from lakebed.storage.store import Reader
from lakebed.types import Provenance

Places = npt.NDArray[np.int64]
"""Ascending positions of rows in a data file, from 0."""
NONE: Places = np.zeros(0, np.int64)
PORTABLE = 1681511377
WITHOUT_RUNS, WITH_RUNS = 12346, 12347
OFFSETS_FROM = 4
"""A bitmap with runs lists the offsets of its containers if it has at least this many."""
MOST_IN_ARRAY = 4096
"""A container with more numbers is a bitset, unless it consists of runs."""
BITSET_BYTES = 8192


DAMAGED = "it is damaged: run penguin fsck and blizzard audit --deep"


class VectorUnreadable(LakeError, code="deletion_vector_unreadable", whose=Whose.EXTERNAL):
    """A deletion vector cannot be read, so the deleted rows of its data file are unknown."""


def deleted_rows(store: Reader, vector: DeletionVector | None) -> Places:
    """Return the positions of the rows that a vector deletes; none without a vector."""
    if vector is None:
        return NONE
    if vector.file is not None and is_elsewhere(vector.file):
        raise VectorUnreadable(
            "a deletion vector is not in the table's directory; rewrite the table with the program "
            "that cloned it",
            path=vector.file,
        )
    where = "the Delta log" if vector.file is None else store.describe(vector.file)
    try:
        found = places_in(_bitmap(store, vector))
    except (ValueError, struct.error) as broken:
        raise VectorUnreadable(
            f"a deletion vector cannot be read: {broken}; restore it from a backup, or take its "
            "data file out of the table",
            path=where,
        ) from broken
    if len(found) != vector.rows:
        raise VectorUnreadable(
            f"a deletion vector deletes {len(found)} rows, but the log says {vector.rows}",
            path=where,
        )
    return found


def is_elsewhere(path: str) -> bool:
    """Whether a path is outside the table's directory."""
    return path.startswith("/") or ":/" in path


def marked(places: Places, start: int, rows: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows from `start` on whose positions are in `places`. Pure."""
    first, last = np.searchsorted(places, [start, start + rows])
    found = np.zeros(rows, np.bool_)
    found[places[first:last] - start] = True
    return found


def ranges_of(places: Places) -> list[tuple[int, int]]:
    """Return positions as half-open ranges. Pure."""
    if not len(places):
        return []
    gaps = np.flatnonzero(np.diff(places) > 1)
    starts = places[np.concatenate(([0], gaps + 1))]
    ends = places[np.concatenate((gaps, [len(places) - 1]))] + 1
    return [*zip(starts.tolist(), ends.tolist(), strict=True)]


def _bitmap(store: Reader, vector: DeletionVector) -> bytes:
    """Return the bytes of a bitmap; in a file, its size precedes it and a checksum follows."""
    if vector.file is None:
        return from_z85(vector.text or "")[: vector.size]
    facts = store.head(vector.file)
    if facts is None:
        raise ObjectMissing("a deletion vector is gone", path=store.describe(vector.file))
    end = vector.offset + vector.size + 8
    if facts.size < end:
        raise ValueError(f"its file ends after {facts.size} bytes, before the vector does")
    body = store.part(vector.file, vector.offset, end, etag=facts.etag)
    bitmap = body[4:-4]
    if struct.unpack(">I", body[:4]) != (vector.size,) or len(bitmap) != vector.size:
        raise ValueError("its size is not the one in the log")
    if struct.unpack(">I", body[-4:]) != (zlib.crc32(bitmap),):
        raise ValueError("its checksum is wrong")
    return bitmap


def places_in(bitmap: bytes) -> Places:
    """Return the numbers of a 64-bit bitmap. Pure."""
    magic, bitmaps = struct.unpack_from("<iq", bitmap)
    if magic != PORTABLE:
        raise ValueError(f"its format {magic} is not in the Delta protocol")
    at, found = 12, [NONE]
    for _ in range(bitmaps):
        (upper,) = struct.unpack_from("<I", bitmap, at)
        lower, at = _lower_places(bitmap, at + 4)
        found.append((upper << 32) + lower)
    return np.concatenate(found)


def _lower_places(bitmap: bytes, at: int) -> tuple[Places, int]:
    """Return the numbers of the 32-bit bitmap at an offset, and its end."""
    cookie, containers = struct.unpack_from("<HH", bitmap, at)
    if cookie == WITH_RUNS:
        containers += 1
        flags = np.frombuffer(bitmap, np.uint8, (containers + 7) // 8, at + 4)
        has_runs = np.unpackbits(flags, bitorder="little")[:containers].astype(np.bool_)
        at += 4 + len(flags)
    elif cookie == WITHOUT_RUNS:
        (containers,) = struct.unpack_from("<I", bitmap, at + 4)
        has_runs = np.zeros(containers, np.bool_)
        at += 8
    else:
        raise ValueError(f"it has a bitmap of the unknown kind {cookie}")
    header = np.frombuffer(bitmap, "<u2", 2 * containers, at).reshape(-1, 2).astype(np.int64)
    at += 4 * containers
    if cookie == WITHOUT_RUNS or containers >= OFFSETS_FROM:
        at += 4 * containers  # The containers are adjacent, so skip their offsets.
    found = [NONE]
    for (upper, most), runs in zip(header.tolist(), has_runs.tolist(), strict=True):
        numbers, at = _container(bitmap, at, most + 1, runs=runs)
        if len(numbers) != most + 1:
            raise ValueError("the row count of a container differs from its header")
        found.append((upper << 16) + numbers)
    return np.concatenate(found), at


def _container(bitmap: bytes, at: int, count: int, *, runs: bool) -> tuple[Places, int]:
    """Return the numbers of one container (runs, an array or a bitset), and its end."""
    if runs:
        (pairs,) = struct.unpack_from("<H", bitmap, at)
        table = np.frombuffer(bitmap, "<u2", 2 * pairs, at + 2).reshape(-1, 2).astype(np.int64)
        lengths = table[:, 1] + 1
        # The numbers of a run are consecutive.
        before = np.cumsum(lengths) - lengths
        numbers = np.arange(lengths.sum()) + np.repeat(table[:, 0] - before, lengths)
        return numbers, at + 2 + 4 * pairs
    if count <= MOST_IN_ARRAY:
        return np.frombuffer(bitmap, "<u2", count, at).astype(np.int64), at + 2 * count
    bits = np.frombuffer(bitmap, np.uint8, BITSET_BYTES, at)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")), at + BITSET_BYTES


FILE = Provenance.FILE.column


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A matching row."""

    file: str
    row: int
    """Its position in the data file, from 0."""
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupMatches:
    """The matching rows of one row group."""

    group: RowGroup
    places: tuple[int, ...]
    """Their positions in the group, from 0, without deleted rows."""
    deleted: int = 0
    """Matching rows that are deleted."""


@contextmanager
def _readable(store: Reader, path: str) -> Iterator[None]:
    """Translate Arrow's errors for a damaged data file."""
    try:
        yield
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise DocumentUnreadable(
            f"a data file of the table cannot be read; {DAMAGED}", path=store.describe(path)
        ) from error


def check_columns(predicate: Predicate, schema: Schema) -> None:
    """Raise if a condition names a column that the table lacks."""
    for path in columns_in(predicate):
        fields = schema.fields
        for name in path:
            inner = next((one for one in fields if one.name == name), None)
            if inner is None:
                names = ", ".join(one.name for one in fields) or "no fields"
                raise PredicateInvalid(
                    f"there is no column {format_path(path)}; there are: {names}",
                    column=format_path(path),
                )
            fields = inner.fields


def matching_rows(
    store: Reader,
    files: Mapping[str, ActiveFile],
    predicate: Predicate,
    schema: Schema,
    mapping: ColumnMapping | None = None,
    hidden: Collection[str] = (),
) -> Iterator[Match]:
    """Yield the matching rows of data files, in path order.

    `hidden` names columns of the files that the table does not have.
    """
    for path, file in sorted(files.items()):
        with _readable(store, path):
            for found in matching_groups(store, file, predicate, schema, mapping):
                if not found.places:
                    continue  # All matching rows were deleted in place.
                table = found.group.read().take(list(found.places))
                whole = table.drop_columns([one for one in hidden if one in table.column_names])
                partition = file.partition_values
                for place, values in zip(found.places, whole.to_pylist(), strict=True):
                    yield Match(
                        file=path, row=found.group.start + place, values={**partition, **values}
                    )


def matching_groups(
    store: Reader,
    active: ActiveFile,
    predicate: Predicate,
    schema: Schema,
    mapping: ColumnMapping | None = None,
) -> Iterator[RowGroupMatches]:
    """Yield the row groups of a data file with matching rows.

    `mapping` is the table's column mapping, if any.
    """
    kinds = {one.name: one.arrow_type() for one in schema.fields}
    asked = {column[0] for column in columns_in(predicate)}
    deleted: Places | None = None
    facts = store.head(active.path)
    if facts is None:
        raise ObjectMissing("a data file of the table is gone", path=store.describe(active.path))
    opened: Any = RandomAccessFile(store, facts)  # pyarrow's stubs are too strict
    with pq.ParquetFile(opened) as parquet:
        file = TableFile(parquet, mapping)
        there = asked.intersection(file.names)
        for group in file.row_groups():
            if not may_match(predicate, group.bounds):
                continue
            columns = Columns(group.read(there), group.rows, active.partition_values, kinds)
            places = np.asarray(pc.indices_nonzero(matches(predicate, columns)), np.int64)
            if not len(places):
                continue
            if deleted is None:
                deleted = deleted_rows(store, active.vector)
            live = places[~marked(deleted, group.start, group.rows)[places]]
            yield RowGroupMatches(
                group=group, places=tuple(live.tolist()), deleted=len(places) - len(live)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsInFile:
    """The matching rows of one data file."""

    rows: int
    """All rows of the file."""
    places: tuple[int, ...]
    """Their positions in the file, from 0."""
    by_column: Mapping[str, int]
    """Matching rows by the source URI in their provenance column."""
    deleted: int = 0
    """Matching rows that are deleted."""


def rows_in(
    store: Reader,
    file: ActiveFile,
    predicate: Predicate,
    schema: Schema,
    mapping: ColumnMapping | None = None,
) -> RowsInFile | None:
    """Return the matching rows of a data file; None if there are none."""
    rows = deleted = 0
    places: list[int] = []
    by_source: Counter[str] = Counter()
    with _readable(store, file.path):
        for found in matching_groups(store, file, predicate, schema, mapping):
            group = found.group
            rows = group.file.file.metadata.num_rows
            deleted += found.deleted
            places += [group.start + place for place in found.places]
            if found.places and FILE in group.file.names:
                column = group.read([FILE])[FILE]
                names: Any = column.take(list(found.places))
                by_source.update(name for name in names.to_pylist() if name is not None)
    if not places and not deleted:
        return None
    return RowsInFile(rows=rows, places=tuple(places), by_column=dict(by_source), deleted=deleted)
