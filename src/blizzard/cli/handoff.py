"""`blizzard handoff`: change how files are handed off to penguin."""

from collections.abc import Iterable
from typing import Annotated

import typer

from blizzard.cli.options import One
from blizzard.cli.output import chosen, load
from blizzard.handoff.switch import Uncommitted, entries_before, set_handoff
from blizzard.log_questions import asks_last_committed
from blizzard.model.settings import PipelineSettings, SinkSettings
from lakebed.errors import ObjectMissing
from lakebed.locations import ByPlace, place_of
from lakebed.storage.store import Reader, Store
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    Files,
    Folders,
    ForwardingGroup,
    Outcome,
    Program,
)
from lakebed.terminal.console import console, say
from lakebed.types import Handoff
from lakebed.units import entries_from

app = Program(cls=ForwardingGroup, no_args_is_help=True)


@app.callback()
def handoff_group(_files: Files = None, _folders: Folders = None, _pipeline: One = None) -> None:
    """Change how files are handed off to penguin."""


@app.command(name="set")
def handoff_set(
    handoff: Annotated[
        Handoff, typer.Argument(metavar="MODE", help="How penguin learns of new data files.")
    ],
    pipeline: One = None,
    files: Files = None,
    folders: Folders = None,
) -> None:
    """Change the hand-off of every table in the configuration.

    It is refused while an entry of the journal is not committed.
    """
    settings = load(files, folders)
    tables = _tables(chosen(settings, pipeline))
    outcome = Outcome()
    for sink in tables:
        with outcome.of(sink.table_uri):
            if waiting := _waiting(sink, handoff):
                _say_waiting(sink.table_uri, waiting)
                outcome.at_least(FAILED)
    if outcome.code != DONE:
        if len(tables) > 1:
            say(console(), "no table was changed; -p PIPELINE changes the table of one pipeline")
        raise typer.Exit(outcome.code)
    for sink in tables:
        with outcome.of(sink.table_uri):
            store = Store(sink.table_uri, sink.storage_options, make_folder=True)
            changed = set_handoff(store, handoff, asks_last_committed(sink))
            if isinstance(changed, tuple):
                _say_waiting(sink.table_uri, changed)
                outcome.at_least(FAILED)
                continue
            when = "from now on" if changed else "already"
            say(console(), f"{sink.table_uri}: files are handed off by {handoff.value} {when}")
            if sink.handoff is not handoff:
                say(console(), f"  now set sink.handoff: {handoff.value} in the configuration")
    raise typer.Exit(outcome.code)


def _waiting(sink: SinkSettings, handoff: Handoff) -> tuple[Uncommitted, ...]:
    try:
        store = Reader(sink.table_uri, sink.storage_options)
    except ObjectMissing:
        return ()  # The table's folder does not exist yet, so nothing waits in it.
    return entries_before(store, handoff, asks_last_committed(sink))


def _say_waiting(table_uri: str, waiting: tuple[Uncommitted, ...]) -> None:
    to = console()
    say(
        to,
        f"{table_uri}: the hand-off was not changed: these entries are not committed yet; "
        "have them committed (penguin --once, or blizzard --once where sink.commit is "
        "inline) and try again",
    )
    for one in waiting:
        say(to, f"  pipeline {one.pipeline}: {entries_from(one.first, one.last)}")


def _tables(pipelines: Iterable[PipelineSettings]) -> list[SinkSettings]:
    """Return the tables of pipelines, each once."""
    found: ByPlace[SinkSettings] = ByPlace()
    for pipeline in pipelines:
        found.setdefault(place_of(pipeline.sink.table_uri), pipeline.sink)
    return list(found.values())
