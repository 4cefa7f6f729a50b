"""Divide rows among partitions, and write each partition into rolled files.

Batches are divided as a whole: Python handles distinct values, never rows. Each distinct partition
gets a number by which the rows are sorted.

Rows wait in memory by partition, bounded by the size of a row group. Beyond that, the partitions
with the most rows are written until the rest takes at most half of it, and the rest is copied so
that it keeps no other rows alive. A partition has an open file only once a row group is written; to
bound the open files, the least recently used one is finished.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.model.event_time import DAY, RefusedRow, RowPartitions
from blizzard.model.settings import RollingPolicy
from blizzard.model.work import ClosedFile
from blizzard.worker.output.encoding import SAMPLE_ROWS, ChooseEncoding, Encoding, encoding_of
from blizzard.worker.output.origins import Cutter, spread
from blizzard.worker.output.parquet import RollingWriter, batch_cost
from lakebed.columns.schema import Field
from lakebed.documents.records import Run
from lakebed.layout import NULL_FOLDER, PartitionValues, escape
from lakebed.types import FieldType

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_FOLDER = 255
"""The longest folder name in bytes that file systems support."""
ESCAPED_BYTES = 3
"""The most bytes of a folder name per byte of a value."""

Column = Any
"""An array of any type; pyarrow's stubs know one at a time."""
Values = tuple[str | None, ...]
Numbers = npt.NDArray[np.int64]
Numbered = tuple[Numbers, list[Values]]


def grouped(
    batches: Sequence[pa.RecordBatch], by: RowPartitions, columns: Sequence[str]
) -> Iterator[tuple[Values, list[pa.RecordBatch]]]:
    """Yield each partition of the rows once, with its rows in order and these columns.

    The partitions are slices of one copy, sorted by partition. Rows of a single partition are not
    copied.
    """
    numbers, values = _numbered(pa.Table.from_batches(batches), by)
    kept = [batch.select(list(columns)) for batch in batches]
    if len(values) <= 1:
        yield from ((value, kept) for value in values)
        return
    (together,) = pa.Table.from_batches(kept).combine_chunks().to_batches()
    # numpy sorts 16-bit integers with a radix sort.
    small = numbers.astype(np.uint16) if len(values) <= 1 << 16 else numbers
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(values)))
    together = together.take(pa.array(order, pa.int64()))
    start = 0
    for value, end in zip(values, ends.tolist(), strict=True):
        yield value, [together.slice(start, end - start)]
        start = end


def refused_rows(batch: pa.RecordBatch, by: RowPartitions) -> dict[int, RefusedRow]:
    """Return the rows with an invalid partition value, each with its first error.

    If only the upload or penguin found such a value, it would stop more than its own file.
    """
    refused: dict[int, RefusedRow] = {}
    for name, code, why, found in _faults(batch, by):
        rows: list[Any] = pc.indices_nonzero(found).to_pylist()
        for row in rows:
            refused.setdefault(row, RefusedRow(code=code, message=why, field=name))
    return refused


def _faults(batch: pa.RecordBatch, by: RowPartitions) -> Iterator[tuple[str, str, str, Column]]:
    """Yield the possible errors of partition values, each with a mask of the affected rows."""
    for part in by.parts:
        name = part.column.name
        is_text = part.pattern is None and part.column.type is FieldType.STRING
        column = batch[name] if part.pattern is None else _timestamps(batch, by)
        if not part.column.nullable:
            why = "found no value, expected one: the partition column is required"
            yield name, "required_field_missing", why, _missing(column, is_text=is_text)
        if is_text:
            why = f"found a value whose folder name would be longer than {LONGEST_FOLDER} bytes"
            yield name, "partition_value_too_long", why, _too_long(column, name)


def _missing(column: Column, *, is_text: bool) -> Column:
    if not is_text:
        return pc.is_null(column)
    return pc.if_else(pc.is_null(column), True, pc.is_in(column, pa.array(["", NULL_FOLDER])))


def _too_long(column: Column, name: str) -> Column:
    room = LONGEST_FOLDER - len(f"{escape(name)}=".encode())
    lengths: Column = pc.binary_length(column)
    if (pc.max(lengths).as_py() or 0) * ESCAPED_BYTES <= room:
        return pa.array([], pa.bool_())
    values = pc.unique(column).to_pylist()
    return pc.is_in(
        column,
        pa.array([value for value in values if len(escape(value).encode()) > room], pa.string()),
    )


def _numbered(rows: pa.Table, by: RowPartitions) -> Numbered:
    """Return a partition number for each row, and the partition values by number."""
    found: Numbered = (np.zeros(rows.num_rows, np.int64), [()] if rows.num_rows else [])
    names = [part.column.name for part in (*by.times, *by.columns)]
    if by.times:
        found = _together(found, _times(_timestamps(rows, by), by))
    for part in by.columns:
        found = _together(found, _column(rows[part.column.name], part.column))
    places = [names.index(part.column.name) for part in by.parts]
    numbers, values = found
    return numbers, [tuple(value[place] for place in places) for value in values]


def _timestamps(rows: pa.Table | pa.RecordBatch, by: RowPartitions) -> Column:
    """Return the timestamps of the rows; null inside a null struct."""
    column, *inside = by.timestamp_path
    return pc.struct_field(rows[column], inside) if inside else rows[column]


def _times(column: Column, by: RowPartitions) -> Numbered:
    """Return the time partitions of the rows by number, and their values."""
    whole = column.combine_chunks()
    if pa.types.is_date(whole.type):
        spans, unit = whole.cast(pa.int32()).cast(pa.int64()), DAY
    else:
        spans, unit = whole.cast(pa.int64()), by.seconds
        # numpy rounds down, before 1970 too; Arrow rounds towards zero.
        floor = spans.fill_null(0).to_numpy(zero_copy_only=False) // (unit * 1_000_000)
        spans = pa.array(floor, mask=spans.is_null().to_numpy(zero_copy_only=False))
    numbers, distinct = _distinct(spans)
    return _merged(
        numbers,
        [
            (None,) * len(by.times)
            if span is None
            else tuple(part.written(EPOCH + timedelta(seconds=span * unit)) for part in by.times)
            for span in distinct
        ],
    )


def _column(column: Column, field: Field) -> Numbered:
    """Return a column's values by number, and as Delta writes them; an empty string is null."""
    numbers, distinct = _distinct(column.combine_chunks())
    return _merged(numbers, [(_written(value, field),) for value in distinct])


def _written(value: Any, field: Field) -> str | None:  # noqa: ANN401 - any value of the column
    if value is None:
        return None
    match field.type:
        case FieldType.BOOLEAN:
            return "true" if value else "false"
        case FieldType.STRING:
            # Hive's name for null is null to every reader of the table.
            return None if value in ("", NULL_FOLDER) else value
        case _:
            return str(value)


def _distinct(array: Column) -> tuple[Numbers, list[Any]]:
    encoded = array.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _merged(numbers: Numbers, values: list[Values]) -> Numbered:
    """Assign one number to equal values."""
    first: dict[Values, int] = {}
    renamed = [first.setdefault(value, len(first)) for value in values]
    if len(first) == len(values):
        return numbers, values
    return np.array(renamed, np.int64)[numbers], list(first)


def _together(one: Numbered, other: Numbered) -> Numbered:
    """Combine two numberings into one of the pairs that occur."""
    (left, before), (right, after) = one, other
    if len(before) <= 1 or len(after) <= 1:
        numbers = right if len(before) <= 1 else left
        return numbers, [first + second for first in before for second in after]
    numbers, pairs = _distinct(pa.array(left * len(after) + right))
    return numbers, [before[pair // len(after)] + after[pair % len(after)] for pair in pairs]


MAX_OPEN_FILES = 64
"""Two and a half days of hourly partitions. A task has at most two sets of open files, a process
often 1,024 descriptors; each file takes up to its target size on the local disk."""


ForPartition = Callable[[PartitionValues, ChooseEncoding], RollingWriter]
"""Opens the writer of one partition; `ChooseEncoding` chooses the encoding of its columns."""


@dataclass(kw_only=True, eq=False)
class PartitionedWriter:
    """Writes rows into the files of their partitions."""

    by: RowPartitions
    from_path: PartitionValues
    schema: pa.Schema
    policy: RollingPolicy
    batch_size_of: Callable[[str], int]
    for_partition: ForPartition
    staged_bytes: int
    max_open_files: int = MAX_OPEN_FILES

    def __post_init__(self) -> None:
        self._batch_cost = batch_cost(self.schema)
        self._staged: list[pa.RecordBatch] = []
        self._staged_size = 0
        self._runs: list[Run] = []
        self._source = ""
        self._writers: dict[Values, RollingWriter] = {}
        self._open: OrderedDict[Values, None] = OrderedDict()
        """The partitions with an open file, least recently used first."""
        self._held = 0
        """Memory of the waiting rows, once compacted."""
        self._kept = 0
        """Memory that they keep alive, including other rows of their batches."""
        self._sampled = 0
        self._encoding = Encoding()
        """The encoding of columns, chosen by the largest sample so far: sampling each file would
        cost more than a small file does."""

    @property
    def held(self) -> int:
        """Return the memory that the waiting rows keep alive."""
        return self._kept

    def write(
        self,
        batch: pa.RecordBatch,
        source: str,
        size: int | None = None,
        runs: Sequence[Run] = (),
    ) -> Iterator[ClosedFile]:
        """Add rows of a source file; yield the files that were closed, full or to make room.

        `size` is the memory of the rows and `runs` their origins, if known.
        """
        if self._staged and source != self._source:
            yield from self._divide()
        self._source = source
        if batch.num_rows:
            self._staged.append(batch)
            self._staged_size += batch.nbytes if size is None else size
            self._runs += runs
        if self._staged_size >= self.staged_bytes:
            yield from self._divide()

    def close(self) -> Iterator[ClosedFile]:
        """Close the files of all partitions."""
        yield from self._divide()
        for key in list(self._writers):
            yield from self._finish(key)
        self._kept = 0

    def abandon(self) -> None:
        """Abandon the open files, which are deleted with their folder."""
        for writer in self._writers.values():
            writer.abandon()
        self._writers.clear()
        self._open.clear()
        self._staged, self._staged_size, self._held, self._kept = [], 0, 0, 0
        self._runs = []

    def _divide(self) -> Iterator[ClosedFile]:
        """Divide the staged rows among their partitions."""
        staged, size, runs = self._staged, self._staged_size, self._runs
        self._staged, self._staged_size, self._runs = [], 0, []
        if not staged:
            return
        self._update_encoding(staged)
        rows = sum(batch.num_rows for batch in staged)
        if sum(one.rows for one in runs) != rows:
            runs = []  # The origins of some rows are unknown.
        self._kept += size
        most = self.batch_size_of(self._source)
        for key, batches in grouped(staged, self.by, self.schema.names):
            here = sum(batch.num_rows for batch in batches)
            cutter = Cutter(runs if here == rows else spread(runs, here))
            for batch in batches:
                for start in range(0, batch.num_rows, most):
                    some = batch.slice(start, most)
                    origin = cutter.next(some.num_rows)
                    yield from self._take(key, some, size * some.num_rows // rows, origin)

    def _update_encoding(self, staged: list[pa.RecordBatch]) -> None:
        """Choose the encoding again if the sample is larger than before."""
        sample = pa.Table.from_batches(staged).select(self.schema.names).slice(0, SAMPLE_ROWS)
        if sample.num_rows > self._sampled:
            self._sampled = sample.num_rows
            self._encoding = encoding_of(sample, self.policy.codec)

    def _take(
        self, key: Values, batch: pa.RecordBatch, size: int, runs: Sequence[Run]
    ) -> Iterator[ClosedFile]:
        writer = self._writers.get(key)
        if writer is None:
            values = self._values(key)
            writer = self.for_partition(values, lambda _rows: self._encoding)
            self._writers[key] = writer
        before = writer.held
        writer.take(batch, self._source, size, runs)
        self._held += writer.held - before
        self._kept += self._batch_cost
        if key in self._open:
            self._open.move_to_end(key)
        if writer.is_full:
            yield from self._flush(key)
        if max(self._kept, self._held) > self.policy.row_group_size:
            yield from self._relieve()

    def _values(self, key: Values) -> PartitionValues:
        row = {part.column.name: value for part, value in zip(self.by.parts, key, strict=True)}
        return self.by.values(row, self.from_path)

    def _relieve(self) -> Iterator[ClosedFile]:
        """Write the partitions with the most rows, and compact the others."""
        for key in sorted(self._writers, key=lambda key: self._writers[key].held, reverse=True):
            if self._held <= self.policy.row_group_size // 2:
                break
            if key in self._writers:  # another flush may have finished it to make room
                yield from self._flush(key)
        for writer in self._writers.values():
            writer.compact()
        self._kept = self._held

    def _flush(self, key: Values) -> Iterator[ClosedFile]:
        """Write the waiting rows of one partition into its file."""
        writer = self._writers[key]
        if not writer.held:
            return
        if not writer.is_open:
            while len(self._open) >= self.max_open_files:
                yield from self._finish(next(iter(self._open)))
        yield from self._written(key, writer.flush)

    def _finish(self, key: Values) -> Iterator[ClosedFile]:
        """Write the waiting rows of one partition and close its file."""
        yield from self._written(key, self._writers[key].close)

    def _written(
        self, key: Values, write: Callable[[], Iterator[ClosedFile]]
    ) -> Iterator[ClosedFile]:
        writer = self._writers[key]
        held = writer.held
        closed = list(write())
        self._held -= held
        if writer.is_open:
            self._open[key] = None
        else:
            del self._writers[key]
            self._open.pop(key, None)
        yield from closed
