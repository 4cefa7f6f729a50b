"""Ingest source objects: run their work units, and return what to journal.

Batches, replays of quarantined lines and replacements differ only in their units and in the entry
that they write. The files written are garbage until an entry names them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from blizzard.events import ColumnsFound
from blizzard.execute.bisect import UnitRuns
from blizzard.execute.merge import SettledBatch
from blizzard.execute.runner import Runner
from blizzard.journal.fence import EntryColumns
from blizzard.model.bad_lines import member_path
from blizzard.model.columns import adopted, grown, kept_exact, with_found
from blizzard.model.event_time import row_partitions
from blizzard.model.seen import Seen
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import sink_location, source_location
from blizzard.model.work import SharedProvenance, TaskLimits, Work, WorkUnit
from lakebed.clock import Clock
from lakebed.columns.column_mapping import ColumnMapping, marked
from lakebed.columns.schema import Schema, walk
from lakebed.documents.records import FinishedFile
from lakebed.partition import table_schema
from lakebed.telemetry.events import Emit
from lakebed.types import RESCUED, Handoff, Provenance, UnknownFields

TableColumns = Callable[[], Schema | None]
"""Reads the columns of the table from the log; None if there is no table or it is unreadable."""


@dataclass(slots=True, kw_only=True)
class BatchColumns:
    """The columns that a batch writes, which may grow while it runs; the entry records them.

    Columns found in the data keep their type in the table, if they are there: another pipeline may
    have decided it first.
    """

    settings: PipelineSettings
    known: Schema | None
    """The columns of the last entry; None for the declared ones."""
    of_table: TableColumns
    emit: Emit
    mapping: ColumnMapping | None
    """The table's column mapping; None without one."""
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        schema = with_found(self.settings.schema, self.known)
        if schema != self.settings.schema:
            declared = self.settings.schema
            schema = adopted(schema, self.of_table(), declared=declared, known=self.known)
        self.schema = schema

    @property
    def to_be_inferred(self) -> bool:
        """Whether to infer columns before reading, since none have been found so far."""
        return self.settings.infer and self.known is None

    def entry(self, files: Sequence[FinishedFile]) -> EntryColumns:
        """Return the columns for the entry; `_rescued` only if one of its files has it."""
        schema = table_schema(self.schema, self.settings.sink.template)
        if any(RESCUED in file.statistics for file in files):
            schema = schema.with_rescued()
        schema = schema.with_provenance(self.settings.provenance)
        found = None if self.schema == self.settings.schema else self.schema
        written = schema.delta()
        if self.mapping is not None:
            written = marked(written, self.mapping)
        return EntryColumns(table_schema=written, found=found)

    def grow(self, seen: Mapping[str, Seen]) -> bool:
        """Add columns for observed values without one; return whether any were added."""
        if not seen or not (self.to_be_inferred or self._adds):
            return False
        table = self.of_table()
        there = set() if table is None else {member_path("", one.name) for one in table.fields}
        # Of names that differ only in case, the one in the table gets the column.
        seen = dict(sorted(seen.items(), key=lambda one: one[0] not in there))
        template = self.settings.sink.template
        keys = frozenset(template.keys if template else ())
        # Partition and provenance columns have reserved their names: a command that takes rows back
        # trusts what the latter say, whether they are configured now or not.
        ours = tuple(Provenance)
        whole = grown(table_schema(self.schema, template).with_provenance(ours), seen)
        taken = keys | {which.column for which in ours}
        added = tuple(one for one in whole.fields if one.name not in taken)
        declared = tuple(one for one in self.schema.fields if one.name in keys)
        # Files of this batch may already have the previous columns, which stay unchanged.
        wider = adopted(Schema(declared + added), table, declared=self.schema)
        if set(wider.fields) == set(self.schema.fields):
            return False
        self.emit(ColumnsFound(pipeline=self.settings.name, columns=_new(self.schema, wider)))
        self.schema = wider
        return True

    def within(self, work: Work) -> Work:
        """Return the work with the present columns.

        While no column is known, every value is kept: otherwise all data would be dropped or
        refused as unknown.
        """
        template = self.settings.sink.template
        keys = frozenset(template.keys if template else ())
        schema = self.schema.without(keys)
        if not schema.fields and not self._adds:
            work = replace(work, unknown_fields=UnknownFields.RESCUE)
        schema = kept_exact(schema, self.settings.schema, self.settings.on_mismatch)
        return replace(work, file_schema=schema, mapping=self.mapping)

    @property
    def _adds(self) -> bool:
        return self.settings.unknown_fields is UnknownFields.ADD


def _new(before: Schema, after: Schema) -> dict[str, str]:
    """Return the types of new columns and fields by path, without inner fields of new ones."""
    known = {path for path, _field in walk(before.fields)}
    new: dict[str, str] = {}
    for path, one in walk(after.fields):
        above = path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0]
        if path not in known and (not above or above in known):
            new[path] = one.shown
    return new


def sample_share(units: Sequence[WorkUnit], most: int) -> float:
    """Return the share of each file to sample, for at most `most` bytes in all samples."""
    total = sum(unit.to_read for unit in units)
    return min(1.0, most / total) if total else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """The outcome of work units, and the columns that were written."""

    settled: SettledBatch
    columns: BatchColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    """Reads source objects of one pipeline."""

    settings: PipelineSettings
    runner: Runner
    clock: Clock
    of_table: TableColumns
    emit: Emit = lambda _event: None
    total_concurrency: int | None = None
    """Limit on concurrent downloads, and uploads, over all running tasks of all pipelines."""

    def __call__(
        self,
        units: Sequence[WorkUnit],
        *,
        known: Schema | None,
        journal: str,
        entry: int,
        mapping: ColumnMapping | None,
        max_seconds: float | None = None,
        publishes: bool = False,
    ) -> Ingested:
        """Run units for entry number `entry`.

        `known` are the columns in the journal, `mapping` is the table's column mapping. With
        `publishes` the files go through the outbox, if the hand-off has one; otherwise the entry
        itself hands them off.
        """
        columns = BatchColumns(
            settings=self.settings,
            known=known,
            of_table=self.of_table,
            mapping=mapping,
            emit=self.emit,
        )
        work = self._work(columns.schema, journal, entry, max_seconds, units=len(units))
        if not publishes:
            work = replace(work, outbox=None)
        runs = UnitRuns(pipeline=self.settings.name, runner=self.runner, emit=self.emit)
        if columns.to_be_inferred:
            share = sample_share(units, self.settings.infer_max_bytes)
            sample = replace(columns.within(work), infer_share=share)
            columns.grow(runs.infer(units, sample))
        settled = runs.run(
            units,
            columns.within(work),
            lambda seen: columns.within(work) if columns.grow(seen) else None,
        )
        return Ingested(settled=settled, columns=columns)

    def _work(
        self, schema: Schema, journal: str, entry: int, max_seconds: float | None, *, units: int
    ) -> Work:
        """Return what the units of a batch share, with each task's part of `total_concurrency`.

        If `units` are few enough for two cores each, decompression gets one of them.
        """
        settings, sink = self.settings, self.settings.sink
        template = sink.template
        return Work(
            sources={source.name: source_location(source) for source in settings.sources},
            sink=sink_location(settings),
            file_schema=schema.without(frozenset(template.keys if template else ())),
            unknown_fields=settings.unknown_fields,
            on_mismatch=settings.on_mismatch,
            stamp=_stamp(settings, f"{settings.name}/{journal}/{entry}", self.clock),
            quarantine=settings.quarantine,
            row_partitions=row_partitions(
                settings.sink.template, settings.schema, settings.sink.timestamp_field
            ),
            rolling=sink.rolling,
            upload=replace(
                sink.upload, max_concurrent_uploads=self._share(sink.upload.max_concurrent_uploads)
            ),
            limits={
                source.name: TaskLimits(
                    max_concurrent_files=self._share(source.max_concurrent_files),
                    batch_size=source.batch_size,
                )
                for source in settings.sources
            },
            marks={"pipeline": settings.name, "journal": journal},
            clock=self.clock,
            batch=entry,
            outbox=settings.name if sink.handoff is Handoff.DIRECT else None,
            show_values=settings.show_values,
            max_seconds=max_seconds,
            sizing=settings.sizing,
            decompress_ahead=2 * units <= self.runner.parallelism,
        )

    def _share(self, limit: int) -> int:
        """Return one task's share of all transfers, at most its own limit."""
        tasks, total = max(1, self.runner.parallelism), self.total_concurrency
        return limit if total is None else max(1, min(limit, total // tasks))


def _stamp(settings: PipelineSettings, batch: str, clock: Clock) -> SharedProvenance | None:
    if not settings.provenance:
        return None
    return SharedProvenance(columns=settings.provenance, batch=batch, ingested_at=clock.now())
