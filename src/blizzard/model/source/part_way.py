"""Source files of which a part is read: what is left of them, and failures half way. Pure.

Tasks that share a plain file each stop at a place of their own. What is left of the file are byte
ranges, each with the number of lines that were read between the previous one and itself: a line is
numbered from the start of the file as soon as all lines before it are read.

If the object that was begun is replaced or deleted, its rest cannot be read, and its replacement
cannot be read without doubling rows. That is a failure until the object is back, or an operator
gives up the rest or says that the replacement is another file.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from blizzard.model.source.file import ByteRange, SourceFile
from lakebed.documents.records import Failure, FailureStage, SourceRecord, Unread
from lakebed.errors import LakeError, Whose

FEW = 3
"""How many byte ranges are named in a message; the journal has them all."""


class ChangedPartWay(LakeError, code="changed_part_way", whose=Whose.USER):
    """A source file became another object after a part of it was read."""


class GonePartWay(LakeError, code="gone_part_way", whose=Whose.USER):
    """A source file is gone after a part of it was read."""


CODES = frozenset({ChangedPartWay.code, GonePartWay.code})


def is_part_way(record: SourceRecord) -> bool:
    """Whether the table holds lines of a file that is not done."""
    return record.records_read > 0


def lacks_its_object(record: SourceRecord) -> bool:
    """Whether a file waits for the object that was begun; it is read on once that is back."""
    return record.failure is not None and record.failure.code in CODES


def is_traced(record: SourceRecord, error: type[LakeError]) -> bool:
    """Whether this failure of a file is already recorded, and no retry was requested since."""
    failure = record.failure
    return failure is not None and failure.code == error.code and not (record.retry or record.gone)


def changed_part_way(record: SourceRecord) -> SourceRecord:
    """Return the record of a file that is a different object now; it keeps the one begun."""
    return _failed(
        record,
        ChangedPartWay(
            f"it changed before all of it was read: {in_the_table(record)}, the rest of its "
            "content at that time is not, and its current content is not read. If those lines "
            "are still where they were (the file was touched, appended to, or corrected after "
            f"them), blizzard dlq retry --file {record.path} --same-lines reads the others. If "
            "the file is restored as it was, the rest of it is read. blizzard retract "
            f"{record.path} --replace {record.path} puts all of its current content in the place "
            "of the rows that are already in the table; source.on_change: reingest reads all of "
            "it, and those rows stay there, too"
        ),
    )


def read_otherwise(record: SourceRecord) -> SourceRecord:
    """Enter a file of which something else is counted by now; the books keep what was begun."""
    return _failed(
        record,
        ChangedPartWay(
            "source.format or source.records was changed before all of it was read: "
            f"{in_the_table(record)}, and as it is read now they cannot be distinguished from the "
            "others. If the configuration is put back as it was, its rest is read. "
            "source.on_change: reingest reads it whole as it is now, and the rows that are in the "
            "table stay there, too"
        ),
    )


def gone_part_way(record: SourceRecord) -> SourceRecord:
    """Return the record of a file that no longer exists; it keeps the object that was begun."""
    return _failed(
        record,
        GonePartWay(
            f"it disappeared from its source before all of it was read: {in_the_table(record)}, "
            "the rest is not. If the file is restored as it was, the rest of it is read; if it "
            "comes back as another object that has those lines where they were, blizzard dlq "
            f"retry --file {record.path} --same-lines reads the others. If it never comes back, "
            f"blizzard dlq discard {record.path} --yes gives up the rest"
        ),
    )


def can_be_given_up(record: SourceRecord) -> bool:
    """Whether a file failed and is gone from its source, and no operator has given it up so far.

    Of one that is in the table in part that is its rest: what is in the table stays there.
    """
    return not record.discarded and (record.gone or is_traced(record, GonePartWay))


def given_up(record: SourceRecord) -> SourceRecord:
    """Return the record of a file, or of the rest of one, that will never come."""
    return replace(settled(record), gone=True, discarded=True)


def found_again(record: SourceRecord) -> SourceRecord:
    """Return the record of a file whose object is there again: what was begun is read on."""
    return replace(record, gone=False, discarded=False) if is_part_way(record) else record


def with_same_lines(record: SourceRecord, *, size: int, etag: str | None) -> SourceRecord | None:
    """Return a file as another object in which the lines that were read stand where they stood.

    All else of it is left to read. None where it is shorter than what was read of it.
    """
    unread = record.unread
    if unread and unread[-1].end == record.size:
        *others, last = unread
        if size < last.start:
            return None
        unread = (*others, *((replace(last, end=size),) if size > last.start else ()))
    elif unread:
        if size < record.size:
            return None
        before = record.records_read - sum(one.lines_before for one in unread)
        added = Unread(start=record.size, end=size, lines_before=before)
        unread = (*unread, *((added,) if size > record.size else ()))
    return replace(record, size=size, etag=etag, unread=unread)


def settled(record: SourceRecord) -> SourceRecord:
    """Return a file as earlier batches left it: what they read is already recorded."""
    return replace(
        record,
        lines=0,
        blank=0,
        quarantined=0,
        filtered=0,
        rows=0,
        skipped=record.records_read,
        dropped={},
        rescued={},
        unit=None,
        retry=False,
    )


def _failed(record: SourceRecord, error: LakeError) -> SourceRecord:
    failure = Failure(stage=FailureStage.DISCOVER, code=error.code, message=error.message)
    return replace(settled(record), complete=True, gone=False, discarded=False, failure=failure)


def in_the_table(record: SourceRecord) -> str | None:
    """Return which lines of a file are in the table, in words; None where there is none."""
    count = record.records_read
    if not count:
        return None
    if record.form:
        return f"its records 1 to {count} are in the table"
    if not record.has_holes:
        return f"its lines 1 to {count} are in the table"
    return f"{count} of its lines are in the table, all but those of {bytes_in_words(record)}"


def bytes_in_words(record: SourceRecord) -> str:
    """Name the bytes that are left of a file; of many ranges the first."""
    named = [f"{one.start} to {one.end - 1}" for one in record.unread]
    if len(named) > FEW:
        named[FEW:] = [f"of {len(named) - FEW} more ranges"]
    return "bytes " + " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))


def failed(record: SourceRecord, failure: Failure) -> SourceRecord:
    """Return the record of a failure: only what is in the table counts, not what this batch read.

    The record says how the file was before this batch.
    """
    record = replace(
        record,
        lines=0,
        blank=0,
        filtered=0,
        rows=0,
        complete=True,
        dropped={},
        rescued={},
        unit=None,
        failure=failure,
    )
    told = in_the_table(record)
    if told is None:
        return record
    return replace(record, failure=replace(failure, message=f"{failure.message}; {told}"))


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
        modified=file.modified_ms,
        skipped=file.skip,
        form=file.form.counted_as,
        **facts,
    )
