"""Which version of a log has an entry, without the table being loaded."""

import json
from pathlib import Path

from lakebed.deltalog.search import LogSearch
from lakebed.layout import log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader
from penguin.delta.table import Log
from tests.support.stores import local
from tests.support.tables import Penguin, TableDirectory, opened, rows_of


def version_with(table: TableDirectory, name: str) -> int:
    """Return the version that adds a file, found by reading every one."""
    return next(
        version
        for version in range(table.versions())
        for line in table.commit_text(version).splitlines()
        if name in line and "add" in json.loads(line)
    )


def test_versions_that_were_cleaned_up_leave_the_entry_committed(tmp_path: Path) -> None:
    table = TableDirectory(tmp_path)
    first, other, entries = table.journal("events"), table.journal("others"), []
    penguin = Penguin(table)
    for number in range(6):
        entries.append(first.batch(rows_of(number)))
        other.batch(rows_of(1000 + number))
        penguin.drain()
    opened(Log(local(tmp_path))).checkpoint()
    gone, kept = (version_with(table, entries[number].files[0].filename) for number in (0, 3))
    for version in range(gone + 1):
        (tmp_path / log_version(version)).unlink()
    search = LogSearch(Reader(str(tmp_path), StorageOptions()))
    found = [search.entry("events", one.journal, one.sequence) for one in (entries[0], entries[3])]
    assert [one.committed for one in found] == [True, True]
    assert found[0].commit is None
    assert found[1].commit is not None
    assert found[1].commit.version == kept
