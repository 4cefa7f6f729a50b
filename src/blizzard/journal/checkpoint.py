"""Snapshots of what a journal says, so that the next start need not read every entry.

Nothing here is needed for a batch to have happened, so nothing here may fail one.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from blizzard.journal.books import Books, Sums
from blizzard.journal.ledger import FirstReads, Ledger
from blizzard.journal.segments import (
    SegmentBroken,
    SegmentRef,
    open_segment,
    with_rows,
)
from blizzard.journal.shelf import KeptValues, kept_values, load_values, spill_values
from blizzard.journal.standings import (
    PassedOver,
    Undecided,
    UndecidedFiles,
    nothing_decided,
)
from blizzard.model.limits import SnapshotLimits
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.errors import DocumentUnreadable, LakeError
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader, Store

FORMAT = 2
"""A snapshot of another format is not read: the entries are read once instead."""
CHECK = b'"check":"'


class SnapshotBroken(LakeError):
    """A snapshot is missing, damaged, or of another entry; the entries are read instead."""

    code = "snapshot_broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state after entry N."""

    format: int
    journal: str
    sequence: int
    digest: str
    """The SHA-256 of entry N."""
    last: int
    """The last entry with files, which may have to be handed off again."""
    shaping: int | None = None
    """The last entry that says which columns were found; None where it is `last`."""
    source_names: Mapping[str, str] = field(default_factory=dict)
    source_uris: Mapping[str, str] = field(default_factory=dict)
    since: Mapping[str, str] = field(default_factory=dict)
    awaits: int = 0
    heir: str | None = None
    peak: str | None = None
    """The latest time that an entry tells; None for that of entry N."""
    stepped_back: float = 0.0
    """By how many seconds a later entry had an earlier time."""
    undecided: Mapping[str, tuple[Undecided, ...]] = field(default_factory=dict)
    """What retractions make of files, unless penguin rejects them, in their order."""
    sums: Sums = field(default_factory=Sums)
    values: KeptValues = field(default_factory=KeptValues)
    segments: tuple[SegmentRef, ...] = ()
    """Files that are done, the oldest segment first."""
    check: str = ""
    """The SHA-256 of this document with nothing in this place."""

    @property
    def segment_ids(self) -> frozenset[str]:
        """Return the ids of all segments that it names, of whatever they are."""
        return frozenset(ref.id for ref in (*self.segments, *self.values.segments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What every version of a snapshot has."""

    format: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """Which snapshot is the newest."""

    sequence: int


_SNAPSHOT = TypeAdapter(Snapshot)
_LATEST = TypeAdapter(Latest)
_STAMP = TypeAdapter(Stamp)


def read_latest(store: Reader, pipeline: str) -> Snapshot | None:
    """Read the newest snapshot; None where none was ever written."""
    path = layout.latest_snapshot(pipeline)
    body = store.get(path)
    if body is None:
        return None
    try:
        latest = _LATEST.validate_json(body)
        path = layout.snapshot(pipeline, latest.sequence)
        body = store.get(path)
        if body is None:
            raise SnapshotBroken("the newest snapshot is missing", path=path)
        if _STAMP.validate_json(body).format != FORMAT:
            raise SnapshotBroken("a snapshot of another version of blizzard", path=path)
        found = _SNAPSHOT.validate_json(body)
    except ValidationError as invalid:
        raise SnapshotBroken("this document cannot be read", path=path) from invalid
    if found.sequence != latest.sequence or _check(body) != found.check:
        raise SnapshotBroken("this snapshot is damaged", path=path)
    return found


def write_snapshot(store: Store, pipeline: str, found: Snapshot) -> None:
    """Put a snapshot in place, and then the note that it is the newest."""
    whole = replace(found, check=_check(_encoded(replace(found, check="none yet"))))
    store.replace(layout.snapshot(pipeline, found.sequence), _encoded(whole) + b"\n")
    latest = Latest(sequence=found.sequence)
    store.replace(layout.latest_snapshot(pipeline), _LATEST.dump_json(latest) + b"\n")


def _encoded(found: Snapshot) -> bytes:
    return _SNAPSHOT.dump_json(found, exclude_defaults=True)


def _check(body: bytes) -> str:
    """Return the SHA-256 of a snapshot as it is stored, with nothing in the place of the check.

    It goes by the bytes, not by what this program would write: a program that knows more fields
    than the one that wrote a snapshot must not take it for damaged.
    """
    before = body.rpartition(CHECK)[0]
    return hashlib.sha256(before + CHECK + b'"}').hexdigest()


@dataclass(slots=True, kw_only=True)
class SnapshotWriter:
    """Keeps the snapshot and the segments of one pipeline up with its journal."""

    store: Store
    pipeline: str
    clock: Clock
    limits: SnapshotLimits = field(default_factory=SnapshotLimits)
    _not_before: int = 0

    def is_due(self, history: Ledger) -> bool:
        """Whether enough has happened since the last snapshot."""
        if history.sequence < self._not_before:
            return False
        since = history.sequence - (history.kept or 0)
        return since >= self.limits.entries or len(history.recent) >= self.limits.names

    def write(self, history: Ledger) -> None:
        """Write the segments and the snapshot; what they replace is removed after that."""
        # Should this fail, the next try is some batches away.
        self._not_before = history.sequence + self.limits.entries // 10
        if history.journal is None or history.digest is None or history.last is None:
            return
        history.books.settle(JournalReader(self.store, self.pipeline))
        self._write_names(history)
        history.value_segments = spill_values(
            history.shelves,
            history.value_segments,
            self.store,
            self.pipeline,
            self.clock.fresh_id,
            most=self.limits.changes,
        )
        before, reads = history.kept, history.first_reads
        fresh = Snapshot(
            format=FORMAT,
            journal=history.journal,
            sequence=history.sequence,
            digest=history.digest,
            last=history.last.sequence,
            shaping=None if history.shaping is None else history.shaping.sequence,
            source_names=history.source_names,
            source_uris=history.source_uris,
            since={name: at.isoformat() for name, at in reads.since.items()},
            awaits=history.awaits,
            heir=history.heir,
            peak=None if reads.peak is None else reads.peak.isoformat(),
            stepped_back=reads.stepped_back.total_seconds(),
            undecided=history.undecided.files,
            sums=history.books.sums,
            values=kept_values(history.shelves, history.value_segments),
            segments=tuple(each.ref for each in history.segments),
        )
        write_snapshot(self.store, self.pipeline, fresh)
        history.kept = history.sequence
        self._not_before = 0
        if before is not None and before != history.sequence:
            self.store.delete(layout.snapshot(self.pipeline, before))
        self._remove_stale(fresh.segment_ids)

    def spill(self, history: Ledger) -> None:
        """Move names out of memory while a long journal is read."""
        if len(history.recent) >= self.limits.names:
            self._write_names(history)

    def _write_names(self, history: Ledger) -> None:
        if history.recent:
            history.segments = with_rows(
                self.store,
                self.pipeline,
                history.segments,
                (history.recent[key].row for key in sorted(history.recent)),
                self.clock.fresh_id,
                block=self.limits.block,
            )
            history.recent = {}

    def _remove_stale(self, used: frozenset[str]) -> None:
        """Remove what the new snapshot does not name, also what a dead process left behind."""
        listed = self.store.objects(layout.known_folder(self.pipeline))
        for path in [facts.path for facts in listed]:
            if layout.known_segment(self.pipeline, path) not in used:
                self.store.delete(path)


Spill = Callable[[Ledger], None]
"""Writes the names that are held in memory to a segment, so that they need not be."""


def read_ledger(
    store: Reader,
    pipeline: str,
    *,
    passed_over: PassedOver = nothing_decided,
    spill: Spill | None = None,
) -> Ledger:
    """Read a snapshot and the entries after it; a gap or an unreadable entry stops the run."""
    # The receipt first: the journal only grows, so what is in the receipt must be in it.
    receipt = JournalReader(store, pipeline).receipt()
    try:
        ledger = _from_newest(store, pipeline)
    except (SnapshotBroken, SegmentBroken) as broken:
        ledger = Ledger(store=store, pipeline=pipeline, rebuilt=str(broken))
    ledger.receipt, ledger.passed_over = receipt, passed_over
    read_on(ledger, spill=spill)
    return ledger


def rebuild(before: Ledger, *, why: str, spill: Spill | None = None) -> Ledger:
    """Read every entry of a journal, because what was derived from them is of no use."""
    ledger = Ledger(
        store=before.store,
        pipeline=before.pipeline,
        receipt=before.receipt,
        passed_over=before.passed_over,
        rebuilt=why,
    )
    read_on(ledger, spill=spill)
    return ledger


def read_on(ledger: Ledger, *, spill: Spill | None = None) -> None:
    """Learn the entries that have come since; a gap or an unreadable entry stops the run."""
    for stored in _journal_of(ledger).stored_entries(ledger.sequence):
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
        ledger.receipt = _journal_of(ledger).receipt()
        read_on(ledger)
    ledger.books.settle(_journal_of(ledger))


def reread(ledger: Ledger, why: SegmentBroken) -> None:
    """Read a ledger anew, in place, because a segment is damaged or was replaced meanwhile.

    Every entry is read where there is no newer snapshot with other segments.
    """
    if ledger.store is None:
        raise why
    fresh = read_ledger(ledger.store, ledger.pipeline, passed_over=ledger.passed_over)
    if fresh.kept == ledger.kept:
        fresh = rebuild(fresh, why=str(why))
    fresh.books.settle(_journal_of(fresh))
    ledger.become(fresh)


def _journal_of(ledger: Ledger) -> JournalReader:
    if ledger.store is None:
        raise AssertionError("a ledger is read from a table's directory")
    return JournalReader(ledger.store, ledger.pipeline)


def _from_newest(store: Reader, pipeline: str) -> Ledger:
    """Start from the newest snapshot; from the next one, where that took its place meanwhile."""
    try:
        return _from_snapshot(store, pipeline)
    except (SnapshotBroken, SegmentBroken):
        return _from_snapshot(store, pipeline)


def _from_snapshot(store: Reader, pipeline: str) -> Ledger:
    """Start from the newest snapshot that matches its entry, or from nothing where none is."""
    found = read_latest(store, pipeline)
    if found is None:
        return Ledger(store=store, pipeline=pipeline)
    journal = JournalReader(store, pipeline)
    stored = journal.stored(found.sequence)
    if stored is None or stored.digest != found.digest:
        raise SnapshotBroken(
            "a snapshot does not match its entry", path=journal.where(found.sequence)
        )
    entry = stored.entry
    last = entry if found.last == found.sequence else _present(journal, found.last)
    shaping = last if found.shaping in (None, found.last) else _present(journal, found.shaping)
    ledger = Ledger(
        store=store,
        pipeline=pipeline,
        journal=found.journal,
        sequence=found.sequence,
        digest=found.digest,
        source_names=dict(found.source_names),
        # The entry says where its sources were read; of others the name was last read where the
        # snapshot says so last.
        source_uris={
            **{name: uri for uri, name in found.source_names.items()},
            **found.source_uris,
            **entry.source_uris,
        },
        first_reads=FirstReads(
            since={name: datetime.fromisoformat(at) for name, at in found.since.items()},
            peak=datetime.fromisoformat(found.peak or entry.created),
            stepped_back=timedelta(seconds=found.stepped_back),
        ),
        last=last,
        shaping=shaping,
        awaits=found.awaits,
        heir=found.heir,
        undecided=UndecidedFiles(dict(found.undecided)),
        books=Books(sums=found.sums),
        segments=[open_segment(store, pipeline, ref) for ref in found.segments],
        kept=found.sequence,
    )
    ledger.value_segments = load_values(ledger.shelves, store, pipeline, found.values)
    return ledger


def _present(journal: JournalReader, sequence: int) -> Entry:
    entry = journal.entry(sequence)
    if entry is None:
        raise DocumentUnreadable(
            "this entry is missing; restore it from a backup", path=journal.where(sequence)
        )
    return entry
