"""Ingest source objects: run their work units, and return what to journal.

Batches, replays of quarantined lines and replacements differ in the units that they ask for and in
the entry that they write. What is written for them is garbage until an entry names it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blizzard.execute.bisect import look_at_units, run_units
from blizzard.execute.merge import Settled
from blizzard.execute.runner import Runner
from blizzard.found_columns import BatchColumns, TableColumns, look_share
from blizzard.model.bounds import Bounds
from blizzard.model.files import WorkUnit
from blizzard.model.settings import PipelineSettings
from blizzard.plan.work import work_of
from lakebed.clock import Clock
from lakebed.columns.column_mapping import ColumnMapping
from lakebed.columns.schema import Schema
from lakebed.telemetry.events import Emit

UNBOUNDED = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """The outcome of work units, and the columns that were written."""

    settled: Settled
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
    """The most downloads, and uploads, at a time in all running tasks of all pipelines."""

    def __call__(
        self,
        units: Sequence[WorkUnit],
        *,
        known: Schema | None,
        journal: str,
        entry: int,
        mapping: ColumnMapping | None,
        bounds: Bounds = UNBOUNDED,
        publishes: bool = False,
    ) -> Ingested:
        """Run units, which is what entry number `entry` is to name.

        `known` are the columns that the journal knows; `mapping` is how the table's data files
        hold its columns. With `publishes` the files go through the
        outbox, if the hand-off has one; otherwise the entry hands them off by itself.
        """
        columns = BatchColumns(
            settings=self.settings,
            known=known,
            of_table=self.of_table,
            mapping=mapping,
            emit=self.emit,
        )
        work = work_of(
            self.settings,
            schema=columns.schema,
            journal=journal,
            batch=entry,
            bounds=bounds,
            clock=self.clock,
            parallelism=self.runner.parallelism,
            total_concurrency=self.total_concurrency,
            units=len(units),
        )
        if not publishes:
            work = replace(work, outbox=None)
        if columns.to_be_inferred:
            share = look_share(units, self.settings.infer_max_bytes)
            sample = replace(columns.within(work), look=share)
            columns.grow(look_at_units(units, sample, self.runner, self.emit))
        settled = run_units(
            units,
            columns.within(work),
            self.runner,
            self.emit,
            lambda seen: columns.within(work) if columns.grow(seen) else None,
        )
        return Ingested(settled=settled, columns=columns)
