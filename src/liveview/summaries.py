"""Pipelines and tables at a glance, from looks and from what runs now. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from blizzard.answers.source_status import SourceStatus
from blizzard.answers.status import PipelineStatus
from blizzard.journal.lease_record import Life
from blizzard.model.settings import PipelineSettings
from lakebed.deltalog.versions import Commit
from liveview.looks.pipelines import PipelineView
from liveview.looks.tables import ObservedTable, TableSize
from liveview.model import (
    SPARK_BUCKETS,
    DayVerdict,
    PartReport,
    PipelineSummary,
    Problem,
    State,
    TableSummary,
    of_ms,
    rfc3339,
)
from liveview.views import problems as found_problems
from liveview.views.over_time import DAY_SECS, freshness_of, series_of
from penguin.status import TableStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits in the sources; None is unknown."""

    files: int | None = None
    bytes: int | None = None
    oldest_at: float | None = None
    changed: Mapping[str, int] | None = None
    """Files that changed after they were ingested, by source."""
    problems: tuple[Problem, ...] = ()


def backlog_of(sources: Sequence[SourceStatus]) -> Backlog:
    """Return the result of a listing."""
    listed = [one for one in sources if one.pending_files is not None]
    oldest = [one.oldest_pending for one in listed if one.oldest_pending is not None]
    return Backlog(
        files=sum(one.pending_files or 0 for one in listed) if listed else None,
        bytes=sum(one.pending_bytes or 0 for one in listed) if listed else None,
        oldest_at=min(oldest).timestamp() if oldest else None,
        changed={one.source: one.changed_files for one in listed} if listed else None,
        problems=tuple(found_problems.of_sources(sources)),
    )


def unknown_pipeline(settings: PipelineSettings, table: str) -> PipelineSummary:
    """Return a pipeline of which only the configuration is known."""
    return PipelineSummary(
        name=settings.name,
        table=table,
        table_uri=settings.sink.table_uri,
        sources=[source.uri for source in settings.sources],
        hand_off=settings.sink.handoff.value,
    )


def journaled(
    pipeline: PipelineSummary, view: PipelineView, committed: Mapping[int, Commit], *, now: float
) -> PipelineSummary:
    """Return a pipeline with what a look at its journal has found."""
    status, held = view.status, view.held
    day = [one for one in view.entries if one.at >= now - DAY_SECS]
    read = [one.batch for one in day if one.batch.kind in ("batch", "replay")]
    since = max(now - DAY_SECS, view.since or 0.0)
    written = status.last_written
    return replace(
        pipeline,
        problems=list(found_problems.of_pipeline(status, view.unreadable, view.refusal)),
        failed_files=sum(one.failed_files for one in status.sources),
        held_entries=len(held),
        quarantined_lines=status.quarantine.waiting,
        freshness=freshness_of(day, committed, since=since, held=held),
        last_entry=status.last_entry,
        last_entry_at=None if written is None else rfc3339(written.at),
        rows_24h=sum(one.rows for one in read),
        files_24h=sum(one.files for one in read),
        bytes_24h=sum(one.bytes_read for one in read),
        spark=series_of(day, now=now, hours=24, points=SPARK_BUCKETS).rows,
    )


def stuck_of(found: tuple[PipelineStatus, PipelineSummary] | None) -> tuple[int, ...]:
    """Count what keeps a day from being complete: failed and lost files, and held entries."""
    if found is None:
        return ()
    status, summary = found
    lost = sum(one.lost_files for one in status.sources)
    return summary.failed_files, lost, summary.held_entries


def running(
    pipeline: PipelineSummary,
    status: PipelineStatus | None,
    *,
    trouble: Problem | None,
    backlog: Backlog,
    part: PartReport | None,
    yesterday: DayVerdict,
    now: float,
) -> PipelineSummary:
    """Return a pipeline with what waits for it and what its process reports."""
    changed = backlog.changed
    if part is not None:
        if part.waiting is not None:
            at = part.oldest_waiting_at
            oldest_at = None if at is None else datetime.fromisoformat(at).timestamp()
            backlog = replace(backlog, files=part.waiting, bytes=None, oldest_at=oldest_at)
        if part.changed_files:  # The run has looked later than we have.
            changed = {**(changed or {}), **part.changed_files}
    problems = [
        *(() if part is None else part.problems),
        *(() if trouble is None else (trouble,)),
        *backlog.problems,
        *pipeline.problems,
        *found_problems.of_changed(changed or {}),
    ]
    oldest = backlog.oldest_at
    return replace(
        pipeline,
        state=_state(part, status, backlog),
        health=found_problems.health_of(problems, known=status is not None),
        problems=found_problems.sorted_problems(problems),
        current_batch=None if part is None else part.current_batch,
        next_look_at=None if part is None else part.next_look_at,
        waiting_files=backlog.files,
        waiting_bytes=backlog.bytes,
        oldest_waiting_secs=None if oldest is None else round(max(0.0, now - oldest), 3),
        changed_files=None if changed is None else sum(changed.values()),
        yesterday=yesterday,
    )


def _state(part: PartReport | None, status: PipelineStatus | None, backlog: Backlog) -> State:
    waits = bool(backlog.files) or (status is not None and status.uncommitted_entries > 0)
    if part is not None:
        return "waiting" if waits and part.state in ("idle", "waiting") else part.state
    if status is None:
        return "unknown"
    if status.writer is None or status.writer.state in (Life.ENDED, Life.GONE):
        return "stopped"
    # A process writes that does not answer here.
    return "waiting" if waits else "unknown"


def table_summary(
    table: TableSummary,
    view: ObservedTable | None,
    *,
    size: TableSize,
    status: TableStatus | None,
    trouble: Problem | None,
    part: PartReport | None,
    waiting: int | None,
) -> TableSummary:
    """Return a table at a glance; without a view, its log is not known."""
    problems = [
        *(() if part is None else part.problems),
        *(() if trouble is None else (trouble,)),
        *(() if status is None else found_problems.of_table(status)),
    ]
    by_code = {(one.code, one.subject): one for one in reversed(problems)}
    problems = list(reversed(by_code.values()))
    if status is not None:
        pending = sum(one.pending_entries or 0 for one in status.pipelines)
        waiting = max(waiting or 0, pending) or waiting
    state: State = "unknown" if part is None else part.state
    if waiting and (state == "idle" if part is not None else view is not None):
        state = "waiting"
    return replace(
        table,
        state=state,
        health=found_problems.health_of(problems, known=view is not None),
        problems=found_problems.sorted_problems(problems),
        version=None if view is None else view.version,
        committed_at=None if view is None else _committed_at(view, view.version),
        files=size.files,
        bytes=size.bytes,
        rows=size.rows,
        size_version=size.version,
        size_at=None if view is None else _committed_at(view, size.version),
        waiting_entries=waiting,
    )


def _committed_at(view: ObservedTable, version: int | None) -> str | None:
    commit = None if version is None else view.commits.get(version)
    return None if commit is None else of_ms(commit.at_ms)
