"""Search source files by part of their names; states are those of `blizzard files`.

Unfinished files come first, then those that the journal has finished, then names only in the
sources.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice

from blizzard.answers.answer import NOT_APPLIED, FileProgress, FileState
from blizzard.answers.file_counts import EntryRows
from blizzard.answers.lifecycle import has_a_part_read, of_unfinished
from blizzard.answers.progress import PipelineEvidence
from blizzard.discover.finding import why_not_ours
from blizzard.journal.segments import SegmentBroken
from blizzard.model.settings import SourceSettings
from blizzard.model.source.file import IngestedFile, Recorded, UnfinishedFile
from blizzard.model.stores import source_location
from lakebed.clock import rfc3339
from lakebed.deltalog.versions import Commit
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from lakebed.listing.sort import ListingRules
from lakebed.storage.options import ObjectFacts
from lakebed.units import typed
from liveview.details import FileRow, Files

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
    written: Callable[[int], str | None]
    """Returns when an entry was written, if known."""
    progress: FileProgress
    _note: str | None = None
    _rows: EntryRows = field(init=False)

    def __post_init__(self) -> None:
        store = self.evidence.store
        if store is not None:
            journal = JournalReader(store, self.evidence.settings.name)
            self._rows = EntryRows(journal, lambda: self.evidence.history.books.replayed)

    def find(self, text: str, limit: int) -> Files:
        """Return files whose names contain a text, or the newest files for an empty one.

        The text may be typed as names are printed.
        """
        searched, text = text, typed(text) or text
        found: dict[str, FileRow] = {}
        known = () if self.evidence.store is None else self._known(text, limit)
        for row in chain(known, self._listed(text)):
            found.setdefault(row.path, row)
            if len(found) > limit:
                break
        files = list(found.values())[:limit]
        return Files(files=files, searched=searched, more=len(found) > limit, note=self._note)

    def _known(self, text: str, limit: int) -> Iterator[FileRow]:
        """Yield the files that the journal knows."""
        history = self.evidence.history
        unfinished = sorted(history.unfinished.values(), key=lambda one: one.at, reverse=True)
        yield from (self._not_done(one) for one in unfinished if text in one.record.key)
        lookup = history.lookup()
        with suppress(SegmentBroken):
            for key in self._finished(text, limit):
                before = lookup(key)
                if before.finished is not None and before.unfinished is None:
                    yield self._done(before.finished)

    def _finished(self, text: str, limit: int) -> Iterator[str]:
        """Yield the names of files that any entry finished, the newest first."""
        history = self.evidence.history
        newest = [*history.recent, *history.undecided.files]
        yield from (key for key in reversed(newest) if text in key)
        for segment in reversed(history.segments):
            yield from (one.key for one in islice(segment.with_text(text), limit + 1))

    def _listed(self, text: str) -> Iterator[FileRow]:
        """Yield the files that only the sources have; note a listing that was cut short."""
        lookup = self.evidence.history.lookup()
        for source in self.evidence.settings.sources if text else ():
            try:
                self.evidence.refuse_other_source(source)
                # Names that no store can be asked for are skipped, without hiding others.
                past_bad_names = ListingRules(skip=lambda _path, _fault: None)
                names = self.evidence.open_reader(source_location(source)).in_order(
                    guide=past_bad_names
                )
                for count, facts in enumerate(names):
                    if count >= MOST_LISTED:
                        self._note = f"not all names of source {source.name} were listed"
                        break
                    key = f"{source.name}:{facts.path}"
                    if text in key and lookup(key) == Recorded():
                        yield _unread(key, facts, source)
            except LakeError as trouble:
                self._note = f"source {source.name} cannot be listed: {trouble}"

    def _done(self, done: IngestedFile) -> FileRow:
        """Return a finished file."""
        state, entry = self.progress.of(done), done.entry
        inherited = entry is not None and entry <= self.evidence.history.awaits
        made = None if entry is None or inherited else self.committed(entry)
        is_out = done.empty or state is FileState.RETRACTED
        return FileRow(
            path=done.key,
            state=state,
            at=None if entry is None else self.written(entry),
            bytes=done.size,
            rows=0 if is_out else self._rows_upto(entry, done.key),
            entry=entry,
            version=made.version if made is not None and state in VERSIONED else None,
            reason=NOT_APPLIED if entry in self.progress.rejected else None,
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
        return None if entry is None else self._rows.count([(key, entry)])[0]


def _unread(key: str, facts: ObjectFacts, source: SourceSettings) -> FileRow:
    skip = why_not_ours(facts.path, source)
    return FileRow(
        path=key,
        state=FileState.WAITING if skip is None else FileState.SKIPPED,
        at=rfc3339(facts.modified),
        bytes=facts.size,
        reason=None if skip is None else skip.value,
    )
