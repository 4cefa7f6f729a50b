"""`blizzard redo`: read source files again whose rows are not in the table.

Their data files are gone, held by penguin, or discarded.
"""

from dataclasses import dataclass
from typing import Annotated

import typer

from blizzard.cli.names import resolved, scopes_of
from blizzard.cli.output import One, chosen, load, open_reader
from blizzard.log_questions import asks_came_back, asks_fates
from blizzard.model.locations import sink_location
from blizzard.model.settings import PipelineSettings
from blizzard.repair.redo import RedoPlan, RedoRequest, plan_redo
from blizzard.repair.redo import redo as append_redo
from lakebed.clock import Clock
from lakebed.errors import ObjectMissing
from lakebed.storage.store import Store
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    Files,
    Folders,
    Outcome,
    Output,
    Shape,
    Sure,
    ends_on_error,
)
from lakebed.terminal.console import console, plural, print_line, say, say_error, say_first

FEW = 10


def redo(
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    sure: Sure = False,
    held: Annotated[
        list[str] | None,
        typer.Option(
            "--held",
            metavar="ID",
            help="A held or discarded file, by the ID that `penguin held` shows; repeatable.",
        ),
    ] = None,
    paths: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            metavar="PATH",
            help="A source file whose rows are held or discarded; repeatable.",
        ),
    ] = None,
    output: Shape = Output.TEXT,
) -> None:
    """Read source files again whose rows are not in the table.

    Their data files are gone, held by penguin, or discarded.
    """
    names = sorted({*(held or ()), *(paths or ())})
    outcome, units = Outcome(), 0
    scopes = scopes_of(chosen(load(files, folders), pipeline), outcome)
    with ends_on_error("redo"):
        asked = resolved(paths or (), scopes)
    for settings in (scope.settings for scope in scopes):
        with outcome.of(settings.name):
            wanted = None
            if names:
                keys = frozenset(asked[settings.name])
                wanted = RedoRequest(files=frozenset(held or ()), sources=keys)
            found, entry = _one(settings, wanted, sure=sure)
            units += len(found.units)
            if names and not found.units:
                continue  # Another pipeline may have it.
            if output is Output.JSON:
                print_line(_row(settings, found, entry))
            else:
                _show(settings.name, found, entry)
            if any(unit.why_not for unit in found.units) or (found.ready and entry is None):
                outcome.at_least(FAILED)
    if names and not units and outcome.code == DONE:
        say_error(
            f"error: {', '.join(names)}: no rows of it are held or discarded; `blizzard status` "
            "counts them, `penguin held` names the files"
        )
        outcome.at_least(FAILED)
    raise typer.Exit(outcome.code)


def _one(
    settings: PipelineSettings, wanted: RedoRequest | None, *, sure: bool
) -> tuple[RedoPlan, int | None]:
    place, fates = sink_location(settings), asks_fates(settings)
    back = asks_came_back(settings)
    try:
        if sure:
            store = Store(place.uri, place.options)
            return append_redo(store, settings.name, fates, clock=Clock(), wanted=wanted, back=back)
        return plan_redo(open_reader(place), settings.name, fates, wanted, back), None
    except ObjectMissing:
        # The table's folder does not exist yet, so nothing is gone from it.
        return RedoPlan(), None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRow:
    """Data files whose sources are read again together, or why they cannot be."""

    entry: int
    files: tuple[str, ...]
    rows: int
    sources: tuple[str, ...]
    why_not: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoRow:
    """What is read again of a pipeline; `entry` is None where nothing was written."""

    pipeline: str
    table_uri: str
    entry: int | None
    units: tuple[UnitRow, ...]


def _row(settings: PipelineSettings, found: RedoPlan, entry: int | None) -> RedoRow:
    return RedoRow(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        entry=entry,
        units=tuple(
            UnitRow(
                entry=unit.entry,
                files=tuple(unit.files),
                rows=unit.rows,
                sources=tuple(record.key for record in unit.sources),
                why_not=unit.why_not,
            )
            for unit in found.units
        ),
    )


def _show(pipeline: str, found: RedoPlan, entry: int | None) -> None:
    to = console()
    if not found.units:
        say(
            to,
            f"pipeline {pipeline}: no data file is missing, as far as penguin knows; if one has "
            "disappeared since penguin last looked, run penguin first",
        )
        return
    for unit in found.units:
        what = (
            f"{plural(len(unit.files), 'file')} of entry {unit.entry} ({plural(unit.rows, 'row')})"
        )
        if unit.why_not is not None:
            say(to, f"pipeline {pipeline}: {what} cannot be read again: {unit.why_not}")
            continue
        verb = "would read" if entry is None else "reads"
        again = f"{plural(len(unit.sources), 'source file')} again"
        say(to, f"pipeline {pipeline}: {what}: the next batch {verb} {again}")
        say_first(to, [record.key for record in unit.sources], FEW)
    if found.ready and entry is None:
        say(to, "add --yes to do it")
