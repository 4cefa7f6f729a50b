"""Snapshots of a journal's ledger, so that a start need not read every entry.

Snapshots are derived data, so errors here never fail a batch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from blizzard.journal.books import Books, Sums
from blizzard.journal.ledger import Ledger, LedgerState
from blizzard.journal.segments import (
    Row,
    Segment,
    SegmentBroken,
    SegmentRef,
    changed_rows,
    load_tables,
    with_rows,
)
from blizzard.journal.standings import RejectionLookup, nothing_decided
from blizzard.model.settings import SnapshotLimits
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import digest
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader, Store

Answer = TypeVar("Answer")
FORMAT = 4
"""Snapshots of another format are not read: the entries are read once instead."""


class SnapshotBroken(LakeError, code="snapshot_broken"):
    """A snapshot is missing, damaged, or of another entry; the entries are read instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSnapshot:
    """The state after entry N."""

    state: LedgerState
    sums: Sums
    segments: tuple[SegmentRef, ...] = ()
    """Finished files and the tables, oldest segment first."""


_SNAPSHOT = TypeAdapter(LedgerSnapshot)


def read_snapshot(store: Reader, pipeline: str) -> LedgerSnapshot | None:
    """Read the snapshot of a journal; None if none was ever written."""
    path = layout.snapshot(pipeline)
    stored = store.get(path)
    if stored is None:
        return None
    head, _, body = stored.partition(b"\n")
    if head != _head(body):
        raise SnapshotBroken("a snapshot of another version of blizzard, or damaged", path=path)
    try:
        return _SNAPSHOT.validate_json(body)
    except ValidationError as invalid:
        raise SnapshotBroken("this document cannot be read", path=path) from invalid


def write_snapshot(store: Store, pipeline: str, found: LedgerSnapshot) -> None:
    """Replace the snapshot."""
    body = _SNAPSHOT.dump_json(found, exclude_defaults=True) + b"\n"
    store.replace(layout.snapshot(pipeline), _head(body) + b"\n" + body)


def _head(body: bytes) -> bytes:
    """Return the first line of a snapshot: its format, and the SHA-256 of the rest."""
    return f"{FORMAT} {digest(body)}".encode()


@dataclass(slots=True, kw_only=True)
class SnapshotWriter:
    """Keeps the snapshot and the segments of a pipeline up to date with its journal."""

    store: Store
    pipeline: str
    clock: Clock
    limits: SnapshotLimits = field(default_factory=SnapshotLimits)
    _not_before: int = 0

    def is_due(self, history: Ledger) -> bool:
        """Whether a new snapshot is worth writing."""
        if history.sequence < self._not_before:
            return False
        since = history.sequence - (history.kept or 0)
        return since >= self.limits.entries or len(history.recent) >= self.limits.names

    def write(self, history: Ledger) -> None:
        """Write the segments and the snapshot, then remove what they replace."""
        # If this fails, wait some batches before the next attempt.
        self._not_before = history.sequence + self.limits.entries // 10
        if history.sequence < 0:
            return
        history.settle_books()
        self._write_rows(history, changed_rows(history.tables))
        for table in history.tables.values():
            table.changed.clear()
        fresh = LedgerSnapshot(
            state=history,
            sums=history.books.sums,
            segments=tuple(each.ref for each in history.segments),
        )
        write_snapshot(self.store, self.pipeline, fresh)
        history.kept = history.sequence
        self._not_before = 0
        self._remove_stale({ref.id for ref in fresh.segments})

    def spill(self, history: Ledger) -> None:
        """Move names out of memory while a long journal is read."""
        if len(history.recent) >= self.limits.names:
            self._write_rows(history, [])

    def _write_rows(self, history: Ledger, rows: list[Row]) -> None:
        """Write table rows and the names in memory as a segment."""
        rows += [name.row for name in history.recent.values()]
        if rows:
            history.segments = with_rows(
                self.store,
                self.pipeline,
                history.segments,
                sorted(rows, key=lambda row: row[0]),
                self.clock.fresh_id,
                block=self.limits.block,
            )
            history.recent = {}

    def _remove_stale(self, used: set[str]) -> None:
        """Remove segments that the new snapshot does not name, also those of dead processes."""
        listed = self.store.objects(layout.known_folder(self.pipeline))
        for path in [facts.path for facts in listed]:
            if layout.known_segment(self.pipeline, path) not in used:
                self.store.delete(path)


Spill = Callable[[Ledger], None]
"""Moves names from memory to a segment."""


def read_ledger(
    store: Reader,
    pipeline: str,
    *,
    rejections: RejectionLookup = nothing_decided,
    spill: Spill | None = None,
) -> Ledger:
    """Read a snapshot and the entries after it; a gap or an unreadable entry stops the run."""
    # Read the receipt first: the journal only grows, so it must contain the receipt's entry.
    receipt = JournalReader(store, pipeline).receipt()
    try:
        ledger = _from_newest(store, pipeline)
    except (SnapshotBroken, SegmentBroken) as broken:
        ledger = Ledger(store=store, pipeline=pipeline, rebuilt=str(broken))
    ledger.receipt, ledger.rejections = receipt, rejections
    read_on(ledger, spill=spill)
    return ledger


def rebuild(before: Ledger, *, why: str, spill: Spill | None = None) -> Ledger:
    """Read every entry of a journal, because the derived data is unusable."""
    ledger = Ledger(
        store=before.store,
        pipeline=before.pipeline,
        receipt=before.receipt,
        rejections=before.rejections,
        rebuilt=why,
    )
    read_on(ledger, spill=spill)
    return ledger


def read_on(ledger: Ledger, *, spill: Spill | None = None) -> None:
    """Read the entries appended since; a gap or an unreadable entry stops the run."""
    for stored in ledger.reader.stored_entries(ledger.sequence):
        ledger.learn(stored.entry, stored.body)
        if spill is not None:
            spill(ledger)
    ledger.settle()


def refresh(ledger: Ledger, store: Reader, pipeline: str) -> None:
    """Bring a ledger up to date in place, with its sums settled; a new one is read from scratch."""
    if ledger.sequence < 0:
        ledger.become(read_ledger(store, pipeline))
    else:
        ledger.store = store
        ledger.receipt = ledger.reader.receipt()
        read_on(ledger)
    ledger.settle_books()


def reread(ledger: Ledger, why: SegmentBroken) -> None:
    """Reload a ledger in place because a segment is damaged or was replaced.

    Without a newer snapshot with other segments, every entry is read.
    """
    if ledger.store is None:
        raise why
    fresh = read_ledger(ledger.store, ledger.pipeline, rejections=ledger.rejections)
    if fresh.kept == ledger.kept:
        fresh = rebuild(fresh, why=str(why))
    fresh.settle_books()
    ledger.become(fresh)


def past_damage(ledger: Ledger, ask: Callable[[], Answer]) -> Answer:
    """Call `ask`; if a segment is damaged or was replaced, reload the ledger and ask again."""
    for _try in range(2):
        try:
            return ask()
        except SegmentBroken as broken:
            reread(ledger, broken)
    return ask()


def _from_newest(store: Reader, pipeline: str) -> Ledger:
    """Start from the snapshot, or from the next one if it was replaced meanwhile."""
    try:
        return _from_snapshot(store, pipeline)
    except (SnapshotBroken, SegmentBroken):
        return _from_snapshot(store, pipeline)


def _from_snapshot(store: Reader, pipeline: str) -> Ledger:
    """Start from the snapshot if it matches its entry; without one, start empty."""
    found = read_snapshot(store, pipeline)
    if found is None:
        return Ledger(store=store, pipeline=pipeline)
    journal = JournalReader(store, pipeline)
    stored = journal.stored(found.state.sequence)
    if stored is None or stored.digest != found.state.digest:
        path = journal.where(found.state.sequence)
        raise SnapshotBroken("a snapshot does not match its entry", path=path)
    ledger = Ledger(
        **{each.name: getattr(found.state, each.name) for each in fields(found.state)},
        store=store,
        pipeline=pipeline,
        books=Books(sums=found.sums),
        segments=[Segment.open(store, pipeline, ref) for ref in found.segments],
        kept=found.state.sequence,
    )
    load_tables(ledger.tables, pipeline, ledger.segments)
    return ledger
