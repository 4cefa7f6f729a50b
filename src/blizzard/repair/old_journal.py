"""The knowledge of an old journal for its replacement. Read-only."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from blizzard.handoff.held_rows import Fates
from blizzard.handoff.publish import LastCommitted
from blizzard.journal.checks import refuse_moved, refuse_other_names
from blizzard.journal.ledger import Ledger
from blizzard.model.source.partly_read import settled
from lakebed import layout
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import HeldState, decode_meta
from lakebed.documents.records import SourceRecord
from lakebed.errors import DocumentUnreadable, JournalConflict, JournalLost, LakeError
from lakebed.journal import JournalReader, StoredEntry, entries_in, replaced_journals
from lakebed.storage.store import Reader
from lakebed.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class OldJournal:
    """The knowledge of an old journal."""

    stored: StoredEntry
    """Its last entry that does not close it."""
    written: Entry
    """The last entry with data files, or the one that opened it."""
    records: Mapping[str, tuple[SourceRecord, ...]]
    """By key, the records of each source file, in the order for `inherited` entries."""
    ledger: Ledger
    """Its sources and waiting bad lines."""
    heir: str | None = None
    """The pipeline that already took it over."""

    @property
    def last(self) -> Entry:
        """Its last entry that does not close it."""
        return self.stored.entry

    @property
    def in_table(self) -> int:
        """The number of source files in the table."""
        return sum(_is_in_table(records) for records in self.records.values())


def past_of(store: Reader, pipeline: str, old: str, fates: Fates) -> OldJournal:
    """Read an old journal at its location or, for our own, where it is kept.

    `fates` tells which retractions were rejected and changed nothing.
    """
    opening = opening_of(store, pipeline)
    if old == pipeline:
        half = begun(store, opening, old)
        if half is not None and half.inherits is not None:
            return _past(store, old, layout.replaced_journal(old, half.inherits.journal), fates)
        if opening is None:
            return _past(store, old, _kept_folder(store, old), fates)
    return _past(store, old, layout.journal_folder(old), fates)


def check_past(
    store: Reader, identity: Entry, old: str, past: OldJournal, last_committed: LastCommitted
) -> None:
    """Refuse a journal with uncommitted entries, or one that another pipeline took over."""
    if past.heir not in (None, identity.pipeline):
        raise JournalConflict(
            f"pipeline {past.heir!r} has already taken over the journal of {old!r}",
            path=store.describe(layout.journal_folder(old)),
        )
    place = store.describe(layout.journal_folder(identity.pipeline))
    refuse_other_names(place, identity.source_uris, past.ledger.source_names)
    refuse_moved(place, identity.source_uris, past.ledger.source_uris)
    committed = last_committed(old, past.last.journal) or 0
    if committed < past.last.sequence:
        raise JournalConflict(
            f"entries {committed + 1} to {past.last.sequence} of pipeline {old!r} are not "
            "committed yet; have them committed (penguin --once, or blizzard --once where "
            "sink.commit is inline) and try again",
            path=store.describe(layout.journal_folder(old)),
        )
    if old == identity.pipeline:
        _refuse_held(store, past)
    else:
        receipt = JournalReader(store, old).receipt()
        if receipt is not None and receipt.sequence > past.last.sequence + 1:
            raise JournalLost(
                f"entry {receipt.sequence} of pipeline {old!r} is committed, but its journal "
                f"ends at {past.last.sequence}: it was rolled back; restore it from a backup",
                path=store.describe(layout.journal_folder(old)),
            )


def _refuse_held(store: Reader, past: OldJournal) -> None:
    """Refuse while penguin holds files, since releasing them needs the old journal."""
    held = [
        facts.path
        for facts in store.objects(layout.HELD)
        if (body := store.get(facts.path)) is not None
        and decode_meta(body, store.describe(facts.path)).journal == past.last.journal
    ]
    if held:
        raise JournalConflict(
            f"penguin holds {plural(len(held), 'file')} of this journal and could no longer "
            "release them, although their source files count as read; see penguin held, and "
            "release or discard them first, or start with --empty",
            path=store.describe(held[0]),
        )


def _past(store: Reader, pipeline: str, folder: str, fates: Fates) -> OldJournal:
    records: dict[str, tuple[SourceRecord, ...]] = {}
    ledger = Ledger(store=store, pipeline=pipeline)
    last: StoredEntry | None = None
    written: Entry | None = None
    heir = None
    for stored in entries_in(store, pipeline, folder, before_empty=True):
        entry = stored.entry
        if entry.heir is not None:
            heir = entry.heir
            continue
        last = stored
        ledger.learn(entry, stored.body)
        written = entry if entry.files or written is None else written
        mark = entry.replacement_mark
        in_vain = entry.replaces and fates([mark]).get(mark) == HeldState.GONE
        for record in entry.sources:
            before = records.get(record.key, ())
            read = _as_read(before, record) if entry.operation == "control" else record
            if not (in_vain and record.failure is None and before):
                records[record.key] = with_record(before, inherited(read))
    if last is None or written is None:
        raise JournalLost("there is no journal to take over", path=store.describe(folder))
    return OldJournal(stored=last, written=written, records=records, ledger=ledger, heir=heir)


def with_record(before: tuple[SourceRecord, ...], record: SourceRecord) -> tuple[SourceRecord, ...]:
    """Add a record to the known records of a source file. Pure.

    A file may be in the table as one object and have failed since as another. Both are kept, the
    one in the table first, so that it is not read again if it is put back.
    """
    if record.failure is None and record.complete:
        return (record,)
    return (*(each for each in before if each.failure is None and each.complete), record)


def _as_read(before: tuple[SourceRecord, ...], record: SourceRecord) -> SourceRecord:
    """Merge a finished file's original record with a later one that only names its object."""
    if record.failure is not None or not record.complete or not _is_done(before):
        return record
    return replace(before[0], size=record.size, etag=record.etag)


def _is_done(records: tuple[SourceRecord, ...]) -> bool:
    return bool(records) and records[0].failure is None and records[0].complete


def _is_in_table(records: tuple[SourceRecord, ...]) -> bool:
    """Whether rows of a file are in the table and none of its data files was given up. Pure."""
    return not records[-1].redo and any(record.failure is None for record in records)


def inherited(record: SourceRecord) -> SourceRecord:
    """Return the record that later batches need, without counts. Pure.

    The old journal has counted its lines, so the new one must not.
    """
    return replace(settled(record), retry=record.retry)


def opening_of(store: Reader, pipeline: str) -> Entry | None:
    """Read entry 0 of a journal; None if missing or damaged."""
    try:
        return JournalReader(store, pipeline).entry(0)
    except DocumentUnreadable:
        return None  # It is damaged, like the journal to be replaced.


def begun(store: Reader, opening: Entry | None, old: str) -> Entry | None:
    """Return entry 0 of a journal that an earlier take-over attempt started, if any.

    If any of its entries is committed, the attempt was complete and the journal damaged since.
    """
    if opening is None or opening.inherits is None or opening.inherits.pipeline != old:
        return None
    receipt = JournalReader(store, opening.pipeline).receipt()
    used = receipt is not None and receipt.journal == opening.journal and receipt.sequence > 0
    return None if used else opening


def _kept_folder(store: Reader, pipeline: str) -> str:
    """Find the folder where our own old journal is kept or being moved to, else the newest one."""
    journal = JournalReader(store, pipeline)
    numbers = journal.numbers()
    if numbers:
        return layout.replaced_journal(pipeline, id_of(journal, numbers))
    kept = replaced_journals(store, pipeline)
    return kept[-1] if kept else layout.journal_folder(pipeline)


def id_of(journal: JournalReader, numbers: list[int]) -> str:
    """Return the id of a journal from its first readable entry."""
    for number in numbers:
        with suppress(LakeError):
            return journal.listed(number).entry.journal
    receipt = journal.receipt()
    return receipt.journal if receipt is not None else "unknown"
