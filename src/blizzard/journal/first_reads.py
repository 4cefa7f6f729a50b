"""When each source was first read, as far as no clock contradicts it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakebed import layout
from lakebed.documents.entry import Entry
from lakebed.storage.store import Reader


@dataclass(slots=True)
class FirstReads:
    """What the entries tell of it, and of the clock that wrote them."""

    since: dict[str, datetime] = field(default_factory=dict)
    """When each source was first read, by its name."""
    opened: datetime | None = None
    """When the store says that entry 0 was written, once it was asked."""
    peak: datetime | None = None
    """The latest time that an entry tells."""
    stepped_back: timedelta = timedelta(0)
    """By how much a later entry has an earlier time: the clock was ahead by at least that."""

    def learn(self, entry: Entry, at: datetime) -> None:
        """Take notice of the sources of an entry, and of its time."""
        self._heed_clock(at)
        for name, first in (entry.inherits.since if entry.inherits else {}).items():
            self.since.setdefault(name, datetime.fromisoformat(first))
        for name in entry.source_uris:
            self.since.setdefault(name, at)

    def _heed_clock(self, at: datetime) -> None:
        """Correct what a clock that was ahead recorded for the sources that are known so far."""
        more = _step(self.peak, at) - self.stepped_back
        if more > timedelta(0):
            self.stepped_back += more
            self.since = {name: first - more for name, first in self.since.items()}
        self.peak = at if self.peak is None else max(self.peak, at)

    def of(self, store: Reader, pipeline: str, source: str, *, now: datetime) -> datetime | None:
        """Return when a source was first read; None where it never was.

        Our own clock may have been ahead then, and a window that is counted from there would hide
        what should be in it. So the earliest time counts that the entries, our clock now, or the
        store tell: of the sources of entry 0, when that was written.
        """
        at = self.since.get(source)
        if at is None:
            return None
        is_first = at <= min(self.since.values())
        at -= max(timedelta(0), _step(self.peak, now) - self.stepped_back)
        if is_first:
            if self.opened is None:
                found = store.head(layout.journal_entry(pipeline, 0))
                self.opened = at if found is None else found.modified
            at = min(at, self.opened)
        return at


def _step(peak: datetime | None, at: datetime) -> timedelta:
    """Return by how much a time is earlier than the latest one recorded."""
    return timedelta(0) if peak is None else max(timedelta(0), peak - at)
