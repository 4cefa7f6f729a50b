"""Audits of tables in this process, and tables that are damaged on purpose."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from blizzard.cli.audit import audit_of
from blizzard.inspect.audit.findings import Audit
from lakebed.errors import LakeError
from lakebed.layout import journal_entry, log_version
from lakebed.storage.options import Location, StorageOptions
from tests.support.desk import Desk
from tests.support.landing import config

Action = dict[str, Any]


UNREADABLE = "unreadable"
"""What a table is called whose log cannot be read at all."""


def audited(
    table: Path | str, *, deep: bool = True, access: Mapping[str, str] | None = None
) -> Audit:
    """Audit a table, all the way down unless a test says otherwise."""
    place = Location(uri=str(table), options=StorageOptions(access or {}))
    return audit_of(place, deep=deep)


def told(found: Audit) -> list[str]:
    """Return every difference as a person reads it."""
    return [f"{one.kind}: {one.message}" for one in found.differences]


def assert_balanced(table: Path | str, *, access: Mapping[str, str] | None = None) -> Audit:
    """Assert that a table is balanced, and return what was found."""
    found = audited(table, access=access)
    assert found.is_balanced, "\n".join((str(table), *told(found)))
    return found


def require_balanced(tables: Iterable[str], request: pytest.FixtureRequest, **given: Any) -> None:
    """Assert that all tables are balanced that a test leaves, but for the damage that it does.

    A test that does damage says which: `@pytest.mark.unbalanced("entry_missing")`.
    """
    mark = request.node.get_closest_marker("unbalanced")
    expected = set() if mark is None else set(mark.args)
    reasons: list[str] = []
    for table in tables:
        try:
            found = audited(table, **given)
        except LakeError as trouble:
            reasons += [] if UNREADABLE in expected else [f"{table}: {trouble}"]
            continue
        reasons += [
            f"{table}: {one.kind}: {one.message}"
            for one in found.differences
            if one.kind.value not in expected
        ]
    assert not reasons, "\n".join(reasons)


def tables_below(folder: Path) -> Iterator[str]:
    """Find the table directories in a folder."""
    for place, folders, _files in os.walk(folder):
        if not {"_blizzard", "_delta_log"}.isdisjoint(folders):
            folders.clear()
            yield place


def tables_left_by(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let a test run, then audit every table that it leaves in its folder."""
    # Asked for by the test, or by what it asks for.
    asked = "tmp_path" in request.fixturenames
    folder: Path | None = request.getfixturevalue("tmp_path") if asked else None
    yield
    if folder is not None:
        require_balanced(tables_below(folder), request)


def make_table(folder: Path) -> Path:
    """Make a table with three batches of 9, 7 and 3 rows; of the second one file failed."""
    desk = Desk(folder)
    desk.file = config(folder, partitioned=True)
    for names in (
        {"date=2024-01-01/a.ndjson": 5, "date=2024-01-02/a.ndjson": 4},
        {"date=2024-01-01/b.ndjson": 7},
        {"date=2024-01-02/c.ndjson": 3},
    ):
        for name, count in names.items():
            desk.landing.land(name, count)
        if "date=2024-01-01/b.ndjson" in names:
            desk.landing.write("date=2024-01-01/bad.ndjson", b"{no\n")
        desk.blizzard()
        desk.penguin()
    desk.ends_well()
    return Path(desk.table)


class Damage:
    """A table on a local disk, and ways to change what is written there."""

    def __init__(self, table: Path, pipeline: str = "default") -> None:
        self.table = table
        self.pipeline = pipeline

    def entry(self, number: int) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.entry_path(number).read_bytes())
        return document

    def entry_path(self, number: int) -> Path:
        return self.table / journal_entry(self.pipeline, number)

    def edit_entry(self, number: int, change: Callable[[dict[str, Any]], object]) -> None:
        document = self.entry(number)
        change(document)
        self.entry_path(number).write_text(json.dumps(document) + "\n")

    def actions(self, version: int) -> list[Action]:
        lines = self.version_path(version).read_text().splitlines()
        return [json.loads(line) for line in lines]

    def version_path(self, version: int) -> Path:
        return self.table / log_version(version)

    def write_version(self, version: int, actions: Sequence[Action]) -> None:
        text = "".join(json.dumps(one) + "\n" for one in actions)
        self.version_path(version).write_text(text)

    def edit_actions(self, version: int, kind: str, change: Callable[[Any], object]) -> None:
        """Change every action of a kind in a version."""
        actions = self.actions(version)
        for one in actions:
            if kind in one:
                change(one[kind])
        self.write_version(version, actions)

    def without(self, version: int, is_meant: Callable[[Action], bool]) -> None:
        """Leave actions of a version out."""
        self.write_version(version, [one for one in self.actions(version) if not is_meant(one)])

    def added(self, version: int) -> list[Action]:
        return [one["add"] for one in self.actions(version) if "add" in one]

    @property
    def last(self) -> int:
        return max(int(one.stem) for one in (self.table / "_delta_log").glob("*.json"))

    def commit(self, *actions: Action, **info: Any) -> int:
        """Commit as another writer does."""
        version = self.last + 1
        told = {"timestamp": 0, "operation": "WRITE", "engineInfo": "another", **info}
        self.write_version(version, [{"commitInfo": told}, *actions])
        return version
