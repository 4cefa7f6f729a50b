"""The books of a journal: what its entries add up to, and what is still open in them.

Entries are entered in one place, by their actions, so that a ledger that reads every entry and one
that goes on from a snapshot come to the same.
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
"""Of how many places of each source values without a column are counted one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The numbers of the books: as many of them after a year as after a day."""

    totals: JournalTotals = field(default_factory=JournalTotals)
    by_source: Mapping[str, JournalTotals] = field(default_factory=dict)
    quarantine: QuarantineTotals = field(default_factory=QuarantineTotals)
    parquet_files: int = 0
    parquet_bytes: int = 0
    dead_letters: int = 0
    """Lines that were written to the dead letter queue."""
    finished: tuple[str, ...] = ()
    """The sources with files that are done."""
    last_batch: EntrySummary | None = None
    last_written: EntrySummary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraction:
    """Rows that an entry takes out of the table, if it has an effect."""

    mark: str
    """By this the log says that it has none."""
    rows: int
    erased: bool = False
    """Whether they go because of what they hold, not of where they came from."""
    read: int = 0
    """Rows that come in their place; without effect they never do."""
    files: int = 0
    """The data files that hold those."""


@dataclass(slots=True)
class Books:
    """The books up to an entry."""

    sums: Sums = field(default_factory=Sums)
    places: LedgerTable[int] = field(default_factory=lambda: LedgerTable(int))
    """How many values without a column stood in each place, by `source:rescued|dropped:path`."""
    waiting: LedgerTable[WaitingFile] = field(default_factory=lambda: LedgerTable(WaitingFile))
    """Quarantine files with lines that wait, by their paths."""
    retractions: LedgerTable[Retraction] = field(default_factory=lambda: LedgerTable(Retraction))
    """By the numbers of their entries."""
    replayed: LedgerTable[int] = field(default_factory=lambda: LedgerTable(int))
    """Rows that bad lines became later, by `entry:source:path` of the entry that read the file."""
    most_places: int = MOST_PLACES
    _given_up: list[Entry] = field(default_factory=list)
    """Entries whose given up files are still in the sums."""
    _sizes: Counter[str] | None = None
    """How many places are counted, by `source:rescued|dropped`."""

    def learn(self, entry: Entry) -> None:
        """Enter an entry."""
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
                **{name: self._of(name).plus(entry, name) for name in sorted(sources)},
            },
            dead_letters=sums.dead_letters + dead_letters_of(entry),
        )
        for record in entry.readings:
            if record.failure is None and (record.rescued or record.dropped):
                self._add_places(record, 1)

    def _count_replayed(self, one: Resolved, entry: Entry) -> None:
        """Count rows with the file that their lines came from, as it was read."""
        read_in = self.waiting[one.old].entry if one.old in self.waiting else entry.sequence
        for key, rows in one.replayed.items():
            place = f"{read_in}:{key}"
            self.replayed[place] = self.replayed.get(place, 0) + rows

    def _of(self, source: str) -> JournalTotals:
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
        """Take out what the units wrote whose files were given up: it is read and counted again.

        An entry says only how the files are called, so the entries before it are read, the newest
        first, until all of them were met.
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
                **{name: self._of(name).minus(given_up) for name, given_up in own.items()},
            },
            parquet_files=sums.parquet_files - len(files),
            parquet_bytes=sums.parquet_bytes - sum(file.size for file in files),
        )
        for record in records:
            self._add_places(record, -1)

    def placed(self, kind: str) -> Counter[str]:
        """Return where values stood that were `rescued` or `dropped`, and how many."""
        found = Counter[str]()
        for key, count in self.places.items():
            _source, of, path = key.split(":", 2)
            if of == kind and count:
                found[path] += count
        return found

    def waiting_files(self) -> tuple[WaitingFile, ...]:
        """Return the quarantine files with lines that wait, the oldest first."""
        return tuple(sorted(self.waiting.values(), key=lambda one: one.place))

    @property
    def tables(self) -> dict[str, LedgerTable[Any]]:
        """Return the tables that segments keep, by name."""
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
    """Learn what an entry says of quarantine files."""
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
