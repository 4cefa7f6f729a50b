"""Pipelines and tables at a glance, with what a person should know about them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from blizzard.answers.answer import Problem
from blizzard.answers.problems import (
    error_found,
    health_of,
    late_steps,
    of_changed,
    of_pipeline,
    of_sources,
    sorted_problems,
)
from blizzard.answers.source_status import SourceStatus
from blizzard.answers.status import PipelineStatus
from blizzard.journal.lease_record import Life
from blizzard.model.settings import PipelineSettings
from lakebed.clock import rfc3339
from lakebed.deltalog.versions import Commit
from lakebed.units import plural
from liveview.looks.pipelines import PipelineView
from liveview.model import (
    DAY_SECS,
    SPARK_BUCKETS,
    CurrentBatch,
    DayVerdict,
    PartReport,
    PipelineSummary,
    State,
    TableSummary,
    of_ms,
    of_text,
)
from liveview.views.entries import ObservedTable, TableSize, freshness_of, series_of
from penguin.status import TableStatus


def of_table(status: TableStatus, options: str) -> Iterator[Problem]:
    """Yield the problems of a table."""
    for one in status.pipelines:
        stopped = one.stopped
        if stopped is not None:
            entry = "" if stopped.entry is None else f" at entry {stopped.entry}"
            yield error_found(
                code=stopped.code,
                message=f"pipeline {one.pipeline} is stopped{entry}: {'; '.join(stopped.reasons)}",
                way_out=f"penguin{options} held",
                since=of_text(stopped.since),
                subject=one.pipeline,
            )
    if status.held:
        rows = plural(sum(one.record_count for one in status.held), "row")
        message = f"{plural(len(status.held), 'file')} with {rows} held"
        yield error_found(code="files_held", message=message, way_out=f"penguin{options} held")
    if status.danger is not None:
        message = "files have been waiting so long that a VACUUM may delete them"
        yield error_found(code="files_wait_too_long", message=message, way_out=f"penguin{options}")


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
    pipeline: PipelineSummary,
    view: PipelineView,
    committed: Mapping[int, Commit],
    *,
    now: float,
    options: str,
) -> PipelineSummary:
    """Return a pipeline with what a look at its journal has found."""
    status, held = view.status, view.held
    day = [one for one in view.entries if one.at >= now - DAY_SECS]
    read = [one.batch for one in day if one.batch.kind in ("batch", "replay")]
    since = max(now - DAY_SECS, view.since or 0.0)
    since_of = status.uncommitted_since
    batch = status.last_batch
    return replace(
        pipeline,
        problems=list(of_pipeline(status, view.unreadable, view.refusal, options)),
        failed_files=sum(one.failed_files for one in status.sources),
        held_entries=len(held),
        quarantined_lines=status.quarantine.waiting,
        freshness=freshness_of(day, committed, since=since, held=held),
        last_entry=status.last_entry,
        last_batch=None if batch is None else batch.entry,
        last_batch_at=None if batch is None else rfc3339(batch.at),
        uncommitted_entries=(
            status.uncommitted_entries if since_of or not status.uncommitted_entries else None
        ),
        uncommitted_rows=status.uncommitted_rows,
        uncommitted_since=None if since_of is None else rfc3339(since_of),
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
    return summary.failed_files or 0, lost, summary.held_entries or 0


def running(
    pipeline: PipelineSummary,
    status: PipelineStatus | None,
    *,
    settings: PipelineSettings,
    options: str,
    trouble: Problem | None,
    sources: Sequence[SourceStatus],
    part: PartReport | None,
    yesterday: DayVerdict,
    now: float,
) -> PipelineSummary:
    """Return a pipeline with what waits for it and what its process reports.

    `sources` are those that were listed last; `options` name the configuration in a command.
    """
    listed = [one for one in sources if one.pending_files is not None]
    files = sum(one.pending_files or 0 for one in listed) if listed else None
    size = sum(one.pending_bytes or 0 for one in listed) if listed else None
    oldest = min((one.oldest_pending for one in listed if one.oldest_pending), default=None)
    changed = {one.source: one.changed_files for one in listed}
    if part is not None:
        if part.waiting is not None:
            at = part.oldest_waiting_at
            files, size = part.waiting, None
            oldest = None if at is None else datetime.fromisoformat(at)
        changed |= part.changed_files  # The run has listed later than we have.
    clock = datetime.fromtimestamp(now, UTC)
    late = late_steps(settings, status, clock, files=files, files_since=oldest, options=options)
    problems = [
        *(() if part is None else part.problems),
        *(() if trouble is None else (trouble,)),
        *of_sources(sources),
        *pipeline.problems,
        *late,
        *of_changed(changed, options),
    ]
    batch = None if part is None else part.current_batch
    age = None if oldest is None else round(max(0.0, now - oldest.timestamp()), 3)
    return replace(
        pipeline,
        state=_state(part, status, files),
        health=health_of(problems, known=status is not None),
        problems=sorted_problems(problems),
        current_batch=batch,
        next_look_at=None if part is None else part.next_look_at,
        waiting_files=files,
        waiting_bytes=size,
        oldest_waiting_secs=age,
        behind_secs=_behind(status, files, oldest, batch, now),
        changed_files=sum(changed.values()) if changed else None,
        yesterday=yesterday,
    )


def _behind(
    status: PipelineStatus | None,
    files: int | None,
    oldest: datetime | None,
    batch: CurrentBatch | None,
    now: float,
) -> float | None:
    """Return how long the oldest data that is not in the table has waited, as far as is known."""
    began = None if batch is None else datetime.fromisoformat(batch.started_at)
    since = (oldest, began, None if status is None else status.uncommitted_since)
    waiting = [one for one in since if one is not None]
    if waiting:
        return round(max(0.0, now - min(waiting).timestamp()), 3)
    is_known = files == 0 and status is not None and not status.uncommitted_entries
    return 0.0 if is_known else None


def _state(part: PartReport | None, status: PipelineStatus | None, files: int | None) -> State:
    if part is not None and part.state != "idle":
        return part.state
    if part is None:
        if status is None:
            return "unknown"
        if status.writer is None or status.writer.state in (Life.ENDED, Life.GONE):
            return "stopped"
    if status is not None and status.uncommitted_entries > 0:
        return "to_commit"
    if files:
        return "to_read"
    # Without a report, a process writes that does not answer here.
    return "unknown" if part is None else "idle"


def table_summary(
    table: TableSummary,
    view: ObservedTable | None,
    *,
    size: TableSize,
    status: TableStatus | None,
    trouble: Problem | None,
    part: PartReport | None,
    waiting: int | None,
    options: str,
) -> TableSummary:
    """Return a table at a glance; without a view, its log is not known."""
    problems = [
        *(() if part is None else part.problems),
        *(() if trouble is None else (trouble,)),
        *(() if status is None else of_table(status, options)),
    ]
    by_code = {(one.code, one.subject): one for one in reversed(problems)}
    problems = list(reversed(by_code.values()))
    if status is not None:
        pending = sum(one.pending_entries or 0 for one in status.pipelines)
        waiting = max(waiting or 0, pending) or waiting
    state: State = "unknown" if part is None else part.state
    is_idle = view is not None if part is None else state == "idle"
    if is_idle and (waiting or (part is not None and part.waiting)):
        state = "to_commit"
    return replace(
        table,
        state=state,
        health=health_of(problems, known=view is not None),
        problems=sorted_problems(problems),
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
