"""Records of an entry: source files with their counts or failures, and data files.

A Delta table that tracks its rows numbers those of a file from the file's first id on, unless the
file gives a row an id itself: in two columns that no schema names, whose names are properties of
the table. A row that is moved to another file keeps its id, and the version that wrote it, by them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from pydantic import PlainSerializer

from lakebed.layout import TablePath


class FailureStage(StrEnum):
    """Where in the pipeline a source file failed."""

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
    """A digest of the settings that affect it, as they were; None where none do, or unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Bytes of a plain file of which no batch has read the lines that start in them."""

    start: int
    end: int
    lines_before: int
    """How many lines were read between the unread bytes before these, or the start of the file,
    and these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """The record of one source file: its lines, or a failure and no row.

    lines = blank + filtered + quarantined + rows.

    A very large file may be read over several batches, if one ends in the middle of it: each batch
    then counts its own lines, and `skipped` says how many came before. Of a plain file `unread`
    says which bytes are left, in their order: tasks that share it stop each at a place of its own.
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
    """Records that `source.skip_records` passes over."""
    quarantined: int = 0
    rows: int = 0
    skipped: int = 0
    """Lines that earlier batches have read, and that are in the table."""
    complete: bool = True
    """False where the rest of the file was left for a later batch."""
    unread: tuple[Unread, ...] = ()
    """What is left of a plain file; nothing where it is complete, or where what was read are its
    first lines and no byte is known."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Fields the schema does not declare, with how many values of each were left out."""
    rescued: Mapping[str, int] = field(default_factory=dict)
    """Where values stood that no column takes, with how many of each are in `_rescued`."""
    unit: str | None = None
    failure: Failure | None = None
    redo: bool = False
    """Whether files with its rows were given up, so that its being done before does not count."""
    supersedes: tuple[str, ...] = ()
    """The names of all data files with rows that what is read of it replaces, whether these are in
    the table or not: none of them may be active beside it."""
    reingested: bool = False
    """Whether it was ingested before as another object, whose rows are in the table, too."""
    retry: bool = False
    """Whether an operator asks for it to be read again at once, though it failed."""
    gone: bool = False
    """Whether a look at the whole source has not found it any more: nothing waits for it."""
    discarded: bool = False
    """Whether an operator has given it up, or its rest: it failed, and is gone from its source."""
    retracted: bool = False
    """Whether its rows, so many, are taken out of the table, and its waiting bad lines given up."""
    modified: int | None = None
    """When the store says that it was written, in milliseconds since the epoch; None where no batch
    has opened it."""
    form: str = ""
    """What is counted in it, if not lines: the records of its documents, and where those are."""

    @property
    def key(self) -> str:
        """Name the file among all sources of the pipeline."""
        return f"{self.source}:{self.path}"

    @property
    def records_read(self) -> int:
        """Count the lines that need not be read again: the first ones, unless it has holes."""
        return self.skipped + self.lines

    @property
    def gave_no_row(self) -> bool:
        """Whether none of its lines, now or before, gave a row: the table holds nothing of it."""
        counted = self.rows or self.quarantined or self.skipped
        return self.failure is None and not (counted or self.reingested)

    @property
    def has_holes(self) -> bool:
        """Whether the lines that were read are others than the first ones of the file."""
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
    """The number of the first one in the source file; None while lines before it are unread."""
    code: str
    """What is wrong with the first one."""
    message: str
    """The same in words, which show nothing of the data unless that is asked for."""
    field: str | None = None
    """Where in the record it is wrong, if it is not all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineFile:
    """Bad lines under a name that is used once, complete in the store."""

    filename: TablePath
    size: int
    record_count: int
    unit: str
    """The work unit; it stands or falls together with the data files of the unit."""
    sources: tuple[BadLines, ...]
    lines_before: int | None = 0
    """How many lines of the source file come before the one that the file counts as its first:
    0 unless it is of a part of a large file, None while some lines before that part are unread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A quarantine file that counts no longer: its lines were dealt with, but for some."""

    old: TablePath
    lines: int
    """How many of its lines wait no longer: the kind of the entry says why."""
    left: QuarantineFile | None = None
    """The file with the lines that go on waiting; None where none does."""
    replayed: Mapping[str, int] = field(default_factory=dict)
    """How many of these became rows, one each, by their source files."""
    filtered: Mapping[str, int] = field(default_factory=dict)
    """How many of these gave no row, by their source files, because `source.skip_records` passes
    them over by now."""

    @property
    def rows(self) -> int:
        """Return how many rows its lines gave."""
        return sum(self.replayed.values())

    @property
    def passed_over(self) -> int:
        """Return how many of its lines were passed over."""
        return sum(self.filtered.values())


Bound = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """What is known of one column of one file.

    `minimum` and `maximum` are as the Delta protocol writes them and never exclude a row: a long
    string is cut so that the bound still holds, a timestamp is rounded outwards to milliseconds, a
    decimal is a text of all its digits.
    Both are None where no sound bound is known (booleans, binary, all-null columns, and floats
    that may be NaN).
    """

    null_count: int
    minimum: Bound = None
    maximum: Bound = None


class Run(NamedTuple):
    """Rows that follow each other in a data file, and the records of the source they come from.

    Written as `[source, first, rows, records]`: the next `rows` rows come, in order, from the
    records `first` to `first + records - 1`. If both counts are equal, each record gave one row and
    the number of a row's record is known. If there are fewer rows, they come from some of these
    records: to find which, the source has to be read again.

    A task that reads a part of a large plain file does not know how many lines come before it.
    Where it is unknown at the time of the entry, `first` is null and two numbers follow:
    `[source, null, rows, records, byte, nth]`. The first record is then the `nth` of the lines that
    start at or after that byte. Without those two numbers, nothing but the source is known of the
    rows.
    """

    source: int
    """The place of the source file in `source_files`, from 0."""
    first: int | None
    """The number of the first record in the source file, from 1; every line counts."""
    rows: int
    records: int
    byte: int | None = None
    nth: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether each record gave one row."""
        return self.rows == self.records

    def after(self, lines: int) -> "Run":
        """Return the run with the records numbered, once the lines before its byte are counted."""
        if self.first is not None or self.nth is None:
            return self
        return self._replace(first=lines + self.nth, byte=None, nth=None)


def _written(runs: Sequence[Run]) -> list[Sequence[Any]]:
    return [run[:4] if run.byte is None else tuple(run) for run in runs]


FIRST_ROW_ID = "baseRowId"
ROW_VERSION = "defaultRowCommitVersion"
"""What the action of a file calls the two."""
ROW_IDS = "delta.rowTracking.materializedRowIdColumnName"
ROW_VERSIONS = "delta.rowTracking.materializedRowCommitVersionColumnName"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """What the two columns are called in files."""

    ids: str
    versions: str

    @property
    def names(self) -> tuple[str, str]:
        """Name both."""
        return self.ids, self.versions


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRow:
    """What a log says of the rows of a file that does not say it itself."""

    id: int
    """The id of the first row; those of the others follow it, in their order."""
    version: int
    """The version that wrote them."""


def row_columns(configuration: Mapping[str, str]) -> RowColumns | None:
    """Return what the columns are called; None where a table does not say."""
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
    """The source file's URI, or None where several small ones share the file."""
    source_files: tuple[str, ...] = ()
    """All source files with rows in it, as keys of the entry's `sources`."""
    runs: Annotated[tuple[Run, ...], PlainSerializer(_written)] = ()
    """Which rows came from which records, in the order of the rows; nothing where unknown."""
    unit: str
    """The work unit; its outputs stand or fall together."""
    statistics: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    """By column or, inside structs, by path: `user.id`. A name with a dot in it is in backticks."""
    modification_time: int
    """Milliseconds since the epoch, as Delta writes it."""
    row_columns: RowColumns | None = None
    """The columns in which rows that were in other files keep their ids; None where none do."""
    vector: str | None = None
    """The key of its deletion vector, if it has one and leaves the table; new files have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldFile:
    """A data file of the table that a rewrite takes out of it."""

    path: TablePath
    size: int
    rows: int
    """Those that are not deleted."""
    left_out: int = 0
    """The rows of these that leave the table."""
    vector: str | None = None
    """The key of its deletion vector."""
    deleted: int = 0
    """The rows that the vector deletes: the new files do not hold them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Data files of one partition, and those with the rest of their rows, in their order.

    A new file says where its rows came from, if that is known. With `sorted_by` the rows are in
    another order, and say it themselves, in the column `_file`.
    """

    old: tuple[OldFile, ...]
    new: tuple[FinishedFile, ...] = ()
    """None if no row is left."""
    sorted_by: tuple[str, ...] = ()
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    """Those of the old files if there is no new one."""

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
