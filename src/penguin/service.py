"""A run of penguin: all tables of a configuration, until done or stopped, also from Python.

`penguin.commit(table_uri)` does what `penguin --once` does, and logs to the logger `penguin`. It
sends traces as the command does; metrics and the live page belong to the command alone.
"""

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from lakebed.clock import Clock
from lakebed.errors import LakeError, TableUnsupported
from lakebed.polling import Stop, finished, run_step, run_together
from lakebed.retry import may_mend
from lakebed.telemetry.events import Emit
from lakebed.telemetry.health import PartKind
from lakebed.telemetry.logs import log_to
from penguin.config import load as config_file
from penguin.delta.maintenance import beside
from penguin.delta.table import refused_properties
from penguin.events.backlog import TableWatched
from penguin.model.settings import PenguinSettings, TableSettings
from penguin.pipeline import TableRun, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """What was committed to a table."""

    table_uri: str
    version: int | None
    """The table's current version; None before it is created."""
    commits: int
    entries: int
    """Committed batches of blizzard."""
    files: int
    rows: int
    held_files: int
    """Files that do not fit the table; `penguin held` says why."""
    held_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutcome:
    """The result of one table, and the error that ended it, if any."""

    settings: TableSettings
    result: CommitResult
    is_missing: bool
    """Whether there is neither a table nor a journal."""
    error: BaseException | None


def commit_tables(
    settings: PenguinSettings, emit: Emit, stop: Stop, *, once: bool, clock: Clock
) -> list[TableOutcome]:
    """Commit to every table, each in a thread of its own; a failure does not stop the others."""
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

    for table in () if once else settings.tables:
        uri, every = table.table_uri, table.poll_interval
        emit(TableWatched(table=table.name, table_uri=uri, every_secs=every))

    def poll(table: TableRun) -> BaseException | None:
        return run_step(
            table.step,
            who=table.settings.name,
            stop=stop,
            emit=emit,
            once=once,
            interval=lambda: table.settings.poll_interval,
            kind=PartKind.TABLE,
            # An operator may remove the cause, such as a constraint.
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
            result=CommitResult(
                table_uri=run.settings.table_uri,
                held_files=len(run.held),
                held_rows=sum(file.record_count for file in run.held),
                **asdict(run.totals),
            ),
            is_missing=run.is_missing,
            error=errors.get(run.settings.name),
        )
        for run in runs
    ]


@contextmanager
def tracing(settings: PenguinSettings, emit: Emit) -> Iterator[Emit]:
    """Send traces if configured; yield the emitter that also feeds them."""
    target = settings.export.traces(os.environ)
    if target is None:
        yield emit
        return
    from lakebed.telemetry.export import delivered, encoder  # noqa: PLC0415
    from penguin.telemetry import CommitTracer  # noqa: PLC0415

    service = os.environ.get("OTEL_SERVICE_NAME", "penguin")
    commits = partial(CommitTracer, seconds=time.time)
    with delivered(emit, target, encoder(service), commits) as listened:
        yield listened


NAME = "table"


class CommitFailed(LakeError, code="commit_failed"):
    """The commit to a table failed; `result` is what was done before."""

    def __init__(self, result: CommitResult, why: BaseException) -> None:
        self.result = result
        super().__init__(str(why) or type(why).__name__, path=result.table_uri)


def commit(
    table_uri: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    telemetry: Mapping[str, Any] | None = None,
    stop: Stop | None = None,
    **settings: Any,  # noqa: ANN401 - the keys of `tables` in a configuration
) -> CommitResult:
    """Commit everything that waits for a table, exactly once, and return what was done.

    `settings` are further keys of an entry of `tables`: `schema_evolution="strict"`, say.
    `telemetry` is the section of that name; OpenTelemetry's variables are its defaults.

    ConfigInvalid carries all faults of the settings; CommitFailed says why the table could not be
    committed to. Files that do not fit the table are held, which is no error.
    """
    table = {"table_uri": table_uri, "storage_options": dict(storage_options or {}), **settings}
    given = {"tables": {NAME: table}, "telemetry": dict(telemetry or {})}
    loaded = config_file.load([given], [], os.environ, refused_properties)
    stop = stop or Stop()
    with tracing(loaded, log_to(logging.getLogger("penguin"))) as emit:
        (done,) = finished(
            lambda: commit_tables(loaded, emit, stop, once=True, clock=Clock()), stop
        )
    if done.error is not None:
        raise CommitFailed(done.result, done.error) from done.error
    return done.result
