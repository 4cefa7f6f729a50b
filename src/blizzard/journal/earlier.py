"""Objects with rows in the table whose names others have by now (`on_change: reingest`). Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter

from blizzard.journal.ingested import SegmentBroken
from blizzard.journal.shelf import Shelf
from blizzard.journal.undecided import Undecided
from blizzard.model.files import IngestedFile, UnfinishedFile
from blizzard.model.source.part_way import ChangedPartWay, is_part_way
from lakebed.documents.source_record import SourceRecord

MOST = 100
"""Of how many objects of one name it is kept: the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierObject:
    """What was read under a name before, and is in the table beside what has the name now."""

    file: IngestedFile
    reason: str | None = None
    """Why only a part of it was read, by the code of the failure; None where all of it was."""


FindName = Callable[[str], IngestedFile | None]
"""Finds a file that is done by its key."""
EarlierObjects = tuple[EarlierObject, ...]
"""Those of one name, in the order in which they were read."""
_LINE = TypeAdapter(tuple[str, EarlierObjects | None])


def earlier_objects() -> Shelf[EarlierObjects]:
    """Return where they are kept, by the keys of their files."""
    return Shelf(_LINE)


def leave_behind(
    earlier: Shelf[EarlierObjects],
    record: SourceRecord,
    unfinished: Mapping[str, UnfinishedFile],
    done: FindName,
) -> None:
    """Keep the objects whose place in a journal is taken by what a batch says of their name.

    The rest of one that was begun is not read any more where another object is read from its first
    line. `done` says which one was read to its end.
    """
    found: list[EarlierObject] = []
    known = unfinished.get(record.key)
    is_done = record.failure is None and record.complete
    is_again = known is not None and known.record.redo
    if record.reingested and is_done and not is_again:
        file = done(record.key)
        found += [] if file is None or file.retracted else [EarlierObject(file=file)]
    if known is not None and _is_cut(known.record, record):
        begun, failure = known.record, known.record.failure
        entry = known.entry if known.read_in is None else known.read_in
        file = IngestedFile(key=record.key, size=begun.size, etag=begun.etag, entry=entry)
        reason = ChangedPartWay.code if failure is None else failure.code
        found.append(EarlierObject(file=file, reason=reason))
    if found:
        earlier[record.key] = (*earlier.get(record.key, ()), *found)[-MOST:]


def unless_broken(find: FindName) -> FindName:
    """Return the way to find a file that is done; one whose segment is damaged is not found."""

    def found(key: str) -> IngestedFile | None:
        try:
            return find(key)
        except SegmentBroken:
            return None

    return found


def take_back(earlier: Shelf[EarlierObjects], one: Undecided) -> None:
    """Drop the objects of a name whose rows a retraction has taken out: all that came before it.

    What it put in their place is one of them itself, where other content was read since.
    """
    key, own = one.after.key, (EarlierObject(file=one.after),)
    since = (each for each in earlier.pop(key, ()) if (each.file.entry or 0) > one.entry)
    left = (*(own if one.read_since and not one.after.retracted else ()), *since)
    if left:
        earlier[key] = left


def _is_cut(begun: SourceRecord, record: SourceRecord) -> bool:
    return is_part_way(begun) and not begun.redo and not record.skipped
