"""Pipelines and tables at a glance, from what was looked at and what runs now. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from blizzard.answers.source_status import SourceStatus
from blizzard.answers.status import PipelineStatus
from blizzard.journal.lease_record import Life
from blizzard.model.settings import PipelineSettings
from lakebed.deltalog.versions import Commit
from lakebed.errors import LakeError
from liveview.model import Freshness, PipelineSummary, Problem, State, TableSummary
from liveview.over_time import DayVerdict
from liveview.parts import PipelinePart, TablePart
from liveview.times import of_ms, rfc3339
from liveview.views import problems as found_problems
from liveview.views.entries import Committed, EntryFacts
from liveview.views.series import DAY_SECS, SPARK_BUCKETS, freshness_of, series_of
from penguin.inspect.status import TableStatus
from penguin.model.settings import TableSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Journaled:
    """What the journal of a pipeline says, in the parts of its summary that it fills."""

    status: PipelineStatus
    problems: tuple[Problem, ...]
    freshness: Freshness
    rows: int
    files: int
    bytes: int
    spark: tuple[float, ...]
    held_entries: int = 0


def journaled(
    status: PipelineStatus,
    entries: Sequence[EntryFacts],
    committed: Mapping[int, Committed],
    *,
    now: float,
    since: float | None,
    unreadable: Sequence[int] = (),
    held: frozenset[int | None] = frozenset(),
    refusal: LakeError | None = None,
) -> Journaled:
    """Return what a look at the journal makes of a summary."""
    day = [one for one in entries if one.at >= now - DAY_SECS]
    read = [one.batch for one in day if one.batch.kind in ("batch", "replay")]
    spark = series_of(day, now=now, hours=24, points=SPARK_BUCKETS)
    measured_since = now - DAY_SECS if since is None else since
    return Journaled(
        status=status,
        problems=(
            *(() if refusal is None else (found_problems.of_refusal(refusal),)),
            *found_problems.of_pipeline(status, unreadable),
        ),
        freshness=freshness_of(day, committed, since=measured_since, held=held),
        rows=sum(one.rows for one in read),
        files=sum(one.files for one in read),
        bytes=sum(one.bytes_read for one in read),
        spark=tuple(spark.rows),
        held_entries=len(held),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits in the sources; None where that is not known."""

    files: int | None = None
    bytes: int | None = None
    oldest_at: float | None = None
    changed: Mapping[str, int] | None = None
    """Files that changed after they were ingested, by source."""
    problems: tuple[Problem, ...] = ()


def stuck_of(found: Journaled | None) -> tuple[int, ...]:
    """Count what keeps a day from being complete: failed and lost files, and held entries."""
    if found is None:
        return ()
    sources = found.status.sources
    return (
        sum(one.failed_files for one in sources),
        sum(one.lost_files for one in sources),
        found.held_entries,
    )


def backlog_of(sources: Sequence[SourceStatus]) -> Backlog:
    """Return what a listing has found."""
    listed = [one for one in sources if one.pending_files is not None]
    oldest = [one.oldest_pending for one in listed if one.oldest_pending is not None]
    return Backlog(
        files=sum(one.pending_files or 0 for one in listed) if listed else None,
        bytes=sum(one.pending_bytes or 0 for one in listed) if listed else None,
        oldest_at=min(oldest).timestamp() if oldest else None,
        changed={one.source: one.changed_files for one in listed} if listed else None,
        problems=tuple(found_problems.of_sources(sources)),
    )


def pipeline_summary(
    settings: PipelineSettings,
    *,
    table: str | None,
    found: Journaled | None,
    trouble: Problem | None,
    backlog: Backlog,
    part: PipelinePart | None,
    yesterday: DayVerdict,
    now: float,
) -> PipelineSummary:
    """Return a pipeline at a glance; what is not known is None, or says so."""
    status = None if found is None else found.status
    problems = [
        *(() if part is None or part.problem is None else (part.problem,)),
        *(() if trouble is None else (trouble,)),
        *backlog.problems,
        *(() if found is None else found.problems),
    ]
    changed = backlog.changed
    if part is not None and part.changed_files:  # The run has looked later than we have.
        changed = {**(changed or {}), **part.changed_files}
    problems += found_problems.of_changed(changed or {})
    written = None if status is None else status.last_written
    oldest = backlog.oldest_at
    return PipelineSummary(
        name=settings.name,
        table=table,
        table_uri=settings.sink.table_uri,
        sources=[source.uri for source in settings.sources],
        hand_off=settings.sink.handoff.value,
        state=_state(part, status, backlog),
        health=found_problems.health_of(problems, known=found is not None),
        problems=found_problems.sorted_problems(problems),
        current_batch=None if part is None else part.current_batch,
        next_look_at=None if part is None else part.next_look_at,
        waiting_files=backlog.files,
        waiting_bytes=backlog.bytes,
        oldest_waiting_secs=None if oldest is None else round(max(0.0, now - oldest), 3),
        failed_files=0 if status is None else sum(one.failed_files for one in status.sources),
        changed_files=None if changed is None else sum(changed.values()),
        held_entries=0 if found is None else found.held_entries,
        quarantined_lines=0 if status is None else status.quarantine.waiting,
        freshness=Freshness() if found is None else found.freshness,
        last_entry=None if status is None else status.last_entry,
        last_entry_at=None if written is None else rfc3339(written.at),
        rows_24h=0 if found is None else found.rows,
        files_24h=0 if found is None else found.files,
        bytes_24h=0 if found is None else found.bytes,
        spark=[0.0] * SPARK_BUCKETS if found is None else list(found.spark),
        yesterday=yesterday,
    )


def _state(part: PipelinePart | None, status: PipelineStatus | None, backlog: Backlog) -> State:
    uncommitted = status is not None and status.uncommitted_entries > 0
    if part is not None:
        idles = part.state in ("idle", "waiting")
        return "waiting" if idles and (uncommitted or backlog.files) else part.state
    writer = None if status is None else status.writer
    if status is None:
        return "unknown"
    if writer is None or writer.state in (Life.ENDED, Life.GONE):
        return "stopped"
    # Somebody writes, in a process that does not answer here.
    return "waiting" if uncommitted or backlog.files else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableParts:
    """What is known of a table."""

    version: int | None = None
    newest: Commit | None = None
    files: int | None = None
    bytes: int | None = None
    rows: int | None = None
    size_version: int | None = None
    """The version that files, bytes and rows are of."""
    size_at_ms: int | None = None
    status: TableStatus | None = None
    trouble: Problem | None = None
    known: bool = False
    """Whether it was looked at."""


def table_summary(
    name: str,
    settings: TableSettings,
    *,
    found: TableParts,
    part: TablePart | None,
    pipelines: Sequence[str],
    waiting: int | None,
) -> TableSummary:
    """Return a table at a glance."""
    problems = [
        *(() if part is None else part.problems),
        *(() if found.trouble is None else (found.trouble,)),
        *(() if found.status is None else found_problems.of_table(found.status)),
    ]
    by_code = {(one.code, one.subject): one for one in reversed(problems)}
    problems = list(reversed(by_code.values()))
    if found.status is not None:
        pending = sum(one.pending_entries or 0 for one in found.status.pipelines)
        waiting = max(waiting or 0, pending) or waiting
    state: State = "unknown"
    if part is not None:
        state = "waiting" if part.state == "idle" and waiting else part.state
    elif found.known:
        state = "waiting" if waiting else "unknown"
    return TableSummary(
        name=name,
        uri=settings.table_uri,
        state=state,
        health=found_problems.health_of(problems, known=found.known),
        problems=found_problems.sorted_problems(problems),
        version=found.version,
        committed_at=None if found.newest is None else of_ms(found.newest.at_ms),
        files=found.files,
        bytes=found.bytes,
        rows=found.rows,
        size_version=found.size_version,
        size_at=of_ms(found.size_at_ms),
        waiting_entries=waiting,
        pipelines=list(pipelines),
    )


def same_but_for_time(summary: PipelineSummary) -> PipelineSummary:
    """Return a summary without what changes by the passing of time alone."""
    return replace(summary, oldest_waiting_secs=None)
