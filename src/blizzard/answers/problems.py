"""What a person should know about a pipeline, and what to do about it. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal

from blizzard.answers.answer import Health, Problem
from blizzard.answers.source_status import SourceStatus
from blizzard.answers.status import POLLS, PipelineStatus, commit_patience
from blizzard.journal.lease_record import Life
from blizzard.model.settings import PipelineSettings
from lakebed.clock import rfc3339
from lakebed.errors import LakeError
from lakebed.telemetry.events import code_of
from lakebed.units import plural

MOVING_SECS = 60.0
"""The least time after a step during which its backlog counts as moving."""
error_found = partial(Problem, severity="error")
_warning = partial(Problem, severity="warning")


def of_error(error: BaseException, what: str) -> Problem:
    """Return that something could not be read, without the text of an unforeseen error."""
    message = str(error) if isinstance(error, LakeError) else "an internal error; see the log"
    return error_found(code=code_of(error), message=f"{what}: {message}")


def of_pipeline(
    status: PipelineStatus,
    unreadable: Iterable[int],
    refusal: LakeError | None,
    options: str,
) -> Iterator[Problem]:
    """Yield the problems that the journal shows; a start of the pipeline may be refused.

    `options` name the configuration in a command.
    """
    dry_run = f"blizzard{options} --dry-run"
    if refusal is not None:
        message = f"a start of this pipeline would be refused: {refusal}"
        yield error_found(code=code_of(refusal), message=message, way_out=dry_run)
    if not status.receipt_fits:
        yield error_found(
            code="receipt_does_not_fit",
            message=f"entry {status.committed_entry} is committed, but the journal does not have "
            "it as it was",
            way_out=dry_run,
        )
    for one in status.held:
        files, rows = plural(one.files, "file"), plural(one.rows, "row")
        message = f"{files} with {rows} held: {'; '.join(one.reasons)}"
        yield error_found(code=one.code, message=message, way_out=f"penguin{options} held")
    yield from _of_files(status, f"blizzard{options} dlq")
    if status.aside_error is not None:
        message = f"what penguin holds cannot be told: {status.aside_error}"
        yield _warning(code="held_unknown", message=message)
    if status.writer is not None and status.writer.state is Life.GONE:
        yield _warning(
            code="writer_died",
            message="the blizzard that wrote this pipeline last died without an end; since then "
            "its note was not renewed. A start goes on where the journal ends",
            way_out=f"blizzard{options}",
            since=None if status.writer.seen is None else rfc3339(status.writer.seen),
        )
    for number in unreadable:
        yield error_found(
            code="document_unreadable",
            message=f"entry {number} of the journal cannot be read; what it says is left out here",
            way_out=f"blizzard{options} journal show {number}",
            subject=f"entry {number}",
        )


def _of_files(status: PipelineStatus, dlq: str) -> Iterator[Problem]:
    failed = sum(one.failed_files for one in status.sources)
    if failed:
        codes = sorted({each.code for one in status.sources for each in one.failures})
        yield _warning(
            code=codes[0] if len(codes) == 1 else "files_failed",
            message=f"{plural(failed, 'source file')} failed ({', '.join(codes)})",
            way_out=f"{dlq} list",
        )
    lost = sum(one.lost_files for one in status.sources)
    if lost:
        yield _warning(
            code="files_lost",
            message=f"{plural(lost, 'source file')} failed and {'was' if lost == 1 else 'were'} "
            "deleted from the source since, never loaded: put them back, or give them up",
            way_out=f"{dlq} discard --deleted",
        )
    if status.quarantine.waiting:
        yield _warning(
            code="bad_lines_waiting",
            message=f"{plural(status.quarantine.waiting, 'bad line')} in quarantine",
            way_out=f"{dlq} list",
        )


def of_sources(sources: Iterable[SourceStatus]) -> Iterator[Problem]:
    """Yield the sources that could not be listed."""
    for one in sources:
        if one.error is not None:
            message = f"source {one.source} cannot be listed: {one.error}"
            yield error_found(code="source_unlisted", message=message, subject=one.source)


def of_changed(changed: Mapping[str, int], options: str) -> Iterator[Problem]:
    """Yield the sources with files that changed after they were ingested."""
    for source, files in changed.items():
        if files:
            yield _warning(
                code="changed",
                message=f"source {source}: {plural(files, 'file')} changed after being ingested; "
                "source.on_change keeps the new content from being read",
                way_out=f"blizzard{options} files --state changed",
                subject=source,
            )


def sorted_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Return problems with the errors first, each once."""
    once = dict.fromkeys(problems)
    return sorted(once, key=lambda one: one.severity != "error")


def health_of(problems: Iterable[Problem], *, known: bool) -> Health:
    """Return the health that problems mean."""
    severities = {one.severity for one in problems}
    if "error" in severities:
        return "failing"
    if not known:
        return "unknown"
    return "warning" if severities else "ok"


def late_steps(
    settings: PipelineSettings,
    status: PipelineStatus | None,
    now: datetime,
    *,
    files: int | None,
    files_since: datetime | None,
    options: str = "",
) -> Iterator[Problem]:
    """Yield what has waited too long in a pipeline, as far as it is known.

    `files` wait in the sources, the oldest since `files_since`. `options` name the configuration
    in a command.
    """
    sink = settings.sink
    if files and files_since is not None:
        batch = None if status is None else status.last_batch
        wait = plural(files, "source file waits", "source files wait")
        yield from _late(
            settings,
            now,
            Backlog(
                step="files",
                since=files_since,
                # A batch waits for more files up to the rollover.
                patience=sink.rolling.rollover + POLLS * settings.poll_interval,
                moved=None if batch is None else batch.at,
                waits=f"{wait} to be read, the oldest since {minute(files_since, now)}",
                moves="files are being read, the last batch was at",
                way_out=f"blizzard{options}",
            ),
        )
    since = None if status is None else status.uncommitted_since
    if status is not None and since is not None:
        wait = waiting_words(status.uncommitted_entries, status.uncommitted_rows)
        yield from _late(
            settings,
            now,
            Backlog(
                step="commit",
                since=since,
                patience=commit_patience(settings),
                moved=status.last_commit_at,
                waits=f"nothing journaled since {minute(since, now)} is committed: {wait}",
                moves="entries are being committed, the last at",
                way_out=f"{sink.committer}{options}",
            ),
        )


def waiting_words(entries: int, rows: int | None) -> str:
    """Return how many entries wait for their commit, with how many rows."""
    many = "entry" if entries == 1 else "entries"
    counted = "" if rows is None else f", {plural(rows, 'row')}"
    verb = "waits" if entries == 1 and not counted else "wait"
    return f"{entries:,} {many}{counted} {verb}"


def minute(at: datetime, now: datetime) -> str:
    """Return a time in UTC, with its day unless that is today."""
    return f"{at:{'' if at.date() == now.date() else '%Y-%m-%d '}%H:%M} UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits for one step of a pipeline."""

    step: Literal["files", "commit"]
    since: datetime
    patience: float
    """Seconds that it may wait before it is late."""
    moved: datetime | None
    """When the step was done last, as far as is known."""
    waits: str
    moves: str
    way_out: str


def _late(settings: PipelineSettings, now: datetime, backlog: Backlog) -> Iterator[Problem]:
    """Yield a backlog that has waited too long; while it moves, that is never an error."""
    limit = settings.sink.late_after
    waited = (now - backlog.since).total_seconds()
    if waited <= min(backlog.patience, limit):
        return
    code, message, moved = f"{backlog.step}_late", backlog.waits, backlog.moved
    recent = min(limit, max(backlog.patience, MOVING_SECS))
    is_moving = moved is not None and (now - moved).total_seconds() <= recent
    if is_moving and moved is not None:
        code = f"{backlog.step}_behind"
        message = f"{message}; {backlog.moves} {minute(moved, now)}"
    yield Problem(
        severity="error" if waited > limit and not is_moving else "warning",
        code=code,
        message=message,
        way_out=backlog.way_out,
        since=rfc3339(backlog.since),
    )
