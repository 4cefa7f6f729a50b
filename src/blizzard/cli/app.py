"""Arguments, wiring, exit codes."""

import os
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from blizzard.cli import demo
from blizzard.cli import results as show
from blizzard.cli.audit import audit
from blizzard.cli.dlq.commands import app as dlq_app
from blizzard.cli.dry_run import dry_run as dry_run_plan
from blizzard.cli.gc import gc
from blizzard.cli.init import init
from blizzard.cli.journal.commands import app as journal_app
from blizzard.cli.output import One, chosen, load, tables_of
from blizzard.cli.progress_bar import Display
from blizzard.cli.redo import redo
from blizzard.cli.rows.compact import compact, compacts
from blizzard.cli.rows.erase import erase
from blizzard.cli.rows.retract import retract
from blizzard.cli.rows.rewriting import renews
from blizzard.cli.schema.commands import app as schema_app
from blizzard.cli.schema.promote import promote
from blizzard.cli.source import source_app
from blizzard.cli.status import status
from blizzard.cli.surroundings import Surroundings
from blizzard.cli.trace import trace
from blizzard.cli.why import why
from blizzard.execute.spark.cds_archive import require_java
from blizzard.execute.spark.warm import NotMade, warm
from blizzard.handoff.held_rows import Aside, read_aside
from blizzard.handoff.switch import TooEarly, set_handoff, too_early
from blizzard.metrics import METRICS
from blizzard.model.locations import sink_location
from blizzard.model.settings import BlizzardSettings, PipelineSettings, SinkSettings
from blizzard.service import Service, TableOf, asks_fates, asks_last_committed, open_reader
from lakebed.arguments import (
    DONE,
    FAILED,
    Files,
    Folders,
    ForwardingGroup,
    Least,
    LineShape,
    Outcome,
    Output,
    Shape,
    exit_code_of,
    program,
    run_program,
    usage_is_checked,
    version_option,
)
from lakebed.errors import LakeError, ObjectMissing
from lakebed.locations import ByPlace, place_of
from lakebed.storage.store import Reader, Store
from lakebed.telemetry.events import Emit, shared
from lakebed.telemetry.health import Part, PartKind
from lakebed.telemetry.logs import LogFormat, LogLevel, log_events
from lakebed.telemetry.server import observed
from lakebed.types import Commit, Handoff
from lakebed.units import in_words
from penguin.metrics import METRICS as PENGUIN_METRICS

app = program()


def main() -> None:
    """Run the program."""
    run_program(app, "blizzard")


@app.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    once: Annotated[bool, typer.Option("--once", help="Read what is there, then exit.")] = False,
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
    around = Surroundings.of(context)
    emit = shared(_log(log_level, log_format), around.also)
    settings = load(files, folders, log_format)
    settings = replace(settings, pipelines=chosen(settings, pipeline, log_format))
    if dry_run:
        table_of = tables_of(settings, files, folders)
        raise typer.Exit(dry_run_plan(settings.pipelines, output, table_of, log_format))
    with (
        usage_is_checked(log_format),
        observed(
            emit,
            address=settings.metrics_address,
            key=settings.metrics_key,
            guard=settings.metrics_guard,
            specs=METRICS + PENGUIN_METRICS,
            parts={
                Part(PartKind.PIPELINE, each.name): each.poll_interval + settings.poll_jitter
                for each in settings.pipelines
            },
            beside=_tables_committed_inline(settings),
            seconds=time.time,
        ) as told,
    ):
        require_java(os.environ)
        table_of = tables_of(settings, files, folders)
        code = _run(settings, told, around, once=once, output=output, table_of=table_of)
    raise typer.Exit(code)


@app.command(name="demo")
def demo_command(
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where to put the data and the table.")
    ] = Path("demo"),
) -> None:
    """Run both programs on sample NDJSON, and show the table."""
    raise typer.Exit(demo.run(folder, Console()))


app.command()(init)
app.command()(status)
app.command()(audit)
app.command()(why)
app.command()(gc)
app.command()(redo)
app.command()(retract)
app.command()(erase)
app.command()(compact)
app.command()(trace)
app.add_typer(journal_app, name="journal")
app.add_typer(dlq_app, name="dlq")
schema_app.command(name="promote")(promote)
app.add_typer(schema_app, name="schema")
app.add_typer(source_app, name="source")


@app.command(name="warm")
def warm_command(
    again: Annotated[
        bool, typer.Option("--again", help="Replace an archive that is there already.")
    ] = False,
) -> None:
    """Make Spark start faster from now on.

    It saves what Java works out at every start, as a class-data-sharing archive.
    """
    try:
        archive = warm(again=again)
    except NotMade as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(FAILED) from error
    typer.echo(f"{archive.path} ({in_words(archive.path.stat().st_size)})")


handoff_app = typer.Typer(cls=ForwardingGroup, no_args_is_help=True)
app.add_typer(handoff_app, name="handoff")


@handoff_app.callback()
def handoff_group(_files: Files = None, _folders: Folders = None, _pipeline: One = None) -> None:
    """Change how files are handed off to penguin."""


@handoff_app.command(name="set")
def handoff_set(
    handoff: Annotated[Handoff, typer.Argument(metavar="MODE", help="How files are handed off.")],
    pipeline: One = None,
    files: Files = None,
    folders: Folders = None,
) -> None:
    """Change the hand-off of every table in the configuration.

    It is refused while an entry is not committed.
    """
    settings = load(files, folders)
    tables = _tables(chosen(settings, pipeline))
    outcome = Outcome()
    for sink in tables:
        with outcome.of(sink.table_uri):
            early = _too_early(sink, handoff)
            if early is not None:
                show.switched(sink.table_uri, handoff, early)
                outcome.at_least(FAILED)
    if outcome.code != DONE:
        if len(tables) > 1:
            typer.echo("no table was changed; -p PIPELINE changes the table of one pipeline")
        raise typer.Exit(outcome.code)
    for sink in tables:
        with outcome.of(sink.table_uri):
            store = Store(sink.table_uri, sink.storage_options, make_folder=True)
            switched = set_handoff(store, handoff, asks_last_committed(sink))
            if not show.switched(sink.table_uri, handoff, switched):
                outcome.at_least(FAILED)
            elif sink.handoff is not handoff:
                typer.echo(f"  now set sink.handoff: {handoff.value} in the configuration")
    raise typer.Exit(outcome.code)


def _too_early(sink: SinkSettings, handoff: Handoff) -> TooEarly | None:
    try:
        store = Reader(sink.table_uri, sink.storage_options)
    except ObjectMissing:
        return None  # The table's folder does not exist yet, so nothing waits in it.
    return too_early(store, handoff, asks_last_committed(sink))


def _tables(pipelines: Iterable[PipelineSettings]) -> list[SinkSettings]:
    """Return the tables of pipelines, each once."""
    found: ByPlace[SinkSettings] = ByPlace()
    for pipeline in pipelines:
        found.setdefault(place_of(pipeline.sink.table_uri), pipeline.sink)
    return list(found.values())


def _run(
    settings: BlizzardSettings,
    emit: Emit,
    around: Surroundings,
    *,
    once: bool,
    output: Output,
    table_of: TableOf,
) -> int:
    """Run every pipeline, print what each did, and return the exit code."""
    around.listen(around.stop, emit)
    results = Service(
        settings=settings,
        emit=emit,
        stop=around.stop,
        once=once,
        table_of=table_of,
        clock=around.clock,
        make_runner=around.make_runner,
        renew_of=renews(around.clock),
        compact_of=compacts(around.clock),
    ).run()
    asides = {each.settings.name: _aside(each.settings) for each in results}
    show.results(
        [
            show.ResultRow(
                pipeline=each.settings.name,
                table_uri=each.settings.sink.table_uri,
                statistics=each.statistics,
                aside=asides[each.settings.name].counts(),
                error=None if each.error is None else str(each.error),
            )
            for each in results
        ],
        output,
    )
    errors = [each.error for each in results if each.error is not None]
    # With inline commits this run answers for what is held, as `penguin --once` does.
    held = once and any(
        each.settings.sink.commit is Commit.INLINE and asides[each.settings.name].held
        for each in results
    )
    return max((exit_code_of(error) for error in errors), default=FAILED if held else DONE)


def _tables_committed_inline(settings: BlizzardSettings) -> list[Part]:
    """Return the tables whose metrics blizzard serves, as penguin's commits would name them."""
    return [
        Part(PartKind.TABLE, settings.tables.get(each.name, each.sink.table_uri))
        for each in settings.pipelines
        if each.sink.commit is Commit.INLINE
    ]


def _aside(settings: PipelineSettings) -> Aside:
    """Return the rows of a pipeline that are journaled and not in the table."""
    try:
        store = open_reader(sink_location(settings))
    except LakeError:
        return Aside()  # There is no table's folder: what keeps it away is told by the run.
    return read_aside(store, settings.name, asks_fates(settings))


def _log(least: LogLevel, shape: LogFormat) -> Emit:
    """Log to standard error; a person at a terminal also sees how far the batches are."""
    if shape is LogFormat.JSON or not sys.stderr.isatty():
        return log_events(least, shape)
    display = Display(Console(stderr=True))
    return shared(log_events(least, shape, write=display.write), display.emit)
