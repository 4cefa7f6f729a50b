"""Arguments, wiring, exit codes. What is heavy is loaded when a run starts, not before."""

import os
import sys
import threading
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from lake.clock import Clock
from lake.errors import ConfigInvalid, LakeError
from lake.polling import Stop, run_step, stop_on_signals
from lake.telemetry.events import Emit, SettingNotActedOn
from lake.telemetry.logs import LogFormat, LogLevel, log_events
from penguin import config, show
from penguin.settings import PenguinSettings

DONE, FAILED, USAGE = 0, 1, 2

app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the program."""
    app(prog_name="penguin")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penguin {version('blizzard-penguin')}")
        raise typer.Exit


@app.command()
def run(
    *,
    files: Annotated[
        list[Path] | None,
        typer.Option("-c", "--config", metavar="FILE", help="Configuration file; repeatable."),
    ] = None,
    folders: Annotated[
        list[Path] | None,
        typer.Option("-C", "--config-dir", metavar="DIR", help="Folder of YAML; repeatable."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Commit what is there, then exit.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what the next commit would do.")
    ] = False,
    log_level: Annotated[LogLevel, typer.Option(help="Least level to log.")] = LogLevel.INFO,
    log_format: Annotated[LogFormat, typer.Option(help="Shape of log lines.")] = LogFormat.TEXT,
    output: Annotated[
        show.Output, typer.Option(help="Shape of the result on standard output.")
    ] = show.Output.TEXT,
    _version: Annotated[
        bool,
        typer.Option(
            "-V", "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Commit the Parquet files that blizzard wrote to the Delta log, exactly once."""
    try:
        settings = config.load(files or [], folders or [], os.environ)
    except ConfigInvalid as invalid:
        for fault in invalid.faults:
            sys.stderr.write(f"error: {fault}\n")
        raise typer.Exit(USAGE) from None
    emit = log_events(log_level, log_format)
    for warning in settings.warnings:
        emit(SettingNotActedOn(warning=warning))
    if dry_run:
        raise typer.Exit(_explain(settings, output))
    raise typer.Exit(_run(settings, emit, once=once, output=output))


def _run(settings: PenguinSettings, emit: Emit, *, once: bool, output: show.Output) -> int:
    """Commit to every table in a thread of its own; none of them stops another."""
    from penguin.pipeline import TableRun, open_store  # noqa: PLC0415

    stop = Stop()
    stop_on_signals(stop, emit)
    clock = Clock()
    runs = [
        TableRun(
            settings=table,
            emit=emit,
            clock=clock,
            open_store=lambda table=table: open_store(table),  # type: ignore[misc]
            pause=stop.wait,
        )
        for table in settings.tables
    ]
    errors: dict[str, BaseException] = {}

    def poll(table: TableRun) -> None:
        error = run_step(
            table.step,
            who=table.settings.name,
            stop=stop,
            emit=emit,
            once=once,
            interval=lambda: table.settings.poll_interval,
        )
        if error is not None:
            errors[table.settings.name] = error

    threads = [threading.Thread(target=poll, args=(each,), daemon=True) for each in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            # With a timeout, so that the main thread can run signal handlers in between.
            thread.join(0.2)
    for each in runs:
        for stopped in each.stopped.values():
            errors.setdefault(each.settings.name, stopped.error)
    show.results(
        [
            {
                "table": each.settings.name,
                "table_uri": each.settings.table_uri,
                **asdict(each.totals),
                "error": _sentence(errors.get(each.settings.name)),
            }
            for each in runs
        ],
        output,
    )
    return FAILED if errors else DONE


def _explain(settings: PenguinSettings, output: show.Output) -> int:
    """Say what the next commit of each table would do."""
    from penguin.pipeline import explain, open_reader  # noqa: PLC0415

    rows: list[dict[str, Any]] = []
    for table in settings.tables:
        row = show.explanation_row(table.name, table.table_uri, None)
        try:
            reader = open_reader(table)
            found = explain(table, reader) if reader is not None else None
            row = show.explanation_row(table.name, table.table_uri, found)
        except LakeError as error:
            row["error"] = _sentence(error)
        rows.append(row)
    show.explanations(rows, output)
    return FAILED if any(row["error"] or row["stopped"] for row in rows) else DONE


def _sentence(error: BaseException | None) -> str | None:
    if error is None:
        return None
    return str(error) or type(error).__name__
