"""What the live page shows, as plain values: the documents of the JSON API. Pure.

The names of the fields are the keys of the documents. Times are RFC 3339 in UTC and end in `Z`,
ages and durations are in seconds, sizes in bytes. None is what is not known. No value holds
anything of the data: no row, no line, no value of a field.
"""

from dataclasses import dataclass, field
from typing import Literal

from blizzard.answers.lifecycle import FileState
from liveview.over_time import DayVerdict

State = Literal["running", "idle", "waiting", "failing", "stopped", "unknown"]
"""`waiting`: there is work, and it waits for its time or for penguin."""
Health = Literal["ok", "warning", "failing", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How long files took from their arrival in the source to the Delta commit, in the last day."""

    median_secs: float | None = None
    worst_secs: float | None = None
    measured_files: int = 0
    since: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something a person should know, and what to do about it."""

    severity: Literal["warning", "error"]
    code: str
    message: str
    way_out: str | None = None
    since: str | None = None
    subject: str | None = None
    """What it is about: a source, a file, an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One part of a batch."""

    name: Literal["discover", "plan", "run", "journal", "publish", "commit"]
    state: Literal["done", "running", "waiting"]
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One work unit of a batch, as its task reports it."""

    id: str
    files: int
    state: Literal["waiting", "running", "done", "failed"]
    worker: str | None = None
    """Where it runs, or ran last: the host and the process; None before its first report."""
    read_bytes: int = 0
    total_bytes: int = 0
    rows: int = 0
    bad_lines: int = 0
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentBatch:
    """The batch that is running now."""

    entry: int
    started_at: str
    files: int
    bytes: int
    read_bytes: int = 0
    rows: int = 0
    stages: list[Stage] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    units_left_out: int = 0
    """There are at most 200 units, those that run first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSummary:
    """One pipeline at a glance."""

    name: str
    table: str | None
    table_uri: str
    sources: list[str]
    hand_off: str
    state: State
    health: Health
    problems: list[Problem]
    current_batch: CurrentBatch | None
    next_look_at: str | None
    waiting_files: int | None
    waiting_bytes: int | None
    oldest_waiting_secs: float | None
    failed_files: int
    changed_files: int | None
    """Files that changed after they were ingested, and are not read as they are now; None where
    no source was listed yet."""
    held_entries: int
    quarantined_lines: int
    freshness: Freshness
    last_entry: int | None
    last_entry_at: str | None
    rows_24h: int
    files_24h: int
    bytes_24h: int
    spark: list[float]
    """Rows per half hour of the last day, the oldest first."""
    yesterday: DayVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """One table at a glance."""

    name: str
    uri: str
    state: State
    health: Health
    problems: list[Problem]
    version: int | None
    committed_at: str | None
    files: int | None
    bytes: int | None
    rows: int | None
    size_version: int | None
    """The version that files, bytes and rows are of: an earlier one than `version` where commits
    come faster than they are added up, or where the table is so large that this is done at
    checkpoints."""
    size_at: str | None
    """When that version was committed, as far as it is known."""
    waiting_entries: int | None
    """None until the journals of all its pipelines have been looked at."""
    pipelines: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One of the two programs, and whether it answers."""

    name: Literal["blizzard", "penguin"]
    version: str | None
    reachable: bool
    started_at: str | None = None
    address: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All pipelines and tables."""

    at: str
    programs: list[Program]
    pipelines: list[PipelineSummary]
    tables: list[TableSummary]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookLine:
    """One line of the books of an entry: the first one is the sum of the others."""

    label: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One entry of a journal, with its books."""

    entry: int
    kind: str
    """`unknown` where the entry cannot be read; `error` says why."""
    at: str | None
    seconds: float | None
    files: int
    files_failed: int
    rows: int
    lines: int
    bad_lines: int
    rescued: int
    bytes_read: int
    bytes_written: int
    data_files: int
    committed_version: int | None
    committed_at: str | None
    balanced: bool
    books: list[BookLine]
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Entries of a journal, the newest first."""

    batches: list[Batch]
    next_before: int | None
    """Ask with this as `before` for older ones; None where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLineGroup:
    """Lines in quarantine with the same fault. What they say is not shown."""

    code: str
    field: str | None
    lines: int
    files: int
    sample_path: str | None
    sample_line: int | None
    suggested_fix: str | None
    first_at: str | None
    last_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFile:
    """A source file that could not be read."""

    path: str
    code: str
    reason: str
    way_out: str | None
    attempts: int
    next_try_at: str | None
    since: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldEntry:
    """An entry with files that penguin has set aside, or that stops its pipeline."""

    entry: int | None
    reason: str
    way_out: str | None
    since: str | None
    files: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    name: str
    type: str
    nullable: bool
    since_version: int | None
    partition: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineDetail:
    """One pipeline in full."""

    summary: PipelineSummary
    recent_batches: list[Batch]
    bad_lines: list[BadLineGroup]
    failed: list[FailedFile]
    held: list[HeldEntry]
    schema: list[Column]
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One source file, and where it stands."""

    path: str
    state: FileState
    at: str | None
    bytes: int | None
    rows: int | None
    entry: int | None
    version: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Source files, the newest first."""

    files: list[FileRow]
    searched: str
    more: bool
    """Whether the search ended before everything was looked at."""
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a file on its way."""

    at: str | None
    what: str
    detail: str | None
    state: Literal["done", "now", "next", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """Where one source file is: the answer of `blizzard why`."""

    path: str
    answer: str
    state: FileState
    way_out: str | None
    steps: list[Step]
    rows: int | None
    bad_lines: int | None


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
    """Versions of a table, the newest first."""

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
