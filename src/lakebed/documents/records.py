"""Records of an entry: source files with their counts or failures, and data files.

A Delta table with row tracking numbers the rows of a file from the file's first id on, unless the
file stores their ids: in two columns outside of the schema, whose names are table properties. Rows
moved to another file keep their ids and commit versions by these columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from pydantic import PlainSerializer

from lakebed.layout import TablePath


class FailureStage(StrEnum):
    """The stage at which a source file failed."""

    DISCOVER = "discover"
    DOWNLOAD = "download"
    DECOMPRESS = "decompress"
    PARSE = "parse"
    UPLOAD = "upload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a source file is not in the table."""

    stage: FailureStage
    code: str
    message: str
    line: int | None = None
    field: str | None = None
    retryable: bool = False
    attempts: int = 1
    basis: str | None = None
    """A digest of the settings that affect it; None if none do, or unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A range of bytes in a plain file whose lines no batch has read: those that start in it."""

    start: int
    end: int
    lines_before: int
    """The number of lines read between the previous unread range, or the start of the file, and
    this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """The record of one source file: its line counts, or a failure and no row.

    lines = blank + filtered + quarantined + rows.

    A very large file may be read over several batches: each counts its own lines, and `skipped` is
    the number of earlier ones. For a plain file `unread` lists the remaining byte ranges, since
    tasks that share it each stop at their own position.
    """

    source: str
    """The name of the source in the configuration."""
    path: str
    """The path below that source's root."""
    size: int
    etag: str | None
    lines: int = 0
    blank: int = 0
    filtered: int = 0
    """Records that `source.skip_records` skips."""
    quarantined: int = 0
    rows: int = 0
    skipped: int = 0
    """Lines that earlier batches have read into the table."""
    complete: bool = True
    """False if the rest of the file is left to a later batch."""
    unread: tuple[Unread, ...] = ()
    """The unread ranges of a plain file; empty if it is complete, or if its first lines were read
    and their end in bytes is unknown."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Dropped values by undeclared field."""
    rescued: Mapping[str, int] = field(default_factory=dict)
    """Values in `_rescued` by path."""
    unit: str | None = None
    failure: Failure | None = None
    redo: bool = False
    """Whether data files with its rows were given up, so that earlier readings do not count."""
    supersedes: tuple[str, ...] = ()
    """The names of all data files with rows that this reading replaces, in the table or not: none
    may be active beside it."""
    reingested: bool = False
    """Whether it was ingested before as another object whose rows stay in the table."""
    retry: bool = False
    """Whether an operator requests it to be read again at once after a failure."""
    gone: bool = False
    """Whether a sweep of the source no longer found it: nothing waits for it."""
    discarded: bool = False
    """Whether an operator gave it or its rest up: it failed, and is gone from its source."""
    retracted: bool = False
    """Whether `rows` of its rows are removed from the table, and its waiting bad lines given up."""
    modified: int | None = None
    """Its modification time by the store, in milliseconds since the epoch; None if no batch opened
    it."""
    form: str = ""
    """The counted unit, if not lines: records of its documents, and their path."""

    @property
    def key(self) -> str:
        """Return the key of the file among all sources of the pipeline."""
        return f"{self.source}:{self.path}"

    @property
    def records_read(self) -> int:
        """Count the lines read so far: the first ones, unless it has holes."""
        return self.skipped + self.lines

    @property
    def gave_no_row(self) -> bool:
        """Whether none of its lines ever gave a row: the table has nothing of it."""
        counted = self.rows or self.quarantined or self.skipped
        return self.failure is None and not (counted or self.reingested)

    @property
    def has_holes(self) -> bool:
        """Whether the lines read are not just the first ones of the file."""
        if not self.unread:
            return False
        return len(self.unread) > 1 or any(file.end < self.size for file in self.unread)


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLines:
    """The bad lines of one source file in one quarantine file."""

    source: str
    """The source file, as a key of the entry's `sources`."""
    lines: int
    first: int | None
    """The number of the first bad line in the source file; None while lines before it are
    unread."""
    code: str
    """The code of the first bad line's fault."""
    message: str
    """The first fault in words, without data unless configured."""
    field: str | None = None
    """The faulty field; None for the whole record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineFile:
    """A complete quarantine file in the store, under a unique name."""

    filename: TablePath
    size: int
    record_count: int
    unit: str
    """The work unit; its files stand or fall together."""
    sources: tuple[BadLines, ...]
    lines_before: int | None = 0
    """The number of lines in the source file before the file's first: 0 except for parts of a large
    file, None while some lines before that part are unread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A quarantine file whose lines are resolved, except for some."""

    old: TablePath
    lines: int
    """The number of resolved lines; the entry's kind says how."""
    left: QuarantineFile | None = None
    """The file with the remaining lines; None without any."""
    replayed: Mapping[str, int] = field(default_factory=dict)
    """The resolved lines that became one row each, by source file."""
    filtered: Mapping[str, int] = field(default_factory=dict)
    """The resolved lines that `source.skip_records` skips by now, by source file."""

    @property
    def rows(self) -> int:
        """Return the number of rows from its lines."""
        return sum(self.replayed.values())

    @property
    def filtered_lines(self) -> int:
        """Return the number of its skipped lines."""
        return sum(self.filtered.values())


Bound = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """The statistics of one column of one file.

    `minimum` and `maximum` are in Delta's form and never exclude a row: a long string is cut so
    that the bound still holds, a timestamp is rounded outwards to milliseconds, a decimal is a text
    of all its digits.

    Both are None without sound bounds (booleans, binary, all-null columns, and floats that may be
    NaN).
    """

    null_count: int
    minimum: Bound = None
    maximum: Bound = None


class Run(NamedTuple):
    """Consecutive rows of a data file, and the source records that they come from.

    Written as `[source, first, rows, records]`: the next `rows` rows come, in order, from the
    records `first` to `first + records - 1`. If both counts are equal, each record gave one row and
    the number of a row's record is known. If there are fewer rows, they come from some of these
    records: to find which, the source has to be read again.

    A task that reads a part of a large plain file does not know how many lines come before it. If
    that is unknown at the time of the entry, `first` is null and two numbers follow: `[source,
    null, rows, records, byte, nth]`. The first record is then the `nth` of the lines that start at
    or after that byte. Without those two numbers only the source of the rows is known.
    """

    source: int
    """The index of the source file in `source_files`."""
    first: int | None
    """The number of the first record in the source file, from 1, counting every line."""
    rows: int
    records: int
    byte: int | None = None
    nth: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether each record gave one row."""
        return self.rows == self.records

    def after(self, lines: int) -> "Run":
        """Return the run with numbered records, given the lines before its byte."""
        if self.first is not None or self.nth is None:
            return self
        return self._replace(first=lines + self.nth, byte=None, nth=None)


def _written(runs: Sequence[Run]) -> list[Sequence[Any]]:
    return [run[:4] if run.byte is None else tuple(run) for run in runs]


FIRST_ROW_ID = "baseRowId"
ROW_VERSION = "defaultRowCommitVersion"
"""The fields of a file's action for the first row id and the commit version."""
ROW_IDS = "delta.rowTracking.materializedRowIdColumnName"
ROW_VERSIONS = "delta.rowTracking.materializedRowCommitVersionColumnName"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """The names in files of the two row tracking columns."""

    ids: str
    versions: str

    @property
    def names(self) -> tuple[str, str]:
        """Return both names."""
        return self.ids, self.versions


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRow:
    """The row ids of a file that does not store them."""

    id: int
    """The id of the first row; the others follow in order."""
    version: int
    """The version that wrote the rows."""


def row_columns(configuration: Mapping[str, str]) -> RowColumns | None:
    """Return the names of the row tracking columns; None if the table has none."""
    ids, versions = configuration.get(ROW_IDS), configuration.get(ROW_VERSIONS)
    return RowColumns(ids=ids, versions=versions) if ids and versions else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedFile:
    """One Parquet file under its final name, complete in the store."""

    filename: TablePath
    size: int
    record_count: int
    partition_values: Mapping[str, str | None]
    source_file: str | None
    """The source file's URI; None if several share the file."""
    source_files: tuple[str, ...] = ()
    """All source files with rows in it, as keys of the entry's `sources`."""
    runs: Annotated[tuple[Run, ...], PlainSerializer(_written)] = ()
    """The records of the rows, in the order of the rows; empty if unknown."""
    unit: str
    """The work unit; its outputs stand or fall together."""
    statistics: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    """By column or, inside structs, by path such as `user.id`; names with dots are quoted."""
    modification_time: int
    """Milliseconds since the epoch, as Delta writes it."""
    row_columns: RowColumns | None = None
    """The columns with the ids of rows moved from other files; None without such rows."""
    vector: str | None = None
    """The key of its deletion vector, if the file is removed; new files have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldFile:
    """A data file of the table that a rewrite removes."""

    path: TablePath
    size: int
    rows: int
    """The rows that are not deleted."""
    left_out: int = 0
    """The number of these rows that leave the table."""
    vector: str | None = None
    """The key of its deletion vector."""
    deleted: int = 0
    """The number of rows that the vector deletes; new files do not have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Data files of one partition, and those that replace them with the remaining rows, in order.

    A new file records its rows' origin, if known.
    """

    old: tuple[OldFile, ...]
    new: tuple[FinishedFile, ...] = ()
    """None if no row is left."""
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    """The partition values of the old files if there is no new one."""

    @property
    def rows(self) -> int:
        """Count the rows of the old files that are not deleted."""
        return sum(one.rows for one in self.old)

    @property
    def left_out(self) -> int:
        """Count the rows that leave the table."""
        return sum(one.left_out for one in self.old)

    def old_files(self) -> tuple[FinishedFile, ...]:
        """Return the old files with what their removal records."""
        return tuple(
            FinishedFile(
                filename=one.path,
                size=one.size,
                record_count=one.rows,
                partition_values=(
                    self.new[0].partition_values if self.new else self.partition_values
                ),
                source_file=None,
                unit="",
                modification_time=0,
                vector=one.vector,
            )
            for one in self.old
        )
