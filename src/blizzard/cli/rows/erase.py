"""`blizzard erase`: take rows out of the table by their values, and show what still holds them."""

from collections.abc import Iterator
from shlex import quote
from typing import Annotated

import typer

from blizzard.cli.call import PipelineCall, document_of
from blizzard.cli.rows.rewriting import RewriteCommand
from blizzard.model.predicate import parse
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader, sink_location
from blizzard.rewrite.erase import ErasePlan, plan_erasure
from blizzard.rewrite.erase import erase as append_erasure
from blizzard.rewrite.remaining_copies import RemainingCopies, remaining_copies
from blizzard.rewrite.transaction import RewriteDone
from lakebed.terminal.call import Confirmed, reading
from lakebed.terminal.console import first, picked
from lakebed.units import plural

Erased = RewriteDone[ErasePlan]
FILE = "path=file.path rows=file.rows bytes=file.size erased=rows"
"""The keys of a data file in documents."""
NOT_SEARCHED = (
    "not searched: source files, other tables, backups and copies, the quarantine of other "
    "pipelines, and the minimum and maximum values in the statistics of the Delta log and the "
    "journal"
)


def erase(
    call: PipelineCall,
    where: Annotated[str, typer.Option()],
    reason: str | None = None,
    yes: Confirmed = False,
) -> None:
    """Take rows out of the table by their values, and show what still holds them.

    Data files that also hold other rows are rewritten on Spark; penguin makes one commit.

    Args:
        where CONDITION: The rows to erase, such as "user_id = 'x'".
        reason TEXT: The reason, for the journal; the condition is not stored.
    """
    with call.one() as settings:
        command, predicate = RewriteCommand(call, settings, sure=yes), parse(where)
        done = command.run(
            lambda reader: plan_erasure(reader, settings, predicate),
            lambda store, runner, _progress: append_erasure(
                store, settings, predicate, runner, clock=call.around.clock, reason=reason
            ),
        )
        with reading(settings.name, call.output):
            reader = open_reader(sink_location(settings))
            left = remaining_copies(reader, settings, predicate, done.found)
    call.show(_text(command, done, left), erasure_document(settings, done, left))
    call.fail_if(done.found.files and not yes)


def erasure_document(
    settings: PipelineSettings, done: Erased, left: RemainingCopies
) -> dict[str, object]:
    """Return the rows taken out or, without --yes, to be taken out, and what still holds them."""
    found = done.found
    return {
        **document_of(settings),
        "entry": done.entry,
        **picked(found, "rows deleted every_row=is_everything"),
        "removed": [picked(one, FILE) for one in found.files if one.is_whole],
        "rewritten": [picked(one, FILE) for one in found.files if not one.is_whole],
        **picked(found, "sources sources_unknown=unknown"),
        **picked(left, "outside_files=outside bad_lines unread unfinished_sources=unfinished"),
    }


def _text(command: RewriteCommand, done: Erased, left: RemainingCopies) -> Iterator[str]:
    settings, found = command.settings, done.found
    yield f"pipeline {settings.name}: {_in_short(found)}"
    for is_whole, what in (
        (True, "removed, with no other rows"),
        (False, "rewritten without them"),
    ):
        some = [one for one in found.files if one.is_whole is is_whole]
        named = [
            f"{one.file.path}: {one.rows:,} of {plural(one.file.rows or 0, 'row')}" for one in some
        ]
        yield from command.file_lines([one.file for one in some], what, named)
    then = ", then this again to see what is left"
    yield from command.committed(done.entry, "takes the rows out", then)
    if found.files:
        yield command.time_travel()
    yield from _remaining(command, found, left)
    yield NOT_SEARCHED
    if found.files and not command.sure:
        yield "add --yes to take the rows out of the table; nothing was changed"


def _in_short(found: ErasePlan) -> str:
    if not found.files:
        return "no row in the table matches"
    rows = plural(found.rows, "row")
    files = plural(len(found.files), "data file")
    every = ", which are ALL rows of the table" if found.is_everything else ""
    before = plural(found.deleted, "row that was", "rows that were")
    also = f", and for {before} deleted in place before" if found.deleted else ""
    return f"the condition holds for {rows} in {files}{every}{also}"


def _remaining(command: RewriteCommand, found: ErasePlan, left: RemainingCopies) -> Iterator[str]:
    """Yield the places that hold such rows or may hold them, each with the way out."""
    if found.sources:
        yield f"  {plural(len(found.sources), 'source file')} of such rows, yours to delete:"
        named = sorted(found.sources.items())
        yield from first([f"{uri}: {plural(rows, 'line')}" for uri, rows in named], indent="    ")
        yield "    on_change: reingest, blizzard redo or a new journal would bring the rows back"
    if found.unknown:
        rows = plural(found.unknown, "row")
        yield f"  the source files of {rows} are unknown, as another program wrote the data files"
    if left.unfinished:
        files = plural(left.unfinished, "source file")
        yield f"  {files} failed or not read to the end: erase again once they are in the table"
    if left.bad_lines:
        lines = plural(sum(left.bad_lines.values()), "bad line")
        yield f"  {lines} in quarantine with the value, or unreadable; give up all of a file with"
        cli = command.call.line(command.settings)
        yield from first(
            [f"{cli.blizzard} dlq discard {quote(key)}" for key in left.bad_lines], indent="    "
        )
        yield "    and delete what is given up with blizzard gc --delete"
    if left.unread:
        yield f"  {plural(len(left.unread), 'quarantine file')} could not be read:"
        yield from first(left.unread, indent="    ")
    if left.outside:
        files = plural(left.outside, "data file")
        yield f"  {files} outside the table, not searched: of old versions, waiting for"
        yield f"    {command.settings.sink.committer}, held by penguin, or of failed attempts;"
        yield "    penguin vacuum and blizzard gc --delete delete what nothing needs"
