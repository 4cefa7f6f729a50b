"""Values of an audit: differences, commits of other writers, and totals. Pure.

Also checks whether a table shows files as written: their columns, sizes and partitions.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from lakebed.deltalog.delta_types import (
    TableFacts,
    names_in_log,
)
from lakebed.deltalog.lineage import Active
from lakebed.documents.entry import Entry
from lakebed.documents.losses import Accepted
from lakebed.documents.records import FinishedFile
from lakebed.units import plural


class FindingKind(StrEnum):
    """The kinds of differences."""

    CHAIN_BROKEN = "chain_broken"
    """An entry does not name the digest of the one before: one of the two was changed."""
    ENTRY_MISSING = "entry_missing"
    ENTRY_MISPLACED = "entry_misplaced"
    """An entry has the wrong number, pipeline, journal or kind for its place."""
    ENTRY_UNREADABLE = "entry_unreadable"
    ENTRY_COMMITTED_TWICE = "entry_committed_twice"
    ENTRY_SKIPPED = "entry_skipped"
    """A commit skips an entry that no commit has settled."""
    DIGEST_DIFFERS = "digest_differs"
    """An entry differs from the one that was committed."""
    JOURNAL_MISSING = "journal_missing"
    """The log has committed entries of a missing journal."""
    RECEIPT_AHEAD = "receipt_ahead"
    RECEIPT_DIFFERS = "receipt_differs"
    """The receipt names another entry, or an entry of another journal."""
    TRANSACTION_MISSING = "transaction_missing"
    TRANSACTION_DIFFERS = "transaction_differs"
    LOG_VERSION_MISSING = "log_version_missing"
    BOOKS_DIFFER = "books_differ"
    """The lines of a source file, or the rows of an entry, do not add up."""
    SOURCE_TWICE = "source_twice"
    """A source file was read twice without being requested again."""
    FILE_NOT_COMMITTED = "file_not_committed"
    """The entry of a file is committed, but no version has the file."""
    FILE_COMMITTED_TWICE = "file_committed_twice"
    FILE_NAMED_TWICE = "file_named_twice"
    FILE_UNNAMED = "file_unnamed"
    """A file of penguin's commits is in the table, but nothing names it."""
    FILE_SIZE_DIFFERS = "file_size_differs"
    FILE_ROWS_DIFFER = "file_rows_differ"
    FILE_PARTITION_DIFFERS = "file_partition_differs"
    FILE_GONE = "file_gone"
    FILE_DAMAGED = "file_damaged"
    """A file's footer is unreadable."""
    FILE_GIVEN_UP_ACTIVE = "file_given_up_active"
    """A file that is held, given up or deleted is nevertheless in the table."""
    FILE_REMOVED = "file_removed"
    """penguin removed a file, but no entry says why."""
    PROMOTION_HALF = "promotion_half"
    """Only some of the files of a promotion or retraction were replaced."""
    ROWS_BACK = "rows_back"
    """Rows that were taken out of the table on purpose are in it."""
    ROWS_REMOVED = "rows_removed"
    """Another writer removed rows."""
    ROWS_CHANGED = "rows_changed"
    """A commit marked as changing no data adds a different number of rows than it removes."""
    ROWS_MISSING = "rows_missing"
    """Rows are missing, and the version that removed them is no longer in the log."""
    DEAD_LETTERS_GONE = "dead_letters_gone"
    BAD_LINES_DIFFER = "bad_lines_differ"
    """A source file's bad lines differ from those in quarantine, or were resolved twice."""
    QUARANTINE_GONE = "quarantine_gone"
    """A file with waiting bad lines is missing or has another size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference between what is expected and what is found."""

    kind: FindingKind
    message: str
    pipeline: str | None = None
    entry: int | None = None
    version: int | None = None
    """A version of the Delta log."""
    file: str | None = None
    source: str | None = None
    """A source file, as `source:path`."""

    @classmethod
    def of(cls, entry: Entry, kind: FindingKind, message: str, **where: Any) -> "Difference":  # noqa: ANN401
        """Return a difference of an entry."""
        return cls(
            kind=kind, message=message, pipeline=entry.pipeline, entry=entry.sequence, **where
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCommit:
    """A version that another writer committed."""

    version: int
    operation: str | None
    writer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Files, and the rows in them."""

    files: int = 0
    rows: int = 0

    def plus(self, rows: int | None) -> "Amount":
        """Count one more file."""
        return Amount(files=self.files + 1, rows=self.rows + (rows or 0))


@dataclass(slots=True, kw_only=True)
class AuditTotals:
    """The totals of all journals of a table."""

    journals: int = 0
    entries: int = 0
    waiting: int = 0
    """Entries that are waiting for penguin."""
    source_files: int = 0
    """Source files that were read, at least in part."""
    lines: int = 0
    blank: int = 0
    filtered: int = 0
    quarantined: int = 0
    bad_lines_waiting: int = 0
    """Quarantined lines that were neither replayed nor discarded."""
    replayed: int = 0
    """Quarantined lines that became rows later."""
    filtered_on_replay: int = 0
    """Quarantined lines that were filtered when read again."""
    discarded: int = 0
    rows: int = 0
    """Rows from the first reading of lines."""

    def add(self, other: "AuditTotals") -> None:
        """Add the totals of another journal."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(frozen=True, slots=True)
class WaitingDataFile:
    """A data file of an uncommitted entry."""

    pipeline: str
    entry: int
    file: FinishedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersession:
    """A file that an entry removed or superseded, with its replacements."""

    entry: int
    pipeline: str
    old: str
    new: tuple[str, ...] = ()
    version: int
    """The version that committed it."""
    left: int = 0
    """The number of its rows in the new files."""
    left_out: int = 0
    """The number of its rows in none of the new files."""
    deleted: int = 0
    """The number of its rows that a deletion vector had deleted."""
    supersedes: bool = False
    sources: Counter[int] = field(default_factory=Counter)
    """The rows that its entry took by source file, as hashes; empty for all or if unknown."""


def steps_of(entry: Entry, version: int) -> Iterator[Supersession]:
    """Yield the effects of an entry on files of the table."""
    for one in entry.rewrites:
        names = tuple(file.filename for file in one.new)
        for old in one.old:
            yield Supersession(
                entry=entry.sequence,
                pipeline=entry.pipeline,
                old=old.path,
                new=names,
                version=version,
                left=old.rows - old.left_out,
                left_out=old.left_out,
                deleted=old.deleted,
            )


@dataclass(frozen=True, slots=True)
class AbsentFile:
    """A committed file that is not in the table, or not with all of its rows."""

    pipeline: str | None
    entry: int | None
    """The entry that named it; None for another program's file."""
    rows: int


class FilePlace(StrEnum):
    """Where the rows of a named data file are."""

    IN_TABLE = "in_table"
    WAITING = "waiting"
    HELD = "held"
    GIVEN_UP = "given_up"
    """Discarded, read again by a redo, or an accepted loss."""
    AWAITING_REDO = "awaiting_redo"
    """Taken out by a repair, without a redo so far."""
    FORGOTTEN = "forgotten"
    """Lost with a log, and left out by an operator's order."""
    REPLACED = "replaced"
    """Replaced by another file with these rows."""
    RETRACTED = "retracted"
    """Taken out of the table by blizzard retract or erase."""
    REMOVED_BY_OTHERS = "removed_by_others"
    UNKNOWN = "unknown"
    """Removed by a version that is no longer in the log."""
    NOWHERE = "nowhere"
    """Missing, as a difference reports."""


@dataclass(slots=True, kw_only=True)
class Places:
    """The amount of named files at each place."""

    amounts: dict[FilePlace, Amount] = field(
        default_factory=lambda: dict.fromkeys(FilePlace, Amount())
    )
    repaired: dict[str, int] = field(default_factory=dict)
    """Rows of repaired files that no entry has read again so far, by name."""

    def put(self, place: FilePlace, rows: int | None, *, if_any: bool = False) -> None:
        """Count one more file; with `if_any` only if it has rows."""
        if rows or not if_any:
            self.amounts[place] = self.amounts[place].plus(rows)

    def put_withheld(self, name: str, rows: int, *, is_held: bool, is_repaired: bool) -> None:
        """Count a held or given-up file; the fate of a repaired one is in later entries."""
        if is_repaired and not is_held:
            self.repaired[name] = rows
        else:
            self.put(FilePlace.HELD if is_held else FilePlace.GIVEN_UP, rows)

    def read_again(self, names: Iterable[str]) -> None:
        """Count repaired files whose sources are read again."""
        for name in names:
            if name in self.repaired:
                self.put(FilePlace.GIVEN_UP, self.repaired.pop(name))

    def settle(self) -> None:
        """Count the repaired files that no entry has read again."""
        for rows in self.repaired.values():
            self.put(FilePlace.AWAITING_REDO, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit of one table found."""

    version: int | None
    """The version of the log; None without a table."""
    history_since: int | None
    """The version at which the known history begins; 0 if complete."""
    deep: bool
    totals: AuditTotals
    places: Places
    active: Amount
    """The active files."""
    by_others: Amount
    """The active files of other writers."""
    adopted: Amount
    """Files of other programs that penguin has committed."""
    unknown: Amount
    """Unnamed files of versions that are no longer in the log."""
    others: tuple[OtherCommit, ...]
    accepted: tuple[Accepted, ...] = ()
    applied: frozenset[int] = frozenset()
    """The accepted versions whose losses match."""
    losses: tuple[Accepted, ...] = ()
    """The differences that an operator may accept."""
    differences: tuple[Difference, ...]
    elsewhere: int = 0
    """Files of the table outside its directory, whose objects are not checked."""

    @property
    def is_balanced(self) -> bool:
        """Whether there are no differences."""
        return not self.differences


def spans(numbers: Iterable[int]) -> str:
    """Format numbers with ranges: 3, 5 to 7. Pure."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in found)


def disagreements(
    file: FinishedFile, one: Active, shape: TableFacts | None
) -> Iterator[tuple[FindingKind, str]]:
    """Yield the differences between an entry and the log about a data file."""
    if one.size != file.size:
        yield FindingKind.FILE_SIZE_DIFFERS, f"{file.size} bytes; the log says {one.size}"
    if one.rows != file.record_count:
        yield (
            FindingKind.FILE_ROWS_DIFFER,
            (
                f"{plural(file.record_count, 'row')}; the log's statistics say "
                f"{'nothing' if one.rows is None else one.rows}"
            ),
        )
    names = names_in_log(shape) if shape is not None and file.partition_values else {}
    values = tuple(
        sorted((names.get(name, name), v or None) for name, v in file.partition_values.items())
    )
    if one.values != values:
        shown = partition_shown(values)
        yield (
            FindingKind.FILE_PARTITION_DIFFERS,
            f"{shown}; the log says {partition_shown(one.values)}",
        )


def partition_shown(values: tuple[tuple[str, str | None], ...]) -> str:
    """Format the partition of a data file."""
    return ", ".join(f"{name}={'null' if v is None else v}" for name, v in values) or "no partition"
