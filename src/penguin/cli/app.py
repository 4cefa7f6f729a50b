"""Arguments, wiring, exit codes. What is heavy is loaded when a run starts, not before."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from lakebed.errors import LakeError
from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    DeferredCommand,
    Files,
    Folders,
    ForwardingGroup,
    Least,
    LineShape,
    Outcome,
    Output,
    Shape,
    exit_code_of,
    exit_code_of_run,
    program,
    run_program,
    usage_is_checked,
    version_option,
)
from penguin.cli import operator, options

if TYPE_CHECKING:
    from lakebed.telemetry.events import Emit
    from penguin.cli.surroundings import Surroundings
    from penguin.model.settings import PenguinSettings


class Commands(ForwardingGroup):
    """The commands that are modules of their own, each imported when it is called."""

    deferred: ClassVar[Mapping[str, DeferredCommand]] = {
        "adopt": DeferredCommand(
            "penguin.cli.adopt",
            "adopt",
            "Make a folder of Parquet files a Delta table; no file is moved or rewritten.",
        ),
        "vacuum": DeferredCommand(
            "penguin.cli.vacuum",
            "vacuum",
            "Show or delete data files that no version within the table's retention needs.",
        ),
        "fsck": DeferredCommand(
            "penguin.cli.fsck",
            "fsck",
            "Show which files of each table are missing, or have another size than the log says.",
        ),
    }


app = program(Commands)
app.add_typer(operator.app)


def main() -> None:
    """Run the program."""
    run_program(app, "penguin")


@app.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    *,
    files: Files = None,
    folders: Folders = None,
    once: Annotated[bool, typer.Option("--once", help="Commit what is there, then exit.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")
    ] = False,
    log_level: Least = LogLevel.INFO,
    log_format: LineShape = LogFormat.TEXT,
    output: Shape = Output.TEXT,
    _version: Annotated[bool, version_option("penguin")] = False,
) -> None:
    """Commit blizzard's Parquet files to the Delta log, exactly once.

    Without a command it runs until it is stopped, and commits what blizzard writes; with --once it
    commits what is there.
    """
    if context.invoked_subcommand is not None:
        return
    settings = options.settings(files, folders, log_format)
    emit = _log(log_level, log_format)
    if dry_run:
        raise typer.Exit(_explain(settings, output))
    from penguin.cli.listeners import telling  # noqa: PLC0415
    from penguin.cli.surroundings import Surroundings  # noqa: PLC0415

    with usage_is_checked(log_format), telling(settings, emit, files, folders) as told:
        around = context.find_object(Surroundings) or Surroundings()
        code = _run(settings, told, around, once=once, output=output)
    raise typer.Exit(code)


@app.command()
def status(
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Show what is committed, what is waiting, and what is held."""
    tables = options.tables(files, folders)
    from lakebed.clock import Clock  # noqa: PLC0415
    from penguin.catalog.opening import open_catalog  # noqa: PLC0415
    from penguin.cli import report  # noqa: PLC0415
    from penguin.cli.rows import StatusRow  # noqa: PLC0415
    from penguin.inspect.status import table_status  # noqa: PLC0415
    from penguin.pipeline import open_reader  # noqa: PLC0415

    rows = []
    for table in tables:
        row = StatusRow(table=table.name, table_uri=table.table_uri)
        try:
            reader = open_reader(table)
            if reader is not None:
                found = table_status(table, reader, Clock().now(), open_catalog=open_catalog)
                row = StatusRow.of(table.name, table.table_uri, found)
        except LakeError as trouble:
            row = replace(row, error=_sentence(trouble))
        rows.append(row)
    report.statuses(rows, output)
    raise typer.Exit(FAILED if any(row.is_wrong for row in rows) else DONE)


@app.command()
def held(
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Show which files are held because they do not fit, and which pipelines have stopped.

    The exit code is 1 if there are any.
    """
    tables = options.tables(files, folders)
    from lakebed.clock import Clock  # noqa: PLC0415
    from penguin.cli import report  # noqa: PLC0415
    from penguin.cli.rows import HeldRows  # noqa: PLC0415
    from penguin.inspect.status import table_status  # noqa: PLC0415
    from penguin.pipeline import open_reader  # noqa: PLC0415

    rows, outcome = [], Outcome()
    for table in tables:
        with outcome.of(table.name):
            reader = open_reader(table)
            if reader is not None:
                found = table_status(table, reader, Clock().now(), count_ignored=False)
                rows.append(HeldRows.of(table.name, found))
    report.held(rows, output)
    raise typer.Exit(FAILED if any(row.files or row.stopped for row in rows) else outcome.code)


@app.command()
def plan(
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Show what the next commit would do, as --dry-run does.

    Nothing is written.
    """
    raise typer.Exit(_explain(options.settings(files, folders), output))


@app.command()
def history(
    count: Annotated[
        int, typer.Argument(metavar="N", min=1, help="How many commits to show.")
    ] = 10,
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Show the last commits of each table, the newest first."""
    tables = options.tables(files, folders)
    from lakebed.deltalog.snapshot import LogReader  # noqa: PLC0415
    from lakebed.deltalog.versions import read_commits  # noqa: PLC0415
    from penguin.cli import report  # noqa: PLC0415
    from penguin.cli.rows import CommitRow  # noqa: PLC0415
    from penguin.pipeline import open_reader  # noqa: PLC0415

    outcome = Outcome()
    for table in tables:
        with outcome.of(table.name):
            reader = open_reader(table)
            snapshot = None if reader is None else LogReader(reader).look()
            commits = (
                []
                if reader is None or snapshot is None
                else read_commits(reader, snapshot.version, count)
            )
            report.history(table.name, [CommitRow.of(each) for each in commits], output)
    raise typer.Exit(outcome.code)


def _run(
    settings: "PenguinSettings",
    emit: "Emit",
    around: "Surroundings",
    *,
    once: bool,
    output: Output,
) -> int:
    """Commit to every table in a thread of its own; none of them stops another."""
    from lakebed.clock import Clock  # noqa: PLC0415
    from penguin.cli import results  # noqa: PLC0415
    from penguin.service import commit_tables  # noqa: PLC0415

    around.listen(around.stop, emit)
    runs = commit_tables(settings, emit, around.stop, once=once, clock=Clock())
    results.results(
        [
            results.ResultRow(
                table=each.settings.name,
                table_uri=each.settings.table_uri,
                totals=each.totals,
                held_files=each.held_files,
                held_rows=each.held_rows,
                error=_sentence(each.error),
            )
            for each in runs
        ],
        output,
    )
    # If it runs for ever, the metric, `status` and `held` tell.
    held = FAILED if once and any(each.held_files for each in runs) else DONE
    errors = [each.error for each in runs if each.error]
    return exit_code_of_run(errors, stopped=around.stop.requested, otherwise=held)


def _explain(settings: "PenguinSettings", output: Output) -> int:
    """Print what the next commit of each table would do."""
    from penguin.cli import plans  # noqa: PLC0415
    from penguin.inspect.explain import explain  # noqa: PLC0415
    from penguin.pipeline import open_reader  # noqa: PLC0415

    rows: list[plans.PlanRow] = []
    code = DONE
    for table in settings.tables:
        row = plans.PlanRow(table=table.name, table_uri=table.table_uri)
        try:
            reader = open_reader(table)
            if reader is not None:
                row = plans.plan_row(table.name, table.table_uri, explain(table, reader))
        except LakeError as error:
            row = replace(row, error=_sentence(error))
            code = max(code, exit_code_of(error))
        rows.append(row)
    plans.explanations(rows, output)
    return max(code, FAILED if any(row.is_wrong for row in rows) else DONE)


def _log(least: LogLevel, shape: LogFormat) -> "Emit":
    """Log to standard error; a person at a terminal also sees how far large commits are."""
    from lakebed.telemetry.events import shared  # noqa: PLC0415
    from lakebed.telemetry.logs import log_events  # noqa: PLC0415

    if shape is LogFormat.JSON or not sys.stderr.isatty():
        return log_events(least, shape)
    from rich.console import Console  # noqa: PLC0415

    from penguin.cli.progress_bar import Display  # noqa: PLC0415

    display = Display(Console(stderr=True))
    return shared(log_events(least, shape, write=display.write), display.emit)


def _sentence(error: BaseException | None) -> str | None:
    if error is None:
        return None
    return str(error) or type(error).__name__
