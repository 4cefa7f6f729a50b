"""A pipeline as its journal says: entries, throughput and freshness as documents. Pure."""

from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from statistics import median

from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.status import PipelineStatus
from blizzard.handoff.held_rows import Aside
from blizzard.journal.standings import EntrySummary, JournalTotals
from lakebed.clock import rfc3339
from lakebed.deltalog.versions import Commit
from lakebed.documents.entry import Entry
from lakebed.documents.records import SourceRecord
from lakebed.errors import LakeError
from liveview.details import (
    Batch,
    BookLine,
    FreshnessSeries,
    Series,
)
from liveview.model import Freshness, of_ms, of_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFacts:
    """An entry in so few numbers that a year of them fits into memory."""

    at: float
    batch: Batch
    written: "array[int]"
    """When the source files were written that it has read to their end, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineView:
    """A pipeline as its journal was when it was last read."""

    asked: PipelineEvidence
    status: PipelineStatus
    entries: tuple[EntryFacts, ...]
    """Those of the span, the oldest first, as far as they are known."""
    since: float | None
    """From when on all entries are known; None if that is the whole span."""
    unreadable: tuple[int, ...] = ()
    """Entries of the span that could not be read."""
    aside: Aside = field(default_factory=Aside)
    """Files that penguin holds."""
    refusal: LakeError | None = None
    """Why a start would be refused."""

    @property
    def held(self) -> frozenset[int | None]:
        """Return the entries with files that penguin holds."""
        return frozenset(meta.entry for meta in self.aside.held)


def facts_of(entry: Entry | None) -> EntryFacts | None:
    """Return what a look keeps of an entry; None without one."""
    if entry is None:
        return None
    written = (
        record.modified
        for record in entry.readings
        if record.modified is not None and _is_in(record) and record.complete
    )
    at = datetime.fromisoformat(entry.created).timestamp()
    return EntryFacts(at=at, batch=batch_of(entry), written=array("q", written))


def batch_of(entry: Entry) -> Batch:
    """Return an entry with its books."""
    sums = EntrySummary.of(entry)
    failed = [one.failure.code for one in entry.readings if one.failure and not one.gone]
    read = JournalTotals.of([record for record in entry.readings if _is_in(record)])
    books, balanced = _books(entry, read)
    return Batch(
        entry=entry.sequence,
        kind=entry.kind,
        at=rfc3339(sums.at),
        seconds=entry.seconds,
        files=sums.files,
        files_failed=len(failed),
        rows=sums.rows,
        lines=read.lines,
        bad_lines=read.quarantined,
        rescued=read.rescued,
        bytes_read=read.source_bytes,
        bytes_written=sum(file.size for file in entry.data_files),
        data_files=len(entry.data_files),
        balanced=balanced,
        books=books,
        error=", ".join(f"{code} ({n:,})" for code, n in sorted(Counter(failed).items())) or None,
    )


def committed_in(batch: Batch, committed: Commit | None) -> Batch:
    """Return an entry with the version that has it."""
    if committed is None:
        return batch
    at = of_ms(committed.at_ms)
    return replace(batch, committed_version=committed.version, committed_at=at)


def _books(entry: Entry, read: JournalTotals) -> tuple[list[BookLine], bool]:
    """Return the books of an entry, the sum first, and whether they balance."""
    if entry.kind in ("batch", "retract"):
        label, whole, rows = "lines read", read.lines, read.rows
        parts = {
            "blank lines": read.blank,
            "records filtered": read.filtered,
            "bad lines in quarantine": read.quarantined,
        }
    elif entry.kind in ("replay", "discard"):
        label, whole, rows = "bad lines settled", sum(one.lines for one in entry.resolved), 0
        parts = {"bad lines discarded": whole}
        if entry.kind == "replay":
            passed = sum(one.passed_over for one in entry.resolved)
            rows, parts = whole - passed, {"records filtered": passed}
    else:
        return [], True
    lines = {label: whole, "rows written": rows, **{name: n for name, n in parts.items() if n}}
    books = [BookLine(label=name, value=count) for name, count in lines.items()]
    written = sum(file.record_count for file in entry.files)
    return books, written == rows == whole - sum(parts.values())


def _is_in(record: SourceRecord) -> bool:
    return record.failure is None and not record.gone


MOST_MEASURED = 10_000
"""Files whose freshness is measured, the newest."""


def series_of(entries: Iterable[EntryFacts], *, now: float, hours: float, points: int) -> Series:
    """Return what came into the journal in each step of the last hours."""
    start, step = _time_steps(now, hours, points)
    rows, size, files = [0.0] * points, [0.0] * points, [0.0] * points
    for entry in entries:
        place = int((entry.at - start) // step)
        if 0 <= place < points and entry.batch.kind in ("batch", "replay"):
            rows[place] += entry.batch.rows
            size[place] += entry.batch.bytes_read
            files[place] += entry.batch.files
    return Series(start=of_seconds(start), step_secs=step, rows=rows, bytes=size, files=files)


def _time_steps(now: float, hours: float, points: int) -> tuple[float, float]:
    """Return when the first step begins, and how long each is.

    Steps begin at whole multiples, so that one that is over does not change any more.
    """
    step = hours * 3600 / points
    return (now // step + 1) * step - step * points, step


def freshness_series(
    entries: Iterable[EntryFacts],
    committed: Mapping[int, Commit],
    *,
    now: float,
    hours: float,
    points: int,
    held: Container[int | None] = (),
) -> FreshnessSeries:
    """Return how long source files took into the table, in each step of the last hours."""
    start, step = _time_steps(now, hours, points)
    found: list[list[float]] = [[] for _ in range(points)]
    for at, secs in _measured(entries, committed, held):
        place = int((at - start) // step)
        if 0 <= place < points:
            found[place] += secs[: MOST_MEASURED - len(found[place])]
    return FreshnessSeries(
        start=of_seconds(start),
        step_secs=step,
        median_secs=[round(median(secs), 3) if secs else None for secs in found],
        worst_secs=[round(max(secs), 3) if secs else None for secs in found],
        files=list(map(len, found)),
    )


def freshness_of(
    entries: Iterable[EntryFacts],
    committed: Mapping[int, Commit],
    *,
    since: float,
    held: Container[int | None] = (),
) -> Freshness:
    """Return how long source files took into the table, of the newest ones that are in it."""
    newest = sorted(entries, key=lambda one: -one.batch.entry)
    measured = (one for _at, secs in _measured(newest, committed, held) for one in secs)
    secs = list(islice(measured, MOST_MEASURED))
    if not secs:
        return Freshness()
    return Freshness(
        median_secs=round(median(secs), 3),
        worst_secs=round(max(secs), 3),
        measured_files=len(secs),
        since=of_seconds(since),
    )


def _measured(
    entries: Iterable[EntryFacts],
    committed: Mapping[int, Commit],
    held: Container[int | None],
) -> Iterator[tuple[float, list[float]]]:
    """Yield when entries were committed, and how long their files took.

    Not all files of an entry with held rows are in the table: none of them is measured.
    """
    for entry in entries:
        version = committed.get(entry.batch.entry)
        if version is not None and version.at_ms is not None and entry.batch.entry not in held:
            secs = [max(0.0, (version.at_ms - one) / 1000) for one in entry.written]
            yield version.at_ms / 1000, secs
