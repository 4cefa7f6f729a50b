"""Source files by a part of their names, the newest first, with bounded work.

First those that are not done, then those of the newest entries, then the names that the journal
keeps, then those that only the sources have. Whatever was not reached when the time is up is said.
"""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import field
from datetime import datetime
from itertools import islice

from blizzard.handoff.held_rows import Aside
from blizzard.journal.ingested import SegmentBroken, names_with
from blizzard.journal.state import History
from blizzard.model.files import UnfinishedFile
from blizzard.model.locations import OpenReader, source_location
from blizzard.model.settings import PipelineSettings
from lakebed.dataclass import dataclass
from lakebed.documents.entry import Entry
from lakebed.documents.source_record import SourceRecord
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from lakebed.shown import typed
from lakebed.storage.store import Reader
from liveview.model import FileRow, Files, FileState
from liveview.times import rfc3339
from liveview.views.entries import Committed

BUDGET_SECS = 2.0
MOST_ENTRIES = 2000
MOST_LISTED = 5000
"""Names of a source that are listed to find one that the journal does not know."""


@dataclass(slots=True, kw_only=True)
class Search:
    """One search through one pipeline."""

    settings: PipelineSettings
    store: Reader | None
    history: History
    opening: OpenReader
    committed: Callable[[int], Committed | None]
    """Returns the version that has an entry, as far as it is known."""
    committed_upto: int
    aside: Aside = field(default_factory=Aside)
    running: Collection[str] = ()
    seconds: Callable[[], float] = time.monotonic
    budget_secs: float = BUDGET_SECS
    _found: dict[str, FileRow] = field(default_factory=dict)

    def find(self, text: str, limit: int) -> Files:
        """Return files with a text in their names; without one, the newest.

        The text may be typed as names are shown.
        """
        searched, text = text, typed(text) or text
        end = self.seconds() + self.budget_secs
        more = False
        for rows in (self._unfinished(text), self._journaled(text), self._named(text, limit)):
            for row in rows:
                if row is not None:
                    self._found.setdefault(row.path, row)
                if len(self._found) > limit or self.seconds() >= end:
                    more = True
                    break
            if more:
                break
        note = None
        if not more and text:
            note, more = self._listed(text, limit, end)
        found = list(self._found.values())[:limit]
        return Files(files=found, searched=searched, more=more, note=note)

    def _unfinished(self, text: str) -> Iterator[FileRow | None]:
        known = sorted(self.history.unfinished.items(), key=lambda one: one[1].at, reverse=True)
        for key, one in known:
            if text in key and (one.record.discarded or not one.record.gone):
                yield _not_done(one)

    def _journaled(self, text: str) -> Iterator[FileRow | None]:
        """Yield the files of the newest entries; None where an entry has none of them."""
        if self.store is None:
            return
        journal = JournalReader(self.store, self.settings.name)
        word = text.encode()
        plain = '"' not in text and "\\" not in text and text.isprintable()
        lowest = max(0, self.history.sequence - MOST_ENTRIES)
        for number in range(self.history.sequence, lowest, -1):
            try:
                body = journal.body(number)
                entry = None
                if body is not None and (not plain or word in body):
                    entry = journal.entry(number)
            except LakeError:
                entry = None
            yield None
            for record in () if entry is None else entry.readings:
                if text in record.key and not record.gone and entry is not None:
                    yield self._row(entry, record)

    def _named(self, text: str, limit: int) -> Iterator[FileRow | None]:
        """Yield the files that the journal knows by name, whichever entry has them."""
        if self.store is None or not text:
            return
        try:
            for segment in reversed(self.history.segments):
                for one in islice(
                    names_with(self.store, self.settings.name, segment, text), limit + 1
                ):
                    made = None if one.entry is None else self.committed(one.entry)
                    yield FileRow(
                        path=one.key,
                        state=self._state(one.entry),
                        at=None,
                        bytes=one.size,
                        rows=0 if one.empty else None,
                        entry=one.entry,
                        version=None if made is None else made.version,
                        reason=None,
                    )
        except SegmentBroken:
            return

    def _listed(self, text: str, limit: int, end: float) -> tuple[str | None, bool]:
        """Find names in the sources that the journal does not know; return what is not certain."""
        for source in self.settings.sources:
            try:
                names = self.opening(source_location(source)).objects()
                for count, facts in enumerate(names):
                    if count >= MOST_LISTED or self.seconds() >= end or len(self._found) > limit:
                        note = f"not all names of source {source.name} were looked at"
                        return note, True
                    key = f"{source.name}:{facts.path}"
                    if text in key and key not in self._found:
                        self._found[key] = FileRow(
                            path=key,
                            state="running" if key in self.running else "waiting",
                            at=rfc3339(facts.modified),
                            bytes=facts.size,
                            rows=None,
                            entry=None,
                            version=None,
                            reason="the journal does not have it; its journey says why",
                        )
            except LakeError as trouble:
                return f"source {source.name} cannot be listed: {trouble}", False
        return None, False

    def _row(self, entry: Entry, record: SourceRecord) -> FileRow:
        made = self.committed(entry.sequence)
        failed = record.failure
        held = {meta.entry for meta in self.aside.held}
        state: FileState = self._state(entry.sequence)
        if failed is not None:
            state = "failed"
        elif entry.sequence in held and record.rows:
            state = "held"
        return FileRow(
            path=record.key,
            state=state,
            at=rfc3339(datetime.fromisoformat(entry.created)),
            bytes=record.size,
            rows=record.rows if failed is None else None,
            entry=entry.sequence,
            version=None if made is None else made.version,
            reason=None if failed is None else failed.code,
        )

    def _state(self, entry: int | None) -> FileState:
        done = entry is not None and entry <= self.committed_upto
        return "in_table" if done else "journaled"


def _not_done(one: UnfinishedFile) -> FileRow:
    record = one.record
    state: FileState = "waiting" if record.failure is None else "failed"
    return FileRow(
        path=record.key,
        state="discarded" if record.discarded else state,
        at=rfc3339(one.at),
        bytes=record.size,
        rows=None,
        entry=one.entry,
        version=None,
        reason="a part of it is read" if record.failure is None else record.failure.code,
    )
