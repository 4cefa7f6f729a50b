"""How many rows entries say were read from single source files, and on which day they were written.

An entry never changes, so what one says is kept: asked again, only new entries are read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from blizzard.answers.reconcile import RowCount
from lakebed.documents.reading import validated
from lakebed.journal import JournalReader
from lakebed.seek import seek

CONCURRENT = 16
MOST_KEPT = 50_000
"""Source files of which the rows are kept between two looks, some 220 bytes each."""
MOST_PARTS = 200
"""Entries that are gone back through for the earlier parts of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What is asked of a source record; the rest of an entry is not decoded."""

    source: str
    path: str
    rows: int = 0
    quarantined: int = 0
    skipped: int = 0
    failure: dict[str, Any] | None = None
    gone: bool = False
    retracted: bool = False


_Counts = tuple[int, int, int]
"""Rows, quarantined lines, and lines that an earlier part has read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    kind: str
    created: datetime
    sources: tuple[_Read, ...] = ()

    def readings(self) -> dict[str, _Counts]:
        if self.kind not in ("batch", "retract"):
            return {}
        return {
            f"{one.source}:{one.path}": (one.rows, one.quarantined, one.skipped)
            for one in self.sources
            if not (one.retracted or one.gone or one.failure)
        }


@dataclass(slots=True)
class EntryRows:
    """What the entries of one journal say of the rows of source files."""

    journal: JournalReader
    replayed: Callable[[], Mapping[str, int]] = dict
    """Returns the rows that bad lines became later, by `entry:source:path`."""
    most_kept: int = MOST_KEPT
    _read: dict[int, Mapping[str, _Counts]] = field(default_factory=dict)
    _created: dict[int, datetime | None] = field(default_factory=dict)
    _retract: set[int] = field(default_factory=set)
    """Which of the entries are retractions."""

    def count(
        self, wanted: Mapping[int, Sequence[tuple[str, str]]], *, only_replacements: bool = False
    ) -> dict[str, RowCount]:
        """Return what was read of files, by group; `wanted` are their groups and keys by entry.

        `only_replacements` leaves out all but what came with retractions.
        """
        self._load(wanted)
        sums: dict[str, RowCount] = {}
        for number, files in wanted.items():
            if only_replacements and number not in self._retract:
                continue
            for group, key in files:
                sums[group] = sums.get(group, RowCount()).plus(self._of(number, key))
        self._forget()
        return sums

    def first_of(self, day: str, last: int) -> int:
        """Return the first entry that was written on a day or later; one past the last if none.

        A few entries are read, however many there are.
        """
        start = datetime.fromisoformat(day).replace(tzinfo=UTC)
        found = seek(round(start.timestamp() * 1000), 0, last, self._written)
        return last + 1 if found.number is None else found.number

    def days_of(self, days: Iterable[str], last: int) -> dict[str, range]:
        """Return the entries that were written on some days."""
        ranges = {}
        for day in sorted(days):
            after = (datetime.fromisoformat(day) + timedelta(days=1)).strftime("%Y-%m-%d")
            ranges[day] = range(self.first_of(day, last), self.first_of(after, last))
        return ranges

    def _of(self, number: int, key: str) -> RowCount:
        found = self._read[number].get(key)
        if found is None:
            return RowCount(unknown=1)
        total = self._read_with(number, key, found)
        _rows, _quarantined, skipped = found
        # A very large file may have been read over several batches, one right after the other.
        before = number - 1
        while skipped and before > max(0, number - MOST_PARTS):
            self._load([before])
            # What comes with a retraction is read whole: it is no part of anything.
            part = None if before in self._retract else self._read[before].get(key)
            before -= 1
            if part is not None:
                total = total.plus(self._read_with(before + 1, key, part))
                _rows, _quarantined, skipped = part
        return total

    def _read_with(self, number: int, key: str, read: _Counts) -> RowCount:
        """Return what an entry has read of a file, with the rows that bad lines became since."""
        later = self.replayed().get(f"{number}:{key}", 0)
        rows, quarantined, _skipped = read
        return RowCount(rows=rows + later, bad_lines=quarantined)

    def _load(self, numbers: Iterable[int]) -> None:
        missing = [number for number in numbers if number not in self._read]
        with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="files") as pool:
            for number, entry in zip(missing, pool.map(self._entry, missing), strict=True):
                self._read[number] = {} if entry is None else entry.readings()

    def _entry(self, number: int) -> _Entry | None:
        body = self.journal.body(number)
        if body is None:
            return None
        entry = validated(_Entry, body, self.journal.where(number), what="document")
        self._created[number] = entry.created
        if entry.kind == "retract":
            self._retract.add(number)
        return entry

    def _written(self, numbers: Sequence[int]) -> list[int | None]:
        unseen = [number for number in numbers if number not in self._created]
        with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="files") as pool:
            for number, entry in zip(unseen, pool.map(self._entry, unseen), strict=True):
                self._created[number] = None if entry is None else entry.created
        times = (self._created[number] for number in numbers)
        return [None if at is None else round(at.timestamp() * 1000) for at in times]

    def _forget(self) -> None:
        """Keep what was read last, up to a number of files; an entry without any counts as one."""
        kept = sum(max(1, len(files)) for files in self._read.values())
        for number in sorted(self._read):
            if kept <= self.most_kept:
                return
            kept -= max(1, len(self._read.pop(number)))
            self._created.pop(number, None)
            self._retract.discard(number)
