"""`blizzard erase`: take rows out of the table by their values, and show what still holds them."""

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Annotated

import typer

from blizzard.answers.answer import CommandPrefix
from blizzard.cli.call import PipelineCall, document_of
from blizzard.cli.rows.rewriting import RewriteCommand
from blizzard.model.predicate import parse
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader, sink_location
from blizzard.rewrite.erase import ErasePlan, plan_erasure
from blizzard.rewrite.erase import erase as append_erasure
from blizzard.rewrite.remaining_copies import (
    CopyReason,
    OtherFile,
    RemainingCopies,
    RemainingSource,
    WhyNotSearched,
    remaining_copies,
)
from blizzard.rewrite.transaction import RewriteDone
from lakebed.terminal.call import Confirmed, reading
from lakebed.terminal.console import first, picked, second
from lakebed.units import plural

Erased = RewriteDone[ErasePlan]
FILE = "path=file.path rows=file.rows bytes=file.size erased=rows"
"""The keys of a data file in documents."""
NOT_SEARCHED_PLACES = (
    "not checked: other tables, backups and copies, the quarantine of other pipelines, and the "
    "minimum and maximum values in the statistics of the Delta log and the journal"
)
WHY = {
    CopyReason.ADDED: "added to the table meanwhile: run this again",
    CopyReason.WAITING: "not committed yet: run {committer}, then this again",
    CopyReason.HELD: "held by penguin: penguin release or penguin discard {them}, then this again",
    CopyReason.UNNAMED: "not named by the Delta log: blizzard gc, or VACUUM, deletes {them}",
}
HISTORY = {
    CopyReason.REMOVED: "removed from the table, read by time travel",
    CopyReason.CHANGES: "of the change data feed, read through it",
}

NOT_SEARCHED = {
    WhyNotSearched.FAILED: (
        "failed, so not searched: delete {them}, or erase again after {they} {have} been read"
    ),
    WhyNotSearched.WAITING: (
        "not read to the end yet, so not searched: erase again once {they} {are} in the table"
    ),
    WhyNotSearched.CHANGED: "changed after being read, so not searched: search {them} yourself",
    WhyNotSearched.RETRACTED: (
        "with retracted rows, so not searched: search {them} yourself, or delete {them}"
    ),
}
ONE = {"them": "it", "they": "it", "have": "has", "are": "is"}
SEVERAL = {word: word for word in ONE}


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
            left = remaining_copies(reader, settings, predicate, done.found, open_reader)
    call.show(_text(command, done, left), erasure_document(settings, done, left))
    call.fail_if(done.found.files and not yes)


def erasure_document(
    settings: PipelineSettings, done: Erased, left: RemainingCopies
) -> dict[str, object]:
    """Return the rows taken out or, without --yes, to be taken out, and what still holds them."""
    found = done.found
    rest = "data_files bad_lines sources sources_unknown possible_sources not_searched"
    return {
        **document_of(settings),
        "entry": done.entry,
        **picked(found, "rows deleted every_row=is_everything"),
        "removed": [picked(one, FILE) for one in found.files if one.is_whole],
        "rewritten": [picked(one, FILE) for one in found.files if not one.is_whole],
        **picked(left, rest),
        "unread": [*left.unread, *left.unlisted],
    }


def _text(command: RewriteCommand, done: Erased, left: RemainingCopies) -> Iterator[str]:
    settings, found = command.settings, done.found
    yield f"pipeline {settings.name}: {_in_short(done, left)}"
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
    yield from _remaining(command, done, left)
    yield NOT_SEARCHED_PLACES
    if found.files and not command.sure:
        yield "add --yes to take the rows out of the table; nothing was changed"


def _first(lines: Sequence[str]) -> Iterator[str]:
    return first(lines, indent="    ")


def _in_short(done: Erased, left: RemainingCopies) -> str:
    found = done.found
    if not found.files:
        rest = (
            "nothing else was found" if left.is_nothing else "other places that may hold such rows:"
        )
        return f"no row in the table matches; {rest}"
    rows = plural(found.rows, "row")
    files = plural(len(found.files), "data file")
    every = ", which are ALL rows of the table" if found.is_everything else ""
    before = plural(found.deleted, "row that was", "rows that were")
    also = f", and for {before} deleted in place before" if found.deleted else ""
    return f"the condition holds for {rows} in {files}{every}{also}"


def _remaining(command: RewriteCommand, done: Erased, left: RemainingCopies) -> Iterator[str]:
    if left.is_nothing and not done.found.files:
        return
    if done.found.files:
        yield "what still holds such rows:"
        yield command.time_travel()
    for why in CopyReason:
        files = [one for one in left.data_files if one.why is why]
        yield from _data_files(why, files, command.settings.sink.committer)
    yield from _bad_lines(left, command.call.line(command.settings))
    yield from _sources(left)
    yield from _not_searched(left)
    if left.unread:
        yield f"  {plural(len(left.unread), 'file')} could not be read and may hold some:"
        yield from _first(left.unread)
    yield from (f"  {reason}; its files were not checked" for reason in left.unlisted)


def _data_files(why: CopyReason, files: list[OtherFile], committer: str) -> Iterator[str]:
    if not files:
        return
    them = "it" if len(files) == 1 else "them"
    reason = WHY.get(why, "").format(committer=committer, them=them)
    if why in HISTORY:
        latest = max((one.deleted_from for one in files if one.deleted_from), default=None)
        reason = f"{HISTORY[why]} until VACUUM deletes {them}"
        if latest is not None:
            last = "it" if len(files) == 1 else "the last of them"
            reason += f"; it can delete {last} from {second(latest)} UTC"
    yield f"  {plural(len(files), 'data file')} {reason}:"
    yield from _first([f"{one.path}: {plural(one.rows, 'row')}" for one in files])


def _bad_lines(left: RemainingCopies, cli: CommandPrefix) -> Iterator[str]:
    for waits, where in (
        (True, "waiting in quarantine"),
        (False, "in resolved quarantine files; blizzard gc --delete deletes those"),
    ):
        some = [one for one in left.bad_lines if one.waits is waits]
        if not some:
            continue
        sure, maybe = sum(one.lines for one in some), sum(one.maybe for one in some)
        also = f", and {maybe:,} that may hold it" if maybe else ""
        yield f"  {plural(sure, 'bad line')}{also}, {where}:"
        names = dict.fromkeys(one.source for one in some)
        if waits:
            # Single lines have no name, so all lines of a file are discarded.
            yield from _first([f"{cli.blizzard} dlq discard {quote(name)}" for name in names])
            yield "    gives up all bad lines of these source files"
        else:
            yield from _first(list(dict.fromkeys(one.file for one in some)))


def _sources(left: RemainingCopies) -> Iterator[str]:
    there = left.sources_there
    gone = len(left.sources) - len(there)
    if there:
        yield f"  {plural(len(there), 'source file')} of such rows, or of rows erased before:"
        yield from _first([_source(one) for one in there])
        they = "it is" if len(there) == 1 else "they are"
        yield (
            f"    {they} yours to delete; on_change: reingest, blizzard redo or a new journal "
            "would bring the rows back"
        )
    if gone:
        files = plural(gone, "source file of such rows is", "source files of such rows are")
        yield f"  {files} already gone"
    if left.sources_unknown:
        rows = plural(left.sources_unknown, "row")
        yield f"  the source files of {rows}, found here or erased before, are unknown:"
        yield "    another program wrote the data files; search the source files for the value"
        yield "    yourself"
    if left.possible_sources:
        yield "    data files outside the table have such rows of these source files:"
        yield from _first([_source(one) for one in left.possible_sources])


def _not_searched(left: RemainingCopies) -> Iterator[str]:
    for why, way_out in NOT_SEARCHED.items():
        some = [one.uri for one in left.not_searched if one.why is why]
        if some:
            words = way_out.format(**(ONE if len(some) == 1 else SEVERAL))
            yield f"  {plural(len(some), 'source file')} {words}:"
            yield from _first(some)


def _source(one: RemainingSource) -> str:
    known = {True: "", False: "; it is gone"}
    presence = "; it may be gone" if one.is_there is None else known[one.is_there]
    return f"{one.uri}: {plural(one.rows, 'line')}{presence}"
