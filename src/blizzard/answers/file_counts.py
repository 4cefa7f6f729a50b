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
from blizzard.model.source.partly_read import PartialFileChanged
from lakebed.documents.entry import Entry
from lakebed.journal import JournalReader
from lakebed.seek import seek
from lakebed.storage.objects import ahead
from lakebed.units import in_words, is_are, plural

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
    cut_off: int = 0
    """Discarded files whose name another object took before they were read to their end."""
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
        is_cut_off = one.state is FileState.DISCARDED and one.reason == PartialFileChanged.code
        self.cut_off += is_cut_off
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
    "landed", "bytes", "deleted", "lost", "in_part", "cut_off", "not_applied", "overwritten",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCounts:
    """All source files of a pipeline counted by state, as in `blizzard files`."""

    pipeline: str
    states: Mapping[FileState, int]
    unread: tuple[SkipSummary, ...] = ()
    """Names that may hold data but are never read, by reason."""
    errors: tuple[str, ...] = ()
    """Why files may be missing from the counts."""

    def sentences(self) -> list[str]:
        """Describe what is not in the table."""
        missing = _counts(self.states, (*_MISSING, *_NOT_LOADED))
        files = plural(sum(self.states.values()), "source file")
        sentences = [f"of {files}, {missing}; see blizzard files"] if missing else []
        names = sum(one.files for one in self.unread)
        if names:
            which = f"{plural(names, 'name is', 'names are')} not read"
            sentences.append(f"{which}, such as {self.unread[0].some[0]}; blizzard status says why")
        unsure = "may be missing from this count" if self.states else "are not counted"
        return [*sentences, *(f"source files {unsure}: {error}" for error in self.errors)]


_MISSING = (
    (FileState.WAITING, "{count} {are} waiting to be read"),
    (FileState.FAILED, "{count} failed"),
    (FileState.JOURNALED, "{count} {are} waiting to be committed"),
    (FileState.HELD, "penguin holds rows of {count}"),
    (FileState.CHANGED, "{count} changed after being read, and the new content is not read"),
    (
        FileState.REMOVED,
        "rows of {count} were removed from the table",
    ),
)
_NOT_LOADED = (
    (
        FileState.ALTERED,
        "other writers have rewritten data files of {count}, perhaps without some rows",
    ),
    (FileState.RETRACTED, "{count} {were} retracted"),
    (FileState.DISCARDED, "{count} {were} discarded"),
)


def _sentence(group: DayOrPartition, *, so_far: bool) -> str:
    what = f"{group.name} so far" if so_far else group.name
    if not group.landed:
        return f"no file of {group.name} has landed yet"
    files = plural(group.landed, "file")
    bad = _quarantined(group)
    if group.missing:
        lost = ""
        if group.lost:
            how = "never loaded, or only in part" if group.in_part else "never loaded"
            lost = (
                f"; {group.lost:,} of those that failed {'was' if group.lost == 1 else 'were'} "
                f"deleted from the source and {how}"
            )
        changed = group.changed - group.not_applied
        missing = _counts({**group.states, FileState.CHANGED: changed}, _MISSING, f" of {files}")
        if group.not_applied:
            missing += ", " if missing else ""
            missing += f"the new rows of {group.not_applied:,} were rejected, and replaced nothing"
        return f"{what} is incomplete: {missing}{lost}{bad}"
    rows = "" if group.rows is None else f", {plural(group.rows, 'row')}"
    if rows and group.uncounted:
        of = f"{group.uncounted:,} read under an earlier journal, which counted their rows"
        rows = f" ({of})" if group.uncounted == group.landed else f"{rows} ({of})"
    discarded = group.discarded - group.cut_off
    set_apart = _counts({**group.states, FileState.DISCARDED: discarded}, _NOT_LOADED)
    by_hand = " by an operator" if group.retracted or discarded else ""
    but = f"; {set_apart}{by_hand}" if set_apart else ""
    if in_part := group.in_part - group.cut_off:
        but += f" (of {in_part:,} a part is in the table)"
    if group.cut_off:
        were = "was" if group.cut_off == 1 else "were"
        but += f"; {group.cut_off:,} {were} overwritten before all of it was read"
    return f"{what} is complete: {files}{rows}, {in_words(group.bytes)}{but}{bad}"


def _quarantined(group: DayOrPartition) -> str:
    """Say how many bad lines wait; they do not keep a day incomplete."""
    lines = group.quarantined_lines
    if not lines:
        return ""
    return f". {plural(lines, 'bad line is', 'bad lines are')} in quarantine"


def _counts(
    states: Mapping[FileState, int], words: tuple[tuple[FileState, str], ...], of: str = ""
) -> str:
    """Describe the counts of some states, without empty ones; `of` follows the first number."""
    counts = [(states.get(state, 0), text) for state, text in words if states.get(state, 0)]
    return ", ".join(
        text.format(
            count=f"{count:,}{'' if at else of}",
            are=is_are(count),
            were="was" if count == 1 else "were",
        )
        for at, (count, text) in enumerate(counts)
    )


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
        """Evict the oldest entries beyond MOST_KEPT files; an entry counts as at least one."""
        sizes = {number: max(1, len(one.files) if one else 0) for number, one in self._kept.items()}
        kept = sum(sizes.values())
        for number in sorted(sizes):
            if kept <= MOST_KEPT:
                return
            kept -= sizes[number]
            del self._kept[number]


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
