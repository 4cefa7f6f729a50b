"""A run of penguin: every table of a configuration, side by side, until done or stopped."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from lakebed.clock import Clock
from lakebed.errors import TableUnsupported
from lakebed.polling import Stop, run_step, run_together
from lakebed.retry import may_mend
from lakebed.telemetry.events import Emit
from lakebed.telemetry.health import PartKind
from penguin.delta.maintenance import beside
from penguin.events.backlog import TableWatched
from penguin.model.settings import PenguinSettings, TableSettings
from penguin.pipeline import TableRun, TableTotals, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutcome:
    """What was done for one table, and the error that ended it, if one did."""

    settings: TableSettings
    totals: TableTotals
    held_files: int
    held_rows: int
    error: BaseException | None


def watched(table: TableRun) -> Callable[[], bool]:
    """Return the step of a table that is run for good: it tells once that it has begun to wait."""
    is_told = False

    def step() -> bool:
        nonlocal is_told
        worked = table.step()
        if not (worked or is_told):
            is_told = True
            settings = table.settings
            table.emit(
                TableWatched(
                    table=settings.name,
                    table_uri=settings.table_uri,
                    every_secs=settings.poll_interval,
                )
            )
        return worked

    return step


def commit_tables(
    settings: PenguinSettings, emit: Emit, stop: Stop, *, once: bool, clock: Clock
) -> list[TableOutcome]:
    """Commit to every table in a thread of its own; none of them stops another."""
    runs = [
        TableRun(
            settings=table,
            emit=emit,
            clock=clock,
            open_store=partial(open_store, table),
            begin=beside,
            pause=stop.wait,
        )
        for table in settings.tables
    ]

    def poll(table: TableRun) -> BaseException | None:
        return run_step(
            table.step if once else watched(table),
            who=table.settings.name,
            stop=stop,
            emit=emit,
            once=once,
            interval=lambda: table.settings.poll_interval,
            kind=PartKind.TABLE,
            # A constraint, say, that somebody adds to a table may be dropped again.
            mends=lambda error: may_mend(error) or isinstance(error, TableUnsupported),
        )

    errors = run_together(
        {run.settings.name: partial(poll, run) for run in runs}, emit, kind=PartKind.TABLE
    )
    for run in runs:
        run.finish()
        for stopped in run.stopped.values():
            errors.setdefault(run.settings.name, stopped.error)
    return [
        TableOutcome(
            settings=run.settings,
            totals=run.totals,
            held_files=len(run.held),
            held_rows=sum(file.record_count for file in run.held),
            error=errors.get(run.settings.name),
        )
        for run in runs
    ]


@contextmanager
def tracing(settings: PenguinSettings, emit: Emit) -> Iterator[Emit]:
    """Send traces where they are asked for; yield the emitter that feeds them too."""
    target = settings.export.traces(os.environ)
    if target is None:
        yield emit
        return
    from lakebed.telemetry.export.courier import delivered  # noqa: PLC0415
    from lakebed.telemetry.export.spans import encoder  # noqa: PLC0415
    from penguin.tracing import CommitTracer  # noqa: PLC0415

    service = os.environ.get("OTEL_SERVICE_NAME", "penguin")
    commits = partial(CommitTracer, seconds=time.time)
    with delivered(emit, target, encoder(service), commits) as listened:
        yield listened
