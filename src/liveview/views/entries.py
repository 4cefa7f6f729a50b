"""Entries of a journal and versions of a Delta log, as documents. Pure."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from blizzard.journal.totals import EntrySummary as Sums
from lakebed.clock import rfc3339
from lakebed.deltalog.delta_types import TableFacts, type_name
from lakebed.deltalog.versions import Commit
from lakebed.documents.entry import Entry
from lakebed.documents.source_record import SourceRecord
from lakebed.units import plural
from liveview.details import Batch, BookLine, Column, SchemaChange, Version
from liveview.model import of_ms


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

    The oldest has nothing to be compared with, unless it is the first version of all.
    """
    before: Mapping[str, str] | None = None
    for commit in sorted(commits, key=lambda one: one.version):
        if commit.columns is not None:
            if before is not None or commit.version == 0:
                yield commit, before
            before = commit.columns


def changes_of(commits: Iterable[Commit]) -> list[SchemaChange]:
    """Return what versions changed of the columns, the newest first."""
    found: list[SchemaChange] = []
    for commit, before in _steps(commits):
        after = commit.columns or {}
        created = [f"created with {plural(len(after), 'column')}"]
        found += [
            SchemaChange(version=commit.version, at=of_ms(commit.at_ms), what=what)
            for what in (created if before is None else _differences(before, after))
        ]
    return found[::-1]


def since_versions(commits: Iterable[Commit]) -> dict[str, int]:
    """Return the version with which each column came, as far as it is known."""
    found: dict[str, int] = {}
    for commit, before in _steps(commits):
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
