"""Summaries of pipelines and tables, with their problems. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from blizzard.answers.answer import CommandPrefix, Problem, WayOut, committed_again
from blizzard.answers.file_counts import DayOrPartition, Reconciliation
from blizzard.answers.problems import (
    COMMITS_LATE,
    UnreadFiles,
    error_found,
    health_of,
    of_pipeline,
    or_way_out,
    sorted_problems,
)
from blizzard.answers.status import PipelineStatus, SourceStatus
from blizzard.journal.lease import Life
from blizzard.model.settings import PipelineSettings
from lakebed.clock import rfc3339
from lakebed.deltalog.versions import Commit
from lakebed.units import is_are, plural
from liveview.details import Days
from liveview.history import ObservedTable, PipelineView, TableSize, freshness_of, series_of
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
from penguin.model.settings import LogRolledBack
from penguin.status import TableStatus


def of_table(status: TableStatus, cli: CommandPrefix) -> Iterator[Problem]:
    """Yield the problems of a table."""
    held = WayOut(commands=(f"{cli.penguin} held",))
    for one in status.pipelines:
        stopped = one.stopped
        if stopped is not None:
            entry = "" if stopped.entry is None else f" at entry {stopped.entry}"
            yield error_found(
                code=stopped.code,
                message=f"pipeline {one.pipeline} is stopped{entry}: {'; '.join(stopped.reasons)}",
                way_out=committed_again(cli) if stopped.code == LogRolledBack.code else held,
                since=of_text(stopped.since),
                subject=one.pipeline,
            )
    if status.held:
        rows = plural(sum(one.record_count for one in status.held), "row")
        message = f"{plural(len(status.held), 'data file is', 'data files are')} held ({rows})"
        yield error_found(code="files_held", message=message, way_out=held)
    if status.danger is not None:
        message = "data files have been waiting so long that a VACUUM may delete them"
        once = WayOut(commands=(f"{cli.penguin} --once",))
        yield error_found(code="files_wait_too_long", message=message, way_out=once)


def journaled(
    pipeline: PipelineSummary,
    view: PipelineView,
    committed: Mapping[int, Commit],
    *,
    now: float,
) -> PipelineSummary:
    """Add what a pipeline's journal says."""
    status, held = view.status, view.held
    day = [one for one in view.entries if one.at >= now - DAY_SECS]
    read = [one.batch for one in day if one.batch.kind in ("batch", "replay")]
    since = max(now - DAY_SECS, view.since or 0.0)
    since_of = status.uncommitted_since
    batch = status.last_batch
    return replace(
        pipeline,
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


def stuck_of(found: tuple[PipelineView, PipelineSummary] | None) -> tuple[int, ...]:
    """Count the failed files, lost files and held entries, which keep a day incomplete."""
    if found is None:
        return ()
    view, summary = found
    lost = sum(one.lost_files for one in view.status.sources)
    return summary.failed_files or 0, lost, summary.held_entries or 0


def running(
    pipeline: PipelineSummary,
    view: PipelineView | None,
    *,
    settings: PipelineSettings,
    cli: CommandPrefix,
    answering: Collection[str],
    trouble: Problem | None,
    sources: Sequence[SourceStatus],
    part: PartReport | None,
    yesterday: DayVerdict,
    now: float,
) -> PipelineSummary:
    """Add the waiting files, the process's report and all problems.

    `sources` are the last listings; `answering` are the running programs.
    """
    unread, status = UnreadFiles.of(sources), None if view is None else view.status
    size = sum(one.pending_bytes or 0 for one in sources) if unread.files is not None else None
    if part is not None:
        if part.waiting is not None:
            at = part.oldest_waiting_at
            since, size = None if at is None else datetime.fromisoformat(at), None
            unread = replace(unread, files=part.waiting, since=since)
        # The run's listing is newer than ours.
        unread = replace(unread, changed={**unread.changed, **part.changed_files})
    problems = of_pipeline(
        settings,
        status,
        unread,
        cli=cli,
        now=datetime.fromtimestamp(now, UTC),
        sources=sources,
        unreadable=() if view is None else view.unreadable,
        refusal=None if view is None else view.refusal,
        running=answering,
        others=[
            *(() if part is None else part.problems),
            *(() if trouble is None else (trouble,)),
        ],
    )
    oldest = unread.since
    batch = None if part is None else part.current_batch
    age = None if oldest is None else round(max(0.0, now - oldest.timestamp()), 3)
    return replace(
        pipeline,
        state=_state(part, status, unread.files),
        health=health_of(problems, known=status is not None),
        problems=problems,
        current_batch=batch,
        next_listing_at=None if part is None else part.next_listing_at,
        waiting_files=unread.files,
        waiting_bytes=size,
        oldest_waiting_secs=age,
        behind_secs=_behind(status, unread.files, oldest, batch, now),
        changed_files=sum(unread.changed.values()) if unread.changed else None,
        yesterday=yesterday,
    )


def _behind(
    status: PipelineStatus | None,
    files: int | None,
    oldest: datetime | None,
    batch: CurrentBatch | None,
    now: float,
) -> float | None:
    """Return the age of the oldest data that is not in the table; None if unknown."""
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
    # Without a report, a process runs that does not answer here.
    return "unknown" if part is None else "idle"


def table_summary(
    table: TableSummary,
    view: ObservedTable | None,
    *,
    size: TableSize,
    status: TableStatus | None,
    trouble: Problem | None,
    part: PartReport | None,
    pipelines: Sequence[PipelineSummary],
    cli: CommandPrefix,
) -> TableSummary:
    """Add a table's state and problems; lateness comes from its pipelines.

    Without a view, its log is unknown.
    """
    usual = WayOut(commands=(f"{cli.penguin} status",))
    problems = [
        *(() if status is None else of_table(status, cli)),
        *(() if trouble is None else (trouble,)),
        *(() if part is None else part.problems),
    ]
    # What the log says has a way out; penguin itself knows since when.
    since = {(one.code, one.subject): one.since for one in problems if one.since}
    by_code = {
        key: replace(one, since=one.since or since.get(key))
        for one in reversed(problems)
        for key in [(one.code, one.subject)]
    }
    problems = [
        one if one.severity == "warning" else or_way_out(one, usual) for one in by_code.values()
    ]
    for each in pipelines:
        late = (one for one in each.problems if one.code in COMMITS_LATE)
        problems += [replace(one, subject=each.name) for one in late]
    counts = [each.uncommitted_entries for each in pipelines]
    waiting = None if None in counts else sum(one or 0 for one in counts)
    if status is not None:
        pending = sum(one.pending_entries or 0 for one in status.pipelines)
        waiting = max(waiting or 0, pending) or waiting
        if not {each.name for each in pipelines}.issuperset(status.uncounted):
            waiting = None
    is_idle = view is not None and waiting is not None if part is None else part.state == "idle"
    state: State = "idle" if part is None and is_idle else "unknown" if part is None else part.state
    if is_idle and (waiting or (part is not None and part.waiting)):
        state = "to_commit"
    return replace(
        table,
        state=state,
        health=health_of(problems, known=view is not None and state != "unknown"),
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


def yesterday_of(now: datetime) -> str:
    """Return the previous day in UTC."""
    return f"{now - timedelta(days=1):%Y-%m-%d}"


def verdict_of(day: str, group: DayOrPartition | None, *, outdated: bool = False) -> DayVerdict:
    """Return the verdict on a day, with its sentence.

    `outdated` means that files failed or were held since: a complete day may no longer be.
    """
    if group is None or (outdated and group.complete):
        doubt = "not known yet" if group is None else "being read"
        sentence = f"whether {day} is complete is {doubt}"
        return DayVerdict(day=day, complete=None, sentence=sentence)
    # A pipeline need not have files every day: a day without any is neither complete nor not.
    complete = group.complete if group.landed else None
    return DayVerdict(day=day, complete=complete, sentence=group.sentence, standing=group.standing)


def days_of(found: Reconciliation) -> Days:
    """Return the recent days with files, newest first."""
    notes = list(found.errors)
    if found.left_out:
        notes.append(
            f"{plural(found.left_out, 'file')} of other days {is_are(found.left_out)} not shown"
        )
    return Days(
        days=[group for group in found.groups if group.landed],
        note="; ".join(notes) or None,
    )
