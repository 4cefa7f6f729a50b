"""Entries of a journal: their books, and what of them a look keeps. Pure."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from blizzard.journal.totals import Batch as Sums
from lakebed.documents.entry import Entry
from lakebed.documents.source_record import SourceRecord
from liveview.model import Batch, BookLine
from liveview.times import of_ms, rfc3339


@dataclass(frozen=True, slots=True)
class Committed:
    """The version with which an entry came into the table."""

    version: int
    at_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFacts:
    """An entry in so few numbers that a year of them fits into memory."""

    sequence: int
    at: float
    batch: Batch
    written: "array[int]"
    """When the source files were written that it has read to their end, in milliseconds."""


def facts_of(entry: Entry) -> EntryFacts:
    """Return what a look keeps of an entry."""
    return EntryFacts(
        sequence=entry.sequence,
        at=datetime.fromisoformat(entry.created).timestamp(),
        batch=batch_of(entry),
        written=array(
            "q",
            (
                record.modified
                for record in entry.readings
                if record.modified is not None and _is_in(record) and record.complete
            ),
        ),
    )


def batch_of(entry: Entry, committed: Committed | None = None) -> Batch:
    """Return an entry with its books."""
    sums = Sums.of(entry)
    read = [record for record in entry.readings if _is_in(record)]
    books, balanced = _books(entry, read)
    return Batch(
        entry=entry.sequence,
        kind=entry.kind,
        at=rfc3339(datetime.fromisoformat(entry.created)),
        seconds=entry.seconds,
        files=sums.files,
        files_failed=sums.failed,
        rows=sums.rows,
        lines=sum(record.lines for record in read),
        bad_lines=sum(record.quarantined for record in read),
        rescued=sum(sum(record.rescued.values()) for record in read),
        bytes_read=sum(record.size for record in read if record.complete),
        bytes_written=sum(file.size for file in entry.data_files),
        data_files=len(entry.data_files),
        committed_version=None if committed is None else committed.version,
        committed_at=None if committed is None else of_ms(committed.at_ms),
        balanced=balanced,
        books=books,
        error=_error(entry),
    )


def timed(batch: Batch, seconds: float | None) -> Batch:
    """Return an entry with how long its batch took, where the entry itself does not say it."""
    return replace(batch, seconds=seconds) if batch.seconds is None else batch


def committed_in(batch: Batch, committed: Committed | None) -> Batch:
    """Return an entry with the version that has it."""
    if committed is None:
        return batch
    at = of_ms(committed.at_ms)
    return replace(batch, committed_version=committed.version, committed_at=at)


def _books(entry: Entry, read: Iterable[SourceRecord]) -> tuple[list[BookLine], bool]:
    """Return the books of an entry, the sum first, and whether they balance."""
    if entry.kind in ("batch", "retract"):
        counts = {"lines": 0, "rows": 0, "blank": 0, "filtered": 0, "quarantined": 0}
        for record in read:
            for name in counts:
                counts[name] += getattr(record, name)
        lines = counts.pop("lines")
        written = sum(file.record_count for file in entry.files)
        balanced = lines == sum(counts.values()) and counts["rows"] == written
        return _lines("lines read", lines, counts), balanced
    if entry.kind in ("replay", "discard"):
        settled = sum(one.lines for one in entry.resolved)
        passed = sum(one.passed_over for one in entry.resolved)
        rows = settled - passed if entry.kind == "replay" else 0
        counts = {"rows": rows, "filtered": passed if entry.kind == "replay" else 0}
        if entry.kind == "discard":
            counts["discarded"] = settled
        written = sum(file.record_count for file in entry.files)
        return _lines("bad lines settled", settled, counts), written == rows
    return [], True


LABELS: Mapping[str, str] = {
    "rows": "rows written",
    "blank": "blank lines",
    "filtered": "records passed over",
    "quarantined": "bad lines set aside",
    "discarded": "bad lines given up",
}


def _lines(label: str, total: int, counts: Mapping[str, int]) -> list[BookLine]:
    others = (
        BookLine(label=LABELS[name], value=count)
        for name, count in counts.items()
        if count or name == "rows"
    )
    return [BookLine(label=label, value=total), *others]


def _error(entry: Entry) -> str | None:
    """Return why source files of it failed, in words that hold nothing of them."""
    codes: dict[str, int] = {}
    for record in entry.readings:
        if record.failure is not None and not record.gone:
            codes[record.failure.code] = codes.get(record.failure.code, 0) + 1
    if not codes:
        return None
    return ", ".join(f"{code} ({count:,})" for code, count in sorted(codes.items()))


def _is_in(record: SourceRecord) -> bool:
    return record.failure is None and not record.gone
