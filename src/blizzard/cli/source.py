"""`blizzard source set`: record in the journal that the files of a source are elsewhere now."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from blizzard.cli.journal.new import tell_event, tell_watching
from blizzard.cli.output import One, load, open_reader, the_one, written_before
from blizzard.journal.checkpoint import read_ledger, reread
from blizzard.journal.lease import refuse_while_alive_here, refuse_while_written, turn_of
from blizzard.journal.lease_record import this_machine
from blizzard.journal.ledger import Ledger
from blizzard.journal.segments import SegmentBroken
from blizzard.log_questions import asks_passed_over
from blizzard.model.locations import sink_location, source_location
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.repair.move_source import Compared, compare, move
from lakebed.clock import Clock
from lakebed.storage.store import Reader, Store
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    USAGE,
    Files,
    Folders,
    ForwardingGroup,
    Output,
    Program,
    Shape,
    Sure,
    ends_on_error,
)
from lakebed.terminal.console import console, plural, print_line, say, say_error

source_app = Program(cls=ForwardingGroup, no_args_is_help=True)

Ask = Callable[[Ledger], Compared | None]


@source_app.callback()
def source(
    _files: Files = None,
    _folders: Folders = None,
    _pipeline: One = None,
    _output: Shape = Output.TEXT,
) -> None:
    """Tell blizzard that the files of a source have moved."""


@source_app.command(name="set")
def source_set(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The source, as the configuration names it.")
    ],
    same_files: Annotated[
        bool,
        typer.Option(
            "--same-files",
            help="Confirm that the new path has the files that were read at the old one.",
        ),
    ] = False,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    yes: Sure = False,
    output: Shape = Output.TEXT,
) -> None:
    """Continue with a source whose files have moved.

    The configuration has to have the new path already.
    """
    settings = the_one(load(files, folders), pipeline)
    source = next((each for each in settings.sources if each.name == name), None)
    if source is None:
        names = ", ".join(each.name for each in settings.sources)
        say_error(f"error: there is no source {name!r}; there are: {names}")
        raise typer.Exit(USAGE)
    if not same_files:
        say_error(
            "error: add --same-files if the files that were read are there now; if they are other "
            "files, give the source another name in the configuration"
        )
        raise typer.Exit(USAGE)
    with ends_on_error(settings.name), written_before(settings):
        found = _set(settings, source) if yes else _look(settings, source)
    _tell(settings.name, source, found, done=yes, output=output)
    raise typer.Exit(DONE if yes or found is None else FAILED)


def _look(settings: PipelineSettings, source: SourceSettings) -> Compared | None:
    reader = open_reader(sink_location(settings))
    refuse_while_written(
        reader, settings.name, machine=this_machine(), wait=time.sleep, watching=tell_watching
    )
    place = open_reader(source_location(source))
    return _asked(
        reader,
        settings,
        lambda history: compare(reader, settings.name, source, history, place),
    )


def _set(settings: PipelineSettings, source: SourceSettings) -> Compared | None:
    """Record the new place; nothing is written where the first look finds a reason against it."""
    where, clock = sink_location(settings), Clock()
    reader, place = open_reader(where), open_reader(source_location(source))
    refuse_while_alive_here(reader, settings.name, machine=this_machine())

    def look(history: Ledger) -> Compared | None:
        return compare(reader, settings.name, source, history, place)

    if _asked(reader, settings, look) is None:
        return None
    store = Store(where.uri, where.options)
    turn = turn_of(
        store,
        settings.name,
        str(clock.fresh_id()),
        machine=this_machine(),
        clock=clock,
        emit=tell_event,
        wait=time.sleep,
    )
    with turn:
        return _asked(
            store,
            settings,
            lambda history: move(store, settings.name, source, history, place, clock=clock),
        )


def _asked(store: Reader, settings: PipelineSettings, ask: Ask) -> Compared | None:
    """Ask with what the journal says; damaged names are built again from the entries."""
    history = read_ledger(store, settings.name, passed_over=asks_passed_over(settings))
    try:
        return ask(history)
    except SegmentBroken as broken:
        reread(history, broken)
        return ask(history)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRow:
    """A source and its new place; what was compared is None where it is at that place already."""

    pipeline: str
    source: str
    uri: str
    done: bool
    before: str | None
    same_files: int | None
    changed_files: int | None
    new_files: int | None


def _tell(
    pipeline: str, source: SourceSettings, found: Compared | None, *, done: bool, output: Output
) -> None:
    if output is Output.JSON:
        print_line(
            MovedRow(
                pipeline=pipeline,
                source=source.name,
                uri=source.uri,
                done=done and found is not None,
                before=found.before if found else None,
                same_files=found.same if found else None,
                changed_files=found.changed if found else None,
                new_files=found.new if found else None,
            )
        )
        return
    to = console()
    if found is None:
        say(to, f"pipeline {pipeline}: source {source.name} is already read from {source.uri}")
        return
    say(to, f"pipeline {pipeline}: source {source.name}: {found.before} -> {found.now}")
    say(to, f"  {plural(found.same, 'file')} with known names and sizes: read before, not again")
    if found.in_part:
        say(to, f"  of these, {plural(found.in_part, 'file')} read in part: the rest is read next")
    if found.changed:
        say(to, f"  {plural(found.changed, 'file')} with known names and other sizes: changed")
    say(to, f"  {plural(found.new, 'file')} with new names: read by the next batches")
    if done:
        say(to, "done: blizzard can be started again")
    else:
        say(to, "nothing was done. Stop every blizzard of this pipeline, then add --yes to do it")
