"""What a person should know about a pipeline or a table, the worst first. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from blizzard.answers.source_status import SourceStatus
from blizzard.answers.status import PipelineStatus
from blizzard.journal.lease_record import Life
from lakebed.errors import LakeError
from lakebed.telemetry.events import code_of
from lakebed.units import plural
from liveview.model import Health, Problem, of_text, rfc3339
from penguin.status import TableStatus

HELD = "penguin held shows them; blizzard redo --held ID reads their sources again"
DRY_RUN = "blizzard --dry-run says what to do"

_error = partial(Problem, severity="error")
_warning = partial(Problem, severity="warning")


def of_error(error: BaseException, what: str) -> Problem:
    """Return that something could not be read, without the text of an unforeseen error."""
    message = str(error) if isinstance(error, LakeError) else "an internal error; see the log"
    return _error(code=code_of(error), message=f"{what}: {message}")


def of_pipeline(
    status: PipelineStatus, unreadable: Iterable[int], refusal: LakeError | None
) -> Iterator[Problem]:
    """Yield the problems that the journal shows; a start of the pipeline may be refused."""
    if refusal is not None:
        message = f"a start of this pipeline would be refused: {refusal}"
        yield _error(code=code_of(refusal), message=message, way_out=DRY_RUN)
    if not status.receipt_fits:
        yield _error(
            code="receipt_does_not_fit",
            message=f"entry {status.committed_entry} is committed, but the journal does not have "
            "it as it was",
            way_out=DRY_RUN,
        )
    for one in status.held:
        files, rows = plural(one.files, "file"), plural(one.rows, "row")
        message = f"{files} with {rows} held: {'; '.join(one.reasons)}"
        yield _error(code=one.code, message=message, way_out=HELD)
    yield from _of_files(status)
    if status.aside_error is not None:
        message = f"what penguin holds cannot be told: {status.aside_error}"
        yield _warning(code="held_unknown", message=message)
    if status.writer is not None and status.writer.state is Life.GONE:
        yield _warning(
            code="writer_died",
            message="the blizzard that wrote this pipeline last died without an end; since then "
            "its note was not renewed",
            way_out="start blizzard; it goes on where the journal ends",
            since=None if status.writer.seen is None else rfc3339(status.writer.seen),
        )
    for number in unreadable:
        yield _error(
            code="document_unreadable",
            message=f"entry {number} of the journal cannot be read; what it says is left out here",
            way_out=f"blizzard journal show {number} says why",
            subject=f"entry {number}",
        )


def _of_files(status: PipelineStatus) -> Iterator[Problem]:
    failed = sum(one.failed_files for one in status.sources)
    if failed:
        codes = sorted({each.code for one in status.sources for each in one.failures})
        yield _warning(
            code=codes[0] if len(codes) == 1 else "files_failed",
            message=f"{plural(failed, 'source file')} failed ({', '.join(codes)})",
            way_out="blizzard dlq list shows them, with the ways out",
        )
    lost = sum(one.lost_files for one in status.sources)
    if lost:
        yield _warning(
            code="files_lost",
            message=f"{plural(lost, 'source file')} failed and {'was' if lost == 1 else 'were'} "
            "deleted from the source since: never loaded",
            way_out="put them back, or give them up: blizzard dlq discard --deleted",
        )
    if status.quarantine.waiting:
        yield _warning(
            code="bad_lines_waiting",
            message=f"{plural(status.quarantine.waiting, 'bad line')} in quarantine",
            way_out="blizzard dlq list shows them in groups, with what lets them in",
        )


def of_sources(sources: Iterable[SourceStatus]) -> Iterator[Problem]:
    """Yield the sources that could not be listed."""
    for one in sources:
        if one.error is not None:
            message = f"source {one.source} cannot be listed: {one.error}"
            yield _error(code="source_unlisted", message=message, subject=one.source)


def of_changed(changed: Mapping[str, int]) -> Iterator[Problem]:
    """Yield the sources with files that changed after they were ingested."""
    for source, files in changed.items():
        if files:
            yield _warning(
                code="changed",
                message=f"source {source}: {plural(files, 'file')} changed after being ingested; "
                "the new content is not read",
                way_out="source.on_change says whether new content is read; blizzard files --state "
                "changed lists them",
                subject=source,
            )


def of_table(status: TableStatus) -> Iterator[Problem]:
    """Yield the problems of a table."""
    for one in status.pipelines:
        stopped = one.stopped
        if stopped is not None:
            entry = "" if stopped.entry is None else f" at entry {stopped.entry}"
            yield _error(
                code=stopped.code,
                message=f"pipeline {one.pipeline} is stopped{entry}: {'; '.join(stopped.reasons)}",
                way_out="penguin held says what to do",
                since=of_text(stopped.since),
                subject=one.pipeline,
            )
    if status.held:
        rows = plural(sum(one.meta.record_count for one in status.held), "row")
        message = f"{plural(len(status.held), 'file')} with {rows} held"
        yield _error(code="files_held", message=message, way_out=HELD)
    if status.danger is not None:
        message = "files have been waiting so long that a VACUUM may delete them"
        yield _error(code="files_wait_too_long", message=message, way_out="run penguin")


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
