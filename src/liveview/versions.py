"""Versions of a table as documents: what they wrote, and what they changed of its columns. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lakebed.deltalog.delta_types import TableFacts, type_name
from lakebed.deltalog.versions import Commit
from lakebed.units import plural
from liveview.details import Column, SchemaChange, Version
from liveview.model import of_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTable:
    """The result of one look; `version` is None if there is no table yet."""

    version: int | None = None
    facts: TableFacts | None = None
    commits: dict[int, Commit] = field(default_factory=dict)
    """The newest versions, by their numbers."""
    oldest: int | None = None
    """The oldest version that is known; None if there are no older ones."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """How large a version of a table is."""

    version: int | None = None
    files: int | None = None
    bytes: int | None = None
    rows: int | None = None


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
