"""`blizzard dlq replay` and `discard`: lines in quarantine are read again, or given up."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from blizzard.cli.dlq.bad_lines import word_for
from blizzard.cli.output import One, load, tables_of, the_one
from blizzard.cli.rows.rewriting import rewriter
from blizzard.cli.surroundings import Surroundings
from blizzard.log_questions import asks_columns
from blizzard.maintain.bad_lines import Done, discard, look, meant_lines, replay
from blizzard.model.locations import sink_location
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from lakebed.arguments import (
    DONE,
    FAILED,
    USAGE,
    Files,
    Folders,
    Output,
    Shape,
    Sure,
    complain,
    exit_code_of,
)
from lakebed.console import console, plural, print_line, say
from lakebed.errors import LakeError, ObjectMissing
from lakebed.storage.store import Store
from lakebed.telemetry.logs import LogFormat, LogLevel, log_events
from lakebed.types import Commit
from penguin import inline

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="GROUP|FILE", help="Groups of dlq list, or source files."),
]
All = Annotated[bool, typer.Option("--all", help="All lines that are waiting.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRow:
    """What was done with lines in quarantine; `entry` is None where nothing was."""

    pipeline: str
    table_uri: str
    entry: int | None
    lines: int
    """Lines that became rows or were discarded or, where nothing was done, would be looked at."""
    filtered: int
    """Lines that were read again and are passed over by now: they wait no longer."""
    left: int
    """Lines that were read again and still cannot be read."""


def dlq_replay(
    context: typer.Context,
    names: Names = None,
    every: All = False,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    yes: Sure = False,
    output: Shape = Output.TEXT,
) -> None:
    """Read lines that are set aside again, as things are configured now.

    What can be read becomes rows, on Spark; what cannot goes on waiting.
    """
    loaded, settings, meant = _asked(names, every, files, folders, pipeline)
    around = Surroundings.of(context)
    if not yes:
        _show_plan(settings, meant, "read again", output)
    try:
        done = _replay(settings, meant, loaded, around)
        if done.entry is not None and settings.sink.commit is Commit.INLINE:
            _commit(settings, loaded, files, folders, around)
    except LakeError as trouble:
        complain(trouble, who=settings.name)
        raise typer.Exit(exit_code_of(trouble)) from None
    _tell(settings, done, "became rows", output)


def dlq_discard(
    context: typer.Context,
    names: Names = None,
    every: All = False,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    yes: Sure = False,
    output: Shape = Output.TEXT,
) -> None:
    """Give up lines that are set aside: they never become rows."""
    _loaded, settings, meant = _asked(names, every, files, folders, pipeline)
    if not yes:
        _show_plan(settings, meant, "discarded", output)
    try:
        store = _store(settings)
        clock = Surroundings.of(context).clock
        done = Done() if store is None else discard(store, settings, meant, clock=clock)
    except LakeError as trouble:
        complain(trouble, who=settings.name)
        raise typer.Exit(exit_code_of(trouble)) from None
    _tell(settings, done, "discarded", output)


def _asked(
    names: list[str] | None,
    every: bool,
    files: list[Path] | None,
    folders: list[Path] | None,
    pipeline: str | None,
) -> tuple[BlizzardSettings, PipelineSettings, list[str] | None]:
    """Return what is asked for; no names for all lines."""
    if bool(names) == every:
        typer.echo("error: name groups or source files, or use --all", err=True)
        raise typer.Exit(USAGE)
    loaded = load(files, folders)
    return loaded, the_one(loaded, pipeline), None if every else names


def _store(settings: PipelineSettings) -> Store | None:
    place = sink_location(settings)
    try:
        return Store(place.uri, place.options)
    except ObjectMissing:
        return None  # The table's folder does not exist yet, so nothing is set aside.


def _replay(
    settings: PipelineSettings,
    names: list[str] | None,
    loaded: BlizzardSettings,
    around: Surroundings,
) -> Done:
    store = _store(settings)
    if store is None:
        return Done()
    with rewriter(loaded, around) as runner:
        return replay(
            store,
            settings,
            names,
            asks_columns(settings),
            runner,
            clock=around.clock,
            emit=log_events(LogLevel.INFO, LogFormat.TEXT),
            mapping_of_table=inline.column_mapping(
                settings.sink.table_uri, settings.sink.storage_options
            ),
        )


def _commit(
    settings: PipelineSettings,
    loaded: BlizzardSettings,
    files: list[Path] | None,
    folders: list[Path] | None,
    around: Surroundings,
) -> None:
    """Commit the entry, as a batch of this pipeline would: no penguin is expected to."""
    committer = inline.committer(
        tables_of(loaded, files, folders)(settings.name),
        settings.sink.table_uri,
        settings.sink.storage_options,
        emit=log_events(LogLevel.WARN, LogFormat.TEXT),
        clock=around.clock,
        pipeline=settings.name,
    )
    committer()
    committer.finish()


def _show_plan(
    settings: PipelineSettings, names: list[str] | None, verb: str, output: Output
) -> None:
    """Print what would be done, and end the program."""
    try:
        store = _store(settings)
        if store is None:
            meant, unknown = 0, frozenset(names or ())
        else:
            meant, unknown = meant_lines(store, look(store, settings.name, names))
    except LakeError as trouble:
        complain(trouble, who=settings.name)
        raise typer.Exit(exit_code_of(trouble)) from None
    if output is Output.JSON:
        _print(settings, Done(lines=meant))
    else:
        lines = plural(meant, word_for(settings))
        say(console(), f"pipeline {settings.name}: {lines} would be {verb}")
        if meant:
            say(console(), "add --yes to do it")
    _complain_of(unknown)
    raise typer.Exit(FAILED if meant or unknown else DONE)


def _tell(settings: PipelineSettings, done: Done, verb: str, output: Output) -> None:
    if output is Output.JSON:
        _print(settings, done)
    else:
        to, word = console(), word_for(settings)
        say(to, f"pipeline {settings.name}: {plural(done.lines, word)} {verb}")
        if done.filtered:
            passed = plural(done.filtered, word)
            say(to, f"  {passed} passed over by source.skip_records, without a row")
        if done.left:
            wait = "waits" if done.left == 1 else "wait"
            say(to, f"  {plural(done.left, word)} still cannot be read and {wait} on")
        if done.entry is not None:
            say(to, f"  recorded in entry {done.entry}")
    _complain_of(done.unknown)
    raise typer.Exit(FAILED if done.unknown else DONE)


def _print(settings: PipelineSettings, done: Done) -> None:
    print_line(
        ResolvedRow(
            pipeline=settings.name,
            table_uri=settings.sink.table_uri,
            entry=done.entry,
            lines=done.lines,
            filtered=done.filtered,
            left=done.left,
        )
    )


def _complain_of(unknown: frozenset[str]) -> None:
    if unknown:
        listed = ", ".join(sorted(unknown))
        typer.echo(
            f"error: no bad lines of {listed} are waiting; blizzard dlq list shows what is",
            err=True,
        )
