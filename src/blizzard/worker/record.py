"""The record of one source file in a unit: its line counts, or its failure."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from blizzard.model.source.file import SourceFile
from blizzard.model.source.partly_read import failed, record_with, untouched
from blizzard.worker.compression import CorruptStream
from blizzard.worker.ndjson.lines import BadLine, BrokenDocument, Decoded, TextPosition
from blizzard.worker.position import CountMismatch, require_explained
from lakebed.documents.records import Failure, FailureStage, SourceRecord, Unread
from lakebed.errors import LakeError, machine_trouble
from lakebed.retry import may_mend


@dataclass(slots=True)
class LineTally:
    """The line counts of one source file."""

    lines: int = 0
    blank: int = 0
    filtered: int = 0
    quarantined: int = 0
    rows: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    rescued: Counter[str] = field(default_factory=Counter)

    def add(self, decoded: Decoded) -> None:
        """Count the lines of a batch; raise if they do not add up."""
        require_explained(decoded)
        self.lines += decoded.lines
        self.blank += decoded.blank
        self.filtered += decoded.filtered
        self.quarantined += len(decoded.bad)
        self.rows += decoded.batch.num_rows
        if decoded.dropped:
            self.dropped.update(decoded.dropped)
        if decoded.rescued:
            self.rescued.update(decoded.rescued)


def record_of(
    file: SourceFile,
    tally: LineTally,
    *,
    unit: str | None = None,
    failure: Failure | None = None,
    unread: tuple[Unread, ...] | None = (),
) -> SourceRecord:
    """Return the record of one source file; nothing read of a failed one counts.

    `unread` holds its remaining byte ranges; None if something remains and only lines are counted.
    """
    if failure is not None:
        return failed(untouched(file), failure)
    return record_with(
        file,
        lines=tally.lines,
        blank=tally.blank,
        filtered=tally.filtered,
        quarantined=tally.quarantined,
        rows=tally.rows,
        complete=unread == (),
        unread=unread or (),
        dropped=dict(tally.dropped),
        rescued=dict(tally.rescued),
        unit=unit,
    )


def failure_of(
    error: Exception,
    stage: FailureStage = FailureStage.DOWNLOAD,
    file: SourceFile | None = None,
    *,
    place_of: Callable[[int], TextPosition | None] | None = None,
    show_values: bool = False,
) -> Failure:
    """Convert an error into a journal failure.

    Line content, which may be secret, is quoted only with `show_values`. `place_of` locates a
    record in a file of documents; None for lines.
    """
    failure = _failure(error, stage)
    if show_values and (seen := _seen(error)):
        failure = replace(failure, message=f"{failure.message}; it reads {seen}")
    if file is None or file.part is not None or failure.line is None:
        return failure  # The driver adds the lines before a part.
    failure = replace(failure, line=failure.line + file.skip)
    return failure if place_of is None else _in_document(failure, error, place_of)


def _in_document(
    failure: Failure, error: Exception, place_of: Callable[[int], TextPosition | None]
) -> Failure:
    """Return the failure with its physical line, and with the record in the message."""
    record = failure.line or 0
    if isinstance(error, BrokenDocument):
        where, line = f", at byte {error.place.offset:,}", error.place.line
    elif (place := place_of(record)) is not None:
        where, line = f", which begins at byte {place.offset:,}", place.line
    else:
        where, line = "", None
    return replace(failure, line=line, message=f"{failure.message}; record {record}{where}")


def _seen(error: Exception) -> str | None:
    """Return the line content that an error quotes, if any."""
    if isinstance(error, BadLine):
        return error.value
    return None if isinstance(error, LakeError | OSError) else str(error)


def _where(error: Exception) -> str:
    """Return the code position of an unexpected error."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return "nowhere"
    return f"{Path(last.tb_frame.f_code.co_filename).name}, line {last.tb_lineno}"


def _failure(error: Exception, stage: FailureStage) -> Failure:
    ours = machine_trouble(error) or error
    if not isinstance(ours, LakeError):
        # Download errors are LakeErrors by now; anything else comes from parsing.
        return Failure(
            stage=FailureStage.PARSE if stage is FailureStage.DOWNLOAD else stage,
            code="internal_error",
            # The error's own text may quote a value.
            message=f"{type(error).__name__} at {_where(error)}",
        )
    if isinstance(ours, BadLine | CountMismatch):
        stage = FailureStage.PARSE
    elif isinstance(ours, CorruptStream):
        stage = FailureStage.DECOMPRESS
    failure = Failure(stage=stage, code=ours.code, message=ours.message, retryable=may_mend(ours))
    if isinstance(ours, BadLine):
        return replace(failure, line=ours.line, field=ours.field)
    return failure
