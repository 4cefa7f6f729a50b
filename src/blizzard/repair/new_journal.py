"""Start a new journal in place of a lost or abandoned one, and record moved sources.

penguin accepts a new journal once a receipt names it with entry 0; that receipt is written last.
Until then, or after a crash at any point, both programs refuse to continue, and the same command
finishes the work. The old journal is kept. Knowledge is copied: `inherited` entries repeat which
source files are in the table, so a new journal never depends on an old one.

A source file is identified by its name below the source's folder and by its object: size and e-tag.
Moved or copied files keep name and size but get another e-tag. So a `moved` entry records the new
location of the source and the present object of each file found there, continued in `inherited`
entries if needed. Until the last of them exists, starts are refused and the same command resumes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from blizzard.discover.finding import why_not_ours
from blizzard.handoff.held_rows import Fates
from blizzard.handoff.publish import LastCommitted
from blizzard.journal.admission import refuse_rivals
from blizzard.journal.checks import (
    agree_on_protocol,
    refuse_other_names,
    refuse_rolled_back,
    refuse_unfinished,
)
from blizzard.journal.fence import append_beside, columns_after
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import SourceSettings
from blizzard.model.source.file import Recorded
from blizzard.model.source.partly_read import found_again, is_partly_read
from blizzard.repair.old_journal import (
    OldJournal,
    begun,
    check_past,
    id_of,
    inherited,
    opening_of,
    past_of,
)
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, Inheritance, Receipt, digest, encode
from lakebed.documents.records import SourceRecord
from lakebed.errors import JournalConflict, LakeError, Whose
from lakebed.journal import JournalReader
from lakebed.locations import place_of, written_out
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import AlreadyThere, Reader, Store

CHUNK = 5000
"""The number of source files per `inherited` entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedJournal:
    """A journal that was started."""

    journal: str
    entries: int
    files: int
    """How many source files it knows."""
    kept: str | None
    """Where the replaced journal is kept."""


def begin_empty(
    store: Store, identity: Entry, last_committed: LastCommitted, clock: Clock
) -> StartedJournal:
    """Start an empty journal; idempotent, also after a crash."""
    agree_on_protocol(store, identity.handoff)
    opening = _begun_empty(store, identity.pipeline, last_committed)
    kept = None
    if opening is None:
        kept = _archive(store, identity.pipeline)
        opening = _open(identity, clock, source_uris=identity.source_uris)
    return _write(store, opening, (), kept)


def take_over(
    store: Store,
    identity: Entry,
    old: str,
    last_committed: LastCommitted,
    clock: Clock,
    *,
    fates: Fates = lambda _names: {},
    chunk: int = CHUNK,
) -> StartedJournal:
    """Start a journal that inherits another one's knowledge; repeat it to resume after a crash."""
    agree_on_protocol(store, identity.handoff)
    past = past_of(store, identity.pipeline, old, fates)
    check_past(store, identity, old, past, last_committed)
    kept = None
    if old == identity.pipeline:
        opening = begun(store, opening_of(store, old), old)
        if opening is None:
            kept = _archive(store, old)
    else:
        opening = begun(store, opening_of(store, identity.pipeline), old)
        if opening is None and JournalReader(store, identity.pipeline).numbers():
            raise JournalConflict(
                f"pipeline {identity.pipeline!r} already has a journal of its own",
                path=store.describe(layout.journal_folder(identity.pipeline)),
            )
        if past.heir != identity.pipeline:
            # From here on, a process that still writes to the old journal is refused.
            closing = past.stored.successor("closed", clock)
            _append(store, replace(closing, heir=identity.pipeline))
    records = [record for key in sorted(past.records) for record in past.records[key]]
    chunks = in_chunks(records, chunk)
    if opening is None:
        lineage = Inheritance(
            pipeline=old,
            journal=past.last.journal,
            sequence=past.last.sequence,
            digest=past.stored.digest,
            entries=len(chunks),
            since={name: at.isoformat() for name, at in past.ledger.first_reads.since.items()},
        )
        uris = {**past.ledger.source_uris, **identity.source_uris}
        opening = _open(identity, clock, source_uris=uris, lineage=lineage, past=past)
    return _write(store, opening, chunks, kept)


def in_chunks(
    records: Sequence[SourceRecord], chunk: int = CHUNK
) -> tuple[tuple[SourceRecord, ...], ...]:
    """Split records into chunks for entries, in order. Pure."""
    return tuple(tuple(records[start : start + chunk]) for start in range(0, len(records), chunk))


def append_with(store: Store, first: Entry, chunks: Iterable[tuple[SourceRecord, ...]]) -> None:
    """Append an entry and `inherited` entries with further source files; idempotent."""
    _append(store, first)
    entry = first
    for records in chunks:
        previous = digest(encode(entry))
        entry = entry.successor(
            "inherited", previous=previous, run=first.run, created=first.created
        )
        entry = replace(entry, sources=records)
        _append(store, entry)


def _append(store: Store, entry: Entry) -> None:
    """Write an entry; raise if its number exists with other bytes."""
    if not append_beside(store, entry):
        raise JournalConflict(
            "another entry already exists; stop every blizzard of this pipeline and run the same "
            "command again",
            path=store.describe(layout.journal_entry(entry.pipeline, entry.sequence)),
        )


def _begun_empty(store: Reader, pipeline: str, last_committed: LastCommitted) -> Entry | None:
    """Return entry 0 of an empty journal that an earlier attempt started, if any.

    It is the only entry, and neither the receipt nor the log has later ones.
    """
    journal = JournalReader(store, pipeline)
    opening, receipt = opening_of(store, pipeline), journal.receipt()
    if opening is None or receipt is None or opening.inherits is not None:
        return None
    alone = journal.numbers() == [0]
    fresh = receipt.journal != opening.journal or receipt.sequence == 0
    known = last_committed(pipeline, opening.journal)
    return opening if alone and fresh and known is None else None


def _archive(store: Store, pipeline: str) -> str | None:
    """Move a journal out of the way, copying every object before deleting any.

    Entry 0 is deleted first: both programs refuse a journal without it.
    """
    folder = layout.journal_folder(pipeline)
    listed = sorted(facts.path for facts in store.objects(folder))
    if not listed:
        return None
    journal = JournalReader(store, pipeline)
    target = layout.replaced_journal(pipeline, id_of(journal, journal.numbers()))
    for path in listed:
        body = store.get(path)
        copy = f"{target}/{path.rpartition('/')[2]}"
        if not body:
            continue  # An empty file, left by a power failure.
        if isinstance(store.create(copy, body), AlreadyThere) and store.get(copy) != body:
            raise JournalConflict(
                "another object already exists under this name", path=store.describe(copy)
            )
    for path in listed:
        store.delete(path)
    return store.describe(target)


def _open(
    identity: Entry,
    clock: Clock,
    *,
    source_uris: Mapping[str, str],
    lineage: Inheritance | None = None,
    past: OldJournal | None = None,
) -> Entry:
    """Return entry 0, with inherited columns and waiting bad lines."""
    columns = columns_after(None if past is None else past.written, identity.table_schema)
    waiting = () if past is None else past.ledger.books.waiting_files()
    return replace(
        identity,
        journal=str(clock.fresh_id()),
        created=clock.now().isoformat(),
        table_schema=columns.table_schema,
        columns=columns.found,
        source_uris=source_uris,
        inherits=lineage,
        quarantine=tuple(one.file for one in waiting),
    )


def _write(
    store: Store, opening: Entry, chunks: tuple[tuple[SourceRecord, ...], ...], kept: str | None
) -> StartedJournal:
    """Write entry 0, the inherited entries, and last the receipt that makes penguin accept it."""
    append_with(store, opening, chunks)
    receipt = JournalReader(store, opening.pipeline).receipt()
    if receipt is None or receipt.journal != opening.journal:
        first = digest(encode(opening))
        written = Receipt(journal=opening.journal, sequence=0, digest=first)
        store.replace(layout.receipt(opening.pipeline), encode(written))
    return StartedJournal(
        journal=opening.journal,
        entries=1 + len(chunks),
        files=len({record.key for chunk in chunks for record in chunk}),
        kept=kept,
    )


class NothingToMove(LakeError, code="nothing_to_move", whose=Whose.USER):
    """The journal has no source of this name, or it cannot have moved there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The files at a source's new location, compared by name with the journal."""

    before: str
    """Where the source was read so far."""
    now: str
    same: int = 0
    """Known files of the same size, taken to be those that were read."""
    in_part: int = 0
    """Of these, files read in part, whose rest is read next."""
    changed: int = 0
    """Known files of another size, which count as changed."""
    new: int = 0
    """Unknown files, which will be read."""
    records: tuple[SourceRecord, ...] = ()
    """The records to append."""


def compare(source: SourceSettings, history: Ledger, place: Reader) -> Compared | None:
    """Compare the files at a source's location with the journal; None if it has not moved.

    Raise if something contradicts the move.
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
            in_part += known.unfinished is not None and is_partly_read(known.unfinished.record)
            records += to_learn(known, facts)
    if counts["new"] and not counts["same"] and not counts["changed"]:
        raise NothingToMove(
            f"none of the files at {now} has a name that is known from {before}, so these are "
            "different files; correct source.path, or give the source another name"
        )
    return Compared(before=before, now=now, in_part=in_part, records=tuple(records), **counts)


def standing(known: Recorded, facts: ObjectFacts) -> str:
    """Classify a file at the new location by its name and size. Pure."""
    sizes = {
        *((known.finished.size,) if known.finished is not None else ()),
        *((known.unfinished.record.size,) if known.unfinished is not None else ()),
    }
    if not sizes:
        return "new"
    return "same" if facts.size in sizes else "changed"


def to_learn(known: Recorded, facts: ObjectFacts) -> tuple[SourceRecord, ...]:
    """Return the records that keep a file known at its new location. Pure.

    The latest matching version counts: one that failed later takes precedence over the one in the
    table.
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
    """Record a source's location; idempotent, also after a crash."""
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
    """Return a source's old and new location; raise if it cannot have moved."""
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
    refuse_rivals(history, {source.name: now})
    return before, now


def _in_order(place: Reader) -> Iterable[ObjectFacts]:
    """List every object by name; on an unordered store they are sorted in memory."""
    if place.local_root is not None:
        return place.in_order()
    return sorted(place.objects(), key=lambda facts: facts.path)
