"""Values of an audit: differences, the work of other writers, and totals.

Also whether a table shows files as they were written: their columns, sizes and partitions. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from lakebed.columns.column_mapping import DeltaType, FieldPath, types_within
from lakebed.deltalog.delta_types import (
    TableFacts,
    by_name,
    dropped_columns,
    kind_of,
    names_in_log,
    reads,
    struct_of,
)
from lakebed.deltalog.lineage import Active
from lakebed.documents.entry import Entry
from lakebed.documents.losses import Accepted
from lakebed.documents.records import FinishedFile
from lakebed.units import plural


class FindingKind(StrEnum):
    """What is different from what it must be."""

    CHAIN_BROKEN = "chain_broken"
    """An entry does not name the digest of the one before: one of the two was changed."""
    ENTRY_MISSING = "entry_missing"
    ENTRY_MISPLACED = "entry_misplaced"
    """An entry stands where another belongs: another number, pipeline, journal or kind."""
    ENTRY_UNREADABLE = "entry_unreadable"
    ENTRY_COMMITTED_TWICE = "entry_committed_twice"
    ENTRY_PASSED_OVER = "entry_passed_over"
    """A commit goes on after an entry that no commit has settled."""
    DIGEST_DIFFERS = "digest_differs"
    """An entry is another one than the one that was committed."""
    JOURNAL_MISSING = "journal_missing"
    """The log has committed entries of a journal that is not here."""
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
    """A file of penguin's commits is in the table, and nothing names it."""
    FILE_SIZE_DIFFERS = "file_size_differs"
    FILE_ROWS_DIFFER = "file_rows_differ"
    FILE_PARTITION_DIFFERS = "file_partition_differs"
    FILE_GONE = "file_gone"
    FILE_DAMAGED = "file_damaged"
    """Its footer cannot be read, or is that of another pipeline's file."""
    FILE_GIVEN_UP_ACTIVE = "file_given_up_active"
    """A file that is held, was given up or was deleted is in the table all the same."""
    FILE_REMOVED = "file_removed"
    """penguin has removed a file, and no entry says why."""
    PROMOTION_HALF = "promotion_half"
    """Only some of the files of a promotion or retraction took their places."""
    ROWS_BACK = "rows_back"
    """Rows that were taken out of the table on purpose are in it."""
    ROWS_REMOVED = "rows_removed"
    """Another writer removed rows."""
    ROWS_CHANGED = "rows_changed"
    """A commit that says that it changes no data adds other rows than it removes."""
    ROWS_MISSING = "rows_missing"
    """Rows are gone, and the version that removed them is no longer in the log."""
    SCHEMA_DIFFERS = "schema_differs"
    DEAD_LETTERS_GONE = "dead_letters_gone"
    BAD_LINES_DIFFER = "bad_lines_differ"
    """The bad lines of a source file are not those in quarantine, or were dealt with twice."""
    QUARANTINE_GONE = "quarantine_gone"
    """A file with bad lines that are waiting is gone, or has another size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not as it must be."""

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
    """What all journals of a table add up to, and where the rows of their files are."""

    journals: int = 0
    entries: int = 0
    waiting: int = 0
    """Entries that are waiting for penguin."""
    source_files: int = 0
    """Source files that were read, also those of which only a part was so far."""
    lines: int = 0
    blank: int = 0
    filtered: int = 0
    quarantined: int = 0
    bad_lines_waiting: int = 0
    """Quarantined lines that neither became rows nor were discarded so far."""
    replayed: int = 0
    """Quarantined lines that became rows later."""
    passed_over: int = 0
    """Quarantined lines that were read again and, by now, are not to be rows."""
    discarded: int = 0
    rows: int = 0
    """Rows that lines gave when they were read first."""

    def add(self, other: "AuditTotals") -> None:
        """Add those of another journal."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(frozen=True, slots=True)
class WaitingDataFile:
    """A data file of an entry that is not committed."""

    pipeline: str
    entry: int
    file: FinishedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersession:
    """A file that an entry took out of the table or superseded, and those in its place."""

    entry: int
    pipeline: str
    old: str
    new: tuple[str, ...] = ()
    version: int
    """The version that committed it."""
    left: int = 0
    """How many of its rows are in the new files."""
    left_out: int = 0
    """How many of its rows are in none of them."""
    deleted: int = 0
    """How many of its rows a deletion vector deleted before."""
    supersedes: bool = False
    sources: frozenset[int] = frozenset()
    """The source files whose rows it took, by their hashes; empty for all, and if unknown."""


def steps_of(entry: Entry, version: int) -> Iterator[Supersession]:
    """Yield what an entry does to files of the table."""
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

    pipeline: str
    entry: int
    rows: int
    origins: Mapping[str, int] = field(default_factory=dict)
    """How many rows each source file has in it, if it has rows of several."""


class FilePlace(StrEnum):
    """Where the rows of a data file are that an entry names."""

    IN_TABLE = "in_table"
    WAITING = "waiting"
    HELD = "held"
    GIVEN_UP = "given_up"
    """Discarded, read again by a redo, or lost, which was accepted."""
    AWAITING_REDO = "awaiting_redo"
    """Taken out by a repair; no redo has been ordered yet."""
    FORGOTTEN = "forgotten"
    """Lost with a log, and left out since an operator ordered it."""
    REPLACED = "replaced"
    """Another file with these rows was put in its place."""
    RETRACTED = "retracted"
    """Taken out of the table by blizzard retract or erase."""
    REMOVED_BY_OTHERS = "removed_by_others"
    UNKNOWN = "unknown"
    """Removed by a version that is no longer in the log."""
    NOWHERE = "nowhere"
    """A difference says so."""


@dataclass(slots=True, kw_only=True)
class Places:
    """How much of what entries name is where."""

    amounts: dict[FilePlace, Amount] = field(
        default_factory=lambda: dict.fromkeys(FilePlace, Amount())
    )
    repaired: dict[str, int] = field(default_factory=dict)
    """Rows of files that a repair took out and no entry so far has read again, by name."""

    def put(self, place: FilePlace, rows: int | None, *, if_any: bool = False) -> None:
        """Count one more file; with `if_any` only if it has rows."""
        if rows or not if_any:
            self.amounts[place] = self.amounts[place].plus(rows)

    def set_aside(self, name: str, rows: int, *, is_held: bool, is_repaired: bool) -> None:
        """Count a file that is held or given up; the entries that follow tell of a repaired one."""
        if is_repaired and not is_held:
            self.repaired[name] = rows
        else:
            self.put(FilePlace.HELD if is_held else FilePlace.GIVEN_UP, rows)

    def read_again(self, names: Iterable[str]) -> None:
        """Count files whose sources are read again, of those that a repair took out."""
        for name in names:
            if name in self.repaired:
                self.put(FilePlace.GIVEN_UP, self.repaired.pop(name))

    def settle(self) -> None:
        """Count what a repair took out and no entry has read again."""
        for rows in self.repaired.values():
            self.put(FilePlace.AWAITING_REDO, rows)
        self.repaired.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit of one table found."""

    version: int | None
    """The version of the log; None where there is no table yet."""
    history_since: int | None
    """The version with whose state the known history begins; 0 where all of it is known."""
    deep: bool
    totals: AuditTotals
    places: Places
    active: Amount
    """What is in the table."""
    by_others: Amount
    """What other writers have put there."""
    adopted: Amount
    """Files of other programs that penguin has committed."""
    unknown: Amount
    """What was added by versions that are no longer in the log, and no entry names."""
    others: tuple[OtherCommit, ...]
    accepted: tuple[Accepted, ...] = ()
    applied: frozenset[int] = frozenset()
    """The versions of those whose rows are missing just as was accepted."""
    losses: tuple[Accepted, ...] = ()
    """Those among the differences that an operator may accept."""
    differences: tuple[Difference, ...]
    pipelines: tuple[str, ...] = ()
    """Those with a journal in the table's directory that no other pipeline has taken over."""
    elsewhere: int = 0
    """Files of the table outside of its directory: their objects are not looked at."""

    @property
    def is_balanced(self) -> bool:
        """Whether all is as it must be."""
        return not self.differences


def spans(numbers: Iterable[int]) -> str:
    """Return numbers in words, those that follow each other together: 3, 5 to 7. Pure."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in found)


def why_not_held(
    written: Mapping[str, Any], partition_columns: tuple[str, ...], table: TableFacts
) -> Iterator[str]:
    """Yield what files of a schema have that a table cannot show as it was written."""
    if partition_columns != table.partition_columns:
        yield (
            f"the files are partitioned by {_listed(partition_columns)}, the table by "
            f"{_listed(table.partition_columns)}"
        )
    hidden = by_name(dropped_columns(table) or struct_of(()))
    shown = [one for one in written["fields"] if one["name"] not in hidden]
    there = {path: kind for path, kind, _said in types_within(table.schema)}
    unlike: FieldPath | None = None
    for path, kind, _said in types_within(struct_of(shown)):
        if unlike is not None and path[: len(unlike)] == unlike:
            continue  # The column around it is reported.
        name, known = ".".join(path), there.get(path)
        if known is None:
            unlike = path
            yield f"the table does not have column {name}"
        elif not (reads(known, kind) or kind_of(known) == kind_of(kind) != "plain"):
            unlike = path
            yield f"column {name} is {_named(kind)} in the files, {_named(known)} in the table"


def _named(kind: DeltaType) -> str:
    return kind if isinstance(kind, str) else kind_of(kind)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


def disagreements(
    file: FinishedFile, one: Active, shape: TableFacts | None
) -> Iterator[tuple[FindingKind, str]]:
    """Yield in what an entry and the log disagree on a data file."""
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
    """Return the partition of a data file, in words."""
    return ", ".join(f"{name}={'null' if v is None else v}" for name, v in values) or "no partition"
