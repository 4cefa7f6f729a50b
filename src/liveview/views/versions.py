"""Versions of a Delta log, and what they changed. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakebed.deltalog.delta_types import TableFacts, type_name
from lakebed.deltalog.versions import Commit
from liveview.model import Column, SchemaChange, Version
from liveview.times import of_ms
from liveview.views.entries import Committed


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """One version of a log."""

    commit: Commit

    @property
    def at(self) -> float | None:
        """Return when it was committed, by the clock of whoever did."""
        return None if self.commit.at_ms is None else self.commit.at_ms / 1000


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


def committed_entries(commits: Iterable[Commit], pipeline: str) -> dict[int, Committed]:
    """Return the version of each entry of a pipeline that some versions settle."""
    found: dict[int, Committed] = {}
    for commit in commits:
        for settled in commit.entries:
            if settled.pipeline == pipeline and settled.last - settled.first < 1_000_000:
                made = Committed(commit.version, commit.at_ms)
                found.update(dict.fromkeys(range(settled.first, settled.last + 1), made))
    return found


def changes_of(commits: Iterable[Commit]) -> list[SchemaChange]:
    """Return what versions changed of the columns, the newest first.

    The oldest of those that say what the table is has nothing to be compared with, unless it is the
    first version of all.
    """
    told = sorted((one for one in commits if one.columns is not None), key=lambda one: one.version)
    found: list[SchemaChange] = []
    before: Mapping[str, str] | None = None
    for commit in told:
        columns = commit.columns or {}
        if before is None and commit.version == 0:
            found.append(_change(commit, f"created with {_counted(len(columns))}"))
        elif before is not None:
            found += [_change(commit, what) for what in _differences(before, columns)]
        before = columns
    return found[::-1]


def since_versions(commits: Iterable[Commit]) -> dict[str, int]:
    """Return the version with which each column came, as far as the versions tell."""
    told = sorted((one for one in commits if one.columns is not None), key=lambda one: one.version)
    found: dict[str, int] = {}
    before: Mapping[str, str] | None = None
    for commit in told:
        for name in commit.columns or {}:
            if (before is None and commit.version == 0) or (
                before is not None and name not in before
            ):
                found[name] = commit.version
        before = commit.columns
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


def _change(commit: Commit, what: str) -> SchemaChange:
    return SchemaChange(version=commit.version, at=of_ms(commit.at_ms), what=what)


def _counted(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns:,} columns"
