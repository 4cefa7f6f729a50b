"""Source files with more than one outcome, and the totals of a journal. Pure.

Penguin rejects a retraction if another program has rewritten the files that it replaces; its source
files then keep their state. So until the log decides, the ledger keeps the states before and after
the entry. With `on_change: reingest` earlier objects of a name stay in the table; the ledger keeps
the last ones of each name.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime

from blizzard.model.source.file import IngestedFile, UnfinishedFile
from blizzard.model.source.partly_read import PartialFileChanged, is_partly_read
from lakebed.documents.entry import Entry
from lakebed.documents.records import SourceRecord

Unfinished = MutableMapping[str, UnfinishedFile]
"""Files that failed or are partly unread, by key."""
RejectionLookup = Callable[[str, Mapping[int, str]], Mapping[int, bool]]
"""Given a journal id and the marks of entries, returns whether each committed one was rejected."""


def nothing_decided(_journal: str, _marks: Mapping[int, str]) -> Mapping[int, bool]:
    """Stand-in without a log: no retraction is decided, so every one counts."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """The effect of a retraction on a source file, unless penguin rejects it."""

    entry: int
    mark: str
    """The mark by which the log rejects the entry."""
    after: IngestedFile
    """The file after the entry."""
    left: UnfinishedFile | None = None
    """The state before, if it was partly read."""
    rejected: bool = False
    """Whether the log rejected it; kept until the file changes otherwise."""
    read_since: bool = False
    """Whether other content of the name was read since; only the old rows are undecided then."""

    @property
    def not_applied(self) -> bool:
        """Whether it is a rejected replacement."""
        return self.rejected and not self.after.retracted


@dataclass(slots=True)
class UndecidedFiles:
    """The files of undecided retractions, by key."""

    files: dict[str, tuple[Undecided, ...]] = field(default_factory=dict)
    """Each with its retractions, in order."""

    def of(self, key: str) -> Undecided | None:
        """Return the effect of a file's last retraction; None if decided or without one."""
        last = self.files.get(key, (None,))[-1]
        return None if last is None or last.read_since else last

    def counting(self, key: str, *, is_known: bool) -> IngestedFile | None:
        """Return a file after its retraction, as long as that is undecided.

        A rejected one still counts if nothing else is known of the file: a file that was to replace
        another one is not read by itself.
        """
        one = self.of(key)
        return None if one is None or (one.rejected and is_known) else one.after

    def learn(self, entry: Entry, done: IngestedFile, unfinished: Unfinished) -> None:
        """Record the effect of a retraction on a file, which is not unfinished until it is decided.

        An entry names a file twice if it replaces its content.
        """
        before = self.files.get(done.key, ())
        same = next((one for one in before if one.entry == entry.sequence), None)
        left = _taken(unfinished, done.key, entry.sequence) if same is None else same.left
        one = Undecided(entry=entry.sequence, mark=entry.replacement_mark, after=done, left=left)
        self.files[done.key] = (*(each for each in before if each is not same), one)

    def name_object(self, same: IngestedFile) -> bool:
        """Record the present object of the content of an undecided entry.

        Returns whether that is new content, so that nothing else of the name is that object.
        """
        every = self.files.get(same.key, ())
        fits = [each for each in every if not each.read_since and each.after.size == same.size]
        one = fits[-1] if fits else None
        if one is None:
            return False
        now = replace(one, after=replace(one.after, etag=same.etag))
        self.files[same.key] = tuple(now if each is one else each for each in every)
        return not one.after.retracted

    def read_since(self, key: str) -> None:
        """Record that other content of a file was read; undecided retractions stay."""
        open_still = [one for one in self.files.pop(key, ()) if not one.rejected]
        if open_still:
            self.files[key] = tuple(replace(one, read_since=True) for one in open_still)

    def settle(self, rejected: Mapping[int, bool], unfinished: Unfinished) -> list[Undecided]:
        """Apply which entries were rejected; return the effects of the others."""
        done: list[Undecided] = []
        kept: dict[str, tuple[Undecided, ...]] = {}
        for one in [one for undecided in self.files.values() for one in undecided]:
            key = one.after.key
            left = None if one.read_since else _taken(unfinished, key, one.entry) or one.left
            match True if one.rejected else rejected.get(one.entry):
                case None:
                    kept[key] = (*kept.get(key, ()), replace(one, left=left))
                case True if one.read_since:
                    pass  # Rejected, and the file has other content since.
                case True:
                    kept[key] = (replace(one, left=left, rejected=True),)
                    if left is not None and key not in unfinished:
                        unfinished[key] = left
                case False:
                    kept.pop(key, None)
                    done.append(one)
        self.files = kept
        return done

    @property
    def rejected(self) -> list[Undecided]:
        """The rejected effects on files that did not change otherwise since."""
        return [undecided[-1] for undecided in self.files.values() if undecided[-1].rejected]

    @property
    def marks(self) -> dict[int, str]:
        """The marks of undecided entries, for the lookup in the log."""
        every = (one for undecided in self.files.values() for one in undecided)
        return {one.entry: one.mark for one in every if not one.rejected}


def _taken(unfinished: Unfinished, key: str, entry: int) -> UnfinishedFile | None:
    """Remove a file's unfinished state from before an entry; return it if it was partly read."""
    known = unfinished.get(key)
    if known is None or (known.entry is not None and known.entry > entry):
        return None
    del unfinished[key]
    return known if known.record.records_read else None


MOST = 100
"""The most earlier objects to keep per name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierObject:
    """An earlier object of a name whose rows are in the table beside the present one's."""

    file: IngestedFile
    reason: str | None = None
    """The failure code if only a part of it was read; None if all of it was."""


FindName = Callable[[str], IngestedFile | None]
"""Finds a finished file by key."""
EarlierObjects = tuple[EarlierObject, ...]
"""The earlier objects of one name, in the order of reading."""


def leave_behind(
    earlier: MutableMapping[str, EarlierObjects],
    record: SourceRecord,
    unfinished: Mapping[str, UnfinishedFile],
    done: FindName,
) -> None:
    """Keep the objects that a batch supersedes under the same name.

    The rest of a partly read object is dropped if another object is read from its first line.
    `done` finds the object that was read to its end.
    """
    found: list[EarlierObject] = []
    known = unfinished.get(record.key)
    is_done = record.failure is None and record.complete
    is_again = known is not None and known.record.redo
    if record.reingested and is_done and not is_again:
        file = done(record.key)
        found += [] if file is None or file.retracted else [EarlierObject(file=file)]
    if known is not None and _is_cut(known.record, record):
        begun, failure = known.record, known.record.failure
        entry = known.entry if known.read_in is None else known.read_in
        file = IngestedFile(key=record.key, size=begun.size, etag=begun.etag, entry=entry)
        reason = PartialFileChanged.code if failure is None else failure.code
        found.append(EarlierObject(file=file, reason=reason))
    if found:
        earlier[record.key] = (*earlier.get(record.key, ()), *found)[-MOST:]


def take_back(earlier: MutableMapping[str, EarlierObjects], one: Undecided) -> None:
    """Drop the earlier objects whose rows a retraction took out: all that precede it.

    If other content was read since, the replacement itself becomes an earlier object.
    """
    key, own = one.after.key, (EarlierObject(file=one.after),)
    since = (each for each in earlier.pop(key, ()) if (each.file.entry or 0) > one.entry)
    left = (*(own if one.read_since and not one.after.retracted else ()), *since)
    if left:
        earlier[key] = left


def _is_cut(begun: SourceRecord, record: SourceRecord) -> bool:
    return is_partly_read(begun) and not begun.redo and not record.skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalTotals:
    """The totals of a journal's entries."""

    batches: int = 0
    files: int = 0
    """Source files that were read to their end."""
    lines: int = 0
    blank: int = 0
    filtered: int = 0
    quarantined: int = 0
    rows: int = 0
    """Rows, including those from replayed lines."""
    source_bytes: int = 0
    rescued: int = 0
    """Values that no column takes; they are in `_rescued`."""
    dropped: int = 0
    """Values of undeclared fields that were left out."""

    @classmethod
    def of(cls, records: Sequence[SourceRecord]) -> "JournalTotals":
        """Sum up records of source files. Pure."""
        return cls(
            files=sum(record.complete for record in records),
            lines=sum(record.lines for record in records),
            blank=sum(record.blank for record in records),
            filtered=sum(record.filtered for record in records),
            quarantined=sum(record.quarantined for record in records),
            rows=sum(record.rows for record in records),
            source_bytes=sum(record.size for record in records if record.complete),
            rescued=sum(sum(record.rescued.values()) for record in records if record.rescued),
            dropped=sum(sum(record.dropped.values()) for record in records if record.dropped),
        )

    def plus(self, entry: Entry, source: str | None = None) -> "JournalTotals":
        """Add the reads of an entry, of all sources or of one. Pure."""
        # Inherited records were counted by the original journal.
        records = [
            record
            for record in entry.readings
            if record.failure is None and source in (None, record.source)
        ]
        is_batch = entry.is_batch and (source is None or bool(records))
        read = JournalTotals.of(records)
        rows = read.rows + replayed_rows(entry, source)
        return self._with(replace(read, batches=int(is_batch), rows=rows), 1)

    def minus(self, given_up: Sequence[SourceRecord]) -> "JournalTotals":
        """Subtract given-up reads, which are counted when read again. Pure."""
        return self._with(JournalTotals.of(given_up), -1)

    def _with(self, other: "JournalTotals", sign: int) -> "JournalTotals":
        names = (each.name for each in fields(self))
        return JournalTotals(
            **{name: getattr(self, name) + sign * getattr(other, name) for name in names}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineTotals:
    """Quarantined lines by outcome, which add up to all that were ever quarantined."""

    waiting: int = 0
    replayed: int = 0
    """Lines that became rows."""
    filtered: int = 0
    """Lines that `source.skip_records` filtered when they were read again."""
    discarded: int = 0

    def plus(self, entry: Entry) -> "QuarantineTotals":
        """Add an entry. Pure."""
        settled = sum(one.lines for one in entry.resolved)
        new = sum(file.record_count for file in entry.quarantine)
        rows, filtered = replayed_rows(entry), sum(one.filtered_lines for one in entry.resolved)
        # Lines of files that are read again will be counted again.
        discarded = 0 if entry.redone else settled - rows - filtered
        return QuarantineTotals(
            waiting=self.waiting + new - settled,
            replayed=self.replayed + rows,
            filtered=self.filtered + filtered,
            discarded=self.discarded + discarded,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySummary:
    """The key figures of an entry."""

    entry: int
    kind: str
    at: datetime
    run: str
    files: int
    failed: int
    rows: int
    parquet_files: int
    parquet_bytes: int
    gone: int = 0
    """Unfinished files that left their source."""

    @classmethod
    def of(cls, entry: Entry) -> "EntrySummary":
        """Sum up an entry. Pure."""
        there = [record for record in entry.sources if not record.gone]
        done = [record for record in there if record.failure is None]
        return cls(
            entry=entry.sequence,
            kind=entry.kind,
            at=datetime.fromisoformat(entry.created),
            run=entry.run,
            files=len(done),
            failed=len(there) - len(done),
            rows=sum(record.rows for record in done if not record.retracted) + replayed_rows(entry),
            parquet_files=len(entry.files),
            parquet_bytes=sum(file.size for file in entry.files),
            gone=sum(record.gone and not record.discarded for record in entry.sources),
        )


def replayed_rows(entry: Entry, source: str | None = None) -> int:
    """Count the quarantined lines that an entry turned into rows, by source or in all. Pure."""
    return sum(
        rows
        for one in entry.resolved
        for key, rows in one.replayed.items()
        if source in (None, key.partition(":")[0])
    )
