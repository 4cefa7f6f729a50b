"""The totals of a journal's entries, and what is still open in them.

All entries are added in one place, so a ledger that reads every entry and one that continues from a
snapshot arrive at the same totals.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

from blizzard.journal.segments import LedgerTable
from blizzard.journal.standings import EntrySummary, JournalTotals, QuarantineTotals
from blizzard.model.bad_lines import WaitingFile
from lakebed.documents.entry import Entry
from lakebed.documents.records import Resolved, SourceRecord
from lakebed.layout import file_name

MOST_PLACES = 10_000
"""The most places per source for which values without a column are counted separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The totals, whose size does not grow with the journal."""

    totals: JournalTotals = field(default_factory=JournalTotals)
    by_source: Mapping[str, JournalTotals] = field(default_factory=dict)
    quarantine: QuarantineTotals = field(default_factory=QuarantineTotals)
    parquet_files: int = 0
    parquet_bytes: int = 0
    dead_letters: int = 0
    """Lines that were written to the dead letter queue."""
    finished: tuple[str, ...] = ()
    """The sources with finished files."""
    last_batch: EntrySummary | None = None
    last_written: EntrySummary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraction:
    """Rows that an entry takes out of the table unless it is rejected."""

    mark: str
    """The mark by which the log rejects it."""
    rows: int
    erased: bool = False
    """Whether rows are selected by their values rather than their source."""
    read: int = 0
    """Rows that replace them, which never arrive if it is rejected."""
    files: int = 0
    """The data files with these rows."""


@dataclass(slots=True)
class Books:
    """The books up to an entry."""

    sums: Sums = field(default_factory=Sums)
    places: LedgerTable[int] = field(default_factory=lambda: LedgerTable(int))
    """Counts of values without a column, by `source:rescued|dropped:path`."""
    waiting: LedgerTable[WaitingFile] = field(default_factory=lambda: LedgerTable(WaitingFile))
    """Quarantine files with waiting lines, by path."""
    retractions: LedgerTable[Retraction] = field(default_factory=lambda: LedgerTable(Retraction))
    """By entry number."""
    replayed: LedgerTable[int] = field(default_factory=lambda: LedgerTable(int))
    """Rows from replayed lines, by `entry:source:path` of the entry that read the file."""
    most_places: int = MOST_PLACES
    _given_up: list[Entry] = field(default_factory=list)
    """Entries that gave up files which are still in the sums."""
    _sizes: Counter[str] | None = None
    """Number of counted places, by `source:rescued|dropped`."""

    def learn(self, entry: Entry) -> None:
        """Add an entry."""
        if entry.operation == "append" or entry.readings:
            self._count(entry)
        for one in entry.resolved:
            self._count_replayed(one, entry)
        if entry.redone:
            self._given_up.append(entry)
        if entry.left_out:
            self.retractions[str(entry.sequence)] = Retraction(
                mark=entry.replacement_mark,
                rows=entry.left_out,
                erased=not any(record.retracted for record in entry.sources),
                read=sum(file.record_count for file in entry.files),
                files=len(entry.files),
            )
        sums = self.sums
        written = EntrySummary.of(entry)
        self.sums = replace(
            sums,
            quarantine=sums.quarantine.plus(entry),
            parquet_files=sums.parquet_files + len(entry.files),
            parquet_bytes=sums.parquet_bytes + sum(file.size for file in entry.files),
            finished=_with_finished(sums.finished, entry.sources),
            last_batch=written if entry.is_batch else sums.last_batch,
            last_written=written,
        )
        _learn_waiting(self.waiting, entry)

    def _count(self, entry: Entry) -> None:
        """Count what was read for an entry."""
        sums = self.sums
        sources = {record.source for record in entry.readings}
        sources |= {key.partition(":")[0] for one in entry.resolved for key in one.replayed}
        self.sums = replace(
            sums,
            totals=sums.totals.plus(entry),
            by_source={
                **sums.by_source,
                **{name: self._totals_of(name).plus(entry, name) for name in sorted(sources)},
            },
            dead_letters=sums.dead_letters + dead_letters_of(entry),
        )
        for record in entry.readings:
            if record.failure is None and (record.rescued or record.dropped):
                self._add_places(record, 1)

    def _count_replayed(self, one: Resolved, entry: Entry) -> None:
        """Attribute replayed rows to the entry that read their source file."""
        read_in = self.waiting[one.old].entry if one.old in self.waiting else entry.sequence
        for key, rows in one.replayed.items():
            place = f"{read_in}:{key}"
            self.replayed[place] = self.replayed.get(place, 0) + rows

    def _totals_of(self, source: str) -> JournalTotals:
        return self.sums.by_source.get(source, JournalTotals())

    def _add_places(self, record: SourceRecord, sign: int) -> None:
        for kind, counts in (("rescued", record.rescued), ("dropped", record.dropped)):
            of = f"{record.source}:{kind}"
            for path, count in counts.items():
                key = f"{of}:{path}"
                if key not in self.places:
                    if sign < 0 or self._counted_places()[of] >= self.most_places:
                        continue
                    self._counted_places()[of] += 1
                self.places[key] = self.places.get(key, 0) + sign * count

    def _counted_places(self) -> Counter[str]:
        if self._sizes is None:
            self._sizes = Counter(":".join(key.split(":", 2)[:2]) for key in self.places)
        return self._sizes

    def settle(self, entry_of: Callable[[int], Entry]) -> None:
        """Subtract work units whose files were given up: they are read and counted again.

        An entry only names the files, so earlier entries are read, newest first, until all of them
        are found.
        """
        while self._given_up:
            redo = self._given_up[0]
            names, number = set(redo.redone), redo.sequence
            found: list[Entry] = []
            while names and number > 0:
                number -= 1
                entry = entry_of(number)
                met = names & {file_name(file.filename) for file in entry.files}
                names -= met
                found += [entry] if met else []
            for entry in found:
                self._take_out(entry, frozenset(redo.redone))
            self._given_up = self._given_up[1:]

    def _take_out(self, entry: Entry, names: frozenset[str]) -> None:
        sums = self.sums
        units = {file.unit for file in entry.files if file_name(file.filename) in names}
        files = [file for file in entry.files if file.unit in units]
        records = [each for each in entry.sources if each.unit in units and not each.failure]
        own = {
            name: [record for record in records if record.source == name]
            for name in {record.source for record in records}
        }
        self.sums = replace(
            sums,
            totals=sums.totals.minus(records),
            by_source={
                **sums.by_source,
                **{name: self._totals_of(name).minus(given_up) for name, given_up in own.items()},
            },
            parquet_files=sums.parquet_files - len(files),
            parquet_bytes=sums.parquet_bytes - sum(file.size for file in files),
        )
        for record in records:
            self._add_places(record, -1)

    def placed(self, kind: str) -> Counter[str]:
        """Return the counts of `rescued` or `dropped` values by place."""
        found = Counter[str]()
        for key, count in self.places.items():
            _source, of, path = key.split(":", 2)
            if of == kind and count:
                found[path] += count
        return found

    def waiting_files(self) -> tuple[WaitingFile, ...]:
        """Return the quarantine files with waiting lines, oldest first."""
        return tuple(sorted(self.waiting.values(), key=lambda one: one.place))

    @property
    def tables(self) -> dict[str, LedgerTable[Any]]:
        """Return the tables that segments store, by name."""
        return {
            "places": self.places,
            "waiting": self.waiting,
            "retractions": self.retractions,
            "replayed": self.replayed,
        }


def dead_letters_of(entry: Entry) -> int:
    """Return how many lines of the dead letter queue an entry accounts for. Pure."""
    failed = sum(each.failure is not None and not each.gone for each in entry.sources)
    return failed if entry.dlq else 0


def _with_finished(before: tuple[str, ...], records: Iterable[SourceRecord]) -> tuple[str, ...]:
    found = {each.source for each in records if each.complete and not (each.gone or each.failure)}
    return before if found <= {*before} else tuple(sorted({*before, *found}))


def _learn_waiting(waiting: MutableMapping[str, WaitingFile], entry: Entry) -> None:
    """Update the waiting quarantine files with an entry."""
    number = entry.sequence
    for place, file in enumerate(entry.quarantine):
        waiting[file.filename] = WaitingFile(
            file=file, entry=number, source_uris=entry.source_uris, place=(number, place)
        )
    for place, one in enumerate(entry.resolved, start=len(entry.quarantine)):
        before = waiting.pop(one.old, None)
        if one.left is not None and before is not None:
            waiting[one.left.filename] = WaitingFile(
                file=one.left,
                entry=before.entry,
                source_uris=before.source_uris,
                place=(number, place),
            )
