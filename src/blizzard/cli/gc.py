"""`blizzard gc`: show or delete the files that neither the journal nor the log names."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from blizzard.cli.call import PipelineCall, document_of
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader, open_store, open_table, sink_location
from blizzard.pipeline_log import PipelineLog
from blizzard.repair.gc import Collected, Garbage, GarbageKind, GarbagePiece, collect, find_garbage
from lakebed.clock import Clock
from lakebed.deltalog.files import named_files
from lakebed.terminal.call import reading, refuse
from lakebed.terminal.console import Line, Table, first, picked
from lakebed.units import in_words, parse_span, plural

NAMES = {
    GarbageKind.DATA: "data files of attempts that died, or of promotions without effect",
    GarbageKind.OUTBOX: "files left in the outbox",
    GarbageKind.DEAD_LETTERS: "dead letters that no entry names",
    GarbageKind.QUARANTINE: "quarantine files that no entry names, or whose lines no longer wait",
    GarbageKind.STARTED_NOTE: "notes of batches that are journaled",
    GarbageKind.UNFINISHED: "unfinished files",
}


UNREFERENCED = "not referenced by any journal entry"


def gc(
    call: PipelineCall,
    delete: bool = False,
    older_than: str = "24h",
) -> None:
    """Show or delete the files that failed attempts left behind.

    Args:
        delete: Delete them; without this, only show them.
        older_than DURATION: Only files older than this, such as 90m, 24h or 7d.
    """
    span = parse_span(older_than)
    if span is None:
        refuse(f"--older-than {older_than!r} is not a duration; use for example 90m, 24h or 7d")
    for settings in call.pipelines():
        with call.guard(settings.name):
            _collect(call, settings, span, delete=delete)


def _collect(
    call: PipelineCall, settings: PipelineSettings, span: timedelta, *, delete: bool
) -> None:
    clock, place, fates = Clock(), sink_location(settings), PipelineLog(settings).fates

    def log_names() -> frozenset[str]:
        return named_files(place.uri, place.options)

    found, done = Garbage(), None
    with reading(settings.name, call.output):
        reader, now = open_table(settings, open_reader), clock.now()
        if reader is not None:
            found = find_garbage(
                reader, settings.name, log_names, now=now, older_than=span, fates=fates
            )
    if delete and (found.last is not None or found.leftovers):
        store = open_store(place)
        done = collect(store, settings.name, log_names, clock=clock, older_than=span, fates=fates)
    pieces = done.pieces if done else found.promised + found.garbage + found.leftovers
    document = {
        **document_of(settings),
        "deleted": done is not None,
        **picked(done, "entry"),
        "files": len(pieces),
        "bytes": _size(pieces),
        "pieces": [picked(one, "path bytes=size kind") for one in pieces],
        "young_files": len(found.young),
        "young_bytes": _size(found.young),
        "left_alone": found.left_alone,
    }
    call.show(_text(settings.name, found, done, pieces), document)


def _text(
    pipeline: str, found: Garbage, done: Collected | None, pieces: Sequence[GarbagePiece]
) -> Iterator[Line]:
    amount = f"{plural(len(pieces), 'file')} ({in_words(_size(pieces))})"
    if done is not None:
        entry = "" if done.entry is None else f"; entry {done.entry} records it"
        yield f"pipeline {pipeline}: {amount} deleted{entry}"
    elif pieces:
        yield f"pipeline {pipeline}: {amount} could be deleted; gc --delete does it"
    else:
        yield f"pipeline {pipeline}: no garbage"
    if pieces:
        kinds = {kind: [one for one in pieces if one.kind is kind] for kind in GarbageKind}
        yield Table(
            ("what", ">files", ">bytes"),
            [
                (NAMES[kind], len(some), in_words(_size(some)))
                for kind, some in kinds.items()
                if some
            ],
        )
        yield from first([piece.path for piece in pieces])
    if found.young:
        young = f"{plural(len(found.young), 'file')} ({in_words(_size(found.young))})"
        they = "it is" if len(found.young) == 1 else "they are"
        yield f"  {young} {UNREFERENCED}; kept because {they} too recent to delete"
    if found.left_alone:
        files = plural(found.left_alone, "file")
        yield f"  {files} {UNREFERENCED}; kept for lack of this journal's mark"


def _size(pieces: Sequence[GarbagePiece]) -> int:
    return sum(piece.size for piece in pieces)
