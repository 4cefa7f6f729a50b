"""The state of a journal: its identity, its position, and which files are known.

A start reads the newest snapshot and the entries after it. Snapshots and segments are derived:
where one is missing, damaged, or does not match its entry, every entry is read instead. An entry
that cannot be read stops the run.
"""

from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any

from blizzard.journal.books import Books
from blizzard.journal.segments import Blocks, Cursor, LedgerTable, Segment, SegmentBroken
from blizzard.journal.standings import (
    EarlierObjects,
    EntrySummary,
    RejectionLookup,
    UndecidedFiles,
    leave_behind,
    nothing_decided,
    take_back,
)
from blizzard.model.source.file import UNKNOWN, IngestedFile, Recorded, UnfinishedFile
from lakebed import layout
from lakebed.columns.schema import Schema
from lakebed.documents.entry import Entry, Receipt, digest
from lakebed.documents.records import SourceRecord
from lakebed.errors import DocumentUnreadable
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader


@dataclass(slots=True)
class FirstReads:
    """When sources were first read, by the entries, corrected for clocks that were ahead."""

    since: dict[str, datetime] = field(default_factory=dict)
    """When each source was first read, by its name."""
    opened: datetime | None = None
    """The store's time of entry 0, once looked up."""
    peak: datetime | None = None
    """The latest time of any entry."""
    stepped_back: timedelta = timedelta(0)
    """The largest step back in time between entries: the clock was ahead by at least that."""

    def learn(self, entry: Entry, at: datetime) -> None:
        """Record the sources of an entry and its time."""
        self._correct_clock(at)
        for name, first in (entry.inherits.since if entry.inherits else {}).items():
            self.since.setdefault(name, datetime.fromisoformat(first))
        for name in entry.source_uris:
            self.since.setdefault(name, at)

    def _correct_clock(self, at: datetime) -> None:
        """Correct the known times after a clock that was ahead."""
        more = _step(self.peak, at) - self.stepped_back
        if more > timedelta(0):
            self.stepped_back += more
            self.since = {name: first - more for name, first in self.since.items()}
        self.peak = at if self.peak is None else max(self.peak, at)

    def of(self, store: Reader, pipeline: str, source: str, *, now: datetime) -> datetime | None:
        """Return when a source was first read; None if never.

        The clock may have been ahead, and a window from then would hide files. So the earliest time
        counts: by the entries, by our clock now or, for sources of entry 0, by the store.
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
    """Return by how much a time precedes the latest one."""
    return timedelta(0) if peak is None else max(timedelta(0), peak - at)


NEWEST = 200
"""The number of latest entries whose summaries a ledger keeps."""


@dataclass(slots=True, kw_only=True)
class LedgerState:
    """The part of a ledger that a snapshot stores beside tables and names."""

    journal: str | None = None
    sequence: int = -1
    digest: str | None = None
    """The digest of the last entry, to be repeated by the next one."""
    source_names: dict[str, str] = field(default_factory=dict)
    """The name of each source by every URI at which it was read."""
    source_uris: dict[str, str] = field(default_factory=dict)
    """The last URI of each source, by name."""
    first_reads: FirstReads = field(default_factory=FirstReads)
    """When each source was first read."""
    last_batch: int = -1
    """The last batch with files, or the entry that opened the journal."""
    columns: Schema | None = None
    """The columns found in the data; None if all are declared."""
    awaits: int = 0
    """The last entry of inherited knowledge, required before the journal may continue."""
    moving: str | None = None
    """The source that moved last."""
    heir: str | None = None
    """The pipeline that took this journal over."""
    undecided: UndecidedFiles = field(default_factory=UndecidedFiles)
    """The effects of retractions on files that penguin may still reject."""


@dataclass(slots=True, kw_only=True)
class Ledger(LedgerState):
    """The knowledge from all entries that later batches need."""

    store: Reader | None = None
    """The table's directory; None if it does not exist yet."""
    pipeline: str = ""
    receipt: Receipt | None = None
    """The receipt of penguin's last commit, read before the entries."""
    unfinished: LedgerTable[UnfinishedFile] = field(
        default_factory=lambda: LedgerTable(UnfinishedFile)
    )
    """Files that failed or are partly unread."""
    rejections: RejectionLookup = nothing_decided
    """Looks up in the log which retractions were rejected; until then they count."""
    books: Books = field(default_factory=Books)
    """The totals of the entries."""
    earlier: LedgerTable[EarlierObjects] = field(
        default_factory=lambda: LedgerTable(EarlierObjects)
    )
    """Earlier objects of file names whose rows are in the table."""
    recent: dict[str, IngestedFile] = field(default_factory=dict)
    """Files finished since the segments were written."""
    newest: dict[int, EntrySummary] = field(default_factory=dict)
    """Summaries of the last entries, by number."""
    segments: list[Segment] = field(default_factory=list)
    """Finished files and the tables, oldest segment first."""
    kept: int | None = None
    """The entry of the last snapshot, read or written."""
    rebuilt: str | None = None
    """Why the snapshot was unusable; None if it was not."""
    blocks: Blocks = field(default_factory=Blocks)
    _names: "Lookup | None" = None
    _last: Entry | None = None

    @property
    def reader(self) -> JournalReader:
        """The reader of the entries."""
        if self.store is None:
            raise AssertionError("a ledger is read from a table's directory")
        return JournalReader(self.store, self.pipeline)

    @property
    def place(self) -> str:
        """The journal's folder, for error messages."""
        folder = layout.journal_folder(self.pipeline)
        return folder if self.store is None else self.store.describe(folder)

    @property
    def last(self) -> Entry | None:
        """The last batch with files, the only entry that may have to be handed off again.

        Without one, the entry that opened the journal.
        """
        if self.last_batch >= 0 and (self._last is None or self._last.sequence != self.last_batch):
            self._last = self.reader.listed(self.last_batch).entry
        return self._last

    def learn(self, entry: Entry, body: bytes) -> None:
        """Add the next entry; raise if it does not follow the last one."""
        path = layout.journal_entry(entry.pipeline, entry.sequence)
        if entry.sequence != self.sequence + 1 or entry.previous != self.digest:
            raise DocumentUnreadable(
                "this entry does not follow the one before it: the journal was changed by hand "
                "or rolled back; restore it from a backup, or start a new journal with blizzard "
                "journal new",
                path=path,
            )
        if self.journal not in (None, entry.journal):
            raise DocumentUnreadable("this entry belongs to another journal", path=path)
        self.journal = entry.journal
        self.sequence = entry.sequence
        self.digest = digest(body)
        at = datetime.fromisoformat(entry.created)
        self.first_reads.learn(entry, at)
        self._learn_sources(entry)
        self.awaits = entry.awaits or self.awaits
        self.moving = entry.moved or self.moving
        self.heir = entry.heir or self.heir
        if (entry.files and entry.is_batch) or self.last_batch < 0:
            self.last_batch, self._last = entry.sequence, entry
        if entry.data_files or entry.sequence == 0:
            self.columns = entry.columns
        self.books.learn(entry)
        if self.books.sums.last_written is not None:
            self.newest[entry.sequence] = self.books.sums.last_written
        self.newest.pop(entry.sequence - NEWEST, None)
        for record in entry.sources:
            # Most files are new: skip the lookup if it cannot find anything.
            is_known = record.reingested or self.unfinished
            if is_known and entry.is_batch and not record.gone:
                leave_behind(self.earlier, record, self.unfinished, self.known_name)
            if record.gone:
                self._leave(record, at, entry.sequence)
            elif record.failure is None and record.complete:
                self._finish(record, entry)
            else:
                self.unfinished[record.key] = self._unfinished(record, at, entry.sequence)

    def _learn_sources(self, entry: Entry) -> None:
        """Record the locations of the sources of an entry."""
        gone, names = entry.moved, self.source_names
        if gone is not None and entry.source_uris.get(gone) != self.source_uris.get(gone):
            # The source moved: its old location may have other files now.
            self.source_names = {uri: name for uri, name in names.items() if name != gone}
            self.source_uris.pop(gone, None)
        self.source_names |= {uri: name for name, uri in entry.source_uris.items()}
        self.source_uris |= entry.source_uris

    @property
    def tables(self) -> dict[str, LedgerTable[Any]]:
        """The tables held in memory and written to segments as changes, by name."""
        return {"unfinished": self.unfinished, "earlier": self.earlier, **self.books.tables}

    def settle(self, rejections: RejectionLookup | None = None) -> None:
        """Apply the outcomes of retractions; a rejected one changes nothing."""
        marks, ask = self.undecided.marks, rejections or self.rejections
        rejected = ask(self.journal, marks) if marks and self.journal is not None else {}
        for one in self.undecided.settle(rejected, self.unfinished) if rejected else ():
            if not one.read_since:
                self.recent[one.after.key] = one.after
            take_back(self.earlier, one)

    def settle_books(self) -> None:
        """Subtract given-up work from the books, reading the entries that wrote it."""
        self.books.settle(lambda number: self.reader.listed(number).entry)

    @property
    def bad_lines(self) -> int:
        """The number of lines in quarantine that were neither replayed nor discarded."""
        return self.books.sums.quarantine.waiting

    def _unfinished(self, record: SourceRecord, at: datetime, entry: int) -> UnfinishedFile:
        """Return the state of a file that failed or is partly unread."""
        before = self.unfinished.get(record.key)
        failed, asked = record.failure is not None, record.retry or record.gone
        has_failed = before is not None and before.record.failure and not before.record.gone
        # A retry request or a deletion is not a new failure.
        failed_in = (before.failed_in if before else None) if asked else entry
        since = before.since if before and has_failed else at
        read_in = before.read_in if before and record.skipped else None
        return UnfinishedFile(
            record=record,
            at=at,
            entry=entry,
            since=since if failed else None,
            failed_in=failed_in if failed else None,
            read_in=entry if record.lines and not failed else read_in,
        )

    def _finish(self, record: SourceRecord, entry: Entry) -> None:
        key = record.key
        done = IngestedFile(
            key=key,
            size=record.size,
            etag=record.etag,
            empty=record.gave_no_row,
            entry=entry.sequence,
            retracted=record.retracted,
        )
        if entry.operation == "overwrite":
            self.undecided.learn(entry, done, self.unfinished)
            return
        is_read = entry.operation != "control"
        if not is_read:  # The entry names the present object of content that was read before.
            if self.undecided.name_object(done):
                return
            before = self.known_name(key)
            done = done if before is None else replace(before, size=done.size, etag=done.etag)
        self.recent[key] = done
        if self.unfinished:
            self.unfinished.pop(key, None)
        if is_read and self.undecided.files:
            self.undecided.read_since(key)

    def _leave(self, record: SourceRecord, at: datetime, entry: int) -> None:
        """Stop waiting for a file that is gone; if it comes back, it is a new file.

        Its part in the table stays known, so that it is never read twice. A failure also stays
        known until an operator gives the file up.
        """
        known = self.unfinished.pop(record.key, None)
        if known is None:  # The record is inherited.
            known = UnfinishedFile(record=record, at=at, entry=entry)
        last = known.record
        if last.redo or last.records_read or last.failure is not None:
            left = replace(last, gone=True, retry=False, discarded=record.discarded)
            self.unfinished[record.key] = replace(known, record=left, at=at)

    def has_files(self, source: str) -> bool:
        """Whether any file of a source is known."""
        start = f"{source}:"
        return source in self.books.sums.finished or any(
            key.startswith(start)
            and (not known.record.gone or known.record.redo or known.record.records_read)
            for key, known in self.unfinished.items()
        )

    def lookup(self) -> "Lookup":
        """Return a lookup of many names, which takes one pass if they are sorted."""
        return Lookup(self)

    def known_name(self, key: str) -> IngestedFile | None:
        """Return a finished file; None if unfinished or if its segment is damaged."""
        if self._names is None:
            self._names = Lookup(self)
        try:
            return self._names.named(key)
        except SegmentBroken:
            return None

    def first_read(self, source: str, *, now: datetime) -> datetime | None:
        """Return when a source was first read; None if never."""
        if self.store is None:
            return None
        return self.first_reads.of(self.store, self.pipeline, source, now=now)

    def become(self, other: "Ledger") -> None:
        """Become a copy of another ledger of the same pipeline."""
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))
        self._names = None


class Lookup:
    """Looks up names in memory and in the segments."""

    def __init__(self, history: Ledger) -> None:
        self._history = history
        self._segments: list[Segment] = []
        self._cursors: list[Cursor] = []

    def __call__(self, key: str) -> Recorded:
        """Return what is known of a source file."""
        finished, unfinished = self.named(key), self._history.unfinished.get(key)
        is_known = finished is not None or unfinished is not None
        undecided = self._history.undecided.of(key)
        is_rejected = undecided is not None and undecided.not_applied and not is_known
        finished = self._history.undecided.counting(key, is_known=is_known) or finished
        if unfinished is not None and unfinished.record.redo:
            finished = None  # Its data files are gone: it is read again.
        if finished is None and unfinished is None:
            return UNKNOWN
        return Recorded(unfinished=unfinished, finished=finished, is_rejected=is_rejected)

    def named(self, key: str) -> IngestedFile | None:
        """Return a finished file, ignoring undecided retractions."""
        history = self._history
        if self._segments is not history.segments:
            # Names moved from memory to a segment since the last lookup.
            self._segments = history.segments
            self._cursors = [Cursor(one, history.blocks) for one in reversed(self._segments)]
        found = history.recent.get(key)
        if found is None and self._cursors:
            answers = (cursor.find(key) for cursor in self._cursors)
            found = next((name for name in answers if name is not None), None)
        return found
