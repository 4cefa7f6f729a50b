"""`blizzard redo`: read source files again whose rows are in data files that are gone."""

from typing import Annotated, Any

import typer

from blizzard.commands.common import (
    One,
    chosen,
    console,
    load,
    open_reader,
    plural,
    print_line,
    say,
)
from blizzard.redo import Fates, Found, look
from blizzard.redo import redo as append_redo
from blizzard.settings import PipelineSettings
from blizzard.sight import sink_location
from lake.arguments import DONE, FAILED, Files, Folders, Output, Shape, complain
from lake.clock import Clock
from lake.errors import LakeError, ObjectMissing
from lake.storage import Store
from penguin import inline

FEW = 10


def redo(
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    sure: Annotated[
        bool, typer.Option("--yes", help="Do it; without, only say what would be done.")
    ] = False,
    output: Shape = Output.TEXT,
) -> None:
    """Read source files again whose rows are in data files that are gone."""
    code = DONE
    for settings in chosen(load(files, folders), pipeline):
        try:
            found, entry = _one(settings, sure=sure)
        except LakeError as trouble:
            complain(trouble, who=settings.name)
            code = FAILED
            continue
        if output is Output.JSON:
            print_line(_document(settings, found, entry))
        else:
            _show(settings.name, found, entry)
        if any(unit.why_not for unit in found.units) or (found.ready and entry is None):
            code = FAILED
    raise typer.Exit(code)


def _one(settings: PipelineSettings, *, sure: bool) -> tuple[Found, int | None]:
    place, fates = sink_location(settings), _fates(settings)
    try:
        if sure:
            return append_redo(Store(place.uri, place.options), settings.name, fates, clock=Clock())
        return look(open_reader(place), settings.name, fates), None
    except ObjectMissing:
        return Found(), None  # The table's folder does not exist yet, so nothing is gone from it.


def _fates(settings: PipelineSettings) -> Fates:
    sink = settings.sink
    return lambda names: inline.fates(sink.table_uri, sink.storage_options, names)


def _document(settings: PipelineSettings, found: Found, entry: int | None) -> dict[str, Any]:
    return {
        "pipeline": settings.name,
        "table_uri": settings.sink.table_uri,
        "entry": entry,
        "units": [
            {
                "entry": unit.entry,
                "files": list(unit.files),
                "rows": unit.rows,
                "sources": [record.key for record in unit.sources],
                "why_not": unit.why_not,
            }
            for unit in found.units
        ],
    }


def _show(pipeline: str, found: Found, entry: int | None) -> None:
    to = console()
    if not found.units:
        say(to, f"pipeline {pipeline}: no data file is missing")
        return
    for unit in found.units:
        what = f"{plural(len(unit.files), 'file')} of entry {unit.entry} ({unit.rows:,} rows)"
        if unit.why_not is not None:
            say(to, f"pipeline {pipeline}: {what} cannot be read again: {unit.why_not}")
            continue
        verb = "would read" if entry is None else "reads"
        again = f"{plural(len(unit.sources), 'source file')} again"
        say(to, f"pipeline {pipeline}: {what}: the next batch {verb} {again}")
        for record in unit.sources[:FEW]:
            say(to, f"  {record.key}")
        if len(unit.sources) > FEW:
            say(to, f"  and {len(unit.sources) - FEW:,} more")
    if found.ready and entry is None:
        say(to, "say --yes to do it")
