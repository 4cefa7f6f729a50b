"""Counts of landed files and their rows, by day or by partition.

Every file is counted once: `landed` is the sum over all states. Rows are counted from entries,
which never change, so their counts are cached and only new entries are read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from blizzard.answers.answer import DONE, LANDED, NOT_APPLIED, FileStanding, FileState
from blizzard.answers.entries import MOST_PARTS, reading
from blizzard.discover.finding import SkipSummary
from lakebed.documents.entry import Entry
from lakebed.journal import JournalReader
from lakebed.seek import seek
from lakebed.storage.objects import ahead
from lakebed.units import in_words, plural

By = Literal["day", "partition"]
Standing = Literal["complete", "incomplete", "not_over", "empty", "unknown"]
"""Whether all files of a day are in: `not_over` is today or later, `empty` a day without files."""
UNKNOWN = "unknown"
"""The group of files without a known landing time or partition."""


@dataclass(slots=True, kw_only=True)
class DayOrPartition:
    """The file counts of one day or partition."""

    name: str
    """The day, such as `2024-01-01`, the partition, such as `date=2024-01-01`, or `unknown`."""
    landed: int = 0
    in_table: int = 0
    journaled: int = 0
    held: int = 0
    discarded: int = 0
    failed: int = 0
    waiting: int = 0
    changed: int = 0
    retracted: int = 0
    removed: int = 0
    altered: int = 0
    """Files whose data files other writers rewrote, perhaps without some of the rows."""
    deleted: int = 0
    """Landed files that are no longer in their source."""
    lost: int = 0
    """Failed files that are no longer in their source, so they can never be read."""
    in_part: int = 0
    """Deleted or overwritten files of which only a part was read."""
    not_applied: int = 0
    """Changed files whose replacement penguin rejected, so the old rows are in the table."""
    overwritten: int = 0
    """Read files whose name another object has since, which counts separately."""
    bytes: int = 0
    rows: int | None = None
    """Rows read from them, including parts of unfinished files, without retracted or removed
    ones. None if not counted."""
    quarantined_lines: int = 0
    """Their bad lines that still wait in quarantine."""
    uncounted: int = 0
    """Files whose row counts the journal does not have."""
    complete: bool | None = None
    """Whether files landed and all are in a final state; None if not every source was listed."""
    standing: Standing = "unknown"
    """The verdict as one word, shown everywhere."""
    sentence: str = ""
    """The verdict as a sentence."""

    @property
    def missing(self) -> int:
        """Count the files that are not in a final state."""
        return self.landed - sum(self.states[state] for state in DONE)

    @property
    def states(self) -> dict[FileState, int]:
        """Count the files by state."""
        return {state: getattr(self, state.value) for state in LANDED}

    def count(self, one: FileStanding) -> None:
        """Count a file."""
        self.landed += 1
        setattr(self, one.state.value, getattr(self, one.state.value) + 1)
        self.bytes += one.size
        self.deleted += one.deleted
        self.lost += one.lost
        self.in_part += one.in_part and (one.deleted or one.overwritten)
        self.not_applied += one.reason == NOT_APPLIED
        self.overwritten += one.overwritten
        self.quarantined_lines += one.quarantined_lines

    def add(self, other: "DayOrPartition") -> None:
        """Add the files of another group."""
        for name in (*LANDED, *COUNTED):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def add_rows(self, rows: int | None) -> None:
        """Add the rows of a file; None if the journal does not say how many."""
        self.rows = (self.rows or 0) + (rows or 0)
        self.uncounted += rows is None

    def judge(self, *, listed: bool, refused: bool, so_far: bool) -> None:
        """Set the verdict; `listed` is whether every source could be listed."""
        if refused or not listed:
            why = "a start would be refused" if refused else "not every source can be listed"
            self.sentence = f"whether {self.name} is complete is not known: {why}"
        else:
            self.complete = bool(self.landed) and not self.missing
            done: Standing = "complete" if self.complete else "incomplete"
            self.standing = "empty" if not self.landed else "not_over" if so_far else done
            self.sentence = _sentence(self, so_far=so_far)


COUNTED = (
    "landed", "bytes", "deleted", "lost", "in_part", "not_applied", "overwritten",
    "quarantined_lines",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """A pipeline's landed files reconciled with its table."""

    pipeline: str
    table_uri: str
    by: By
    groups: tuple[DayOrPartition, ...]
    """Newest day first; requested days are present even without files."""
    left_out: int = 0
    """Files of older days, or of further partitions, that are not listed."""
    skipped_names: tuple[SkipSummary, ...] = ()
    """Unreadable names in the sources, by reason."""
    errors: tuple[str, ...] = ()
    """Why the counts may be wrong; then no day has a verdict."""

    def day(self, name: str) -> DayOrPartition | None:
        """Return the group of a day."""
        return next((group for group in self.groups if group.name == name), None)


IN_WORDS = {
    FileState.WAITING: "waiting to be read",
    FileState.FAILED: "failed",
    FileState.JOURNALED: "waiting to be committed",
    FileState.HELD: "held by penguin",
    FileState.CHANGED: "changed after being read, and not read again",
    FileState.REMOVED: "removed from the table, wholly or in part",
    FileState.ALTERED: "rewritten by other writers, perhaps without some rows",
    FileState.RETRACTED: "retracted",
    FileState.DISCARDED: "discarded",
}
"""The states of files that are not in the table, or not with all of their rows."""


def counts_in_words(states: Mapping[FileState, int]) -> str:
    """Describe how many files are not in the table, or not with all of their rows."""
    return ", ".join(f"{states[one]:,} {IN_WORDS[one]}" for one in IN_WORDS if states.get(one))


def _sentence(group: DayOrPartition, *, so_far: bool) -> str:
    """Describe a group; bad lines in quarantine do not keep it incomplete."""
    what = f"{group.name} so far" if so_far else group.name
    if not group.landed:
        return f"no file of {group.name} has landed yet"
    files, others = plural(group.landed, "file"), counts_in_words(group.states)
    if group.missing:
        sentence = f"{what} is incomplete: of {files}, {others}"
    else:
        rows = "" if group.rows is None else f", {plural(group.rows, 'row')}"
        sentence = f"{what} is complete: {files}{rows}, {in_words(group.bytes)}"
        sentence += f"; {others}" if others else ""
    if group.lost:
        sentence += f"; {group.lost:,} of the failed ones deleted from the source"
    if group.not_applied:
        sentence += f"; {group.not_applied:,} of the changed ones rejected as a replacement"
    if group.uncounted:
        sentence += f"; the rows of {group.uncounted:,} counted by an earlier journal"
    if group.quarantined_lines:
        lines = plural(group.quarantined_lines, "bad line is", "bad lines are")
        sentence += f". {lines} in quarantine"
    return sentence


MOST_KEPT = 50_000
"""The most source files whose row counts are cached, some 220 bytes each."""


@dataclass(frozen=True, slots=True)
class EntryReadings:
    """The source files that one entry read."""

    at_ms: int
    retracts: bool
    files: Mapping[str, tuple[int, int]]
    """Rows, and lines read by earlier parts, by key."""


@dataclass(slots=True)
class EntryRows:
    """Row counts of source files from the entries of one journal."""

    journal: JournalReader
    replayed: Callable[[], Mapping[str, int]] = dict
    """Returns the rows that replayed bad lines gave, by `entry:source:path`."""
    _kept: dict[int, EntryReadings | None] = field(default_factory=dict)

    def count(self, files: Sequence[tuple[str, int]]) -> list[int | None]:
        """Return the rows of files, given their keys and last entries.

        None for files that were read under an earlier journal.
        """
        self._load({number for _key, number in files})
        counts = [self._rows_of(number, key) for key, number in files]
        self._forget()
        return counts

    def days_of(self, days: Iterable[str], last: int) -> dict[str, range]:
        """Return the range of entries written on each day; only a few entries are read."""

        def first_of(day: datetime) -> int:
            found = seek(round(day.timestamp() * 1000), 0, last, self._written)
            return last + 1 if found is None else found

        ranges = {}
        for day in sorted(days):
            start = datetime.fromisoformat(day).replace(tzinfo=UTC)
            ranges[day] = range(first_of(start), first_of(start + timedelta(days=1)))
        return ranges

    def _rows_of(self, number: int, key: str) -> int | None:
        entry = self._kept[number]
        if entry is not None and entry.retracts and key not in entry.files:
            # Its rows came back after the retraction.
            read = reading(self.journal, key, number)
            number = number if read is None else read.sequence
            self._load([number])
            entry = self._kept[number]
        if entry is None or key not in entry.files:
            return None
        total, skipped = 0, 1
        # A very large file may have been read over several consecutive batches.
        for part in range(number, max(0, number - MOST_PARTS), -1):
            if not skipped:
                break
            self._load([part])
            entry = self._kept[part]
            # What comes with a retraction is read whole: it is no part of anything.
            if entry is None or key not in entry.files or (part != number and entry.retracts):
                continue
            rows, skipped = entry.files[key]
            total += rows + self.replayed().get(f"{part}:{key}", 0)
        return total

    def _load(self, numbers: Iterable[int]) -> None:
        missing = sorted(number for number in numbers if number not in self._kept)
        for number, entry in ahead(self.journal.entry, missing):
            self._kept[number] = None if entry is None else _readings(entry)

    def _written(self, numbers: Sequence[int]) -> list[int | None]:
        self._load(numbers)
        return [None if (one := self._kept[number]) is None else one.at_ms for number in numbers]

    def _forget(self) -> None:
        """Start anew if too many files are cached."""
        if sum(len(one.files) if one else 1 for one in self._kept.values()) > MOST_KEPT:
            self._kept.clear()


def _readings(entry: Entry) -> EntryReadings:
    return EntryReadings(
        at_ms=round(datetime.fromisoformat(entry.created).timestamp() * 1000),
        retracts=entry.kind == "retract",
        files={
            one.key: (one.rows, one.skipped)
            for one in entry.readings
            if not (one.gone or one.failure)
        },
    )
