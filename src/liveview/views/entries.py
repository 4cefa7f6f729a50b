"""Entries, versions, days, throughput and freshness of a pipeline as documents. Pure."""

from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from statistics import median

from blizzard.answers.file_counts import DayOrPartition
from blizzard.answers.report import Reconciliation
from blizzard.journal.standings import EntrySummary as Sums
from lakebed.clock import rfc3339
from lakebed.deltalog.delta_types import TableFacts, type_name
from lakebed.deltalog.versions import Commit
from lakebed.documents.entry import Entry
from lakebed.documents.records import SourceRecord
from lakebed.units import is_are, plural
from liveview.details import (
    Batch,
    BookLine,
    Column,
    Days,
    FreshnessSeries,
    SchemaChange,
    Series,
    Version,
)
from liveview.model import DayVerdict, Freshness, of_ms, of_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFacts:
    """An entry in so few numbers that a year of them fits into memory."""

    sequence: int
    at: float
    batch: Batch
    written: "array[int]"
    """When the source files were written that it has read to their end, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTable:
    """The result of one look; `version` is None if there is no table yet."""

    version: int | None = None
    facts: TableFacts | None = None
    commits: dict[int, Commit] = field(default_factory=dict)
    """The newest versions, by their numbers."""
    covered_since: float | None = None
    """From when on all versions are known; None if that is all of them."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """How large a version of a table is."""

    version: int | None = None
    files: int | None = None
    bytes: int | None = None
    rows: int | None = None


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
    failed = [one.failure.code for one in entry.readings if one.failure and not one.gone]
    read = [record for record in entry.readings if _is_in(record)]
    books, balanced = _books(entry, read)
    return Batch(
        entry=entry.sequence,
        kind=entry.kind,
        at=rfc3339(datetime.fromisoformat(entry.created)),
        seconds=entry.seconds,
        files=sums.files,
        files_failed=len(failed),
        rows=sums.rows,
        lines=sum(record.lines for record in read),
        bad_lines=sum(record.quarantined for record in read),
        rescued=sum(sum(record.rescued.values()) for record in read),
        bytes_read=sum(record.size for record in read if record.complete),
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
    "filtered": "records filtered",
    "quarantined": "bad lines in quarantine",
    "discarded": "bad lines discarded",
}


def _lines(label: str, total: int, counts: Mapping[str, int]) -> list[BookLine]:
    others = (
        BookLine(label=LABELS[name], value=count)
        for name, count in counts.items()
        if count or name == "rows"
    )
    return [BookLine(label=label, value=total), *others]


def _is_in(record: SourceRecord) -> bool:
    return record.failure is None and not record.gone


def version_of(commit: Commit) -> Version:
    """Return one version; with entries of several pipelines, all are named and no entry is."""
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
    """Return the version of each entry of a pipeline that some versions settle."""
    found: dict[int, Commit] = {}
    for commit in commits:
        for settled in commit.entries:
            if settled.pipeline == pipeline and settled.last - settled.first < 1_000_000:
                found.update(dict.fromkeys(range(settled.first, settled.last + 1), commit))
    return found


def _steps(commits: Iterable[Commit]) -> Iterator[tuple[Commit, Mapping[str, str] | None]]:
    """Yield the versions that define columns, the oldest first, each with the columns before it.

    Those before the oldest are not known, unless it is the first version of all.
    """
    before: Mapping[str, str] | None = None
    for commit in sorted(commits, key=lambda one: one.version):
        if commit.columns is not None:
            yield commit, before
            before = commit.columns


def changes_of(commits: Iterable[Commit]) -> list[SchemaChange]:
    """Return what versions changed of the columns, the newest first."""
    found: list[SchemaChange] = []
    for commit, before in _steps(commits):
        after = commit.columns or {}
        count = plural(len(after), "column")
        is_new = commit.version == 0
        first = f"created with {count}" if is_new else f"wrote the schema anew: {count} since then"
        found += [
            SchemaChange(version=commit.version, at=of_ms(commit.at_ms), what=what)
            for what in ([first] if before is None else _differences(before, after))
        ]
    return found[::-1]


def since_versions(commits: Iterable[Commit]) -> dict[str, int]:
    """Return the version with which each column came, as far as it is known."""
    found: dict[str, int] = {}
    for commit, before in _steps(commits):
        if before is not None or commit.version == 0:
            new = [name for name in commit.columns or {} if name not in (before or {})]
            found |= dict.fromkeys(new, commit.version)
    return found


def columns_of(facts: TableFacts, since: Mapping[str, int]) -> list[Column]:
    """Return the columns of a table."""
    return [
        Column(
            name=one["name"],
            type=type_name(one["type"]),
            nullable=bool(one.get("nullable", True)),
            since_version=since.get(one["name"]),
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
    newest = sorted(entries, key=lambda one: -one.sequence)
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
        version = committed.get(entry.sequence)
        if version is not None and version.at_ms is not None and entry.sequence not in held:
            secs = [max(0.0, (version.at_ms - one) / 1000) for one in entry.written]
            yield version.at_ms / 1000, secs


def yesterday_of(now: datetime) -> str:
    """Return the day before, in UTC."""
    return f"{now - timedelta(days=1):%Y-%m-%d}"


def verdict_of(day: str, group: DayOrPartition | None, *, outdated: bool = False) -> DayVerdict:
    """Return whether everything of a day is in the table, in words.

    Files that have failed or are held since may be of a day that was complete.
    """
    if group is None or (outdated and group.complete):
        doubt = "not known yet" if group is None else "being read"
        sentence = f"whether {day} is complete is {doubt}"
        return DayVerdict(day=day, complete=None, sentence=sentence)
    # A pipeline need not have files every day: a day without any is neither complete nor not.
    complete = group.complete if group.landed else None
    return DayVerdict(day=day, complete=complete, sentence=group.sentence, standing=group.standing)


def days_of(found: Reconciliation) -> Days:
    """Return the last days that have files, the newest first."""
    notes = list(found.errors)
    if found.left_out:
        notes.append(
            f"{plural(found.left_out, 'file')} of other days {is_are(found.left_out)} not shown"
        )
    return Days(
        days=[group for group in found.groups if group.landed],
        note="; ".join(notes) or None,
    )
