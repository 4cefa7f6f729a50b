"""What penguin reads of data files: nothing where the journal tells, else their ends alone."""

import json
import threading

import pytest

from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from tests.support.foreign import Directory, Visitor
from tests.support.tables import Penguin, TableDirectory, rows_of

AT_ONCE = 4


def test_of_files_that_the_journal_tells_of_not_a_byte_is_read(tmp_path):
    """Sizes are looked at, and statistics are those of the journal."""
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1, 2), rows_of(3))

    class Closed(Store):
        def get(self, path):
            assert not path.endswith(".parquet"), path
            return super().get(path)

        def part(self, path, start, end, *, etag):
            raise AssertionError(path)

    table.store = Closed(str(table.root), StorageOptions())
    Penguin(table).drain()
    assert table.ids() == [1, 2, 3]
    adds = (json.loads(line).get("add") for line in table.commit_text(1).splitlines())
    stats = [json.loads(one["stats"]) for one in adds if one]
    assert sorted(one["maxValues"]["id"] for one in stats) == [2, 3]


def test_the_footers_of_several_files_are_read_at_a_time(tmp_path):
    """Each read waits until so many are under way."""
    table = Directory(tmp_path / "table")
    for number in range(AT_ONCE):
        table.file(number)
    gate = threading.Barrier(AT_ONCE, timeout=300)

    class Waiting(Store):
        def part(self, path, start, end, *, etag):
            gate.wait()
            return super().part(path, start, end, etag=etag)

    Visitor(table, store=Waiting(str(table.root), StorageOptions())).drain()
    assert table.ids() == [*range(AT_ONCE)]


@pytest.mark.parametrize("again", [False, True])
def test_a_footer_is_read_once_however_often_its_file_is_looked_at(tmp_path, again):
    """Also of one that is left out, until it changes."""
    table = Directory(tmp_path / "table")
    table.file(1)
    torn = table.path()
    (table.root / torn).write_bytes(b"PAR1 half of an upload")
    reads: list[str] = []

    class Noting(Store):
        def part(self, path, start, end, *, etag):
            reads.append(path)
            return super().part(path, start, end, etag=etag)

    penguin = Visitor(table, store=Noting(str(table.root), StorageOptions()))
    for _ in range(3):
        penguin.drain()
    if again:
        (table.root / torn).write_bytes(b"PAR1 half of another upload")
        penguin.drain()
    assert reads.count(torn) == 1 + again
    assert len(reads) == len(set(reads)) + again
