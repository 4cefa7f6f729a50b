"""A run of penguin: commit to every table, and report what was done for each."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lakebed.clock import Clock
from lakebed.polling import Stop, stop_on_signals
from lakebed.telemetry.events import Emit, shared
from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.telemetry.logs import log_events
from lakebed.terminal.call import DONE, FAILED, exit_code_of_run
from lakebed.terminal.console import Line, Table, fields_of
from lakebed.units import is_are, plural
from penguin.cli.call import TableCall, document_of
from penguin.cli.listeners import telling
from penguin.service import TableOutcome, commit_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """How a run waits, and how it learns that it is to stop; passed as the context's object."""

    stop: Stop = field(default_factory=Stop)
    listen: Callable[[Stop, Emit], None] = stop_on_signals
    """Lets signals request the stop."""


def commit_all_tables(call: TableCall, log_level: LogLevel, *, once: bool) -> None:
    """Commit to every table in a thread of its own; none of them stops another."""
    settings = call.settings()
    around = call.context.find_object(Surroundings) or Surroundings()
    log = _log(log_level, call.log_format)
    with telling(settings, log, call.files, call.folders) as emit:
        around.listen(around.stop, emit)
        runs = commit_tables(settings, emit, around.stop, once=once, clock=Clock())
    call.show(
        _results(runs),
        *(
            {
                **document_of(each.settings),
                **fields_of(each.totals),
                "held_files": each.held_files,
                "held_rows": each.held_rows,
                "error": sentence(each.error),
            }
            for each in runs
        ),
    )
    # A run without an end leaves held files to the metric, `status` and `held`.
    held = FAILED if once and any(each.held_files for each in runs) else DONE
    errors = [each.error for each in runs if each.error]
    call.at_least(exit_code_of_run(errors, stopped=around.stop.requested, otherwise=held))


def sentence(error: BaseException | None) -> str | None:
    """Return an error in words; None without one."""
    return None if error is None else str(error) or type(error).__name__


def _log(least: LogLevel, shape: LogFormat) -> Emit:
    """Log to standard error; a person at a terminal also sees how far large commits are."""
    if shape is LogFormat.JSON or not sys.stderr.isatty():
        return log_events(least, shape)
    from penguin.cli.progress_bar import CommitProgress  # noqa: PLC0415 - it loads rich

    display = CommitProgress()
    return shared(log_events(least, shape, write=display.write), display.emit)


def _results(runs: list[TableOutcome]) -> Iterator[Line]:
    def outcome(run: TableOutcome) -> str:
        if run.error:
            return "failed"
        return "held" if run.held_files else "" if run.totals.commits else "nothing to commit"

    yield Table(
        ("table", ">version", ">commits", ">entries", ">files", ">rows", ""),
        [(run.settings.name, *fields_of(run.totals).values(), outcome(run)) for run in runs],
    )
    for run in runs:
        if run.error:
            yield f"{run.settings.name}: {sentence(run.error)}"
        if run.held_files:
            files, rows = plural(run.held_files, "file"), plural(run.held_rows, "row")
            them = "it" if run.held_files == 1 else "them"
            yield (
                f"{run.settings.name}: {files} with {rows} {is_are(run.held_files)} held and not "
                f"in the table; `penguin held` names {them}"
            )
