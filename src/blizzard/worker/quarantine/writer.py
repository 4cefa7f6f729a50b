"""Write quarantine files for the bad lines of a unit, and rewrite them after a replay.

A quarantine file has one row per line, with its original bytes, and is only valid together with
the data files of its unit. In a part of a large file the column `line` is null, since the lines
before the part are not counted yet. `nth` counts from where reading began, so that the journal
entry can supply the line number later.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

import pyarrow as pa

from blizzard.model.bad_lines import TOO_MANY, SelectedLines, WaitingFile, too_many_message
from blizzard.model.settings import PipelineSettings, QuarantineLimits
from blizzard.model.source.file import SourceFile
from blizzard.model.work import ClosedFile
from blizzard.worker.ndjson.lines import BadLine, BadRecord
from blizzard.worker.output.parquet import RollingWriter, write_one_file
from blizzard.worker.output.upload import Uploads
from blizzard.worker.position import ReadPosition
from blizzard.worker.quarantine.reader import SCHEMA, QuarantinedLine, lines_of, read_table
from blizzard.worker.record import LineTally
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.documents.records import BadLines, QuarantineFile, Resolved
from lakebed.storage.store import Store
from lakebed.types import ParquetCodec

QuarantineRows = tuple[pa.RecordBatch, BadLines]
"""Bad lines of one source file, and their summary for the journal entry."""


def quarantine_rows(
    found: Sequence[BadRecord], file: SourceFile, position: ReadPosition
) -> QuarantineRows:
    """Return bad lines as rows of a quarantine file, with their positions in the source file."""
    places = [position.place_in(file, one.line, one.offset) for one in found]
    first = found[0]
    columns: list[list[Any]] = [
        [file.source] * len(found),
        [file.path] * len(found),
        [line for line, _offset in places],
        [one.line + (file.skip if file.part is None else 0) for one in found],
        [offset for _line, offset in places],
        *([getattr(one, field.name) for one in found] for field in list(SCHEMA)[5:]),
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    summary = BadLines(
        source=file.key,
        lines=len(found),
        # In a part it counts from the part's start, until the driver knows the lines before.
        first=first.line if file.part is not None else places[0][0],
        code=first.code,
        message=first.message,
        field=first.field,
    )
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), summary


@dataclass(slots=True)
class BadOfFile:
    """The bad lines of one source file that wait to be written, and their limits."""

    file: SourceFile
    limits: QuarantineLimits | None
    first: BadRecord | None = None
    waiting: list[QuarantineRows] = field(default_factory=list)

    def take(self, found: Sequence[BadRecord], position: ReadPosition, tally: LineTally) -> int:
        """Add bad lines and return their memory; raise as soon as there are too many."""
        if not found or self.limits is None:
            return 0
        self.first = self.first or found[0]
        self._refuse(self.limits.too_many(tally.quarantined))
        self.waiting.append(quarantine_rows(found, self.file, position))
        return self.waiting[-1][0].nbytes

    def hand_over(self) -> list[QuarantineRows]:
        """Return the waiting lines and forget them."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def end(self, tally: LineTally) -> None:
        """Raise if the ratio of bad lines is too high; for a part of a file, the driver decides."""
        if self.limits is not None and self.file.part is None:
            records = tally.rows + tally.quarantined
            self._refuse(self.limits.exceeded(tally.quarantined, records))

    def _refuse(self, exceeded: str | None) -> None:
        if exceeded is not None and self.first is not None:
            raise BadLine(
                too_many_message(exceeded, code=self.first.code, message=self.first.message),
                code=TOO_MANY,
                line=self.first.line,
                field=self.first.field,
            )


class QuarantineWriter:
    """Writes the bad lines of one group of source files."""

    def __init__(self, writer: RollingWriter) -> None:
        self._writer = writer
        self._summaries: dict[str, BadLines] = {}
        """The content of the current file, by source file."""

    def write(self, rows: QuarantineRows) -> Iterator[tuple[ClosedFile, tuple[BadLines, ...]]]:
        """Add bad lines of a source file; yield the file if they fill it."""
        batch, summary = rows
        before = self._summaries.get(summary.source)
        self._summaries[summary.source] = (
            summary if before is None else replace(before, lines=before.lines + summary.lines)
        )
        yield from map(self._closed, self._writer.write(batch, summary.source))

    def close(self) -> Iterator[tuple[ClosedFile, tuple[BadLines, ...]]]:
        """Close the current file, if there is one."""
        yield from map(self._closed, self._writer.close())

    def abandon(self) -> None:
        """Abandon the current file."""
        self._writer.abandon()

    def _closed(self, file: ClosedFile) -> tuple[ClosedFile, tuple[BadLines, ...]]:
        # All lines added so far are in the file that is closed next.
        summaries = tuple(self._summaries.values())
        self._summaries = {}
        return file, summaries


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineRewrite:
    """How to write the remaining lines of a quarantine file."""

    codec: ParquetCodec
    clock: Clock
    marks: dict[str, str]


def write_waiting(
    table: pa.Table,
    lines: Sequence[QuarantinedLine],
    file: QuarantineFile,
    keep: Sequence[bool],
    rest: QuarantineRewrite,
    uploads: Uploads,
) -> QuarantineFile | None:
    """Write the lines to keep into a new quarantine file; return None if there are none."""
    kept = table.filter(pa.array(keep, pa.bool_())).cast(SCHEMA)
    with tempfile.TemporaryDirectory(prefix="blizzard-", ignore_cleanup_errors=True) as folder:
        closed = write_one_file(
            [kept], rest.codec, marks=rest.marks, folder=Path(folder), clock=rest.clock
        )
        if closed is None:
            return None
        name = layout.quarantine_file(rest.marks["pipeline"], closed.name)
        of = _summaries_of([*compress(lines, keep)])
        written = uploads.hand_in_quarantine(closed, name, unit=file.unit, of=of).result()
    return replace(written, lines_before=file.lines_before)


def _summaries_of(lines: Sequence[QuarantinedLine]) -> tuple[BadLines, ...]:
    first = {line.key: line for line in reversed(lines)}
    return tuple(
        BadLines(
            source=key,
            lines=count,
            first=first[key].line,
            code=first[key].code,
            message=first[key].message,
            field=first[key].field,
        )
        for key, count in Counter(line.key for line in lines).items()
    )


def without_selected(
    store: Store,
    settings: PipelineSettings,
    files: tuple[WaitingFile, ...],
    selected: SelectedLines,
    last: Entry,
    *,
    clock: Clock,
) -> tuple[Resolved, ...]:
    """Rewrite quarantine files without the selected lines; return those that had any."""
    rest = QuarantineRewrite(
        codec=settings.sink.rolling.codec,
        clock=clock,
        marks={"pipeline": settings.name, "journal": last.journal},
    )
    resolved = []
    with Uploads(store, settings.sink.upload, pause=clock.sleep) as uploads:
        for waiting in files:
            file = waiting.file
            table = read_table(store, file.filename, file.record_count)
            lines = list(lines_of(table, file.lines_before))
            keep = [not selected.includes(line.fault.group, line.key) for line in lines]
            if not all(keep):
                left = write_waiting(table, lines, file, keep, rest, uploads)
                gone = keep.count(False)
                resolved.append(Resolved(old=file.filename, lines=gone, left=left))
    return tuple(resolved)
