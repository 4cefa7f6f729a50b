"""Journal entries and table versions as documents, with throughput and freshness. Pure."""

from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from statistics import median

from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.status import PipelineStatus
from blizzard.handoff.held_rows import WithheldFiles
from blizzard.journal.standings import EntrySummary, JournalTotals
from lakebed.clock import rfc3339
from lakebed.deltalog.delta_types import TableFacts, type_name
from lakebed.deltalog.versions import Commit
from lakebed.documents.entry import Entry
from lakebed.documents.records import SourceRecord
from lakebed.errors import LakeError
from lakebed.units import plural
from liveview.details import (
    Batch,
    BookLine,
    Column,
    FreshnessSeries,
    SchemaChange,
    Series,
    Version,
)
from liveview.model import Freshness, of_ms, of_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFacts:
    """The counts of one entry, small enough to keep a year of them in memory."""

    at: float
    batch: Batch
    written: "array[int]"
    """Modification times (ms) of the source files that it finished reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineView:
    """A pipeline as of the last read of its journal."""

    evidence: PipelineEvidence
    status: PipelineStatus
    entries: tuple[EntryFacts, ...]
    """The known entries of the time span, oldest first."""
    since: float | None
    """All entries since then are known; None if the whole span is."""
    unreadable: tuple[int, ...] = ()
    """Unreadable entries within the span."""
    withheld: WithheldFiles = field(default_factory=WithheldFiles)
    """Files that penguin holds."""
    refusal: LakeError | None = None
    """Why a start would be refused."""

    @property
    def held(self) -> frozenset[int | None]:
        """Return the entries with files that penguin holds."""
        return frozenset(meta.entry for meta in self.withheld.held)


def facts_of(entry: Entry | None) -> EntryFacts | None:
    """Return the facts to keep in memory about an entry; None for None."""
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
    """Return an entry with its line and row counts."""
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
    """Add the version that committed an entry."""
    if committed is None:
        return batch
    at = of_ms(committed.at_ms)
    return replace(batch, committed_version=committed.version, committed_at=at)


def _books(entry: Entry, read: JournalTotals) -> tuple[list[BookLine], bool]:
    """Return an entry's counts, sum first, and whether they balance."""
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
            filtered = sum(one.filtered_lines for one in entry.resolved)
            rows, parts = whole - filtered, {"records filtered": filtered}
    else:
        return [], True
    lines = {label: whole, "rows written": rows, **{name: n for name, n in parts.items() if n}}
    books = [BookLine(label=name, value=count) for name, count in lines.items()]
    written = sum(file.record_count for file in entry.files)
    return books, written == rows == whole - sum(parts.values())


def _is_in(record: SourceRecord) -> bool:
    return record.failure is None and not record.gone


MOST_MEASURED = 10_000
"""Freshness is measured for at most this many of the newest files."""


def series_of(entries: Iterable[EntryFacts], *, now: float, hours: float, points: int) -> Series:
    """Return rows, bytes and files journaled per time step."""
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
    """Return the start of the first step and the step length.

    Steps start at multiples of their length, so the values of past steps are stable.
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
    """Return the delay from arrival to commit per time step."""
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
    """Return the delay from arrival to commit of the newest committed files."""
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
    """Yield each entry's commit time and its files' delays.

    Entries with held rows are skipped: not all of their files are in the table.
    """
    for entry in entries:
        version = committed.get(entry.batch.entry)
        if version is not None and version.at_ms is not None and entry.batch.entry not in held:
            secs = [max(0.0, (version.at_ms - one) / 1000) for one in entry.written]
            yield version.at_ms / 1000, secs


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTable:
    """One observation of a table; `version` is None if there is no table yet."""

    version: int | None = None
    facts: TableFacts | None = None
    commits: dict[int, Commit] = field(default_factory=dict)
    """The newest versions by number."""
    oldest: int | None = None
    """The oldest known version; None if the history is complete."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """The size of one version of a table."""

    version: int | None = None
    files: int | None = None
    bytes: int | None = None
    rows: int | None = None


def version_of(commit: Commit) -> Version:
    """Return one version; if it commits several pipelines, name all of them and no entry."""
    names = list(dict.fromkeys(one.pipeline for one in commit.entries))
    return Version(
        version=commit.version,
        at=of_ms(commit.at_ms),
        operation=commit.operation or "unknown",
        by=commit.writer,
        files_added=commit.files_added,
        files_removed=commit.files_removed,
        rows_added=commit.rows_added,
        bytes_added=commit.bytes_added,
        entry=commit.entries[0].last if len(names) == 1 else None,
        pipeline=", ".join(names) or None,
    )


def committed_entries(commits: Iterable[Commit], pipeline: str) -> dict[int, Commit]:
    """Map each entry of a pipeline to the version that committed it."""
    found: dict[int, Commit] = {}
    for commit in commits:
        for settled in commit.entries:
            if settled.pipeline == pipeline and settled.last - settled.first < 1_000_000:
                found.update(dict.fromkeys(range(settled.first, settled.last + 1), commit))
    return found


def _steps(commits: Iterable[Commit]) -> Iterator[tuple[Commit, Mapping[str, str] | None]]:
    """Yield the versions that define columns, oldest first, with the previous columns.

    The first pair has None: what preceded the oldest version is not known.
    """
    before: Mapping[str, str] | None = None
    for commit in sorted(commits, key=lambda one: one.version):
        if commit.columns is not None:
            yield commit, before
            before = commit.columns


def changes_of(commits: Iterable[Commit]) -> list[SchemaChange]:
    """Return the schema changes, newest first."""
    found: list[SchemaChange] = []
    for commit, before in _steps(commits):
        after = commit.columns or {}
        count = plural(len(after), "column")
        is_new = commit.version == 0
        first = f"created with {count}" if is_new else f"replaced the schema: {count} since then"
        found += [
            SchemaChange(version=commit.version, at=of_ms(commit.at_ms), what=what)
            for what in ([first] if before is None else _differences(before, after))
        ]
    return found[::-1]


def columns_of(facts: TableFacts) -> list[Column]:
    """Return the columns of a table."""
    return [
        Column(
            name=one["name"],
            type=type_name(one["type"]),
            nullable=bool(one.get("nullable", True)),
            partition=one["name"] in facts.partition_columns,
        )
        for one in facts.schema["fields"]
    ]


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    added = [f"added column {name}: {kind}" for name, kind in after.items() if name not in before]
    dropped = [f"dropped column {name}" for name in before if name not in after]
    changed = [
        f"changed column {name} from {before[name]} to {kind}"
        for name, kind in after.items()
        if name in before and before[name] != kind
    ]
    return [*added, *dropped, *changed]
