"""What has landed on each day, or in each partition, against what is in the table. Pure.

Every file that landed is counted once: `landed` is the sum of all states.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from blizzard.answers.lifecycle import DONE, LANDED, NOT_APPLIED, FileStanding, FileState
from blizzard.discover.skip_reason import SkipSummary
from lakebed.units import in_words, is_are, plural

By = Literal["day", "partition"]
UNKNOWN = "unknown"
"""The day of files of which nobody knows when they landed, or the partition of those without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCount:
    """What was read of some files."""

    rows: int = 0
    bad_lines: int = 0
    """Lines that were set aside in quarantine, whatever became of them since."""
    unknown: int = 0
    """Files of which the journal does not say it: they were read under an earlier one."""

    def plus(self, other: "RowCount") -> "RowCount":
        """Return the sum of two."""
        return RowCount(
            rows=self.rows + other.rows,
            bad_lines=self.bad_lines + other.bad_lines,
            unknown=self.unknown + other.unknown,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The files of one day, or of one partition."""

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
    deleted: int = 0
    """Of those that landed: no longer in their source."""
    lost: int = 0
    """Of those that failed: no longer in their source, so that nothing can be read of them."""
    in_part: int = 0
    """Of those that were deleted: a part of them was read before, and the rest cannot be."""
    not_applied: int = 0
    """Of those that changed: their rows were to come in the place of others, and penguin could not
    apply that, so the others are in the table."""
    overwritten: int = 0
    """Of those that were read: another object has their name since, which counts by itself."""
    bytes: int = 0
    rows: int | None = None
    """Rows that were read from them, also from parts of those that are not done; not those that
    were retracted or removed. None where that was not counted."""
    bad_lines: int | None = None
    quarantined_lines: int = 0
    """Bad lines of them that wait in quarantine: nobody has replayed or discarded them so far."""
    uncounted: int = 0
    """Files whose rows the journal does not say."""
    complete: bool | None = None
    """Whether files landed and nothing more is to come; None where sources could not be listed."""
    sentence: str = ""
    """The same in words."""

    @property
    def missing(self) -> int:
        """Count the files of which something is still to come."""
        return self.landed - sum(self.states[state] for state in DONE)

    @property
    def states(self) -> dict[FileState, int]:
        """Count the files by state."""
        return {state: getattr(self, state.value) for state in LANDED}


@dataclass(slots=True)
class DayBooks:
    """Counts files by day or by partition, as they are met."""

    by: By = "day"
    files: dict[str, Counter[FileState]] = field(default_factory=dict)
    sizes: Counter[str] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    in_part: Counter[str] = field(default_factory=Counter)
    not_applied: Counter[str] = field(default_factory=Counter)
    overwritten: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)

    def name_of(self, one: FileStanding) -> str:
        """Return under which day or partition a file is counted."""
        return (one.day if self.by == "day" else one.partition) or UNKNOWN

    def add(self, one: FileStanding) -> None:
        """Count a file."""
        name = self.name_of(one)
        self.files.setdefault(name, Counter())[one.state] += 1
        self.sizes[name] += one.size
        self.deleted[name] += one.deleted
        self.lost[name] += one.lost
        self.in_part[name] += one.in_part and (one.deleted or one.overwritten)
        self.not_applied[name] += one.reason == NOT_APPLIED
        self.overwritten[name] += one.overwritten
        self.quarantined[name] += one.quarantined_lines

    def take(self, other: "DayBooks") -> None:
        """Add what another has counted."""
        for name, states in other.files.items():
            self.files.setdefault(name, Counter()).update(states)
        self.sizes.update(other.sizes)
        self.deleted.update(other.deleted)
        self.lost.update(other.lost)
        self.in_part.update(other.in_part)
        self.not_applied.update(other.not_applied)
        self.overwritten.update(other.overwritten)
        self.quarantined.update(other.quarantined)

    def group(
        self,
        name: str,
        *,
        listed: bool,
        refused: bool = False,
        today: str | None = None,
        counted: RowCount | None = None,
    ) -> Group:
        """Return what there is of a day or a partition; `listed` is whether all was seen."""
        states = self.files.get(name, Counter())
        bare = Group(
            name=name,
            landed=states.total(),
            deleted=self.deleted[name],
            lost=self.lost[name],
            in_part=self.in_part[name],
            not_applied=self.not_applied[name],
            overwritten=self.overwritten[name],
            bytes=self.sizes[name],
            rows=None if counted is None else counted.rows,
            bad_lines=None if counted is None else counted.bad_lines,
            quarantined_lines=self.quarantined[name],
            uncounted=0 if counted is None else counted.unknown,
            in_table=states[FileState.IN_TABLE],
            journaled=states[FileState.JOURNALED],
            held=states[FileState.HELD],
            discarded=states[FileState.DISCARDED],
            failed=states[FileState.FAILED],
            waiting=states[FileState.WAITING],
            changed=states[FileState.CHANGED],
            retracted=states[FileState.RETRACTED],
            removed=states[FileState.REMOVED],
        )
        return with_verdict(bare, listed=listed, so_far=name == today, refused=refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCounts:
    """All source files of a pipeline by state, counted as `blizzard files` counts them."""

    pipeline: str
    states: Mapping[FileState, int]
    unread: tuple[SkipSummary, ...] = ()
    """Names that may hold data and are never read, by reason."""
    errors: tuple[str, ...] = ()
    """Why files may be missing from the counts."""

    def sentences(self) -> list[str]:
        """Say in words what is not in the table."""
        missing = _counts(self.states, (*_MISSING, *_ASIDE))
        files = plural(sum(self.states.values()), "source file")
        told = [f"of {files}, {missing}; see blizzard files"] if missing else []
        names = sum(one.files for one in self.unread)
        if names:
            which = f"{plural(names, 'name is', 'names are')} not read"
            told.append(f"{which}, such as {self.unread[0].some[0]}; blizzard status says why")
        unsure = "may be missing from this count" if self.states else "are not counted"
        return [*told, *(f"source files {unsure}: {error}" for error in self.errors)]


def with_verdict(group: Group, *, listed: bool, so_far: bool, refused: bool = False) -> Group:
    """Return a group with the answer to whether everything of it is in."""
    if refused or not listed:
        why = "a start would be refused" if refused else "not every source can be listed"
        return replace(
            group,
            complete=None,
            sentence=f"whether everything of {group.name} is in is not known: {why}",
        )
    complete = bool(group.landed) and not group.missing
    return replace(group, complete=complete, sentence=_sentence(group, so_far=so_far))


_MISSING = (
    (FileState.WAITING, "{count} {are} waiting to be read"),
    (FileState.FAILED, "{count} failed"),
    (FileState.JOURNALED, "{count} {are} waiting to be committed"),
    (FileState.HELD, "penguin holds rows of {count}"),
    (FileState.CHANGED, "{count} changed after being read, and the new content is not read"),
    (
        FileState.REMOVED,
        "penguin fsck or forget took rows of {count} out, and nobody has read them again",
    ),
)
_ASIDE = (
    (FileState.RETRACTED, "{count} {were} retracted"),
    (FileState.DISCARDED, "{count} {were} discarded"),
)


def _sentence(group: Group, *, so_far: bool) -> str:
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
                f"deleted from the source and {how} (blizzard dlq discard accepts that)"
            )
        changed = group.changed - group.not_applied
        missing = _counts({**group.states, FileState.CHANGED: changed}, _MISSING)
        if group.not_applied:
            missing += ", " if missing else ""
            missing += (
                f"the new rows of {group.not_applied:,} did not come in the place of the old ones, "
                "which are in the table (blizzard retract --replace again)"
            )
        return f"not everything of {what} is in: of {files}, {missing}{lost}{bad}"
    rows = "" if group.rows is None else f", {plural(group.rows, 'row')}"
    if rows and group.uncounted:
        of = f"{group.uncounted:,} read under an earlier journal, which counted their rows"
        rows = f" ({of})" if group.uncounted == group.landed else f"{rows} ({of})"
    aside = _counts(group.states, _ASIDE)
    but = f"; {aside} by an operator" if aside else ""
    if group.in_part:
        but += f" (of {group.in_part:,} a part is in the table)"
    return f"everything of {what} is in: {files}{rows}, {in_words(group.bytes)}{but}{bad}"


def _quarantined(group: Group) -> str:
    """Return how many bad lines wait: whoever has them set aside does not wait for them."""
    lines = group.quarantined_lines
    if not lines:
        return ""
    which = plural(lines, "bad line")
    return (
        f"; {which} of them {'waits' if lines == 1 else 'wait'} in quarantine (blizzard dlq list)"
    )


def _counts(states: Mapping[FileState, int], words: tuple[tuple[FileState, str], ...]) -> str:
    """Return in words how many files are in some states; states without files are left out."""
    counts = ((states.get(state, 0), text) for state, text in words)
    return ", ".join(
        text.format(count=f"{count:,}", are=is_are(count), were="was" if count == 1 else "were")
        for count, text in counts
        if count
    )
