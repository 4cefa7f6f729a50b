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
SPARK_BUCKETS = 48


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
    """One pipeline at a glance; without more, one that has not been looked at."""

    name: str
    table: str | None
    table_uri: str
    sources: list[str]
    hand_off: str
    state: State = "unknown"
    health: Health = "unknown"
    problems: list[Problem] = field(default_factory=list)
    current_batch: CurrentBatch | None = None
    next_look_at: str | None = None
    waiting_files: int | None = None
    waiting_bytes: int | None = None
    oldest_waiting_secs: float | None = None
    failed_files: int = 0
    changed_files: int | None = None
    """Files that changed after they were ingested, and are not read as they are now; None where
    no source was listed yet."""
    held_entries: int = 0
    quarantined_lines: int = 0
    freshness: Freshness = Freshness()
    last_entry: int | None = None
    last_entry_at: str | None = None
    rows_24h: int = 0
    files_24h: int = 0
    bytes_24h: int = 0
    spark: list[float] = field(default_factory=lambda: [0.0] * SPARK_BUCKETS)
    """Rows per half hour of the last day, the oldest first."""
    yesterday: DayVerdict = field(
        default_factory=lambda: DayVerdict(day="", complete=None, sentence="")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """One table at a glance; without more, one that has not been looked at."""

    name: str
    uri: str
    state: State = "unknown"
    health: Health = "unknown"
    problems: list[Problem] = field(default_factory=list)
    version: int | None = None
    committed_at: str | None = None
    files: int | None = None
    bytes: int | None = None
    rows: int | None = None
    size_version: int | None = None
    """The version that files, bytes and rows are of: an earlier one than `version` where commits
    come faster than they are added up, or where the table is so large that this is done at
    checkpoints."""
    size_at: str | None = None
    """When that version was committed, as far as it is known."""
    waiting_entries: int | None = None
    """None until the journals of all its pipelines have been looked at."""
    pipelines: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One of the two programs, and whether it answers."""

    name: Literal["blizzard", "penguin"]
    version: str | None = None
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
    first_at: str | None = None
    last_at: str | None = None


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
