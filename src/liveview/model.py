"""The documents of the JSON API as plain values. Pure.

Field names are the JSON keys. Times are RFC 3339 in UTC and end in `Z`, ages and durations are in
seconds, sizes in bytes; None means unknown. No document holds data: no rows, lines or field values.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from blizzard.answers.answer import Health, Problem, WayOut
from blizzard.answers.file_counts import Standing
from lakebed.clock import rfc3339

State = Literal["running", "idle", "to_read", "to_commit", "failing", "stopped", "unknown"]
"""`to_commit`: entries are uncommitted; `to_read`: none are, but files are unread."""
SPARK_BUCKETS = 48

DAY_SECS = 86_400.0


def of_seconds(seconds: float) -> str:
    """Format seconds since the epoch."""
    return rfc3339(datetime.fromtimestamp(seconds, UTC))


def of_ms(milliseconds: int | None) -> str | None:
    """Format milliseconds since the epoch; None for None."""
    return None if milliseconds is None else of_seconds(milliseconds / 1000)


def of_text(text: str | None) -> str | None:
    """Reformat an ISO 8601 time; None if it is not one."""
    try:
        return None if text is None else rfc3339(datetime.fromisoformat(text))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Delay from a file's arrival in the source to its Delta commit, over the last day."""

    median_secs: float | None = None
    worst_secs: float | None = None
    measured_files: int = 0
    since: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of a batch."""

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
    """The host and process that run it, or ran it last; None before its first report."""
    read_bytes: int = 0
    total_bytes: int = 0
    rows: int = 0
    bad_lines: int = 0
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentBatch:
    """The running batch."""

    entry: int
    started_at: str
    files: int
    bytes: int
    read_bytes: int = 0
    rows: int = 0
    stages: list[Stage] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    units_left_out: int = 0
    """At most 200 units are listed, running ones first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayVerdict:
    """Whether all files of a day are in the table; None if unknown."""

    day: str
    complete: bool | None
    sentence: str
    standing: Standing = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSummary:
    """One pipeline at a glance; the defaults are those of one not observed yet."""

    name: str
    table: str | None
    table_uri: str
    sources: list[str]
    hand_off: str
    state: State = "unknown"
    health: Health = "unknown"
    problems: list[Problem] = field(default_factory=list)
    current_batch: CurrentBatch | None = None
    next_listing_at: str | None = None
    waiting_files: int | None = None
    waiting_bytes: int | None = None
    oldest_waiting_secs: float | None = None
    uncommitted_entries: int | None = None
    """Journal entries that are not committed yet."""
    uncommitted_rows: int | None = None
    uncommitted_since: str | None = None
    """When the first of them was written."""
    behind_secs: float | None = None
    """The age of the oldest file or entry that is not in the table."""
    failed_files: int | None = None
    changed_files: int | None = None
    """Files that changed after ingestion and are not read again; None before the first listing."""
    held_entries: int | None = None
    quarantined_lines: int | None = None
    freshness: Freshness = Freshness()
    last_entry: int | None = None
    last_batch: int | None = None
    """The last entry of a batch."""
    last_batch_at: str | None = None
    rows_24h: int | None = None
    files_24h: int | None = None
    bytes_24h: int | None = None
    spark: list[float] = field(default_factory=list)
    """Rows per half hour of the last day, oldest first; empty if unknown."""
    yesterday: DayVerdict = field(
        default_factory=lambda: DayVerdict(day="", complete=None, sentence="")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """One table at a glance; the defaults are those of one not observed yet."""

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
    """The version to which files, bytes and rows refer: older than `version` if commits come faster
    than sizes are computed, or if the table is so large that only checkpoints are sized."""
    size_at: str | None = None
    """When that version was committed, if known."""
    waiting_entries: int | None = None
    """None until the journals of all its pipelines were read."""
    pipelines: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One of the two programs, and whether it answers."""

    name: Literal["blizzard", "penguin"]
    version: str | None = None
    reachable: bool
    needed: bool = True
    """False for penguin if blizzard commits by itself."""
    started_at: str | None = None
    address: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """All pipelines and tables in one sentence."""

    health: Health
    text: str
    way_out: WayOut | None = None
    covers: str | None = None
    """What the headline "up to date" covers, and what it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedProblem:
    """A problem with the pipelines and tables that have it."""

    problem: Problem
    pipelines: list[str]
    tables: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All pipelines and tables."""

    at: str
    headline: Headline
    problems: list[SharedProblem]
    """Grouped by cause, worst first."""
    programs: list[Program]
    pipelines: list[PipelineSummary]
    tables: list[TableSummary]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """One process's report on a pipeline that it runs or a table that it commits to."""

    state: State
    problems: list[Problem] = field(default_factory=list)
    current_batch: CurrentBatch | None = None
    next_listing_at: str | None = None
    waiting: int | None = None
    """Source files of a pipeline, or entries of a table."""
    oldest_waiting_at: str | None = None
    changed_files: dict[str, int] = field(default_factory=dict)
    """Files that changed after ingestion and are not read again, by source."""
    changes: int = 0
    """Incremented with each change to the journal or the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What one process reports about itself; the other program requests it."""

    program: Literal["blizzard", "penguin"]
    version: str
    started_at: str
    pipelines: dict[str, PartReport]
    tables: dict[str, PartReport]
    table_uris: list[str] = field(default_factory=list)
    """All tables of its configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a request was not answered."""

    code: str
    message: str
    way_out: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The document of every response other than 200."""

    error: Fault
