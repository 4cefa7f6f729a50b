"""Which version has an entry, and what became of its files, without the table being loaded."""

import json
from collections import Counter
from pathlib import Path

import pytest

from lakebed.deltalog.search import FileInLog, LogSearch, Standing
from lakebed.layout import log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader, Store
from penguin.delta.table import Log
from tests.support.tables import Penguin, TableDirectory, opened, rows_of


class Counting(Reader):
    """A reader that counts what it is asked."""

    asked: Counter[str]

    def get(self, path):
        self.asked["get"] += 1
        return super().get(path)


def search(root: Path) -> LogSearch:
    store = Counting(str(root), StorageOptions())
    store.asked = Counter()
    return LogSearch(store)


@pytest.fixture
def table(tmp_path) -> TableDirectory:
    return TableDirectory(tmp_path)


def grown(table: TableDirectory, batches: int):
    """Commit batches one by one, of two pipelines in turn; return the entries of the first."""
    first, other = table.journal("events"), table.journal("others")
    penguin, entries = Penguin(table), []
    for number in range(batches):
        entries.append(first.batch(rows_of(number)))
        other.batch(rows_of(1000 + number))
        penguin.drain()
    return entries


def version_with(table: TableDirectory, name: str, action: str = "add") -> int:
    """Return the version that names a file, found by reading every one."""
    for version in range(table.versions()):
        for line in table.commit_text(version).splitlines():
            if name in line and action in json.loads(line):
                return version
    raise AssertionError(name)


def test_each_entry_is_found_in_its_version(table):
    for entry in grown(table, 6):
        found = search(table.root).entry("events", entry.journal, entry.sequence)
        assert found.committed
        assert found.commit is not None
        assert found.commit.version == version_with(table, entry.files[0].filename)


def test_an_entry_that_waits_and_a_table_that_is_not_there_have_no_version(table):
    found = search(table.root).entry("events", "j", 1)
    assert (found.committed, found.commit) == (False, None)
    entries = grown(table, 2)
    late = table.journal("events")
    assert late is not None
    found = search(table.root).entry("events", entries[0].journal, entries[-1].sequence + 1)
    assert (found.committed, found.commit) == (False, None)
    found = search(table.root).entry("events", "another journal", 1)
    assert (found.committed, found.commit) == (False, None)


def test_versions_that_were_cleaned_up_leave_the_entry_committed(table):
    entries = grown(table, 6)
    opened(Log(Store(str(table.root), StorageOptions()))).checkpoint()
    first, fourth = (version_with(table, entries[n].files[0].filename) for n in (0, 3))
    for version in range(first + 1):
        (table.root / log_version(version)).unlink()
    found = search(table.root).entry("events", entries[0].journal, entries[0].sequence)
    assert (found.committed, found.commit) == (True, None)
    found = search(table.root).entry("events", entries[3].journal, entries[3].sequence)
    assert found.commit is not None
    assert found.commit.version == fourth


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_file_is_in_the_table_or_removed_by_a_version(table, checkpointed):
    entries = grown(table, 4)
    kept, dropped = entries[0].files[0].filename, entries[2].files[0].filename
    table.delta().delete("id = 2")
    gone = version_with(table, dropped, "remove")
    if checkpointed:
        grown_on = Penguin(table)
        table.journal("more").batch(rows_of(77))
        grown_on.drain()
        opened(Log(Store(str(table.root), StorageOptions()))).checkpoint()
    found = search(table.root).files([kept, dropped, "never.parquet"])
    assert found["never.parquet"] == FileInLog()
    assert found[kept].standing is Standing.IN_TABLE
    assert found[dropped].standing is Standing.REMOVED
    removed = found[dropped].removed
    assert removed is not None
    assert (removed.version, removed.operation) == (gone, "DELETE")
    assert not found[dropped].rows_moved


def test_an_entry_that_is_committed_after_the_first_question_waits(table):
    """Its files are asked for in the same version: they would be taken for removed ones."""
    quiet, other, penguin = table.journal("quiet"), table.journal("others"), Penguin(table)
    quiet.batch(rows_of(1))
    for number in range(10):
        other.batch(rows_of(100 + number))
        penguin.drain()
    looked = search(table.root)
    assert looked.files(["x.parquet"])["x.parquet"] == FileInLog()
    late = quiet.batch(rows_of(2))
    penguin.drain()
    assert not looked.entry("quiet", late.journal, late.sequence).committed
    assert search(table.root).entry("quiet", late.journal, late.sequence).committed
