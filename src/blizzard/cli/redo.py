"""`blizzard redo`: read source files again whose rows are not in the table.

Their data files are gone, held by penguin, or discarded.
"""

from collections.abc import Iterator
from functools import partial
from typing import Annotated

import typer

from blizzard.answers.bad_lines import resolved
from blizzard.cli.call import PipelineCall, document_of
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader, open_store, open_table, sink_location
from blizzard.pipeline_log import PipelineLog
from blizzard.repair.redo import RedoPlan, RedoRequest, plan_redo
from blizzard.repair.redo import redo as append_redo
from lakebed.clock import Clock
from lakebed.terminal.call import DONE, FAILED, Confirmed, refuse
from lakebed.terminal.console import first, picked
from lakebed.units import plural
from penguin.rules import came_back


def redo(
    call: PipelineCall,
    sure: Confirmed = False,
    held: list[str] | None = None,
    paths: Annotated[list[str] | None, typer.Option("--file")] = None,
) -> None:
    """Read source files again whose rows are not in the table.

    Their data files are gone, held by penguin, or discarded.

    Args:
        held ID: A held or discarded file, by the ID that `penguin held` shows; repeatable.
        paths PATH: A source file with held or discarded rows; repeatable.
    """
    names, call.who, units = sorted({*(held or ()), *(paths or ())}), "redo", 0
    scopes = call.scopes()
    asked = resolved(paths or (), scopes)
    for settings in (scope.settings for scope in scopes):
        with call.guard(settings.name):
            wanted = None
            if names:
                keys = frozenset(asked[settings.name])
                wanted = RedoRequest(files=frozenset(held or ()), sources=keys)
            found, entry = _redo(settings, wanted, sure=sure)
            units += len(found.units)
            if names and not found.units:
                continue  # Another pipeline may have it.
            call.show(_text(settings.name, found, entry), _document(settings, found, entry))
            call.fail_if(any(unit.why_not for unit in found.units))
            call.fail_if(found.ready and entry is None)
    if names and not units and call.code == DONE:
        ids = [f"{name} is not the ID of a held or discarded file" for name in held or ()]
        files = [f"{name} has no held or discarded rows" for name in paths or ()]
        refuse(f"{'; '.join((*ids, *files))}; see penguin held", FAILED)


def _redo(
    settings: PipelineSettings, wanted: RedoRequest | None, *, sure: bool
) -> tuple[RedoPlan, int | None]:
    name, fates = settings.name, PipelineLog(settings).fates
    back = partial(came_back, settings.sink.table_uri, settings.sink.storage_options)
    reader = open_table(settings, open_reader)
    if reader is None:
        return RedoPlan(), None
    if not sure:
        return plan_redo(reader, name, fates, wanted, back), None
    store = open_store(sink_location(settings))
    return append_redo(store, name, fates, clock=Clock(), wanted=wanted, back=back)


def _document(settings: PipelineSettings, found: RedoPlan, entry: int | None) -> dict[str, object]:
    units = [
        {
            **picked(unit, "entry files rows"),
            "sources": [record.key for record in unit.sources],
            "why_not": unit.why_not,
        }
        for unit in found.units
    ]
    return {**document_of(settings), "entry": entry, "units": units}


def _text(pipeline: str, found: RedoPlan, entry: int | None) -> Iterator[str]:
    if not found.units:
        yield (
            f"pipeline {pipeline}: no data file is known to be missing; if one disappeared "
            "recently, run penguin fsck first"
        )
    for unit in found.units:
        files, rows = plural(len(unit.files), "file"), plural(unit.rows, "row")
        what = f"pipeline {pipeline}: {files} of entry {unit.entry} ({rows})"
        if unit.why_not is not None:
            yield f"{what} cannot be read again: {unit.why_not}"
            continue
        verb = "would read" if entry is None else "reads"
        sources = plural(len(unit.sources), "source file")
        yield f"{what}: the next batch {verb} {sources} again"
        yield from first([record.key for record in unit.sources])
    if found.ready and entry is None:
        yield "add --yes to do it"
