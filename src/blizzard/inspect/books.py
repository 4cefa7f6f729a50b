"""What a journal adds up to, entry by entry."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from blizzard.journal.state import History
from lakebed.documents.entry import Entry, SourceRecord
from lakebed.journal import JournalReader
from lakebed.layout import file_name
from lakebed.storage.store import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What the entries of a journal add up to."""

    batches: int = 0
    files: int = 0
    """Source files that were read to their end."""
    lines: int = 0
    blank: int = 0
    filtered: int = 0
    quarantined: int = 0
    rows: int = 0
    source_bytes: int = 0
    rescued: int = 0
    """Values that no column takes; they are in `_rescued`."""
    dropped: int = 0
    """Values of undeclared fields that were left out."""

    def plus(self, entry: Entry, source: str | None = None) -> "Totals":
        """Add what an entry says, or what it says of one source. Pure."""
        # What is inherited was counted by the journal that it comes from.
        records = [
            record
            for record in entry.sources
            if entry.kind == "batch" and record.failure is None and source in (None, record.source)
        ]
        return Totals(
            batches=self.batches + (entry.kind == "batch" and (source is None or bool(records))),
            files=self.files + sum(record.complete for record in records),
            lines=self.lines + sum(record.lines for record in records),
            blank=self.blank + sum(record.blank for record in records),
            filtered=self.filtered + sum(record.filtered for record in records),
            quarantined=self.quarantined + sum(record.quarantined for record in records),
            rows=self.rows + sum(record.rows for record in records),
            source_bytes=self.source_bytes + sum(each.size for each in records if each.complete),
            rescued=self.rescued + sum(sum(each.rescued.values()) for each in records),
            dropped=self.dropped + sum(sum(each.dropped.values()) for each in records),
        )

    def minus(self, given_up: Sequence[SourceRecord]) -> "Totals":
        """Take out what was read and then given up: it is read again, and counted then. Pure."""
        return replace(
            self,
            files=self.files - sum(record.complete for record in given_up),
            lines=self.lines - sum(record.lines for record in given_up),
            blank=self.blank - sum(record.blank for record in given_up),
            filtered=self.filtered - sum(record.filtered for record in given_up),
            quarantined=self.quarantined - sum(record.quarantined for record in given_up),
            rows=self.rows - sum(record.rows for record in given_up),
            source_bytes=self.source_bytes - sum(each.size for each in given_up if each.complete),
            rescued=self.rescued - sum(sum(each.rescued.values()) for each in given_up),
            dropped=self.dropped - sum(sum(each.dropped.values()) for each in given_up),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """What has become of the lines in quarantine; together they are all that ever were in it."""

    waiting: int = 0
    replayed: int = 0
    """They are rows by now."""
    filtered: int = 0
    """They were read again, and `source.skip_records` passed them over."""
    discarded: int = 0

    def plus(self, entry: Entry) -> "Quarantine":
        """Add what an entry says. Pure."""
        settled = sum(one.lines for one in entry.resolved)
        new = sum(file.record_count for file in entry.quarantine)
        return Quarantine(
            waiting=self.waiting + new - settled,
            replayed=self.replayed + _replayed(entry),
            filtered=self.filtered + sum(one.passed_over for one in entry.resolved),
            discarded=self.discarded + (settled if entry.kind == "discard" else 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesAt:
    """How many values stood in one place of the records."""

    path: str
    values: int


@dataclass(slots=True)
class Paths:
    """Where values stood that have no column, with how many of each."""

    rescued: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def plus(self, record: SourceRecord) -> None:
        """Add those of a source file that was read."""
        self.rescued.update(record.rescued)
        self.dropped.update(record.dropped)

    def minus(self, record: SourceRecord) -> None:
        """Take out those of a source file that was read and then given up."""
        self.rescued.subtract(record.rescued)
        self.dropped.subtract(record.dropped)


def most_frequent(counts: Mapping[str, int], most: int) -> tuple[ValuesAt, ...]:
    """Return the places with the most values, of several with as many the first by name. Pure."""
    found = sorted((-count, path) for path, count in counts.items() if count)
    return tuple(ValuesAt(path=path, values=-count) for count, path in found[:most])


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """The highest name in a folder that was read. Lower ones may still come, and are found."""

    folder: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
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
    def of(cls, entry: Entry) -> "Batch":
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
            rows=sum(record.rows for record in done) + _replayed(entry),
            parquet_files=len(entry.files),
            parquet_bytes=sum(file.size for file in entry.files),
            gone=len(entry.sources) - len(there),
        )


def _replayed(entry: Entry) -> int:
    return sum(one.rows for one in entry.resolved) if entry.kind == "replay" else 0


class Books:
    """What one journal says so far; asked again, only what is new is read."""

    def __init__(self) -> None:
        self.history = History()
        self.digests: list[str] = []
        self.totals = Totals()
        self.quarantine = Quarantine()
        self.parquet_files = 0
        self.parquet_bytes = 0
        self.by_source: dict[str, Totals] = {}
        self.paths: dict[str, Paths] = {}
        """Where values without a column stood, by source."""
        self.marks: dict[str, dict[str, str]] = {}
        """The highest name of each folder of each source."""
        self.last_batch: Batch | None = None
        self.last_written: Batch | None = None

    def read(self, store: Reader, pipeline: str) -> None:
        """Read the receipt, then the entries since the last time."""
        journal = JournalReader(store, pipeline)
        self.history.receipt = journal.receipt()
        for stored in journal.stored_entries(self.history.sequence):
            entry = stored.entry
            self.history.learn(entry, stored.body)
            self.digests.append(stored.digest)
            self.totals = self.totals.plus(entry)
            self.quarantine = self.quarantine.plus(entry)
            self.parquet_files += len(entry.files)
            self.parquet_bytes += sum(file.size for file in entry.files)
            for source in {record.source for record in entry.sources}:
                before = self.by_source.get(source, Totals())
                self.by_source[source] = before.plus(entry, source)
            if entry.redone:
                self._give_up(journal, entry)
            for record in entry.sources:
                if record.failure is None:
                    self._pass(record.source, record.path)
                    if entry.kind == "batch":
                        self.paths.setdefault(record.source, Paths()).plus(record)
            self.last_written = Batch.of(entry)
            if entry.kind == "batch":
                self.last_batch = self.last_written

    def _give_up(self, journal: JournalReader, redo: Entry) -> None:
        """Take out what the units wrote whose files a redo gives up."""
        names = frozenset(redo.redone)
        for entry in journal.entries():
            if entry.sequence >= redo.sequence:
                return
            units = {file.unit for file in entry.files if file_name(file.filename) in names}
            files = [file for file in entry.files if file.unit in units]
            records = [each for each in entry.sources if each.unit in units and not each.failure]
            self.totals = self.totals.minus(records)
            self.parquet_files -= len(files)
            self.parquet_bytes -= sum(file.size for file in files)
            for source in {record.source for record in records}:
                own = [record for record in records if record.source == source]
                self.by_source[source] = self.by_source[source].minus(own)
                for record in own:
                    self.paths[source].minus(record)

    def _pass(self, source: str, path: str) -> None:
        folder, _, name = path.rpartition("/")
        marks = self.marks.setdefault(source, {})
        marks[folder] = max(name, marks.get(folder, ""))

    def watermarks(self, source: str) -> tuple[Watermark, ...]:
        """Return how far the folders of a source are read, the last one first."""
        marks = self.marks.get(source, {})
        return tuple(
            Watermark(folder=folder, name=marks[folder]) for folder in sorted(marks, reverse=True)
        )
