"""A new journal in the place of one that is lost, rolled back, or left behind by a rename.

A new journal is one that penguin accepts beside what is committed: a receipt names it with entry
0, and that receipt is written last. Until then, and after a crash at any moment, both programs
refuse to go on, and the same command finishes what was begun. The old journal is kept.

Knowledge is taken over by value: entries of the kind `inherited` repeat which source files are in
the table. So a new journal never depends on an old one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from blizzard.admission import refuse_renamed_sources
from blizzard.garbage import entries_in
from blizzard.history import read_receipt
from blizzard.journal import Identity
from blizzard.protocol import agree_on_protocol
from lake import layout
from lake.clock import Clock
from lake.entry import Entry, Lineage, Receipt, SourceRecord, decode_entry, digest, encode
from lake.errors import JournalConflict, JournalLost, LakeError
from lake.meta import decode_meta
from lake.storage import AlreadyThere, Reader, Store

CHUNK = 5000
"""How many source files one `inherited` entry repeats."""

LastCommitted = Callable[[str, str], int | None]
"""Asks the Delta log for the last committed entry of a pipeline's journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What an old journal knows."""

    last: Entry
    digest: str
    records: Mapping[str, SourceRecord]
    """By key, what it says of each source file, as an inherited entry repeats it."""
    source_uris: Mapping[str, str]
    heir: str | None = None
    """The pipeline that has taken it over already."""

    @property
    def in_table(self) -> int:
        """Count the source files that are in the table."""
        return sum(record.failure is None for record in self.records.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """A journal that was begun."""

    journal: str
    entries: int
    files: int
    """How many source files it knows."""
    kept: str | None
    """Where the journal that stood in its place is kept."""


def begin_empty(
    store: Store, identity: Identity, last_committed: LastCommitted, clock: Clock
) -> Renewed:
    """Begin a journal that knows nothing; doing so again finishes what was begun."""
    agree_on_protocol(store, identity.handoff)
    opening = _begun_empty(store, identity.pipeline, last_committed)
    kept = None
    if opening is None:
        kept = _set_aside(store, identity.pipeline)
        opening = _open(identity, clock, source_uris=identity.source_uris, lineage=None)
    return _write(store, opening, (), kept)


def take_over(
    store: Store, identity: Identity, old: str, last_committed: LastCommitted, clock: Clock
) -> Renewed:
    """Begin a journal that knows what another one knew; doing so again finishes what was begun."""
    agree_on_protocol(store, identity.handoff)
    past = past_of(store, identity.pipeline, old)
    check_past(store, identity, old, past, last_committed)
    kept = None
    if old == identity.pipeline:
        opening = _begun(_opening(store, old), old)
        if opening is None:
            kept = _set_aside(store, old)
    else:
        opening = _begun(_opening(store, identity.pipeline), old)
        if opening is None and _has_entries(store, identity.pipeline):
            raise JournalConflict(
                f"pipeline {identity.pipeline!r} has a journal of its own already",
                path=store.describe(layout.journal_folder(identity.pipeline)),
            )
        _close(store, past, identity.pipeline, clock)
    keys = sorted(past.records)
    chunks = [
        tuple(past.records[key] for key in keys[start : start + CHUNK])
        for start in range(0, len(keys), CHUNK)
    ]
    if opening is None:
        lineage = Lineage(
            pipeline=old,
            journal=past.last.journal,
            sequence=past.last.sequence,
            digest=past.digest,
            entries=len(chunks),
        )
        uris = {**past.source_uris, **identity.source_uris}
        opening = _open(identity, clock, source_uris=uris, lineage=lineage)
    return _write(store, opening, tuple(chunks), kept)


def past_of(store: Reader, pipeline: str, old: str) -> Past:
    """Read what an old journal knows: where it stands or, of our own, where it is kept."""
    opening = _opening(store, pipeline)
    if old == pipeline:
        begun = _begun(opening, old)
        if begun is not None and begun.inherits is not None:
            return _past(store, layout.journal_aside(old, begun.inherits.journal))
        if opening is None:
            return _past(store, _kept_folder(store, old))
    return _past(store, layout.journal_folder(old))


def check_past(
    store: Reader, identity: Identity, old: str, past: Past, last_committed: LastCommitted
) -> None:
    """Refuse to take over what is not committed yet, or what somebody else has taken over."""
    if past.heir not in (None, identity.pipeline):
        raise JournalConflict(
            f"pipeline {past.heir!r} has taken the journal of {old!r} over already",
            path=store.describe(layout.journal_folder(old)),
        )
    refuse_renamed_sources(
        store,
        identity.pipeline,
        identity.source_uris,
        {uri: name for name, uri in past.source_uris.items()},
    )
    committed = last_committed(old, past.last.journal) or 0
    if committed < past.last.sequence:
        raise JournalConflict(
            f"entries {committed + 1} to {past.last.sequence} of pipeline {old!r} are not "
            "committed yet; let penguin commit them and try again",
            path=store.describe(layout.journal_folder(old)),
        )
    if old == identity.pipeline:
        _refuse_held(store, past)
    else:
        receipt = read_receipt(store, old)
        if receipt is not None and receipt.sequence > past.last.sequence + 1:
            raise JournalLost(
                f"entry {receipt.sequence} of pipeline {old!r} is committed, and its journal ends "
                f"at {past.last.sequence}: it was rolled back; put it back from a backup",
                path=store.describe(layout.journal_folder(old)),
            )


def _refuse_held(store: Reader, past: Past) -> None:
    """Notice files that penguin holds: it releases them by the journal that is about to go."""
    held = [
        facts.path
        for facts in store.objects(layout.HELD)
        if (body := store.get(facts.path)) is not None
        and decode_meta(body, store.describe(facts.path)).journal == past.last.journal
    ]
    if held:
        raise JournalConflict(
            f"penguin holds {len(held)} files of this journal and could not release them any "
            "more, while their source files count as read; see penguin held, and release or "
            "discard them first, or begin with --empty",
            path=store.describe(held[0]),
        )


def _past(store: Reader, folder: str) -> Past:
    records: dict[str, SourceRecord] = {}
    uris: dict[str, str] = {}
    last: tuple[Entry, str] | None = None
    heir = None
    for entry, body in entries_in(store, folder):
        if entry.kind == "closed":
            heir = entry.heir
            continue
        last = (entry, digest(body))
        uris |= entry.source_uris
        records |= {record.key: inherited(record) for record in entry.sources}
    if last is None:
        raise JournalLost("there is no journal to take over", path=store.describe(folder))
    return Past(last=last[0], digest=last[1], records=records, source_uris=uris, heir=heir)


def inherited(record: SourceRecord) -> SourceRecord:
    """Keep what a later batch must know of a file; its lines are in the old journal's books. Pure.

    So that the books of the new one balance, it counts none of them.
    """
    return replace(
        record,
        lines=0,
        blank=0,
        quarantined=0,
        rows=0,
        skipped=record.records_read,
        dropped={},
        unit=None,
    )


def _opening(store: Reader, pipeline: str) -> Entry | None:
    path = layout.journal_entry(pipeline, 0)
    body = store.get(path)
    if body is None:
        return None
    try:
        return decode_entry(body, store.describe(path))
    except LakeError:
        return None  # It is damaged, as is the journal that is to be replaced.


def _begun(opening: Entry | None, old: str) -> Entry | None:
    """Give entry 0 of a journal that an earlier try has begun to take over, if it is one."""
    lineage = opening.inherits if opening is not None else None
    return opening if lineage is not None and lineage.pipeline == old else None


def _begun_empty(store: Reader, pipeline: str, last_committed: LastCommitted) -> Entry | None:
    """Give entry 0 of an empty journal that an earlier try has begun, if it is one.

    It stands alone, and neither receipt nor log know of entries after it.
    """
    opening, receipt = _opening(store, pipeline), read_receipt(store, pipeline)
    if opening is None or receipt is None or opening.inherits is not None:
        return None
    alone = _numbers(store, layout.journal_folder(pipeline)) == [0]
    fresh = receipt.journal != opening.journal or receipt.sequence == 0
    known = last_committed(pipeline, opening.journal)
    return opening if alone and fresh and known is None else None


def _has_entries(store: Reader, pipeline: str) -> bool:
    return bool(_numbers(store, layout.journal_folder(pipeline)))


def _numbers(store: Reader, folder: str) -> list[int]:
    listed = (layout.entry_sequence(facts.path) for facts in store.objects(folder))
    return sorted(number for number in listed if number is not None)


def _kept_folder(store: Reader, pipeline: str) -> str:
    """Find where our own old journal is kept, or is being moved to: else the newest of them."""
    listed = sorted(facts.path for facts in store.objects(layout.journal_folder(pipeline)))
    if any(layout.entry_sequence(path) is not None for path in listed):
        return layout.journal_aside(pipeline, _id_of(store, listed, pipeline))
    kept = sorted(
        folder.rstrip("/")
        for folder in store.folders(f"{layout.OURS}/{pipeline}")
        if layout.is_journal_aside(folder)
    )
    return kept[-1] if kept else layout.journal_folder(pipeline)


def _set_aside(store: Store, pipeline: str) -> str | None:
    """Move a journal out of the way: every object is copied before the first one goes.

    Entry 0 goes first: a journal without it is refused by both programs, however much is left.
    """
    folder = layout.journal_folder(pipeline)
    listed = sorted(facts.path for facts in store.objects(folder))
    if not listed:
        return None
    target = layout.journal_aside(pipeline, _id_of(store, listed, pipeline))
    for path in listed:
        body = store.get(path)
        copy = f"{target}/{path.rpartition('/')[2]}"
        if body is None:
            continue
        if isinstance(store.create(copy, body), AlreadyThere) and store.get(copy) != body:
            raise JournalConflict(
                "another object is kept under this name already", path=store.describe(copy)
            )
    for path in listed:
        store.delete(path)
    return store.describe(target)


def _id_of(store: Reader, listed: list[str], pipeline: str) -> str:
    """Name the journal that is moved, by the first entry of it that can be read."""
    for path in listed:
        if layout.entry_sequence(path) is None:
            continue
        try:
            return decode_entry(store.get(path) or b"", path).journal
        except LakeError:
            continue
    receipt = read_receipt(store, pipeline)
    return receipt.journal if receipt is not None else "unknown"


def _close(store: Store, past: Past, heir: str, clock: Clock) -> None:
    """End the old journal, so that whoever still writes to it is refused."""
    if past.heir == heir:
        return
    entry = replace(
        past.last,
        kind="closed",
        sequence=past.last.sequence + 1,
        run=str(clock.fresh_id()),
        created=clock.now().isoformat(),
        previous=past.digest,
        sources=(),
        files=(),
        dlq=(),
        deleted=(),
        inherits=None,
        heir=heir,
    )
    _create(store, entry)


def _open(
    identity: Identity, clock: Clock, *, source_uris: Mapping[str, str], lineage: Lineage | None
) -> Entry:
    return Entry(
        kind="open",
        pipeline=identity.pipeline,
        journal=str(clock.fresh_id()),
        sequence=0,
        run=identity.run,
        created=clock.now().isoformat(),
        previous=None,
        handoff=identity.handoff,
        source_uris=source_uris,
        table_schema=identity.table_schema,
        partition_columns=identity.partition_columns,
        inherits=lineage,
    )


def _write(
    store: Store, opening: Entry, chunks: tuple[tuple[SourceRecord, ...], ...], kept: str | None
) -> Renewed:
    """Write entry 0, what is inherited, and last the receipt that makes penguin accept it."""
    body = _create(store, opening)
    first = digest(body)
    for number, chunk in enumerate(chunks, start=1):
        entry = replace(
            opening,
            kind="inherited",
            sequence=number,
            previous=digest(body),
            sources=chunk,
            inherits=None,
        )
        body = _create(store, entry)
    receipt = read_receipt(store, opening.pipeline)
    if receipt is None or receipt.journal != opening.journal:
        begun = Receipt(journal=opening.journal, sequence=0, digest=first)
        store.replace(layout.receipt(opening.pipeline), encode(begun))
    return Renewed(
        journal=opening.journal,
        entries=1 + len(chunks),
        files=sum(len(chunk) for chunk in chunks),
        kept=kept,
    )


def _create(store: Store, entry: Entry) -> bytes:
    """Write an entry in its place; the same bytes may be there already, others may not."""
    path, body = layout.journal_entry(entry.pipeline, entry.sequence), encode(entry)
    if isinstance(store.create(path, body), AlreadyThere) and store.get(path) != body:
        raise JournalConflict(
            "another entry stands there; stop every blizzard of this pipeline and try again",
            path=store.describe(path),
        )
    return body
