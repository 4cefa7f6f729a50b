"""Entries of a journal: their books, and what of them a look keeps. Pure."""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from blizzard.journal.totals import Batch as Sums
from lakebed.documents.entry import Entry
from lakebed.documents.source_record import SourceRecord
from liveview.details import Batch, BookLine
from liveview.model import of_ms, rfc3339


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


def batch_of(entry: Entry) -> Batch:
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
        balanced=balanced,
        books=books,
        error=_error(entry),
    )


def committed_in(batch: Batch, committed: Committed | None) -> Batch:
    """Return an entry with the version that has it."""
    if committed is None:
        return batch
    at = of_ms(committed.at_ms)
    return replace(batch, committed_version=committed.version, committed_at=at)


def _books(entry: Entry, read: Sequence[SourceRecord]) -> tuple[list[BookLine], bool]:
    """Return the books of an entry, the sum first, and whether they balance."""
    written = sum(file.record_count for file in entry.files)
    if entry.kind in ("batch", "retract"):
        names = ("rows", "blank", "filtered", "quarantined")
        counts = {name: sum(getattr(record, name) for record in read) for name in names}
        lines = sum(record.lines for record in read)
        balanced = lines == sum(counts.values()) and counts["rows"] == written
        return _lines("lines read", lines, counts), balanced
    if entry.kind in ("replay", "discard"):
        settled = sum(one.lines for one in entry.resolved)
        counts = {"rows": 0, "discarded": settled}
        if entry.kind == "replay":
            passed = sum(one.passed_over for one in entry.resolved)
            counts = {"rows": settled - passed, "filtered": passed}
        return _lines("bad lines settled", settled, counts), written == counts["rows"]
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
    failures = (one.failure for one in entry.readings if not one.gone)
    codes = Counter(failure.code for failure in failures if failure is not None)
    return ", ".join(f"{code} ({count:,})" for code, count in sorted(codes.items())) or None


def _is_in(record: SourceRecord) -> bool:
    return record.failure is None and not record.gone
