"""Write Arrow batches into Parquet files on the local disk, rolled by size.

Memory is bounded by one row group; encoded data is on disk, from where it is uploaded.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blizzard.model.settings import RollingPolicy
from blizzard.model.source.forecast import FULL_ENOUGH
from blizzard.model.work import ClosedFile
from blizzard.worker.output.encoding import (
    ChooseEncoding,
    Values,
    as_physical,
    encoding_of,
    fields_in,
    leaves,
    logical_paths,
)
from blizzard.worker.output.origins import Origins, ProvenanceWriter
from lakebed.clock import Clock
from lakebed.columns.column_mapping import ColumnMapping, with_field_ids
from lakebed.documents.parquet_footer import statistics
from lakebed.documents.records import Run
from lakebed.layout import PartitionValues
from lakebed.types import RESCUED, ParquetCodec


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFile:
    """The state of a file that is being written."""

    encoded: int
    """Bytes of the closed row groups."""
    buffered: int
    """Arrow bytes that wait for the next row group."""
    ratio: float
    """Encoded bytes per Arrow byte in the last row group; 1 before the first one."""


def row_group_is_full(file: OpenFile, policy: RollingPolicy) -> bool:
    """Whether to close the row group: enough is buffered, or it fills the file."""
    return file.buffered > 0 and (
        file.buffered >= policy.row_group_size
        or file.encoded + file.buffered * file.ratio >= policy.file_size
    )


def file_is_full(file: OpenFile, policy: RollingPolicy) -> bool:
    """Whether to roll: the file has nearly its target size."""
    return file.encoded >= policy.file_size * FULL_ENOUGH


COLUMN_COST = 512
"""Approximate bytes of memory for each column of a batch besides its values."""


def batch_cost(schema: pa.Schema) -> int:
    """Return the memory of a batch besides its values."""
    return COLUMN_COST * sum(fields_in(field.type) for field in schema)


class RollingWriter:
    """Writes the batches of one partition into consecutive Parquet files."""

    def __init__(
        self,
        *,
        schema: pa.Schema,
        policy: RollingPolicy,
        marks: Mapping[str, str],
        folder: Path,
        clock: Clock,
        partition_values: PartitionValues | None = None,
        choose: ChooseEncoding | None = None,
        stamps: ProvenanceWriter | None = None,
        mapping: ColumnMapping | None = None,
        from_json: bool = True,
    ) -> None:
        """Rows that are not `from_json`, but from data files, may have NaN and any columns."""
        self._partition_values = partition_values or {}
        self._choose = choose or partial(encoding_of, codec=policy.codec)
        self._stamps = stamps
        self._mapping = mapping
        self._names: dict[str, str] = {}
        """The logical column names of the open file by physical name, with column mapping."""
        self._schema = schema
        self._marks = {f"blizzard.{key}": value for key, value in marks.items()}
        self._policy = policy
        self._folder = folder
        self._clock = clock
        self._ratio = 1.0
        self._buffered: list[pa.RecordBatch] = []
        self._waiting = Origins()
        self._written = Origins()
        """The origins of the waiting rows, and of those in the file."""
        self._open: tuple[UUID, pa.OSFile, pq.ParquetWriter] | None = None
        self._buffered_bytes = 0
        self._is_compact = False
        self._from_json = from_json
        self._rescues = not from_json
        self._seconds = 0.0

    @property
    def held(self) -> int:
        """Return the memory of the waiting rows, once compacted."""
        return self._buffered_bytes + batch_cost(self._schema) if self._buffered else 0

    @property
    def is_open(self) -> bool:
        """Whether there is a file on disk, not only waiting rows."""
        return self._open is not None

    @property
    def is_full(self) -> bool:
        """Whether the waiting rows make a row group."""
        return row_group_is_full(self._state(), self._policy)

    def write(
        self,
        batch: pa.RecordBatch,
        source: str,
        size: int | None = None,
        runs: Sequence[Run] = (),
    ) -> Iterator[ClosedFile]:
        """Add rows of a source file; yield the file if they fill it."""
        self.take(batch, source, size, runs)
        if self.is_full:
            yield from self.flush()

    def take(
        self,
        batch: pa.RecordBatch,
        source: str,
        size: int | None = None,
        runs: Sequence[Run] = (),
    ) -> None:
        """Add rows of a source file, buffered until their row group is closed.

        `size` is the memory of the rows and `runs` their origins, if known.
        """
        if not batch.num_rows:
            return
        self._waiting.add(source, batch.num_rows, runs)
        self._hold(batch, batch.nbytes if size is None else size)

    def _hold(self, batch: pa.RecordBatch, size: int) -> None:
        self._buffered.append(batch)
        self._buffered_bytes += size
        self._is_compact = False

    def write_files(
        self, batch: pa.RecordBatch, files: Sequence[tuple[str, int]], size: int
    ) -> Iterator[ClosedFile]:
        """Add the rows of whole source files in which each line is a row; see `write`.

        `files` holds the source files and their row counts, in order.
        """
        self._waiting.add_whole(files)
        self._hold(batch, size)
        if self.is_full:
            yield from self.flush()

    def compact(self) -> None:
        """Copy the waiting rows, so that they keep no other rows of their batches alive."""
        if self._buffered and not self._is_compact:
            rows = pa.Table.from_batches(self._buffered)
            # Combining a single batch would copy nothing.
            one = len(self._buffered) == 1
            rows = rows.take(np.arange(rows.num_rows)) if one else rows.combine_chunks()
            self._buffered = rows.to_batches()
            self._is_compact = True

    def flush(self) -> Iterator[ClosedFile]:
        """Close the row group; yield the file if it is full."""
        yield from self._make_room()
        self._close_row_group()
        if file_is_full(self._state(), self._policy):
            yield self._roll()

    def close(self) -> Iterator[ClosedFile]:
        """Close the current file, if there is one."""
        if self._buffered:
            yield from self._make_room()
            self._close_row_group()
        if self._open:
            yield self._roll()

    def abandon(self) -> None:
        """Abandon the current file, which is deleted with its folder."""
        self._buffered, self._buffered_bytes, self._seconds = [], 0, 0.0
        if self._open:
            _name, file, writer = self._open
            self._open = None
            with contextlib.suppress(Exception):
                writer.close()
            with contextlib.suppress(Exception):
                file.close()

    def _state(self) -> OpenFile:
        return OpenFile(
            encoded=self._open[1].tell() if self._open else 0,
            buffered=self._buffered_bytes,
            ratio=self._ratio,
        )

    def _make_room(self) -> Iterator[ClosedFile]:
        """Begin another file if rows need the column `_rescued` and the current file lacks it.

        Only files with rescued values have the column, so a table without any never gets it.
        """
        begins = self._begins_to_rescue()
        self._rescues |= begins
        if self._open and begins:
            yield self._roll()

    def _begins_to_rescue(self) -> bool:
        if self._rescues or RESCUED not in self._schema.names:
            return False
        return any(batch[RESCUED].null_count < batch.num_rows for batch in self._buffered)

    def _columns(self) -> pa.Schema:
        # A file needs at least one column, even if no value has a known type.
        if self._rescues or RESCUED not in self._schema.names or len(self._schema) == 1:
            return self._schema
        return self._schema.remove(self._schema.get_field_index(RESCUED))

    def _close_row_group(self) -> None:
        started = self._clock.seconds()
        schema = self._columns()
        table = pa.Table.from_batches(self._buffered).select(schema.names).cast(schema)
        stamped = self._stamps.on(table, self._waiting.by_source) if self._stamps else table
        rows = stamped if self._mapping is None else as_physical(stamped, self._mapping)
        if self._open is None:
            name = self._clock.fresh_id()
            encoding = self._choose(table)
            if self._stamps:
                repeating = (*encoding.repeating, *self._stamps.names)
                encoding = replace(encoding, repeating=repeating)
            self._names = {}
            if self._mapping is not None:
                self._names = logical_paths(stamped.schema, self._mapping)
            file = pa.OSFile(str(self._folder / f"{name}.parquet"), "wb")
            writer = pq.ParquetWriter(
                file,
                rows.schema if self._mapping is not None else with_field_ids(rows.schema),
                store_schema=False,
                write_statistics=True,
                **encoding.options(stamped.schema, self._policy.codec, rows.schema),
            )
            writer.add_key_value_metadata(self._marks)
            self._open = (name, file, writer)
        _name, file, writer = self._open
        before = file.tell()
        writer.write_table(rows, row_group_size=table.num_rows)
        self._ratio = (file.tell() - before) / max(1, self._buffered_bytes)
        self._buffered, self._buffered_bytes = [], 0
        self._written.extend(self._waiting)
        self._waiting = Origins()
        self._seconds += self._clock.seconds() - started

    def _roll(self) -> ClosedFile:
        started = self._clock.seconds()
        assert self._open is not None  # noqa: S101 - both callers have just closed a row group in it
        name, file, writer = self._open
        writer.close()
        file.close()
        # Read the footer back: what counts is what is on disk.
        path = self._folder / f"{name}.parquet"
        metadata = pq.read_metadata(path)
        # JSON numbers are finite.
        without_nan = self._from_json or not _has_nan(path)
        closed = ClosedFile(
            name=name,
            path=path,
            size=path.stat().st_size,
            rows=metadata.num_rows,
            sources=self._written.sources,
            runs=self._written.runs(),
            statistics={
                self._names.get(name, name): known
                for name, known in statistics(metadata, without_nan=without_nan).items()
            },
            seconds=self._seconds + self._clock.seconds() - started,
            partition_values=self._partition_values,
        )
        self._open, self._seconds = None, 0.0
        self._written = Origins()
        return closed


def _has_nan(path: Path) -> bool:
    """Whether a file contains NaN, which another engine may have written."""
    file = pq.ParquetFile(path)
    columns = [one.name for one in file.schema_arrow if _floats(pa.schema([one]).empty_table())]
    batches = file.iter_batches(columns=columns) if columns else ()
    return any(
        pc.any(pc.is_nan(leaf)).as_py()
        for batch in batches
        for leaf in _floats(pa.Table.from_batches([batch]))
    )


def _floats(rows: pa.Table) -> list[Values]:
    return [leaf for _, leaf in leaves(rows) if pa.types.is_floating(leaf.type)]


def write_one_file(
    row_groups: Iterable[pa.Table],
    codec: ParquetCodec,
    **writing: Any,  # noqa: ANN401 - the arguments of `RollingWriter`
) -> ClosedFile | None:
    """Write tables from data files as row groups of one file of any size; None without rows."""
    policy = RollingPolicy(file_size=1 << 62, codec=codec)
    writer: RollingWriter | None = None
    try:
        for table in row_groups:
            if not table.num_rows:
                continue
            if writer is None:
                writer = RollingWriter(
                    schema=table.schema, policy=policy, from_json=False, **writing
                )
            for batch in table.to_batches():
                writer.take(batch, "")
            for _closed in writer.flush():
                raise AssertionError("a file that is never full was closed")
        return None if writer is None else next(writer.close())
    finally:
        if writer is not None:
            writer.abandon()
