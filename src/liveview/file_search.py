"""Search source files by part of their names, newest first, within a time budget.

Unfinished files come first, then files of the newest entries, then other names in the journal, then
names only in the sources. A note says what was not reached in time. States are those of
`blizzard files`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice

from blizzard.answers.answer import NOT_APPLIED, FileProgress, FileState
from blizzard.answers.file_counts import EntryRows
from blizzard.answers.lifecycle import has_a_part_read, of_unfinished
from blizzard.answers.progress import PipelineEvidence
from blizzard.discover.finding import why_not_ours
from blizzard.journal.ledger import Lookup
from blizzard.journal.segments import SegmentBroken
from blizzard.model.settings import SourceSettings
from blizzard.model.source.file import IngestedFile, UnfinishedFile
from blizzard.model.stores import source_location
from lakebed.clock import rfc3339
from lakebed.deltalog.versions import Commit
from lakebed.documents.records import SourceRecord
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from lakebed.listing.sort import ListingRules
from lakebed.storage.options import ObjectFacts
from lakebed.units import typed
from liveview.details import FileRow, Files

BUDGET_SECS = 2.0
MOST_ENTRIES = 2000
MOST_LISTED = 5000
"""The most names of a source to list for names that the journal does not know."""
VERSIONED = (FileState.IN_TABLE, FileState.RETRACTED)
"""States that come with a version of the table."""


@dataclass(slots=True, kw_only=True)
class FileSearch:
    """One search in one pipeline."""

    evidence: PipelineEvidence
    committed: Callable[[int], Commit | None]
    """Returns the version that committed an entry, if known."""
    progress: FileProgress
    seconds: Callable[[], float] = time.monotonic
    budget_secs: float = BUDGET_SECS
    _found: dict[str, FileRow] = field(default_factory=dict)
    _more: bool = False
    _note: str | None = None
    _rows: EntryRows | None = None

    def find(self, text: str, limit: int) -> Files:
        """Return files whose names contain a text, or the newest files for an empty one.

        The text may be typed as names are printed.
        """
        searched, text = text, typed(text) or text
        end = self.seconds() + self.budget_secs
        for row in chain(self._known(text, limit), self._listed(text)):
            if row is not None:
                self._found.setdefault(row.path, row)
            if len(self._found) > limit or self.seconds() >= end:
                self._more = True
                break
        found = list(self._found.values())[:limit]
        return Files(files=found, searched=searched, more=self._more, note=self._note)

    def _known(self, text: str, limit: int) -> Iterator[FileRow | None]:
        """Yield the files that the journal knows, and None at intervals to check the time."""
        unfinished = list(self.evidence.history.unfinished.values())
        newest = sorted(unfinished, key=lambda one: one.at, reverse=True)
        yield from (self._not_done(one) for one in newest if text in one.record.key)
        if self.evidence.store is None:
            return
        journal = JournalReader(self.evidence.store, self.evidence.settings.name)
        yield from self._journaled(journal, text)
        if text:
            yield from map(self._done, self._named(text, limit))

    def _journaled(self, journal: JournalReader, text: str) -> Iterator[FileRow | None]:
        """Yield the files of the newest entries, after a None for each entry."""
        lookup, last = self.evidence.history.lookup(), self.evidence.history.sequence
        plain = '"' not in text and "\\" not in text and text.isprintable()
        for number in range(last, max(0, last - MOST_ENTRIES), -1):
            entry = None
            with suppress(LakeError):
                body = journal.body(number)
                if body is not None and (not plain or text.encode() in body):
                    entry = journal.entry(number)
            yield None
            for record in () if entry is None else entry.readings:
                is_new = text in record.key and record.key not in self._found
                done = _finished(lookup, record.key) if is_new else None
                if done is None or entry is None:
                    continue
                if done.retracted and self.progress.of(done) is FileState.IN_TABLE:
                    # Until the retraction is committed, the last entry that read it counts.
                    done = replace(done, entry=number, retracted=False)
                at = rfc3339(datetime.fromisoformat(entry.created))
                yield self._done(done, at=at, read=record if number == done.entry else None)

    def _named(self, text: str, limit: int) -> Iterator[IngestedFile]:
        """Yield the files that the journal knows by name, from any entry."""
        history = self.evidence.history
        # Files inherited from an earlier journal are in no entry that read them.
        yield from (one for one in list(history.recent.values()) if text in one.key)
        with suppress(SegmentBroken):
            for segment in reversed(history.segments):
                yield from islice(segment.with_text(text), limit + 1)
            keys = (key for key in list(history.undecided.files) if text in key)
            yield from (one.after for one in map(history.undecided.of, keys) if one is not None)

    def _listed(self, text: str) -> Iterator[FileRow | None]:
        """Yield the files that only the sources have; note a listing that was cut short."""
        for source in self.evidence.settings.sources if text else ():
            self._note = f"not all names of source {source.name} were listed"
            try:
                self.evidence.refuse_other_source(source)
                # Names that no store can be asked for are skipped, without hiding others.
                past_bad_names = ListingRules(skip=lambda _path, _fault: None)
                names = self.evidence.open_reader(source_location(source)).in_order(
                    guide=past_bad_names
                )
                for count, facts in enumerate(names):
                    if count >= MOST_LISTED:
                        self._more = True
                        return
                    key = f"{source.name}:{facts.path}"
                    yield _unread(key, facts, source) if text in key else None
            except LakeError as trouble:
                self._note = f"source {source.name} cannot be listed: {trouble}"
                return
            self._note = None

    def _done(
        self, done: IngestedFile, *, at: str | None = None, read: SourceRecord | None = None
    ) -> FileRow:
        """Return a finished file; `read` is its record in the entry."""
        is_over = done.entry in self.progress.rejected
        state = self.progress.of(done)
        inherited = done.entry is not None and done.entry <= self.evidence.history.awaits
        made = None if done.entry is None or inherited else self.committed(done.entry)
        rows = None
        if done.empty or state is FileState.RETRACTED:
            rows = 0
        elif read is not None:
            later = self.evidence.history.books.replayed.get(f"{done.entry}:{read.key}", 0)
            rows = self._rows_upto(done.entry, read.key) if read.skipped else read.rows + later
        return FileRow(
            path=done.key,
            state=state,
            at=at,
            bytes=done.size,
            rows=rows,
            entry=done.entry,
            version=made.version if made is not None and state in VERSIONED else None,
            reason=NOT_APPLIED if is_over else None,
        )

    def _not_done(self, known: UnfinishedFile) -> FileRow:
        """Return a file that waits, failed, or was given up, by the journal alone."""
        record = known.record
        state, reason = of_unfinished(known, self.progress)
        return FileRow(
            path=record.key,
            state=state,
            at=rfc3339(known.at),
            bytes=record.size,
            rows=self._rows_upto(known.read_in, record.key) if has_a_part_read(known) else None,
            entry=known.entry,
            reason=reason,
        )

    def _rows_upto(self, entry: int | None, key: str) -> int | None:
        """Return the rows read from a file up to an entry; None if unknown."""
        if entry is None or self.evidence.store is None:
            return None
        if self._rows is None:
            journal = JournalReader(self.evidence.store, self.evidence.settings.name)
            self._rows = EntryRows(journal, lambda: self.evidence.history.books.replayed)
        return self._rows.count([(key, entry)])[0]


def _unread(key: str, facts: ObjectFacts, source: SourceSettings) -> FileRow:
    skip = why_not_ours(facts.path, source)
    return FileRow(
        path=key,
        state=FileState.WAITING if skip is None else FileState.SKIPPED,
        at=rfc3339(facts.modified),
        bytes=facts.size,
        reason=None if skip is None else skip.value,
    )


def _finished(lookup: Lookup, key: str) -> IngestedFile | None:
    """Return the journal's record of a finished file; None if it is unfinished or unknown."""
    try:
        before = lookup(key)
    except SegmentBroken:
        return None
    return before.finished if before.unfinished is None else None
