"""The bad lines of a unit: into quarantine files, which stand or fall with the data files beside.

A quarantine file has a row per line, with the line as written in its source file. Its column
`line` holds the number of the line, or nothing: in a part of a large file it is not known how
many lines come before, until the driver has the outcomes of all parts. `nth` counts from where the
reading began, so that the number can be had from the entry then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from blizzard.model.bad_lines import TOO_MANY, in_words
from blizzard.model.files import ClosedFile, SourceFile
from blizzard.model.limits import QuarantineLimits
from blizzard.worker.ndjson.lines import BadLine, BadRecord
from blizzard.worker.output.parquet import RollingWriter
from blizzard.worker.position import ReadPosition
from blizzard.worker.quarantine.reader import SCHEMA
from blizzard.worker.record import LineTally
from lakebed.documents.source_record import BadLines

Aside = tuple[pa.RecordBatch, BadLines]
"""Bad lines of one source file, and what an entry says of them."""


def aside_of(found: Sequence[BadRecord], file: SourceFile, position: ReadPosition) -> Aside:
    """Return bad lines as rows of a quarantine file, with where in the source file they stand."""
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
    said = BadLines(
        source=file.key,
        lines=len(found),
        # Of a part it is counted from there, until the driver knows what comes before.
        first=first.line if file.part is not None else places[0][0],
        code=first.code,
        message=first.message,
        field=first.field,
    )
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), said


@dataclass(slots=True)
class BadOfFile:
    """The bad lines of one source file: those that wait to be written, and whether too many are."""

    file: SourceFile
    limits: QuarantineLimits | None
    first: BadRecord | None = None
    waiting: list[Aside] = field(default_factory=list)

    def take(self, found: Sequence[BadRecord], position: ReadPosition, tally: LineTally) -> int:
        """Take bad lines that were just counted, and return the memory that they take.

        Raise as soon as there are too many, without reading on.
        """
        if not found or self.limits is None:
            return 0
        self.first = self.first or found[0]
        self._refuse(self.limits.too_many(tally.quarantined))
        self.waiting.append(aside_of(found, self.file, position))
        return self.waiting[-1][0].nbytes

    def hand_over(self) -> list[Aside]:
        """Return those that wait, once."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def end(self, tally: LineTally) -> None:
        """Raise where too many of the lines are bad; of a part of a file the driver decides."""
        if self.limits is not None and self.file.part is None:
            records = tally.rows + tally.quarantined
            self._refuse(self.limits.exceeded(tally.quarantined, records))

    def _refuse(self, exceeded: str | None) -> None:
        if exceeded is not None and self.first is not None:
            raise BadLine(
                in_words(exceeded, code=self.first.code, message=self.first.message),
                code=TOO_MANY,
                line=self.first.line,
                field=self.first.field,
            )


class AsideWriter:
    """Writes the bad lines of one group of source files."""

    def __init__(self, writer: RollingWriter) -> None:
        self._writer = writer
        self._in_hand: dict[str, BadLines] = {}
        """What is in the file that is being written, by source file."""

    def write(self, aside: Aside) -> Iterator[tuple[ClosedFile, tuple[BadLines, ...]]]:
        """Take bad lines of a source file; yield the file that they filled, if they did."""
        batch, said = aside
        before = self._in_hand.get(said.source)
        self._in_hand[said.source] = (
            said if before is None else replace(before, lines=before.lines + said.lines)
        )
        yield from map(self._closed, self._writer.write(batch, said.source))

    def close(self) -> Iterator[tuple[ClosedFile, tuple[BadLines, ...]]]:
        """Close the file in hand, if there is one."""
        yield from map(self._closed, self._writer.close())

    def abandon(self) -> None:
        """Forget the file in hand."""
        self._writer.abandon()

    def _closed(self, file: ClosedFile) -> tuple[ClosedFile, tuple[BadLines, ...]]:
        # Lines that were taken are in the file that is closed next, all of them.
        said = tuple(self._in_hand.values())
        self._in_hand = {}
        return file, said
