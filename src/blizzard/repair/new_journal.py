"""A new journal in the place of one that is lost, rolled back, or left behind by a rename.

A new journal is one that penguin accepts beside what is committed: a receipt names it with entry
0, and that receipt is written last. Until then, and after a crash at any moment, both programs
refuse to go on, and the same command finishes what was begun. The old journal is kept.

Knowledge is taken over by value: entries of the kind `inherited` repeat which source files are in
the table. So a new journal never depends on an old one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from blizzard.handoff.held_rows import Fates
from blizzard.handoff.publish import LastCommitted
from blizzard.journal.checks import agree_on_protocol
from blizzard.journal.fence import append_beside
from blizzard.journal.identity import columns_after
from blizzard.repair.old_journal import (
    Past,
    begun,
    check_past,
    id_of,
    opening_of,
    past_of,
)
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, Inheritance, Receipt, digest, encode
from lakebed.documents.source_record import SourceRecord
from lakebed.errors import JournalConflict
from lakebed.journal import JournalReader
from lakebed.storage.store import AlreadyThere, Reader, Store

CHUNK = 5000
"""How many source files one `inherited` entry repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedJournal:
    """A journal that was started."""

    journal: str
    entries: int
    files: int
    """How many source files it knows."""
    kept: str | None
    """Where the journal that stood in its place is kept."""


def begin_empty(
    store: Store, identity: Entry, last_committed: LastCommitted, clock: Clock
) -> StartedJournal:
    """Start a journal that knows nothing; doing so again finishes what was started."""
    agree_on_protocol(store, identity.handoff)
    opening = _begun_empty(store, identity.pipeline, last_committed)
    kept = None
    if opening is None:
        kept = _set_aside(store, identity.pipeline)
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
    """Start a journal that knows what another one knew; a second try finishes what was started."""
    agree_on_protocol(store, identity.handoff)
    past = past_of(store, identity.pipeline, old, fates)
    check_past(store, identity, old, past, last_committed)
    kept = None
    if old == identity.pipeline:
        opening = begun(store, opening_of(store, old), old)
        if opening is None:
            kept = _set_aside(store, old)
    else:
        opening = begun(store, opening_of(store, identity.pipeline), old)
        if opening is None and JournalReader(store, identity.pipeline).numbers():
            raise JournalConflict(
                f"pipeline {identity.pipeline!r} already has a journal of its own",
                path=store.describe(layout.journal_folder(identity.pipeline)),
            )
        if past.heir != identity.pipeline:
            # A process that still writes to the old journal is refused from then on.
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
    """Divide records into what one entry repeats, in their order. Pure."""
    return tuple(tuple(records[start : start + chunk]) for start in range(0, len(records), chunk))


def append_with(store: Store, first: Entry, chunks: Iterable[tuple[SourceRecord, ...]]) -> None:
    """Append an entry, and `inherited` ones that go on with its source files; again, if need be."""
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
    """Write an entry in its place; the same bytes may be there already, others may not."""
    if not append_beside(store, entry):
        raise JournalConflict(
            "another entry is already there; stop every blizzard of this pipeline and run the same "
            "command again",
            path=store.describe(layout.journal_entry(entry.pipeline, entry.sequence)),
        )


def _begun_empty(store: Reader, pipeline: str, last_committed: LastCommitted) -> Entry | None:
    """Return entry 0 of an empty journal that an earlier attempt started, if it is one.

    It stands alone, and neither receipt nor log know of entries after it.
    """
    journal = JournalReader(store, pipeline)
    opening, receipt = opening_of(store, pipeline), journal.receipt()
    if opening is None or receipt is None or opening.inherits is not None:
        return None
    alone = journal.numbers() == [0]
    fresh = receipt.journal != opening.journal or receipt.sequence == 0
    known = last_committed(pipeline, opening.journal)
    return opening if alone and fresh and known is None else None


def _set_aside(store: Store, pipeline: str) -> str | None:
    """Move a journal out of the way: every object is copied before the first one is deleted.

    Entry 0 goes first: a journal without it is refused by both programs, however much is left.
    """
    folder = layout.journal_folder(pipeline)
    listed = sorted(facts.path for facts in store.objects(folder))
    if not listed:
        return None
    journal = JournalReader(store, pipeline)
    target = layout.journal_aside(pipeline, id_of(journal, journal.numbers()))
    for path in listed:
        body = store.get(path)
        copy = f"{target}/{path.rpartition('/')[2]}"
        if not body:
            continue  # A power cut has left its name alone.
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
    past: Past | None = None,
) -> Entry:
    """Return entry 0.

    With what was known before go the columns that were found in the data, and the bad lines that
    wait.
    """
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
    """Write entry 0, what is inherited, and last the receipt that makes penguin accept it."""
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
