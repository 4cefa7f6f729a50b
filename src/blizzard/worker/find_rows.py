"""The rows of data files for which a condition holds.

Of a file only those row groups are read that its footer does not rule out, and in them the columns
that the condition asks for.
"""

import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blizzard.model.predicate import Predicate, PredicateInvalid, columns_in
from blizzard.model.rewriting import ActiveFile
from blizzard.worker.deleted_rows import Places, deleted_rows, marked
from blizzard.worker.matching import Columns, matches, may_match
from blizzard.worker.table_file import RowGroup, TableFile
from lakebed.columns.column_mapping import ColumnMapping
from lakebed.columns.field_path import format_path
from lakebed.columns.schema import Schema
from lakebed.errors import ObjectMissing
from lakebed.storage.store import Reader
from lakebed.types import Provenance

FILE = Provenance.FILE.column


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A row for which the condition holds."""

    file: str
    row: int
    """Its place in the data file, from 0."""
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundInGroup:
    """The rows of one row group for which a condition holds."""

    group: RowGroup
    places: tuple[int, ...]
    """Their places in the group, from 0, without those of deleted rows."""
    deleted: int = 0
    """How many others were deleted."""


class _RandomAccess(io.RawIOBase):
    """A data file of which only the bytes are read that somebody asks for."""

    def __init__(self, store: Reader, path: str) -> None:
        facts = store.head(path)
        if facts is None:
            raise ObjectMissing("a file of the table is gone", path=store.describe(path))
        self._store = store
        self._facts = facts
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._facts.size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._facts.size if size < 0 else min(self._facts.size, self._at + size)
        if end <= self._at:
            return b""
        body = self._store.part(self._facts.path, self._at, end, etag=self._facts.etag)
        self._at = end
        return body


def check_columns(predicate: Predicate, schema: Schema) -> None:
    """Raise where a condition asks for a column that the table does not have."""
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
    """Yield the rows of data files for which a condition holds, in the order of the files.

    `hidden` names columns that only files have.
    """
    for path, file in sorted(files.items()):
        for found in matching_groups(store, file, predicate, schema, mapping):
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
) -> Iterator[FoundInGroup]:
    """Yield the row groups of a data file with rows for which a condition holds.

    `mapping` says how files of the table hold its columns, where it maps them.
    """
    kinds = {one.name: one.arrow_type() for one in schema.fields}
    asked = {column[0] for column in columns_in(predicate)}
    deleted: Places | None = None
    opened: Any = _RandomAccess(store, active.path)  # pyarrow's stubs want more of it than pyarrow
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
            yield FoundInGroup(
                group=group, places=tuple(live.tolist()), deleted=len(places) - len(live)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsInFile:
    """The rows of one data file for which a condition holds."""

    rows: int
    """All rows of the file."""
    places: tuple[int, ...]
    """Their places in the file, from 0."""
    by_column: Mapping[str, int]
    """How many of them say themselves that they came from which source file, by its URI."""
    deleted: int = 0
    """How many others were deleted."""


def rows_in(
    store: Reader,
    file: ActiveFile,
    predicate: Predicate,
    schema: Schema,
    mapping: ColumnMapping | None = None,
) -> RowsInFile | None:
    """Return the rows of a data file for which a condition holds; None where it holds for none."""
    rows = deleted = 0
    places: list[int] = []
    said: Counter[str] = Counter()
    for found in matching_groups(store, file, predicate, schema, mapping):
        group = found.group
        rows = group.file.file.metadata.num_rows
        deleted += found.deleted
        places += [group.start + place for place in found.places]
        if FILE in group.file.names:
            column = group.read([FILE])[FILE]
            names: Any = column.take(list(found.places))
            said.update(name for name in names.to_pylist() if name is not None)
    if not places and not deleted:
        return None
    return RowsInFile(rows=rows, places=tuple(places), by_column=dict(said), deleted=deleted)
