"""What the live page shows, as plain values: the documents of the JSON API. Pure.

The names of the fields are the keys of the documents. Times are RFC 3339 in UTC and end in `Z`,
ages and durations are in seconds, sizes in bytes. None is what is not known. No value holds
anything of the data: no row, no line, no value of a field.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from blizzard.answers.answer import Health, Problem, WayOut
from blizzard.answers.file_counts import Standing
from lakebed.clock import rfc3339

State = Literal["running", "idle", "to_read", "to_commit", "failing", "stopped", "unknown"]
"""`to_commit`: entries wait for their commit; `to_read`: none does, and files wait."""
SPARK_BUCKETS = 48

DAY_SECS = 86_400.0


def of_seconds(seconds: float) -> str:
    """Return a number of seconds since the epoch as a time."""
    return rfc3339(datetime.fromtimestamp(seconds, UTC))


def of_ms(milliseconds: int | None) -> str | None:
    """Return a number of milliseconds since the epoch as a time; None where there is none."""
    return None if milliseconds is None else of_seconds(milliseconds / 1000)


def of_text(text: str | None) -> str | None:
    """Return a time that a document wrote in its own way; None where it is none."""
    try:
        return None if text is None else rfc3339(datetime.fromisoformat(text))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How long files took from their arrival in the source to the Delta commit, in the last day."""

    median_secs: float | None = None
    worst_secs: float | None = None
    measured_files: int = 0
    since: str | None = None


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
class DayVerdict:
    """Whether everything of a day is in the table; None where that is not known."""

    day: str
    complete: bool | None
    sentence: str
    standing: Standing = "unknown"


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
    uncommitted_entries: int | None = None
    """Entries that wait for their commit."""
    uncommitted_rows: int | None = None
    uncommitted_since: str | None = None
    """When the first of them was written."""
    behind_secs: float | None = None
    """How long the oldest file or entry that is not in the table has waited by now."""
    failed_files: int | None = None
    changed_files: int | None = None
    """Files that changed after they were ingested, and are not read as they are now; None where
    no source was listed yet."""
    held_entries: int | None = None
    quarantined_lines: int | None = None
    freshness: Freshness = Freshness()
    last_entry: int | None = None
    last_batch: int | None = None
    """The last entry that a batch has written."""
    last_batch_at: str | None = None
    rows_24h: int | None = None
    files_24h: int | None = None
    bytes_24h: int | None = None
    spark: list[float] = field(default_factory=list)
    """Rows per half hour of the last day, the oldest first; empty where they are not known."""
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
    needed: bool = True
    """False where blizzard commits by itself, so that no penguin has to run."""
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
    """What "up to date" covers, and what it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedProblem:
    """A problem, and the pipelines and tables that have it."""

    problem: Problem
    pipelines: list[str]
    tables: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All pipelines and tables."""

    at: str
    headline: Headline
    problems: list[SharedProblem]
    """Those of one cause together, the worst first."""
    programs: list[Program]
    pipelines: list[PipelineSummary]
    tables: list[TableSummary]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """What one process knows of a pipeline that it runs, or of a table that it commits to."""

    state: State
    problems: list[Problem] = field(default_factory=list)
    current_batch: CurrentBatch | None = None
    next_look_at: str | None = None
    waiting: int | None = None
    """Source files of a pipeline, or entries of a table."""
    oldest_waiting_at: str | None = None
    changed_files: dict[str, int] = field(default_factory=dict)
    """Files that changed after they were ingested and are not read, by source."""
    changes: int = 0
    """Rises with each change that the journal or the log shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What one process knows by itself; a process of the other program asks for it."""

    program: Literal["blizzard", "penguin"]
    version: str
    started_at: str
    pipelines: dict[str, PartReport]
    tables: dict[str, PartReport]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a request was not answered."""

    code: str
    message: str
    way_out: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The document of every answer that is not 200."""

    error: Fault
