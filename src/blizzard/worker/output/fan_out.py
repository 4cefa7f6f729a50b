"""Rows of many partitions into the rolled files of each, with few files open and little in memory.

Rows wait in memory by partition. What they take together, with the rows beside them that they keep
there, is bounded by the size of a row group: past it, the partitions with the most rows are
written, until the others take at most half of it, and those are copied together. A partition
without a written row group has no file, so that only those that were written count against the
bound on open files; the one that got no row for longest is finished to make room.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from blizzard.model.event_time import RowPartitions
from blizzard.model.settings import RollingPolicy
from blizzard.model.work import ClosedFile
from blizzard.worker.output.encoding import SAMPLE_ROWS, Encoding, LookAt, encoding_of
from blizzard.worker.output.origins import Cutter, spread
from blizzard.worker.output.parquet import RollingWriter, batch_cost
from blizzard.worker.output.partitioner import Values, grouped
from lakebed.clock import Clock
from lakebed.documents.records import Run
from lakebed.layout import PartitionValues

MAX_OPEN_FILES = 64
"""Two and a half days by the hour. A task has at most two sets of files open, and a process often
1,024 descriptors; each file takes up to its target size of the local disk until it is finished."""


class ForPartition(Protocol):
    """Opens the writer of one partition."""

    def __call__(self, values: PartitionValues, look_at: LookAt) -> RollingWriter:
        """Return it; `look_at` says how its columns are encoded."""


class PartitionedWriter:
    """Writes rows into the files of the partitions that they belong to."""

    def __init__(
        self,
        *,
        by: RowPartitions,
        from_path: PartitionValues,
        schema: pa.Schema,
        policy: RollingPolicy,
        batch_size_of: Callable[[str], int],
        clock: Clock,
        for_partition: ForPartition,
        staged_bytes: int,
        max_open_files: int = MAX_OPEN_FILES,
    ) -> None:
        self._by = by
        self._from_path = from_path
        self._schema = schema
        self._batch_cost = batch_cost(schema)
        self._policy = policy
        self._batch_size_of = batch_size_of
        self._clock = clock
        self._for_partition = for_partition
        self._divided_at = staged_bytes
        self._max_open_files = max_open_files
        self._staged: list[pa.RecordBatch] = []
        self._staged_bytes = 0
        self._runs: list[Run] = []
        self._source = ""
        self._writers: dict[Values, RollingWriter] = {}
        self._open: OrderedDict[Values, None] = OrderedDict()
        """The partitions with a file, the one that got no row for longest first."""
        self._held = 0
        """Memory of the rows that wait, once compacted."""
        self._kept = 0
        """Memory that they keep, the rows beside them included."""
        self._sampled = 0
        self._encoding = Encoding()
        """How columns are encoded, by the largest sample so far: a look at each file would cost
        more than a small file does."""
        self._oldest = float("inf")
        """No file in hand is older than this; there may be none as old."""

    @property
    def held(self) -> int:
        """Return how much memory the rows keep that wait for their row groups."""
        return self._kept

    def write(
        self,
        batch: pa.RecordBatch,
        source: str,
        size: int | None = None,
        runs: Sequence[Run] = (),
    ) -> Iterator[ClosedFile]:
        """Take rows of a source file; return the files that they filled, or that made room.

        `size` is the memory that they take, and `runs` the records that they come from,
        where they are already known.
        """
        if self._staged and source != self._source:
            yield from self._divide()
        self._source = source
        if batch.num_rows:
            self._staged.append(batch)
            self._staged_bytes += batch.nbytes if size is None else size
            self._runs += runs
        if self._staged_bytes >= self._divided_at:
            yield from self._divide()

    def close(self) -> Iterator[ClosedFile]:
        """Close the files of all partitions, one after the other."""
        yield from self._divide()
        for key in list(self._writers):
            yield from self._finish(key)
        self._kept = 0

    def abandon(self) -> None:
        """Forget the files in hand; their bytes go with the folder."""
        for writer in self._writers.values():
            writer.abandon()
        self._writers.clear()
        self._open.clear()
        self._staged, self._staged_bytes, self._held, self._kept = [], 0, 0, 0
        self._runs = []

    def _divide(self) -> Iterator[ClosedFile]:
        """Hand the staged rows to their partitions."""
        staged, size, runs = self._staged, self._staged_bytes, self._runs
        self._staged, self._staged_bytes, self._runs = [], 0, []
        if not staged:
            return
        yield from self._finish_old()
        self._look_at(staged)
        rows = sum(batch.num_rows for batch in staged)
        if sum(one.rows for one in runs) != rows:
            runs = []  # of some rows the records are unknown
        self._kept += size
        most = self._batch_size_of(self._source)
        for key, batches in grouped(staged, self._by, self._schema.names):
            here = sum(batch.num_rows for batch in batches)
            cutter = Cutter(runs if here == rows else spread(runs, here))
            for batch in batches:
                for start in range(0, batch.num_rows, most):
                    some = batch.slice(start, most)
                    origin = cutter.next(some.num_rows)
                    yield from self._take(key, some, size * some.num_rows // rows, origin)

    def _look_at(self, staged: list[pa.RecordBatch]) -> None:
        """Look at a larger sample than before, as long as there is none of the full size."""
        sample = pa.Table.from_batches(staged).select(self._schema.names).slice(0, SAMPLE_ROWS)
        if sample.num_rows > self._sampled:
            self._sampled = sample.num_rows
            self._encoding = encoding_of(sample, self._policy.codec)

    def _take(
        self, key: Values, batch: pa.RecordBatch, size: int, runs: Sequence[Run]
    ) -> Iterator[ClosedFile]:
        writer = self._writers.get(key)
        if writer is None:
            values = self._values(key)
            writer = self._for_partition(values, lambda _rows: self._encoding)
            self._writers[key] = writer
        before = writer.held
        writer.take(batch, self._source, size, runs)
        self._held += writer.held - before
        self._kept += self._batch_cost
        self._oldest = min(self._oldest, writer.since)
        if key in self._open:
            self._open.move_to_end(key)
        if writer.is_full:
            yield from self._flush(key)
        if max(self._kept, self._held) > self._policy.row_group_size:
            yield from self._relieve()

    def _values(self, key: Values) -> PartitionValues:
        row = {part.column.name: value for part, value in zip(self._by.parts, key, strict=True)}
        return self._by.values(row, self._from_path)

    def _relieve(self) -> Iterator[ClosedFile]:
        """Write the partitions with the most rows, and copy the rows of the others together."""
        for key in sorted(self._writers, key=lambda key: self._writers[key].held, reverse=True):
            if self._held <= self._policy.row_group_size // 2:
                break
            if key in self._writers:  # it may have been finished to make room
                yield from self._flush(key)
        for writer in self._writers.values():
            writer.compact()
        self._kept = self._held

    def _flush(self, key: Values) -> Iterator[ClosedFile]:
        """Write the rows that wait for one partition into its file."""
        writer = self._writers[key]
        if not writer.held:
            return
        if not writer.is_open:
            while len(self._open) >= self._max_open_files:
                yield from self._finish(next(iter(self._open)))
        held = writer.held
        closed = list(writer.flush())
        self._held -= held
        if writer.is_open:
            self._open[key] = None
        else:
            del self._writers[key]
            self._open.pop(key, None)
        yield from closed

    def _finish(self, key: Values) -> Iterator[ClosedFile]:
        """Close the file of one partition, the rows that wait for it included."""
        writer = self._writers[key]
        held = writer.held
        closed = list(writer.close())
        self._held -= held
        del self._writers[key]
        self._open.pop(key, None)
        yield from closed

    def _finish_old(self) -> Iterator[ClosedFile]:
        """Finish the files that have been open too long, whether or not more rows come."""
        latest = self._clock.seconds() - self._policy.rollover
        if self._oldest > latest:
            return
        for key in [key for key, writer in self._writers.items() if writer.since <= latest]:
            yield from self._finish(key)
        since = (writer.since for writer in self._writers.values())
        self._oldest = min(since, default=float("inf"))
