"""A source whose files are at another place now: recorded in the journal, so that they stay known.

A file is known by its name below the source's folder, and as the object that was read: size and
e-tag. Files that are moved or copied keep name and size, and get another e-tag. So a `moved` entry
says where the source is from now on and, for each file that is found there, which object it is.
`inherited` entries right after it go on where one entry does not hold them all. Until the last of
them is there a start is refused, and the same command begins again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from blizzard.discover.names import why_not_ours
from blizzard.journal.checks import (
    refuse_other_names,
    refuse_rivals,
    refuse_rolled_back,
    refuse_unfinished,
)
from blizzard.journal.ledger import Ledger
from blizzard.model.files import Before
from blizzard.model.settings import SourceSettings
from blizzard.model.source.part_way import found_again, is_part_way
from blizzard.repair.new_journal import CHUNK, append_with, in_chunks
from blizzard.repair.old_journal import inherited
from lakebed.clock import Clock
from lakebed.documents.source_record import SourceRecord
from lakebed.errors import LakeError, Whose
from lakebed.locations import place_of, written_out
from lakebed.storage.store import ObjectFacts, Reader, Store


class NothingToMove(LakeError, code="nothing_to_move", whose=Whose.USER):
    """The journal does not know a source of this name, or it cannot have been moved there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The files at a source's new place, compared with what the journal knows by their names."""

    before: str
    """Where the source was read so far."""
    now: str
    same: int = 0
    """Known, with the same size: they count as the files that were read."""
    in_part: int = 0
    """How many of those were read in part: their rest is read next."""
    changed: int = 0
    """Known, with another size: they count as changed."""
    new: int = 0
    """Not known: they are read."""
    records: tuple[SourceRecord, ...] = ()
    """What the journal has to learn."""


def compare(source: SourceSettings, history: Ledger, place: Reader) -> Compared | None:
    """Compare what lies at a source's place with the journal; None where it is known to be there.

    Raise if something contradicts the source being there.
    """
    before, now = _checked(source, history)
    if place_of(before).same(place_of(now)) and history.sequence >= history.awaits:
        return None
    counts, in_part = {"same": 0, "changed": 0, "new": 0}, 0
    records: list[SourceRecord] = []
    lookup = history.lookup()
    for facts in _in_order(place):
        known = lookup(f"{source.name}:{facts.path}")
        found = standing(known, facts)
        if found == "new" and why_not_ours(facts.path, source) is not None:
            continue
        counts[found] += 1
        if found == "same":
            in_part += known.unfinished is not None and is_part_way(known.unfinished.record)
            records += to_learn(known, facts)
    if counts["new"] and not counts["same"] and not counts["changed"]:
        raise NothingToMove(
            f"none of the files at {now} has a name that is known from {before}, so these are "
            "different files; correct source.path, or give the source another name"
        )
    return Compared(before=before, now=now, in_part=in_part, records=tuple(records), **counts)


def standing(known: Before, facts: ObjectFacts) -> str:
    """Return what a file at the new place is, by its name and size. Pure."""
    sizes = {
        *((known.finished.size,) if known.finished is not None else ()),
        *((known.unfinished.record.size,) if known.unfinished is not None else ()),
    }
    if not sizes:
        return "new"
    return "same" if facts.size in sizes else "changed"


def to_learn(known: Before, facts: ObjectFacts) -> tuple[SourceRecord, ...]:
    """Return what an entry has to say of a known file, so that it stays known. Pure.

    What was seen of it last counts, if it fits: a later version that failed, before the one that
    is in the table.
    """
    last, done = known.unfinished, known.finished
    if last is not None and last.record.size == facts.size:
        if last.record.etag == facts.etag:
            return ()
        return (inherited(found_again(replace(last.record, etag=facts.etag))),)
    if done is None or done.etag == facts.etag:
        return ()
    source, _, path = done.key.partition(":")
    read = SourceRecord(source=source, path=path, size=facts.size, etag=facts.etag)
    return (read,) if last is None else (read, inherited(last.record))


def move(
    store: Store,
    source: SourceSettings,
    history: Ledger,
    place: Reader,
    *,
    clock: Clock,
    chunk: int = CHUNK,
) -> Compared | None:
    """Record where a source is; doing so again changes nothing, or finishes what was started."""
    found = compare(source, history, place)
    if found is None:
        return None
    first, *rest = in_chunks(found.records, chunk) or ((),)
    last = history.reader.listed(history.sequence)
    moved = replace(
        last.successor("moved", clock),
        sources=first,
        source_uris={**history.source_uris, source.name: found.now},
        moved=source.name,
        follows=len(rest),
    )
    append_with(store, moved, rest)
    return found


def _checked(source: SourceSettings, history: Ledger) -> tuple[str, str]:
    """Return where a source was and is; raise if it cannot have been moved."""
    path = history.place
    refuse_rolled_back(history)
    refuse_unfinished(history, finishes=source.name)
    before, now = history.source_uris.get(source.name), written_out(source.uri)
    if before is None:
        known = ", ".join(sorted(history.source_uris)) or "none yet"
        raise NothingToMove(
            f"the journal knows no source {source.name!r}, so it cannot have moved; it knows: "
            f"{known}",
            path=path,
        )
    if place_of(before).meets(place_of(now)) and not place_of(before).same(place_of(now)):
        raise NothingToMove(
            f"one of {before} and {now} is inside the other, so the same files would have other "
            "names there. blizzard --dry-run shows how to read part of a source, or more than it",
            path=path,
        )
    others = {uri: name for uri, name in history.source_names.items() if name != source.name}
    refuse_other_names(path, {source.name: now}, others)
    refuse_rivals(history, {source.name: now}, None)
    return before, now


def _in_order(place: Reader) -> Iterable[ObjectFacts]:
    """List every object of a place by its name. Of an object store they are sorted in memory."""
    if place.local_root is not None:
        return place.in_order()
    return sorted(place.objects(), key=lambda facts: facts.path)
