"""Source files with more than one outcome, and the totals of a journal. Pure.

Penguin rejects a retraction if another program has rewritten the files that it replaces; its source
files then stay as they were. So the ledger keeps the state before the entry, and beside it what the
entry makes of each file, until the log decides. With `on_change: reingest` earlier objects of a
name are in the table as well; the ledger keeps the last ones of each name.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime

from blizzard.journal.segments import LedgerTable
from blizzard.model.source.file import IngestedFile, UnfinishedFile
from blizzard.model.source.part_way import ChangedPartWay, is_part_way
from lakebed.documents.entry import Entry
from lakebed.documents.records import SourceRecord

Unfinished = MutableMapping[str, UnfinishedFile]
"""Files that failed, or of which a part is unread, by key."""
PassedOver = Callable[[str, Mapping[int, str]], Mapping[int, bool]]
"""Asked with the id of a journal and the marks of its entries, it returns of those that are
committed whether they were passed over."""


def nothing_decided(_journal: str, _marks: Mapping[int, str]) -> Mapping[int, bool]:
    """Answer where there is no log to ask: every retraction counts."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """What a retraction makes of a source file, unless penguin passes it over."""

    entry: int
    mark: str
    """The name by which the log says that the entry had no effect."""
    after: IngestedFile
    """The file as it is with the entry."""
    left: UnfinishedFile | None = None
    """How it was before, where a part of it is in the table and the rest is unread."""
    passed_over: bool = False
    """Whether the log says that nothing was done; kept until something else becomes of the file."""
    read_since: bool = False
    """Whether other content has its name since: all that is open is what stays beside that."""

    @property
    def not_applied(self) -> bool:
        """Whether new rows of it were to come in the place of others, and have not."""
        return self.passed_over and not self.after.retracted


@dataclass(slots=True)
class UndecidedFiles:
    """The files of such retractions, by key."""

    files: dict[str, tuple[Undecided, ...]] = field(default_factory=dict)
    """Each with the retractions that name it, in their order."""

    def of(self, key: str) -> Undecided | None:
        """Return what the last retraction makes of a file; None where it was done, or is none."""
        last = self.files.get(key, (None,))[-1]
        return None if last is None or last.read_since else last

    def counting(self, key: str, *, is_known: bool) -> IngestedFile | None:
        """Return a file as a retraction makes it, where that counts: until it is decided.

        Without effect it does where nothing else is known of the file: one that was to take the
        place of another file is not read by itself.
        """
        one = self.of(key)
        return None if one is None or (one.passed_over and is_known) else one.after

    def taking_back(self, key: str) -> int | None:
        """Return the last entry that takes out what was read before other content, if any waits."""
        last = self.files.get(key, (None,))[-1]
        return last.entry if last is not None and last.read_since else None

    def learn(self, entry: Entry, done: IngestedFile, unfinished: Unfinished) -> None:
        """Keep what a retraction makes of a file; nothing is unfinished of it until it is decided.

        An entry names a file twice that it takes out and puts back with other content.
        """
        before = self.files.get(done.key, ())
        same = next((one for one in before if one.entry == entry.sequence), None)
        left = _taken(unfinished, done.key, entry.sequence) if same is None else same.left
        one = Undecided(entry=entry.sequence, mark=entry.replacement_mark, after=done, left=left)
        self.files[done.key] = (*(each for each in before if each is not same), one)

    def read_since(self, key: str) -> None:
        """Take notice that other content of a file was read: what is not decided stays open."""
        open_still = [one for one in self.files.pop(key, ()) if not one.passed_over]
        if open_still:
            self.files[key] = tuple(replace(one, read_since=True) for one in open_still)

    def settle(self, rejected: Mapping[int, bool], unfinished: Unfinished) -> list[Undecided]:
        """Enter which entries were passed over; return what the others have made of files."""
        done: list[Undecided] = []
        kept: dict[str, tuple[Undecided, ...]] = {}
        for one in [one for those in self.files.values() for one in those]:
            key = one.after.key
            left = None if one.read_since else _taken(unfinished, key, one.entry) or one.left
            match True if one.passed_over else rejected.get(one.entry):
                case None:
                    kept[key] = (*kept.get(key, ()), replace(one, left=left))
                case True if one.read_since:
                    pass  # Nothing was done, and something else has become of the file.
                case True:
                    kept[key] = (replace(one, left=left, passed_over=True),)
                    if left is not None and key not in unfinished:
                        unfinished[key] = left
                case False:
                    kept.pop(key, None)
                    done.append(one)
        self.files = kept
        return done

    @property
    def passed_over(self) -> list[Undecided]:
        """Return what was to become of files and has not, as far as nothing else has since."""
        return [those[-1] for those in self.files.values() if those[-1].passed_over]

    @property
    def marks(self) -> dict[int, str]:
        """Return the marks of the entries that the log is to be asked about."""
        every = (one for those in self.files.values() for one in those)
        return {one.entry: one.mark for one in every if not one.passed_over}


def _taken(unfinished: Unfinished, key: str, entry: int) -> UnfinishedFile | None:
    """Take out what was left of a file before an entry; return it if rows are in the table."""
    known = unfinished.get(key)
    if known is None or (known.entry is not None and known.entry > entry):
        return None
    del unfinished[key]
    return known if known.record.records_read else None


MOST = 100
"""Of how many objects of one name it is kept: the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierObject:
    """What was read under a name before, and is in the table beside what has the name now."""

    file: IngestedFile
    reason: str | None = None
    """Why only a part of it was read, by the code of the failure; None where all of it was."""


FindName = Callable[[str], IngestedFile | None]
"""Finds a file that is done by its key."""
EarlierObjects = tuple[EarlierObject, ...]
"""Those of one name, in the order in which they were read."""


def leave_behind(
    earlier: LedgerTable[EarlierObjects],
    record: SourceRecord,
    unfinished: Mapping[str, UnfinishedFile],
    done: FindName,
) -> None:
    """Keep the objects whose journal record a batch supersedes under the same name.

    The rest of one that was begun is not read any more where another object is read from its first
    line. `done` says which one was read to its end.
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
        reason = ChangedPartWay.code if failure is None else failure.code
        found.append(EarlierObject(file=file, reason=reason))
    if found:
        earlier[record.key] = (*earlier.get(record.key, ()), *found)[-MOST:]


def take_back(earlier: LedgerTable[EarlierObjects], one: Undecided) -> None:
    """Drop the objects of a name whose rows a retraction has taken out: all that came before it.

    What it put in their place is one of them itself, where other content was read since.
    """
    key, own = one.after.key, (EarlierObject(file=one.after),)
    since = (each for each in earlier.pop(key, ()) if (each.file.entry or 0) > one.entry)
    left = (*(own if one.read_since and not one.after.retracted else ()), *since)
    if left:
        earlier[key] = left


def _is_cut(begun: SourceRecord, record: SourceRecord) -> bool:
    return is_part_way(begun) and not begun.redo and not record.skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalTotals:
    """What the entries of a journal add up to."""

    batches: int = 0
    files: int = 0
    """Source files that were read to their end."""
    lines: int = 0
    blank: int = 0
    filtered: int = 0
    quarantined: int = 0
    rows: int = 0
    """Also those that lines in quarantine became later."""
    source_bytes: int = 0
    rescued: int = 0
    """Values that no column takes; they are in `_rescued`."""
    dropped: int = 0
    """Values of undeclared fields that were left out."""

    @classmethod
    def of(cls, records: Sequence[SourceRecord]) -> "JournalTotals":
        """Add up what was read of source files. Pure."""
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
        """Add what was read for an entry, of all sources or of one. Pure."""
        # What is inherited was counted by the journal that it comes from.
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
        """Take out what was read and then given up: it is read again, and counted then. Pure."""
        return self._with(JournalTotals.of(given_up), -1)

    def _with(self, other: "JournalTotals", sign: int) -> "JournalTotals":
        names = (each.name for each in fields(self))
        return JournalTotals(
            **{name: getattr(self, name) + sign * getattr(other, name) for name in names}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineTotals:
    """What has become of the lines in quarantine; together they are all that ever were in it."""

    waiting: int = 0
    replayed: int = 0
    """They are rows by now."""
    filtered: int = 0
    """They were read again, and `source.skip_records` passed them over."""
    discarded: int = 0

    def plus(self, entry: Entry) -> "QuarantineTotals":
        """Add what an entry says. Pure."""
        settled = sum(one.lines for one in entry.resolved)
        new = sum(file.record_count for file in entry.quarantine)
        rows, filtered = replayed_rows(entry), sum(one.passed_over for one in entry.resolved)
        # Lines of source files that are read again are counted again.
        discarded = 0 if entry.redone else settled - rows - filtered
        return QuarantineTotals(
            waiting=self.waiting + new - settled,
            replayed=self.replayed + rows,
            filtered=self.filtered + filtered,
            discarded=self.discarded + discarded,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySummary:
    """An entry in a few numbers."""

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
    """Files that were not done, and are not in their source any more."""

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
    """Count the lines in quarantine, of all sources or of one, that an entry made rows of. Pure."""
    return sum(
        rows
        for one in entry.resolved
        for key, rows in one.replayed.items()
        if source in (None, key.partition(":")[0])
    )
