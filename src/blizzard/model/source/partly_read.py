"""Partly read source files: their unread byte ranges, and their failures. Pure.

Tasks that share a plain file may each stop before their end. The rest of the file is a list of byte
ranges, each with the number of lines that were read between the previous one and itself: a line is
numbered from the start of the file once all lines before it are read.

If the partly read object is replaced or deleted, its rest cannot be read, and reading its
replacement would duplicate rows. The file fails until the object is back, or until an operator
gives up the rest or declares the replacement to be another file.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from blizzard.model.source.file import ByteRange, SourceFile
from lakebed.documents.records import Failure, FailureStage, SourceRecord, Unread
from lakebed.errors import LakeError, Whose
from lakebed.units import typable

FEW = 3
"""The most byte ranges in a message; the journal has them all."""


class PartialFileChanged(LakeError, code="partial_file_changed", whose=Whose.USER):
    """A partly read source file became another object."""


class PartialFileGone(LakeError, code="partial_file_gone", whose=Whose.USER):
    """A partly read source file is gone."""


CODES = frozenset({PartialFileChanged.code, PartialFileGone.code})


def is_partly_read(record: SourceRecord) -> bool:
    """Whether earlier batches have read lines of a file."""
    return record.records_read > 0


def lacks_its_object(record: SourceRecord) -> bool:
    """Whether a file waits for its partly read object to come back."""
    return record.failure is not None and record.failure.code in CODES


def is_traced(record: SourceRecord, error: type[LakeError]) -> bool:
    """Whether this failure of a file is already recorded, and no retry was requested since."""
    failure = record.failure
    return failure is not None and failure.code == error.code and not (record.retry or record.gone)


def partial_file_changed(record: SourceRecord) -> SourceRecord:
    """Return the record of a file that became another object; it keeps the partly read one."""
    file = typable(record.key)
    return _failed(
        record,
        PartialFileChanged(
            f"it changed before all of it was read: {in_the_table(record)}, the rest of its "
            "content at that time is not, and its current content is not read. If those lines "
            "are still where they were (the file was touched, appended to, or corrected after "
            f"them), blizzard dlq retry --file {file} --same-lines reads the others. If the "
            f"original file is restored, the rest of it is read. blizzard retract {file} --replace "
            f"{file} puts all of its current content in the place of the rows that are already in "
            "the table; source.on_change: reingest reads all of it, and those rows stay there, too"
        ),
    )


def recounted(record: SourceRecord) -> SourceRecord:
    """Return the record of a file whose records are counted differently; it keeps its counts."""
    return _failed(
        record,
        PartialFileChanged(
            "source.format or source.records was changed before all of it was read: "
            f"{in_the_table(record)}, and with the new configuration they cannot be told apart "
            "from the others. If the configuration is restored, the rest is read. "
            "source.on_change: reingest reads the whole file with the new configuration, and the "
            "rows that are in the table stay there, too"
        ),
    )


def partial_file_gone(record: SourceRecord) -> SourceRecord:
    """Return the record of a file that no longer exists; it keeps the partly read object."""
    file = typable(record.key)
    return _failed(
        record,
        PartialFileGone(
            f"it disappeared from its source before all of it was read: {in_the_table(record)}, "
            "the rest is not. If the original file is restored, the rest of it is read; if it "
            "comes back as another object that has those lines where they were, blizzard dlq "
            f"retry --file {file} --same-lines reads the others. If it never comes back, "
            f"blizzard dlq discard {file} --yes gives up the rest"
        ),
    )


def can_be_given_up(record: SourceRecord) -> bool:
    """Whether a file failed and is gone from its source, and no operator has given it up yet.

    Of a partly read file, only the rest is given up: its rows stay in the table.
    """
    return not record.discarded and (record.gone or is_traced(record, PartialFileGone))


def given_up(record: SourceRecord) -> SourceRecord:
    """Return the record of a file that is given up, or whose rest is."""
    return replace(settled(record), gone=True, discarded=True)


def found_again(record: SourceRecord) -> SourceRecord:
    """Return the record of a file whose object is back, so that reading continues."""
    return replace(record, gone=False, discarded=False) if is_partly_read(record) else record


def with_same_lines(record: SourceRecord, *, size: int, etag: str | None) -> SourceRecord | None:
    """Return the record for another object that has the lines already read at the same place.

    The rest of it is unread. None if it is shorter than what was read.
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
    """Return the record with only the counts of earlier batches, which are already recorded."""
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
    """Describe which lines of a file are in the table; None if none are."""
    count = record.records_read
    if not count:
        return None
    if record.form:
        return f"its records 1 to {count} are in the table"
    if not record.has_holes:
        return f"its lines 1 to {count} are in the table"
    return f"{count} of its lines are in the table, all but those of {bytes_in_words(record)}"


def bytes_in_words(record: SourceRecord) -> str:
    """Describe the unread bytes of a file; if there are many ranges, the first ones."""
    named = [f"{one.start} to {one.end - 1}" for one in record.unread]
    if len(named) > FEW:
        named[FEW:] = [f"of {len(named) - FEW} more ranges"]
    return "bytes " + " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))


def failed(record: SourceRecord, failure: Failure) -> SourceRecord:
    """Return the record of a failure, without what this batch read.

    `record` is that of the file before this batch.
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
    lines = in_the_table(record)
    if lines is None:
        return record
    return replace(record, failure=replace(failure, message=f"{failure.message}; {lines}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A byte range of a file, and its outcome."""

    range: ByteRange
    lines_before: int
    """The lines immediately before it that earlier batches read."""
    record: SourceRecord | None
    """None if the range was not begun."""

    @property
    def is_read(self) -> bool:
        """Whether all of its lines were read."""
        return self.record is not None and self.record.failure is None and self.record.complete


def parts_of(
    files: Sequence[SourceFile], records: Sequence[SourceRecord | None]
) -> tuple[FilePart, ...]:
    """Return the parts of one file, in order, with their outcomes."""
    gaps = {one.start: one.lines_before for one in files[0].unread}
    return tuple(
        FilePart(range=file.part, lines_before=gaps.get(file.part.start, 0), record=record)
        for file, record in zip(files, records, strict=True)
        if file.part is not None
    )


def lines_before(parts: Sequence[FilePart], number: int) -> int | None:
    """Count the lines of the file before a part; None if some of them are not read yet."""
    earlier = parts[:number]
    if not all(part.is_read for part in earlier):
        return None
    counted = sum(part.record.lines for part in earlier if part.record is not None)
    return counted + sum(part.lines_before for part in parts[: number + 1])


def left_of(parts: Iterable[FilePart]) -> tuple[Unread, ...]:
    """Return the bytes that these parts leave unread, with adjacent ranges merged."""
    left: list[Unread] = []
    since = 0  # lines read since the last unread bytes
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
    """Return the record of a file that this batch did not read."""
    return record_with(file, unread=file.unread)


def record_with(file: SourceFile, **facts: Any) -> SourceRecord:  # noqa: ANN401 - those of a record
    """Return the record of a file with more fields set.

    Each of many small files has one: `replace` would take five times as long.
    """
    return SourceRecord(
        source=file.source,
        path=file.path,
        size=file.size,
        etag=file.etag,
        modified=round(file.modified.timestamp() * 1000),
        skipped=file.skip,
        form=file.form.counted_as,
        **facts,
    )
