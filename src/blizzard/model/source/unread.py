"""Files that several batches read: what is left of them, and what is in the table. Pure.

Tasks that share a plain file stop each at a place of its own. So what is left of the file are byte
ranges, each with the number of lines that were read between the one before and itself: by that a
line is counted from the start of the file as soon as all before it is read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from blizzard.model.files import SourceFile
from blizzard.model.source.byte_range import ByteRange
from lakebed.documents.source_record import SourceRecord, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A byte range of a file, and its outcome; none where it was not begun."""

    range: ByteRange
    lines_before: int
    """Lines that earlier batches have read right before it."""
    record: SourceRecord | None

    @property
    def is_read(self) -> bool:
        """Whether all of its lines were read."""
        return self.record is not None and self.record.failure is None and self.record.complete


def parts_of(
    files: Sequence[SourceFile], records: Sequence[SourceRecord | None]
) -> tuple[FilePart, ...]:
    """Return the parts of one file, in their order, with their outcomes."""
    gaps = {one.start: one.lines_before for one in files[0].unread}
    return tuple(
        FilePart(range=file.part, lines_before=gaps.get(file.part.start, 0), record=record)
        for file, record in zip(files, records, strict=True)
        if file.part is not None
    )


def lines_before(parts: Sequence[FilePart], number: int) -> int | None:
    """Count the lines of the file before a part; None where some before it are not read yet."""
    earlier = parts[:number]
    if not all(part.is_read for part in earlier):
        return None
    counted = sum(part.record.lines for part in earlier if part.record is not None)
    return counted + sum(part.lines_before for part in parts[: number + 1])


def left_of(parts: Iterable[FilePart]) -> tuple[Unread, ...]:
    """Return the bytes that are left after what these parts have read; adjacent ones are merged."""
    left: list[Unread] = []
    since = 0  # lines that are read since the last bytes that are not
    for part in parts:
        since += part.lines_before
        if part.record is None:
            found: tuple[tuple[int, int], ...] = ((part.range.start, part.range.end),)
        else:
            since += part.record.lines
            found = tuple((one.start, one.end) for one in part.record.unread)
        for start, end in found:
            if left and left[-1].end == start and not since:
                left[-1] = replace(left[-1], end=end)
            else:
                left.append(Unread(start=start, end=end, lines_before=since))
            since = 0
    return tuple(left)


def untouched(file: SourceFile) -> SourceRecord:
    """Return the record of a file as earlier batches have left it."""
    return record_with(file, unread=file.unread)


def record_with(file: SourceFile, **facts: Any) -> SourceRecord:  # noqa: ANN401 - those of a record
    """Return the record of a file with some facts.

    There is one for each of many small files: `replace` would take five times as long.
    """
    return SourceRecord(
        source=file.source,
        path=file.path,
        size=file.size,
        etag=file.etag,
        skipped=file.skip,
        form=file.form.counted_as,
        **facts,
    )
