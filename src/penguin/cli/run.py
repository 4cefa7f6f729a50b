"""A run of penguin: commit to every table and report the results."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakebed.clock import Clock
from lakebed.polling import Stop, stop_on_signals
from lakebed.telemetry.events import Emit
from lakebed.telemetry.health import HealthPart, PartKind
from lakebed.telemetry.logs import log_events
from lakebed.terminal.call import DONE, FAILED, exit_code_of_run
from lakebed.terminal.console import Line, Table, cells, fields_of
from lakebed.types import LogLevel
from lakebed.units import is_are, plural
from penguin.cli.app import TableCall, document_of, sentence
from penguin.model.settings import PenguinSettings
from penguin.service import TableOutcome, commit_tables, tracing


@dataclass(frozen=True, slots=True, kw_only=True)
class PenguinSurroundings:
    """How a run waits and is stopped; passed as the context's object."""

    stop: Stop = field(default_factory=Stop)
    listen: Callable[[Stop, Emit], None] = stop_on_signals
    """Lets signals request the stop."""


def commit_all_tables(call: TableCall, log_level: LogLevel, *, once: bool) -> None:
    """Commit to every table, each in a thread of its own; a failure does not stop the others."""
    settings = call.settings()
    around = call.context.find_object(PenguinSurroundings) or PenguinSurroundings()
    log = log_events(log_level, call.log_format)
    with _watched(call, settings, log) as watched, tracing(settings, watched) as emit:
        around.listen(around.stop, emit)
        runs = commit_tables(settings, emit, around.stop, once=once, clock=Clock())
    call.show(
        _results(runs),
        *(
            {
                **document_of(each.settings),
                **fields_of(each.result),
                "error": sentence(each.error),
            }
            for each in runs
        ),
    )
    # A continuous run reports held files by the metric, `status` and `held` instead.
    held = FAILED if once and any(each.result.held_files for each in runs) else DONE
    errors = [each.error for each in runs if each.error]
    call.at_least(exit_code_of_run(errors, stopped=around.stop.requested, otherwise=held))


def _results(runs: list[TableOutcome]) -> Iterator[Line]:
    def outcome(run: TableOutcome) -> str:
        if run.error:
            return "failed"
        if run.is_missing:
            return "no table and no journal"
        if run.result.held_files:
            return "held"
        return "" if run.result.commits else "nothing to commit"

    counts = "version commits entries files rows"
    yield Table(
        ("table", ">version", ">commits", ">entries", ">files", ">rows", ""),
        [(run.settings.name, *cells(run.result, counts), outcome(run)) for run in runs],
    )
    for run in runs:
        if run.error:
            yield f"{run.settings.name}: {sentence(run.error)}"
        if held := run.result.held_files:
            files, rows = plural(held, "file"), plural(run.result.held_rows, "row")
            them = "it" if held == 1 else "them"
            yield (
                f"{run.settings.name}: {files} with {rows} {is_are(held)} held and not in the "
                f"table; `penguin held` names {them}"
            )


@contextmanager
def _watched(call: TableCall, settings: PenguinSettings, log: Emit) -> Iterator[Emit]:
    """Yield the emitter that feeds the log and, if they are served, the metrics."""
    if settings.metrics_address is None:
        yield log
        return
    from lakebed.telemetry.metrics_server import build_info, live_page, observed  # noqa: PLC0415
    from penguin.telemetry import METRICS  # noqa: PLC0415

    parts = {
        HealthPart(PartKind.TABLE, table.name): table.poll_interval for table in settings.tables
    }
    with observed(
        log,
        address=settings.metrics_address,
        key=settings.metrics_key,
        guard=settings.metrics_guard,
        specs=METRICS,
        parts=parts,
        known=lambda: [build_info(PartKind.TABLE)],
        seconds=time.time,
        page=live_page("penguin", settings, call.files, call.folders, tuple(parts)),
    ) as watched:
        yield watched
