"""The append-only record of batches; appending entry N is the commit point of batch N.

Entries are written with create-only writes and each repeats the digest of the one before, so two
runs cannot both append entry N, and a journal that was rolled back or patched is noticed.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from blizzard.journal.admission import SourceTaken, admit, refuse_rivals, unconfirmed
from blizzard.journal.checkpoint import SnapshotWriter, rebuild
from blizzard.journal.checks import agree_on_protocol, redirected, require_handoff, unread
from blizzard.journal.fence import (
    EntryColumns,
    StartNote,
    columns_after,
    refuse_collected,
    refuse_promoted,
    refuse_replaced,
    withdraw_stray,
)
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import SnapshotLimits
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, encode
from lakebed.documents.records import FinishedFile, QuarantineFile, SourceRecord
from lakebed.errors import JournalConflict, JournalLost, LakeError, StoreUnavailable
from lakebed.journal import JournalReader, StoredEntry
from lakebed.retry import Backoff, attempts
from lakebed.storage.store import AlreadyThere, Store

TRIES = 6
USUAL = SnapshotLimits()


class Journal:
    """One pipeline's journal, opened for appending."""

    def __init__(
        self,
        store: Store,
        identity: Entry,
        ledger: Ledger,
        clock: Clock,
        pause: Callable[[float], object] | None = None,
        guard: Callable[[], object] = lambda: None,
        limits: SnapshotLimits = USUAL,
    ) -> None:
        """`identity` is the common part of this run's entries.

        `guard` raises if this run may no longer write; it is called before each attempt. `pause`
        waits between attempts, by default with the clock.
        """
        self.store = store
        self.ledger = ledger
        """The ledger of its entries so far."""
        self._identity = identity
        self._reader = JournalReader(store, identity.pipeline)
        self._clock = clock
        self._pause = pause or clock.sleep
        self._guard = guard
        self._in_doubt: Entry | None = None
        self.start_note = StartNote(store, identity.pipeline, lambda: self.sequence + 1)
        """The start note of the next batch."""
        self._unseen: Mapping[str, str] = {}
        """New sources for which other pipelines were not checked yet."""
        self._snapshots = SnapshotWriter(
            store=store, pipeline=identity.pipeline, clock=clock, limits=limits
        )
        self.is_open = False
        """Whether it can be appended to; from then on the table knows the pipeline."""

    @property
    def id(self) -> str:
        """The name of the journal: a UUID drawn at its creation."""
        if self.ledger.journal is None:
            raise AssertionError("a journal has a name once it is open")
        return self.ledger.journal

    @property
    def sequence(self) -> int:
        """The number of the last entry."""
        return self.ledger.sequence

    @property
    def last(self) -> Entry:
        """The last entry with files, the only one that may have to be handed off again."""
        if self.ledger.last is None:
            raise AssertionError("an open journal has an entry")
        return self.ledger.last

    def check_protocol(self) -> None:
        """Check that the table's hand-off is still the configured one."""
        require_handoff(self.store, self._identity.handoff)

    @property
    def snapshot_is_due(self) -> bool:
        """Whether a snapshot is worth writing."""
        return self._snapshots.is_due(self.ledger)

    def write_snapshot(self) -> None:
        """Write a snapshot of the ledger, from which the next start continues."""
        self._snapshots.write(self.ledger)

    def rebuild(self, why: str) -> None:
        """Read every entry again, because derived data is damaged."""
        self.catch_up()
        stored = self._reader.stored(self.sequence)
        if stored is None or stored.digest != self.ledger.digest:
            raise JournalLost(
                "the journal is not the one that this run has written to; restore it from a "
                "backup, and run one blizzard per pipeline",
                path=self.store.describe(layout.journal_folder(self._identity.pipeline)),
            )
        self.ledger.become(rebuild(self.ledger, why=why, spill=self._snapshots.spill))

    def open_with(self, log_knows_pipeline: Callable[[], bool]) -> None:
        """Open the journal, writing the protocol and entry 0 if missing.

        A journal is created only if there is no trace of an earlier one: otherwise every source
        file would be ingested a second time.
        """
        agree_on_protocol(self.store, self._identity.handoff)
        if self._in_doubt is not None:
            self.settle()
        self._unseen = unread(self._identity.source_uris, self.ledger) or self._unseen
        try:
            admit(self.ledger, self._identity.source_uris, log_knows_pipeline)
            for name, uri in redirected(self._identity.source_uris, self.ledger).items():
                uris = {**self.ledger.source_uris, name: uri}
                self._write(replace(self._next("moved"), moved=name, source_uris=uris))
            if self.sequence < 0 or unread(self._identity.source_uris, self.ledger):
                self._write(self._next("batch" if self.sequence >= 0 else "open"))
            # Record the new sources before checking for rivals: of two pipelines that claim the
            # same source at once, at least one checks after both have written.
            refuse_rivals(self.ledger, self._unseen)
        except SourceTaken:
            self._withdraw_sources()
            raise
        self._unseen = {}
        self.is_open = True

    def _withdraw_sources(self) -> None:
        """Withdraw sources that were not read yet, because another pipeline reads them."""
        opening, pipeline = unconfirmed(self.ledger), self._identity.pipeline
        if opening is None:
            for name in self._unseen:
                if name in self.ledger.source_uris:
                    uris = {k: v for k, v in self._identity.source_uris.items() if k != name}
                    self._write(replace(self._next("moved"), moved=name, source_uris=uris))
            return
        self._guard()
        if (
            self._reader.receipt() is None
            and self._reader.numbers() == [0]
            and self._reader.body(0) == encode(opening)
        ):
            self.store.delete(layout.journal_entry(pipeline, 0))
            self.ledger.become(Ledger(store=self.store, pipeline=pipeline))

    def append(
        self,
        sources: tuple[SourceRecord, ...],
        files: tuple[FinishedFile, ...],
        dlq: tuple[str, ...] = (),
        columns: EntryColumns | None = None,
        quarantine: tuple[QuarantineFile, ...] = (),
        began: float | None = None,
    ) -> Entry:
        """Commit a batch. Once this returns it is committed; if it raises, `settle` finds out."""
        entry = replace(
            self._next("batch", columns),
            sources=tuple(self.with_attempts(record) for record in sources),
            files=files,
            dlq=dlq,
            quarantine=quarantine,
            seconds=None if began is None else round(max(0.0, self._clock.seconds() - began), 3),
        )
        return self._write(entry)

    def catch_up(self) -> int:
        """Read entries that operator commands appended meanwhile; return how many.

        Otherwise a redo could wait days for the next batch. An entry of another run raises
        JournalConflict.
        """
        learned = 0
        while (stored := self._reader.stored(self.sequence + 1)) is not None:
            self.ledger.learn(*self._of_maintenance(stored, self.sequence + 1))
            learned += 1
        return learned

    def settle(self) -> Entry | None:
        """Resolve an entry whose write got no response, by writing the same bytes again.

        A run never tries two different bodies for one entry.
        """
        if self._in_doubt is None:
            return None
        return self._write(self._in_doubt)

    def withdraw(self, entry: Entry) -> None:
        """Withdraw an entry of this run if the journal was replaced."""
        with contextlib.suppress(LakeError):  # Readers refuse the entry and say why.
            withdraw_stray(self.store, entry)

    def _next(
        self, kind: Literal["open", "batch", "moved"], columns: EntryColumns | None = None
    ) -> Entry:
        """Return the next entry of this run, without actions."""
        ledger, identity = self.ledger, self._identity
        columns = columns or columns_after(ledger.last, identity.table_schema)
        return replace(
            identity,
            kind=kind,
            table_schema=columns.table_schema,
            columns=columns.found,
            journal=ledger.journal or str(self._clock.fresh_id()),
            created=self._clock.now().isoformat(),
            sequence=self.sequence + 1,
            previous=ledger.digest,
        )

    def with_attempts(self, record: SourceRecord) -> SourceRecord:
        """Count a file's attempts, so that its pauses grow, and keep its given-up data files."""
        before = self.ledger.unfinished.get(record.key)
        if before is not None:
            record = replace(record, supersedes=before.record.supersedes)
        if record.failure is None or before is None or before.record.failure is None:
            return record
        if record.gone or (before.record.gone and not before.record.redo):
            return record  # It was not tried again, or has reappeared and is a new file.
        attempts = before.record.failure.attempts + 1
        return replace(
            record,
            failure=replace(record.failure, attempts=attempts),
            redo=before.record.redo,
        )

    def _write(self, entry: Entry) -> Entry:
        """Write the entry until it is known whether its number is ours.

        If a clean-up came first, ours follows it, unless it deleted one of our files.
        """
        body = encode(entry)
        while (first := self._try(entry, body)) is not None:
            self._in_doubt = None
            self.ledger.learn(*first)
            refuse_collected(first[0], entry)
            refuse_promoted(first[0], entry)
            refuse_replaced(first[0], entry)
            entry = replace(entry, sequence=self.sequence + 1, previous=self.ledger.digest)
            body = encode(entry)
        self._in_doubt = None
        self.ledger.learn(entry, body)
        self.start_note.remove()
        return entry

    def _try(self, entry: Entry, body: bytes) -> tuple[Entry, bytes] | None:
        """Write the entry, or return the maintenance entry that already has its number."""
        path = layout.journal_entry(entry.pipeline, entry.sequence)
        self._in_doubt = entry
        for attempt in attempts(TRIES, Backoff(limit_secs=20), self._pause):
            self._guard()
            with attempt:
                if isinstance(self.store.create(path, body), AlreadyThere):
                    return self._check_ours(entry.sequence, body)
                break
        return None

    def _check_ours(self, sequence: int, body: bytes) -> tuple[Entry, bytes] | None:
        """Check whose entry exists: ours (response lost), a maintenance entry, or another run's."""
        path = layout.journal_entry(self._identity.pipeline, sequence)
        stored = self._reader.stored(sequence)
        if stored is None:
            raise StoreUnavailable("an entry that exists cannot be read", path=path)
        if stored.body == body:
            # The response may have been lost before the write reached the disk.
            self.store.sync(path)
            return None
        return self._of_maintenance(stored, sequence)

    def _of_maintenance(self, stored: StoredEntry, sequence: int) -> tuple[Entry, bytes]:
        """Accept an entry that an operator's command appended; another run's is an error."""
        other = stored.entry
        if other.by_operator:
            return other, stored.body
        raise JournalConflict(
            f"another blizzard (run {other.run}, {other.created}) has appended entry "
            f"{other.sequence} ({other.kind}) of pipeline {other.pipeline}; this one stops and "
            "publishes nothing. Run one blizzard per pipeline",
            path=self.store.describe(layout.journal_entry(self._identity.pipeline, sequence)),
        )
