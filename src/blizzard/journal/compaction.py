"""Snapshots of what a journal says, so that the next start need not read every entry.

Nothing here is needed for a batch to have happened, so nothing here may fail one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from blizzard.journal import snapshot
from blizzard.journal.ingested import Segment, SegmentRef, merged, to_merge, write_segment
from blizzard.journal.ledger import Ledger
from blizzard.journal.shelf import Shelf
from blizzard.model.files import IngestedFile
from blizzard.model.limits import SnapshotLimits
from lakebed import layout
from lakebed.clock import Clock
from lakebed.journal import JournalReader
from lakebed.storage.store import Store


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
        self._write_values(history)
        before, reads = history.kept, history.first_reads
        fresh = snapshot.Snapshot(
            format=snapshot.FORMAT,
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
            unfinished=history.unfinished.kept,
            undecided=history.undecided.files,
            earlier=history.earlier.kept,
            books=history.books.kept,
            segments=tuple(
                SegmentRef(id=each.id, names=each.names, digest=each.digest)
                for each in history.segments
            ),
        )
        snapshot.write(self.store, self.pipeline, fresh)
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
            names = [history.recent[key] for key in sorted(history.recent)]
            segment = self._segment(names)
            history.segments = [*history.segments, segment]
            history.recent = {}
        if not history.segments:
            return
        number = to_merge(history.segments)
        if number > 1:
            old = history.segments[-number:]
            names_in_order = merged(self.store, self.pipeline, old)
            history.segments = [*history.segments[:-number], self._segment(names_in_order)]

    def _segment(self, names: Iterable[IngestedFile]) -> Segment:
        return write_segment(
            self.store, self.pipeline, names, self.clock.fresh_id(), block=self.limits.block
        )

    def _write_values(self, history: Ledger) -> None:
        """Write to segments what has changed in the books, where it is much."""
        shelves: tuple[Shelf[Any], ...] = (history.unfinished, history.earlier)
        for shelf in shelves + history.books.shelves:
            shelf.spill(self.store, self.pipeline, self.clock.fresh_id, most=self.limits.changes)

    def _remove_stale(self, used: frozenset[str]) -> None:
        """Remove what the new snapshot does not name, also what a dead process left behind."""
        listed = self.store.objects(layout.known_folder(self.pipeline))
        for path in [facts.path for facts in listed]:
            if layout.known_segment(self.pipeline, path) not in used:
                self.store.delete(path)
