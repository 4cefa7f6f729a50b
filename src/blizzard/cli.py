"""Arguments, wiring, exit codes."""

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from blizzard import config, demo, show
from blizzard.events import SparkStarting
from blizzard.flow import Location
from blizzard.handoff import CommitInline, LeaveToPenguin, Publisher
from blizzard.pipeline import Pipeline, dead_letter_queue, explain
from blizzard.settings import BlizzardSettings, Commit, PipelineSettings
from blizzard.spark.runner import SparkRunner
from lake.clock import Clock
from lake.errors import ConfigInvalid, LakeError, ProtocolConflict
from lake.polling import Stop, run_step, stop_on_signals
from lake.storage import Reader, Store
from lake.telemetry.events import Emit, SettingNotActedOn
from lake.telemetry.logs import LogFormat, LogLevel, log_events
from penguin import config as penguin_config
from penguin import inline

DONE, FAILED, USAGE = 0, 1, 2

app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the program."""
    app(prog_name="blizzard")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"blizzard {version('blizzard-penguin')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Option("-c", "--config", metavar="FILE", help="Configuration file; repeatable."),
    ] = None,
    folders: Annotated[
        list[Path] | None,
        typer.Option("-C", "--config-dir", metavar="DIR", help="Folder of YAML; repeatable."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Drain what is there, then exit.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")
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
    """Turn NDJSON files into Parquet in the directory of a Delta table, exactly once."""
    if context.invoked_subcommand is not None:
        return
    emit = log_events(log_level, log_format)
    try:
        settings = config.load(files or [], folders or [], os.environ)
    except ConfigInvalid as invalid:
        _complain(invalid)
        raise typer.Exit(USAGE) from None
    for warning in settings.warnings:
        emit(SettingNotActedOn(warning=warning))
    if dry_run:
        raise typer.Exit(_explain(settings, output))
    raise typer.Exit(_run(settings, emit, once=once, output=output, config_files=(files, folders)))


@app.command(name="demo")
def demo_command(
    folder: Annotated[
        Path, typer.Option("--dir", metavar="D", help="Where to put data and table.")
    ] = Path("demo"),
) -> None:
    """Make sample NDJSON, run blizzard and penguin on it, and show the table."""
    raise typer.Exit(demo.run(folder, Console()))


dlq_app = typer.Typer(no_args_is_help=True, help="Look into the dead letter queue.")
app.add_typer(dlq_app, name="dlq")


@dlq_app.command(name="list")
def dlq_list(
    files: Annotated[
        list[Path] | None,
        typer.Option("-c", "--config", metavar="FILE", help="Configuration file; repeatable."),
    ] = None,
    folders: Annotated[
        list[Path] | None,
        typer.Option("-C", "--config-dir", metavar="DIR", help="Folder of YAML; repeatable."),
    ] = None,
    output: Annotated[
        show.Output, typer.Option(help="Shape of the result on standard output.")
    ] = show.Output.TEXT,
) -> None:
    """Show which source files failed and why, the newest first."""
    try:
        settings = config.load(files or [], folders or [], os.environ)
    except ConfigInvalid as invalid:
        _complain(invalid)
        raise typer.Exit(USAGE) from None
    code = DONE
    for pipeline in settings.pipelines:
        try:
            queue = dead_letter_queue(pipeline, _open_reader)
        except LakeError as error:
            _complain(error, who=pipeline.name)
            code = FAILED
            continue
        show.dead_letters(queue, output)
        for uri in queue.gone:
            sys.stderr.write(f"warning: {pipeline.name}: {uri} is not there any more\n")
    raise typer.Exit(code)


def _run(
    settings: BlizzardSettings,
    emit: Emit,
    *,
    once: bool,
    output: show.Output,
    config_files: tuple[list[Path] | None, list[Path] | None],
) -> int:
    clock = Clock()
    stop = Stop()
    stop_on_signals(stop, emit)
    runner = SparkRunner(
        settings.spark,
        starting=lambda: emit(SparkStarting(master=settings.spark.master)),
        stop_requested=lambda: stop.requested,
    )
    run_id = str(clock.fresh_id())
    pipelines = [
        Pipeline(
            settings=pipeline,
            runner=runner,
            publisher=_publisher(settings, pipeline, emit, clock, config_files),
            log_knows_pipeline=_asks_the_log(pipeline),
            clock=clock,
            emit=emit,
            once=once,
            run_id=run_id,
            open_source=_open_reader,
            open_sink=lambda location: Store(location.uri, location.options, make_folder=True),
        )
        for pipeline in settings.pipelines
    ]
    errors: dict[str, BaseException] = {}

    def poll(pipeline: Pipeline) -> None:
        name = pipeline.settings.name
        error = run_step(
            pipeline.step,
            who=name,
            stop=stop,
            emit=emit,
            once=once,
            interval=lambda: min(source.poll_interval for source in pipeline.settings.sources),
        )
        if error is not None:
            errors[name] = error

    threads = [threading.Thread(target=poll, args=(each,), daemon=True) for each in pipelines]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            # With a timeout, so that the main thread can run signal handlers in between.
            thread.join(0.5)
    runner.stop()
    show.results(
        [
            {
                "pipeline": each.settings.name,
                "table_uri": each.settings.sink.table_uri,
                **asdict(each.statistics),
                "error": str(errors[each.settings.name]) if each.settings.name in errors else None,
            }
            for each in pipelines
        ],
        output,
    )
    if any(isinstance(error, ProtocolConflict | ConfigInvalid) for error in errors.values()):
        return USAGE
    return FAILED if errors else DONE


def _explain(settings: BlizzardSettings, output: show.Output) -> int:
    code = DONE
    for pipeline in settings.pipelines:
        try:
            found = explain(pipeline, _open_reader, parallelism=os.cpu_count() or 1, clock=Clock())
            show.explanation(found, output)
        except LakeError as error:
            _complain(error, who=pipeline.name)
            code = FAILED
    return code


def _publisher(
    settings: BlizzardSettings,
    pipeline: PipelineSettings,
    emit: Emit,
    clock: Clock,
    config_files: tuple[list[Path] | None, list[Path] | None],
) -> Publisher:
    if pipeline.sink.commit is Commit.PENGUIN:
        return LeaveToPenguin()
    table = None
    if (name := settings.tables.get(pipeline.name)) is not None:
        files, folders = config_files
        tables = penguin_config.load(files or [], folders or [], os.environ).tables
        table = next(each for each in tables if each.name == name)
    return CommitInline(
        inline.committer(
            table,
            pipeline.sink.table_uri,
            pipeline.sink.storage_options,
            emit=emit,
            clock=clock,
            pipeline=pipeline.name,
        )
    )


def _asks_the_log(pipeline: PipelineSettings) -> Callable[[], bool]:
    return lambda: inline.pipeline_known(
        pipeline.sink.table_uri, pipeline.sink.storage_options, pipeline.name
    )


def _open_reader(location: Location) -> Reader:
    return Reader(location.uri, location.options)


def _complain(error: LakeError, who: str = "") -> None:
    faults = error.faults if isinstance(error, ConfigInvalid) else [f"{who}: {error}"]
    for fault in faults:
        sys.stderr.write(f"error: {fault}\n")
