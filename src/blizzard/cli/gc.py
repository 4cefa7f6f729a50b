"""`blizzard gc`: what nobody names, how much it is, and its deletion if that is requested."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import typer
from rich.console import Console

from blizzard.cli.output import One, chosen, load, looked_with
from blizzard.log_questions import asks_fates
from blizzard.model.locations import sink_location
from blizzard.model.settings import PipelineSettings
from blizzard.repair.gc import (
    Collected,
    Garbage,
    GarbagePiece,
    Kind,
    LogNames,
    collect,
    find_garbage,
)
from lakebed.clock import Clock
from lakebed.deltalog import tables
from lakebed.errors import ObjectMissing
from lakebed.storage.store import Store
from lakebed.terminal.arguments import USAGE, Files, Folders, Outcome, Output, Shape
from lakebed.terminal.console import (
    add,
    columns,
    console,
    plural,
    print_line,
    print_table,
    say,
    say_error,
    say_first,
)
from lakebed.units import in_words, parse_span

NAMES = {
    Kind.DATA: "data files of attempts that died, or of promotions without effect",
    Kind.OUTBOX: "files left in the outbox",
    Kind.DEAD_LETTERS: "dead letters that no entry names",
    Kind.QUARANTINE: "quarantine files that no entry names, or whose lines no longer wait",
    Kind.STARTED_NOTE: "notes of batches that are journaled",
    Kind.UNFINISHED: "files that were never finished",
    Kind.UPLOAD: "uploads that were never completed",
    Kind.REPLACED: "snapshots and segments of names or books that newer ones replace",
}
FEW = 10


def gc(
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete them; without this, only show them.")
    ] = False,
    older_than: Annotated[
        str,
        typer.Option(metavar="SPAN", help="Only files older than this, such as 90m, 24h or 7d."),
    ] = "24h",
    output: Shape = Output.TEXT,
) -> None:
    """Show or delete the files that failed attempts have left behind.

    On S3 that includes unfinished multipart uploads, if blizzard-penguin[aws] is installed.
    """
    span = parse_span(older_than)
    if span is None:
        say_error(f"error: --older-than {older_than!r}: write 90m, 24h or 7d")
        raise typer.Exit(USAGE)
    outcome = Outcome()
    for settings in chosen(load(files, folders), pipeline):
        with outcome.of(settings.name):
            _one(settings, span, delete=delete, output=output)
    raise typer.Exit(outcome.code)


def _one(settings: PipelineSettings, span: timedelta, *, delete: bool, output: Output) -> None:
    clock, log_names = Clock(), _log_names(settings)
    place, fates = sink_location(settings), asks_fates(settings)
    try:
        with looked_with(settings.name, output) as opens:
            found = find_garbage(
                opens(place),
                settings.name,
                log_names,
                now=clock.now(),
                older_than=span,
                fates=fates,
            )
    except ObjectMissing:
        found = Garbage()  # The table's folder does not exist yet, so nothing lies in it.
    done = None
    if delete and (found.last is not None or found.leftovers):
        store = Store(place.uri, place.options)
        done = collect(store, settings.name, log_names, clock=clock, older_than=span, fates=fates)
    if output is Output.JSON:
        print_line(garbage_row(settings, found, done))
    else:
        show(settings.name, found, done)


def _log_names(settings: PipelineSettings) -> LogNames:
    sink = settings.sink
    return lambda: tables.named_files(sink.table_uri, sink.storage_options)


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceRow:
    """One file."""

    path: str
    bytes: int
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageRow:
    """The garbage of a pipeline, in the keys that docs/operations.md promises."""

    pipeline: str
    table_uri: str
    deleted: bool
    entry: int | None
    files: int
    bytes: int
    pieces: tuple[PieceRow, ...]
    young_files: int
    young_bytes: int
    left_alone: int
    unseen: str | None


def garbage_row(settings: PipelineSettings, found: Garbage, done: Collected | None) -> GarbageRow:
    """Return what was deleted, or what could be."""
    pieces = done.pieces if done else found.promised + found.garbage + found.leftovers
    return GarbageRow(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        deleted=done is not None,
        entry=done.entry if done else None,
        files=len(pieces),
        bytes=_size(pieces),
        pieces=tuple(PieceRow(path=one.path, bytes=one.size, kind=one.kind) for one in pieces),
        young_files=len(found.young),
        young_bytes=_size(found.young),
        left_alone=found.left_alone,
        unseen=found.unseen or None,
    )


def show(pipeline: str, found: Garbage, done: Collected | None) -> None:
    """Print it for a person."""
    to = console()
    pieces = done.pieces if done else found.promised + found.garbage + found.leftovers
    amount = f"{plural(len(pieces), 'file')} ({in_words(_size(pieces))})"
    if done is not None:
        entry = "" if done.entry is None else f"; entry {done.entry} records it"
        say(to, f"pipeline {pipeline}: {amount} deleted{entry}")
    elif pieces:
        say(to, f"pipeline {pipeline}: {amount} could be deleted; gc --delete does it")
    else:
        say(to, f"pipeline {pipeline}: no garbage")
    if pieces:
        _show_pieces(to, pieces)
    if found.young:
        say(
            to,
            f"  {plural(len(found.young), 'file')} ({in_words(_size(found.young))}) that nobody "
            "names yet, too young to be touched (--older-than)",
        )
    if found.left_alone:
        say(
            to,
            f"  {plural(found.left_alone, 'file')} that nobody names, without the mark of this "
            "pipeline's journal: left alone",
        )
    if found.unseen:
        say(to, f"  {found.unseen}")


def _show_pieces(to: Console, pieces: tuple[GarbagePiece, ...]) -> None:
    shown = columns("what", "files", "bytes", numbers=("files", "bytes"), wide=("what",))
    for kind in Kind:
        some = [piece for piece in pieces if piece.kind is kind]
        if some:
            add(shown, NAMES[kind], len(some), in_words(_size(some)))
    print_table(to, shown)
    say_first(to, [piece.path for piece in pieces], FEW)


def _size(pieces: list[GarbagePiece] | tuple[GarbagePiece, ...]) -> int:
    return sum(piece.size for piece in pieces)
