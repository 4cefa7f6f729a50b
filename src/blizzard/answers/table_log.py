"""What is asked of a table's log about single entries and data files."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from blizzard.handoff.held_rows import Fates

REPAIR = "FSCK"
"""The operation by which `penguin fsck --repair` takes missing files out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogVersion:
    """One version of a Delta log, as far as it says."""

    version: int
    at: datetime | None = None
    operation: str | None = None
    writer: str | None = None
    entries: Mapping[str, tuple[int, int]]
    """The first and the last entry that it commits, by pipeline."""

    @property
    def is_repair(self) -> bool:
        """Whether `penguin fsck --repair` made it."""
        return self.operation == REPAIR

    @property
    def who(self) -> str | None:
        """Return the operation and who committed it."""
        return " by ".join(part for part in (self.operation, self.writer) if part) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """What a log says of an entry."""

    committed: bool
    version: LogVersion | None = None
    """None where it is not committed, or where its version was cleaned up."""
    held: frozenset[str] = frozenset()
    """The names of files that this version left out."""
    reasons_against: tuple[str, ...] = ()
    """Why penguin settled it without effect, where it was to replace files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """What a log says of a data file; neither in the table nor removed: it does not name it."""

    in_table: bool = False
    removed: bool = False
    added_by: LogVersion | None = None
    """The version that added it, where it was met."""
    removed_by: LogVersion | None = None
    """The version that removed it; None where it is not known any more."""
    removed_at: datetime | None = None
    rows_moved: bool = False
    """Whether its rows are in other files since."""
    rewritten: bool = False
    """Whether another writer has put others in its place, with some of its rows or all of them."""

    @property
    def may_hold_rows(self) -> bool:
        """Whether rows of it may be in the table, in whichever file."""
        return self.in_table or self.rows_moved or self.rewritten

    def is_back_after(self, version: int | None) -> bool:
        """Whether it came back after a version took it out, also if it was rewritten since."""
        by = self.removed_by
        was_back = version is not None and by is not None and by.version > version
        return self.in_table or (was_back and self.may_hold_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLog:
    """The questions."""

    entry: Callable[[str, str, int], LogEntry]
    """Asks for an entry, by its pipeline, journal and number."""
    files: Callable[[Iterable[str]], Mapping[str, LogFile]]
    """Asks for data files, by their paths below the table."""
    fates: Fates
    retention: Callable[[], timedelta] = lambda: timedelta(days=7)
    """Returns how long the table keeps files that were removed, before VACUUM may delete them."""

    def still_out(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the files that a repair took out, and that nothing has put back since.

        A file that another version has removed since was in the table again before.
        """
        found = self.files(paths)
        return frozenset(
            path
            for path, told in found.items()
            if not told.in_table and (told.removed_by is None or told.removed_by.is_repair)
        )
