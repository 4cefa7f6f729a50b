"""The problems of a pipeline, and what to do about them. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from blizzard.answers.answer import (
    CommandPrefix,
    Health,
    Problem,
    WayOut,
    committed_again,
    confirmed,
)
from blizzard.answers.status import POLLS, PipelineStatus, SourceStatus, commit_patience
from blizzard.journal.lease import Life
from blizzard.model.settings import PipelineSettings
from lakebed.clock import rfc3339
from lakebed.errors import LakeError
from lakebed.telemetry.events import code_of, first_of
from lakebed.units import is_are, plural

MOVING_SECS = 60.0
"""A backlog counts as moving for at least this long after a step."""
COMMITS_LATE = ("commit_late", "commit_behind")
LATE = (*COMMITS_LATE, "files_late", "files_behind")
"""Codes of lateness; `behind` if the step is making progress."""
error_found = partial(Problem, severity="error")
_warning = partial(Problem, severity="warning")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadFiles:
    """Unread files in the last listings of the sources."""

    files: int | None = None
    """None if no source was listed."""
    since: datetime | None = None
    changed: Mapping[str, int] = field(default_factory=dict)
    """Files that changed after ingestion, by source."""

    @classmethod
    def of(cls, sources: Iterable[SourceStatus]) -> "UnreadFiles":
        """Sum up the listings of sources."""
        listed = [one for one in sources if one.pending_files is not None]
        return cls(
            files=sum(one.pending_files or 0 for one in listed) if listed else None,
            since=min((one.oldest_pending for one in listed if one.oldest_pending), default=None),
            changed={one.source: one.changed_files for one in listed},
        )


NOTHING_LISTED, BARE = UnreadFiles(), CommandPrefix()


def of_pipeline(
    settings: PipelineSettings,
    status: PipelineStatus | None,
    unread: UnreadFiles,
    *,
    cli: CommandPrefix,
    now: datetime,
    sources: Iterable[SourceStatus] = (),
    unreadable: Iterable[int] = (),
    refusal: LakeError | None = None,
    running: Collection[str] = (),
    others: Iterable[Problem] = (),
) -> list[Problem]:
    """Return all problems of a pipeline, worst first, as shown everywhere.

    `unreadable` are entries, `refusal` is why a start would be refused, `running` names the
    programs that answer, and `others` are problems found elsewhere.
    """
    dry_run = WayOut(commands=(f"{cli.blizzard} --dry-run",))
    found = [one if one.severity == "warning" else or_way_out(one, dry_run) for one in others]
    if refusal is not None:
        message = f"blizzard would refuse to start: {refusal}"
        found.append(error_found(code=code_of(refusal), message=message, way_out=dry_run))
    found += (
        error_found(
            code="source_unlisted",
            message=f"source {one.source} cannot be listed: {one.error}",
            way_out=dry_run,
            subject=one.source,
        )
        for one in sources
        if one.error is not None and one.error != str(refusal)
    )
    found += (
        error_found(
            code="document_unreadable",
            message=f"entry {number} of the journal cannot be read; it is left out here",
            way_out=WayOut(commands=(f"{cli.blizzard} journal show {number}",)),
            subject=f"entry {number}",
        )
        for number in unreadable
    )
    if status is not None:
        found += _of_journal(status, cli, dry_run)
        found += _of_files(status, cli)
    # Files wait because of a refusal, which is a problem already.
    late = unread if refusal is None else NOTHING_LISTED
    found += late_steps(settings, status, now, late, cli=cli, running=running)
    found += _of_changed(unread.changed, cli)
    return sorted_problems(found)


def or_way_out(problem: Problem, way_out: WayOut) -> Problem:
    """Add a way out to a problem without one."""
    return replace(problem, way_out=problem.way_out or way_out)


def of_error(error: BaseException, what: str) -> Problem:
    """Return a read error as a problem, without the text of an unforeseen error."""
    message = str(error) if isinstance(error, LakeError) else "an internal error; see the log"
    return error_found(code=code_of(error), message=f"{what}: {message}")


def _of_journal(status: PipelineStatus, cli: CommandPrefix, dry_run: WayOut) -> Iterator[Problem]:
    if not status.receipt_fits:
        yield error_found(
            code="receipt_does_not_fit",
            message=f"entry {status.committed_entry} is committed, but the journal does not have "
            "it as it was",
            way_out=dry_run,
        )
    if status.lost_entry is not None:
        known = "none is" if status.committed_entry is None else f"entry {status.committed_entry}"
        yield error_found(
            code="log_rolled_back",
            message=f"entry {status.lost_entry} is committed by the receipt, but by the Delta log "
            f"{known}: the log was rolled back, or the table was replaced",
            way_out=committed_again(cli),
            counts=(1,),
            many="{0:,} pipelines have committed entries that the Delta log has lost: it was "
            "rolled back, or the table was replaced",
        )
    for one in status.held:
        files, rows = plural(one.files, "data file"), plural(one.rows, "row")
        yield error_found(
            code=one.code,
            message=f"{files} ({rows}) {is_are(one.files)} held: {'; '.join(one.reasons)}",
            way_out=WayOut(commands=(f"{cli.penguin} held",)),
        )
    if waiting := status.awaiting_redo:
        files, rows = plural(len(waiting), "data file"), plural(sum(w.rows for w in waiting), "row")
        sources = dict.fromkeys(key for one in waiting for key in one.sources)
        yield error_found(
            code="redo_waiting",
            message=f"{files} ({rows}) that penguin fsck took out {is_are(len(waiting))} not read "
            f"again yet: {first_of([*sources])}",
            way_out=WayOut(commands=confirmed(f"{cli.blizzard} redo")),
        )
    if status.withheld_error is not None:
        yield _warning(
            code="held_unknown",
            message=f"it is not known what penguin holds: {status.withheld_error}",
            way_out=WayOut(commands=(f"{cli.penguin} status",)),
        )
    if status.writer is not None and status.writer.state is Life.GONE:
        yield _warning(
            code="writer_died",
            message="the last blizzard process for this pipeline died without shutting down. A "
            "restart continues where the journal ends",
            way_out=WayOut(commands=(cli.start("blizzard"),)),
            since=None if status.writer.seen is None else rfc3339(status.writer.seen),
        )


def _of_files(status: PipelineStatus, cli: CommandPrefix) -> Iterator[Problem]:
    listed = f"{cli.blizzard} dlq list"
    failed = sum(one.failed_files for one in status.sources)
    if failed:
        codes = sorted({each.code for one in status.sources for each in one.failures})
        names = f" ({', '.join(codes)})" if len(codes) > 1 else ""
        yield _counting(
            failed,
            f"1 source file failed{names}",
            f"{{0:,}} source files failed{names}",
            code=codes[0] if len(codes) == 1 else "files_failed",
            way_out=WayOut(commands=(listed,)),
        )
    lost = sum(one.lost_files for one in status.sources)
    if lost:
        yield _counting(
            lost,
            "1 source file failed and was deleted from the source, never loaded",
            "{0:,} source files failed and were deleted from the source, never loaded",
            code="files_lost",
            way_out=WayOut(
                advice="The list names them. Put them back, or give them up.",
                commands=(listed, *confirmed(f"{cli.blizzard} dlq discard --deleted")),
            ),
        )
    if status.quarantine.waiting:
        yield _counting(
            status.quarantine.waiting,
            "1 bad line is in quarantine",
            "{0:,} bad lines are in quarantine",
            code="bad_lines_waiting",
            way_out=WayOut(commands=(listed,)),
        )


def _of_changed(changed: Mapping[str, int], cli: CommandPrefix) -> Iterator[Problem]:
    """Yield a problem for each source with files that changed after ingestion."""
    for source, files in changed.items():
        if files:
            kept = "changed after being ingested; source.on_change keeps the new content unread"
            yield _counting(
                files,
                f"source {source}: 1 file {kept}",
                f"source {source}: {{0:,}} files {kept}",
                code="changed",
                way_out=WayOut(commands=(f"{cli.blizzard} files --state changed",)),
                subject=source,
            )


def _counting(
    count: int, one: str, many: str, *, code: str, way_out: WayOut, subject: str | None = None
) -> Problem:
    """Return a warning whose count can be summed over pipelines."""
    message = one if count == 1 else many.format(count)
    return Problem(
        severity="warning",
        code=code,
        message=message,
        way_out=way_out,
        subject=subject,
        counts=(count,),
        many=many,
    )


def sorted_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Return distinct problems: errors first, then oldest first."""
    return sorted(dict.fromkeys(problems), key=urgency)


def urgency(problem: Problem) -> tuple[bool, str]:
    """Return the sort key of problems."""
    return problem.severity != "error", problem.since or "~"


def health_of(problems: Iterable[Problem], *, known: bool) -> Health:
    """Return the health that follows from problems."""
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
    unread: UnreadFiles = NOTHING_LISTED,
    *,
    cli: CommandPrefix = BARE,
    running: Collection[str] = (),
) -> Iterator[Problem]:
    """Yield unread files and uncommitted entries that have waited too long."""
    sink, writer = settings.sink, None if status is None else status.writer
    if unread.files and unread.since is not None:
        is_alive = writer is not None and writer.state is Life.ALIVE
        is_over = writer is not None and writer.state in (Life.ENDED, Life.GONE)
        batch = None if status is None or is_over else status.last_batch
        yield from _late(
            settings,
            now,
            Problem(
                severity="warning",
                code="files_late",
                message=plural(unread.files, "source file is", "source files are") + " unread",
                way_out=_run("blizzard", cli, (*running, *["blizzard"] * is_alive)),
                since=rfc3339(unread.since),
                counts=(unread.files,),
                many="{0:,} source files are unread",
            ),
            # A batch may wait for more files up to the rollover.
            patience=sink.rolling.rollover + POLLS * settings.poll_interval,
            moved=None if batch is None else batch.at,
        )
    since = None if status is None else status.uncommitted_since
    # Lost commits are a problem of their own: neither start nor patience helps.
    if status is not None and since is not None and status.lost_entry is None:
        entries, rows = status.uncommitted_entries, status.uncommitted_rows
        counted = "" if rows is None else f" ({plural(rows, 'row')})"
        message = f"{plural(entries, 'entry', 'entries')}{counted} {is_are(entries)} {TO_COMMIT}"
        yield from _late(
            settings,
            now,
            Problem(
                severity="warning",
                code="commit_late",
                message=message,
                way_out=_run(sink.committer, cli, running),
                since=rfc3339(since),
                counts=(entries,) if rows is None else (entries, rows),
                many=f"{{0:,}} entries{'' if rows is None else ' ({1:,} rows)'} are {TO_COMMIT}",
            ),
            patience=commit_patience(settings),
            moved=status.last_commit_at,
        )


TO_COMMIT = "waiting to be committed"
MOVES = {"files_late": "others were just read", "commit_late": "others were just committed"}


def _run(program: str, cli: CommandPrefix, running: Collection[str]) -> WayOut:
    """Return the command that starts a program, or shows its status if it runs."""
    start = cli.start(program)
    return WayOut(commands=(f"{start} status" if program in running else start,))


def minute(at: datetime, now: datetime) -> str:
    """Format a time in UTC, with its date unless that is today."""
    return f"{at:{'' if at.date() == now.date() else '%Y-%m-%d '}%H:%M} UTC"


def said_of(problem: Problem, now: datetime) -> str:
    """Format a problem for a terminal, with its age."""
    if problem.since is None:
        return problem.message
    return f"{problem.message} (since {minute(datetime.fromisoformat(problem.since), now)})"


def _late(
    settings: PipelineSettings,
    now: datetime,
    problem: Problem,
    *,
    patience: float,
    moved: datetime | None,
) -> Iterator[Problem]:
    """Yield a backlog that has waited too long; a moving backlog is never an error.

    `moved` is when the step was last done; None if nothing does it any more.
    """
    limit = settings.sink.late_after
    waited = (now - datetime.fromisoformat(problem.since or "")).total_seconds()
    if waited <= min(patience, limit):
        return
    if moved is not None and (now - moved).total_seconds() <= min(
        limit, max(patience, MOVING_SECS)
    ):
        more = f"; {MOVES[problem.code]}"
        yield replace(
            problem,
            code=problem.code.replace("late", "behind"),
            message=problem.message + more,
            many=f"{problem.many}{more}",
        )
    else:
        yield replace(problem, severity="error" if waited > limit else "warning")
