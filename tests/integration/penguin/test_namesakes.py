"""Files of other programs that stand in each other's way: one UUID twice, one that is denied."""

import pytest

from lakebed.errors import StoreDenied
from lakebed.listing.lookback import Window
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.events.backlog import FilesLeftOut
from tests.support.foreign import DAY, Directory

NEXT_DAY = "date=2024-01-02"


@pytest.fixture
def table(tmp_path):
    return Directory(tmp_path / "table")


def twin(table, path, number):
    return table.file(number, path=path.replace(DAY, NEXT_DAY))


def test_a_file_whose_uuid_is_committed_is_named_and_not_taken_for_that_one(table):
    """L06, L07: it is never counted as done without a word, and its meta stays."""
    first = table.file(1)
    running = table.penguin().drain()
    second = twin(table, first, 2)
    running.drain()
    restarted = table.penguin().drain()
    meta = table.meta(second)
    asked = table.penguin().drain()
    for one in (running, restarted, asked):
        (said,) = one.told(FilesLeftOut)
        assert (said.code, said.paths) == ("file_name_taken", (second,))
        assert first in said.reason
    assert (table.ids(), table.metas()) == ([1], [meta.name])


def test_of_two_files_with_one_uuid_the_first_goes_in_and_the_second_is_named_once(table):
    first = table.file(1)
    second = twin(table, first, 2)
    running = table.penguin().drain()
    running.drain()
    (said,) = running.told(FilesLeftOut)
    assert (said.code, said.paths, table.ids()) == ("file_name_taken", (second,), [1])


def test_a_file_that_was_removed_and_forgotten_is_nobody_s_namesake(table):
    """D09: what was compacted is settled by its path, as ever."""
    for number in range(3):
        table.file(number)
    table.penguin().drain()
    table.delta().optimize.compact()
    assert table.penguin().drain().told(FilesLeftOut) == []
    assert table.ids() == [0, 1, 2]


def test_a_file_that_may_not_be_read_does_not_stop_the_others(table):
    """L09, W16: it is named, and taken as soon as it may be read."""
    denied = table.file(1)
    table.file(2)

    class Guarded(Store):
        closed = True

        def part(self, path, start, end, *, etag):
            if Guarded.closed and path == denied:
                raise StoreDenied("permission denied", path=path)
            return super().part(path, start, end, etag=etag)

    running = table.penguin()
    guarded = Guarded(str(table.root), StorageOptions())
    running.run.open_store = lambda: guarded
    running.drain()
    (said,) = running.told(FilesLeftOut)
    assert (said.code, said.paths, table.ids()) == ("store_denied", (denied,), [2])
    Guarded.closed = False
    running.drain()
    assert table.ids() == [1, 2]


def test_a_partition_column_may_begin_with_an_underscore(table):
    """L20: a filter hides what is old, and nothing else."""
    table.file(1, folder="region=eu/_day=2024-01-01")
    table.file(9, folder="region=eu/_temporary")
    recent = Window.parse("region=%s/_day=%Y-%m-%d", 7)
    table.penguin(partition_filter=recent).drain()
    assert table.ids() == [1]
