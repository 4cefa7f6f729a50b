"""Arguments, wiring, exit codes."""

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from blizzard import config, demo, show
from blizzard.events import NextStartMadeFaster, SparkStarting
from blizzard.flow import Location
from blizzard.handoff import CommitInline, IsCommitted, Publisher, publisher_of
from blizzard.live import Running
from blizzard.metrics import METRICS
from blizzard.pipeline import Pipeline
from blizzard.progress import Display
from blizzard.settings import BlizzardSettings, Commit, PipelineSettings, SinkSettings
from blizzard.sight import dead_letter_queue, explain
from blizzard.spark.runner import SparkRunner
from blizzard.spark.warm import NotMade, warm
from blizzard.switch import set_handoff
from lake.arguments import (
    DONE,
    FAILED,
    USAGE,
    Files,
    Folders,
    Least,
    LineShape,
    Output,
    Shape,
    complain,
    program,
    usage_is_checked,
    version_option,
)
from lake.clock import Clock
from lake.config.models import same_place
from lake.entry import Entry, Handoff
from lake.errors import ConfigInvalid, LakeError, ProtocolConflict
from lake.polling import Stop, run_step, stop_on_signals
from lake.storage import Reader, Store
from lake.telemetry.events import Emit, SettingNotActedOn, StepFailed, code_of, shared
from lake.telemetry.health import Part, PartKind
from lake.telemetry.logs import LogFormat, LogLevel, log_events
from lake.telemetry.server import observed
from lake.units import in_words
from penguin import config as penguin_config
from penguin import inline
from penguin.metrics import METRICS as PENGUIN_METRICS

app = program()


def main() -> None:
    """Run the program."""
    app(prog_name="blizzard")


@app.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    files: Files = None,
    folders: Folders = None,
    once: Annotated[bool, typer.Option("--once", help="Drain what is there, then exit.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")
    ] = False,
    log_level: Least = LogLevel.INFO,
    log_format: LineShape = LogFormat.TEXT,
    output: Shape = Output.TEXT,
    _version: Annotated[bool, version_option("blizzard")] = False,
) -> None:
    """Turn NDJSON files into Parquet in the directory of a Delta table, exactly once."""
    if context.invoked_subcommand is not None:
        return
    emit = _log(log_level, log_format)
    with usage_is_checked():
        settings = config.load(files or [], folders or [], os.environ)
    for warning in settings.warnings:
        emit(SettingNotActedOn(warning=warning))
    if dry_run:
        raise typer.Exit(_explain(settings, output))
    with (
        usage_is_checked(),
        observed(
            emit,
            address=settings.metrics_address if settings.metrics_enabled else None,
            specs=METRICS + PENGUIN_METRICS,
            parts={
                Part(PartKind.PIPELINE, each.name): each.poll_interval
                for each in settings.pipelines
            },
            seconds=time.time,
        ) as told,
    ):
        code = _run(settings, told, once=once, output=output, config_files=(files, folders))
    raise typer.Exit(code)


@app.command(name="demo")
def demo_command(
    folder: Annotated[
        Path, typer.Option("--dir", metavar="D", help="Where to put data and table.")
    ] = Path("demo"),
) -> None:
    """Make sample NDJSON, run blizzard and penguin on it, and show the table."""
    raise typer.Exit(demo.run(folder, Console()))


@app.command(name="warm")
def warm_command(
    again: Annotated[bool, typer.Option("--again", help="Make it anew if it is there.")] = False,
) -> None:
    """Let later starts of Spark take half the time: keep what Java works out at a start."""
    try:
        archive = warm(again=again)
    except NotMade as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(FAILED) from error
    typer.echo(f"{archive.path} ({in_words(archive.path.stat().st_size)})")


dlq_app = typer.Typer(no_args_is_help=True, help="Look into the dead letter queue.")
app.add_typer(dlq_app, name="dlq")


@dlq_app.command(name="list")
def dlq_list(
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Show which source files failed and why, the newest first."""
    with usage_is_checked():
        settings = config.load(files or [], folders or [], os.environ)
    code = DONE
    for pipeline in settings.pipelines:
        try:
            queue = dead_letter_queue(pipeline, _open_reader)
        except LakeError as error:
            complain(error, who=pipeline.name)
            code = FAILED
            continue
        show.dead_letters(queue, output)
        for uri in queue.gone:
            sys.stderr.write(f"warning: {pipeline.name}: {uri} is not there any more\n")
    raise typer.Exit(code)


handoff_app = typer.Typer(no_args_is_help=True, help="How files are handed off to penguin.")
app.add_typer(handoff_app, name="handoff")


@handoff_app.command(name="set")
def handoff_set(
    handoff: Annotated[Handoff, typer.Argument(metavar="MODE", help="journal, staging or direct.")],
    files: Files = None,
    folders: Folders = None,
) -> None:
    """Change the hand-off of every table of a configuration, once all entries are committed."""
    with usage_is_checked():
        settings = config.load(files or [], folders or [], os.environ)
    code = DONE
    for sink in _tables(settings):
        try:
            switched = set_handoff(
                Store(sink.table_uri, sink.storage_options, make_folder=True),
                handoff,
                lambda pipeline, journal, sink=sink: inline.last_committed(  # type: ignore[misc]
                    sink.table_uri, sink.storage_options, pipeline, journal
                ),
            )
        except LakeError as error:
            complain(error, who=sink.table_uri)
            code = FAILED
            continue
        if not show.switched(sink.table_uri, handoff, switched):
            code = FAILED
        elif sink.handoff is not handoff:
            typer.echo(f"  now set sink.handoff: {handoff.value} in the configuration")
    raise typer.Exit(code)


def _tables(settings: BlizzardSettings) -> list[SinkSettings]:
    """Give the tables of a configuration, each once."""
    sinks = [pipeline.sink for pipeline in settings.pipelines]
    return list({same_place(sink.table_uri): sink for sink in sinks}.values())


def _run(
    settings: BlizzardSettings,
    emit: Emit,
    *,
    once: bool,
    output: Output,
    config_files: tuple[list[Path] | None, list[Path] | None],
) -> int:
    clock = Clock()
    running = Running(emit)
    emit = shared(emit, running.emit)
    stop = Stop()
    stop_on_signals(stop, emit)
    runner = SparkRunner(
        settings.spark,
        starting=lambda: emit(SparkStarting(master=settings.spark.master)),
        stop_requested=lambda: stop.requested,
        heard=running.heard,
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
        try:
            error = run_step(
                pipeline.step,
                who=name,
                stop=stop,
                emit=emit,
                once=once,
                interval=lambda: pipeline.settings.poll_interval,
            )
        except BaseException as fatal:
            # A panic of a library is no Exception; the exit code must tell the truth all the same.
            errors[name] = fatal
            emit(StepFailed(who=name, code=code_of(fatal), error=repr(fatal), next_try_secs=None))
            raise
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
    if once and runner.make_next_start_faster():
        emit(NextStartMadeFaster())
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


def _log(least: LogLevel, shape: LogFormat) -> Emit:
    """Log to standard error; a person at a terminal also sees how far the batches are."""
    if shape is LogFormat.JSON or not sys.stderr.isatty():
        return log_events(least, shape)
    display = Display(Console(stderr=True))
    return shared(log_events(least, shape, write=display.write), display.emit)


def _explain(settings: BlizzardSettings, output: Output) -> int:
    code = DONE
    for pipeline in settings.pipelines:
        try:
            found = explain(pipeline, _open_reader, parallelism=os.cpu_count() or 1, clock=Clock())
            show.explanation(found, output)
        except LakeError as error:
            complain(error, who=pipeline.name)
            code = FAILED
    return code


def _publisher(
    settings: BlizzardSettings,
    pipeline: PipelineSettings,
    emit: Emit,
    clock: Clock,
    config_files: tuple[list[Path] | None, list[Path] | None],
) -> Publisher:
    handed_off = publisher_of(pipeline.sink.handoff, _asks_for_entry(pipeline))
    if pipeline.sink.commit is Commit.PENGUIN:
        return handed_off
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
        ),
        before=handed_off,
    )


def _asks_for_entry(pipeline: PipelineSettings) -> IsCommitted:
    """Give the question to the log whether an entry is committed."""
    sink = pipeline.sink

    def ask(entry: Entry) -> bool:
        last = inline.last_committed(
            sink.table_uri, sink.storage_options, entry.pipeline, entry.journal
        )
        return last is not None and last >= entry.sequence

    return ask


def _asks_the_log(pipeline: PipelineSettings) -> Callable[[], bool]:
    return lambda: inline.pipeline_known(
        pipeline.sink.table_uri, pipeline.sink.storage_options, pipeline.name
    )


def _open_reader(location: Location) -> Reader:
    return Reader(location.uri, location.options)
