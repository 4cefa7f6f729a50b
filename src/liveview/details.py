"""Detail documents about one pipeline, file or table. Pure."""

from dataclasses import dataclass, field

from blizzard.answers.answer import FileState, WayOut
from blizzard.answers.file_counts import DayOrPartition
from liveview.model import PipelineSummary, TableSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class BookLine:
    """One line of an entry's balance; the first line is the sum of the others."""

    label: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A journal entry with its line and row counts."""

    entry: int
    kind: str
    """`unknown` if the entry cannot be read; `error` says why."""
    at: str | None = None
    seconds: float | None = None
    files: int = 0
    files_failed: int = 0
    rows: int = 0
    lines: int = 0
    bad_lines: int = 0
    rescued: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    data_files: int = 0
    committed_version: int | None = None
    committed_at: str | None = None
    balanced: bool = False
    books: list[BookLine] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """A page of journal entries, newest first."""

    batches: list[Batch]
    next_before: int | None
    """The `before` of the next page; None if there are no older ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLineGroup:
    """Quarantined lines with the same fault, without their content."""

    code: str
    field: str | None
    lines: int
    files: int
    sample_path: str | None
    sample_line: int | None
    way_out: WayOut


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFile:
    """A source file that could not be read."""

    path: str
    code: str
    reason: str
    way_out: WayOut | None
    attempts: int
    next_try_at: str | None
    since: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldEntry:
    """An entry with files that penguin holds, or that stops its pipeline."""

    entry: int | None
    reason: str
    way_out: WayOut | None
    since: str | None
    files: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    name: str
    type: str
    nullable: bool
    partition: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineDetail:
    """One pipeline in full."""

    summary: PipelineSummary
    recent_batches: list[Batch]
    bad_lines: list[BadLineGroup]
    failed: list[FailedFile]
    held: list[HeldEntry]
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One source file, and its state."""

    path: str
    state: FileState
    at: str | None = None
    bytes: int | None = None
    rows: int | None = None
    entry: int | None = None
    version: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Source files, newest first."""

    files: list[FileRow]
    searched: str
    more: bool
    """Whether the search ended before it covered everything."""
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """The recent days of a pipeline, newest first."""

    days: list[DayOrPartition]
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Rows, bytes and files per time step, oldest first."""

    start: str
    step_secs: float
    rows: list[float]
    bytes: list[float]
    files: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessSeries:
    """Delay from a file's arrival to its Delta commit, per time step of the commit.

    Oldest first; null for a step without commits.
    """

    start: str
    step_secs: float
    median_secs: list[float | None]
    worst_secs: list[float | None]
    files: list[int]
    """How many files were measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """A version of a table that changed its columns."""

    version: int
    at: str | None
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a table."""

    version: int
    at: str | None
    operation: str
    by: str | None
    files_added: int | None
    files_removed: int | None
    rows_added: int | None
    bytes_added: int | None
    entry: int | None
    pipeline: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """A page of table versions, newest first."""

    versions: list[Version]
    next_before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDetail:
    """One table in full."""

    summary: TableSummary
    columns: list[Column]
    partition_columns: list[str]
    schema_changes: list[SchemaChange]
    recent_versions: list[Version]
    properties: dict[str, str]
    features: list[str]
    note: str | None = None
