"""Another log in the place of the one that a long-running penguin recalls."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import pytest

from lakebed.deltalog.snapshot import LogCache
from lakebed.errors import CommitUnconfirmed, TableUnreadable
from lakebed.layout import log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.delta.table import Log
from tests.support.first_version import NOW
from tests.support.recall import another_log, log_of, put, running
from tests.support.tables import Penguin, opened, rows_of

# ---------------------------------------------------------------------- another log in its place


def test_a_table_that_is_dropped_between_two_looks_is_noticed_at_once(table):
    """D16."""
    penguin = running(table, 1, 2)
    shutil.rmtree(log_of(table))
    penguin.drain()
    assert penguin.codes == {"events": "log_rolled_back"}
    assert not log_of(table).exists()


@pytest.mark.parametrize("versions", [2, 3, 4, 5])
def test_a_table_that_takes_the_place_of_another_is_noticed_at_once(table, tmp_path, versions):
    """D16: with fewer versions, as many, one more, and more than that."""
    penguin = running(table, 1, 2)
    put(table, another_log(tmp_path, versions))
    table.journal().batch(rows_of(3))
    penguin.drain()
    assert penguin.codes == {"events": "log_rolled_back"}
    assert table.versions() == versions


def test_a_log_put_back_from_a_backup_is_noticed_at_once(table, tmp_path):
    """D16."""
    penguin = Penguin(table)
    table.journal().batch(rows_of(1))
    penguin.drain()
    shutil.copytree(log_of(table), tmp_path / "backup")
    penguin = running(table, 2)
    put(table, tmp_path / "backup")
    penguin.drain()
    assert penguin.codes == {"events": "log_rolled_back"}


@pytest.mark.parametrize("replaced", [False, True])
def test_a_last_version_that_was_taken_away_is_noticed_at_once(table, replaced):
    """D16: also where another one of the same table is in its place."""
    penguin = running(table, 1, 2)
    (table.root / log_version(2)).unlink()
    if replaced:
        opened(Log(table.store)).commit((), (("theirs", 1),), {}, NOW)
    assert table.versions() == (3 if replaced else 2)
    penguin.drain()
    assert penguin.codes == {"events": "log_rolled_back"}


def test_a_log_that_cannot_be_read_any_more_is_told_before_a_commit(table):
    """W14: while nothing waits nobody needs the versions before the last."""
    penguin = running(table, 1, 2)
    (table.root / log_version(1)).unlink()
    table.journal().batch(rows_of(3))
    with pytest.raises(TableUnreadable):
        penguin.step()
    assert not (table.root / log_version(3)).exists()


# ---------------------------------------------------------------------- in the very moment


Hooks = dict[tuple[str, str], Callable[[], object]]


class Hooked(Store):
    """Lets something happen right before or after the first call that fits."""

    before: ClassVar[Hooks] = {}
    after: ClassVar[Hooks] = {}

    def fetch(self, path):
        self.before.pop(("fetch", path), int)()
        found = super().fetch(path)
        self.after.pop(("fetch", path), int)()
        return found

    def head(self, path):
        self.before.pop(("head", path), int)()
        return super().head(path)


def hooked(table):
    table.store = Hooked(str(table.root), StorageOptions())
    Hooked.before, Hooked.after = {}, {}
    return table


def test_a_version_of_another_table_is_not_taken_for_the_one_that_follows(table, tmp_path):
    """D16: the table is replaced right before the version after the last is asked for."""
    hooked(table)
    penguin = running(table, 1, 2)
    other = another_log(tmp_path, 6)
    Hooked.before["fetch", log_version(3)] = lambda: put(table, other)
    penguin.drain()
    assert Hooked.before == {}
    assert penguin.codes == {"events": "log_rolled_back"}


def test_a_version_that_followed_and_was_replaced_is_not_believed(table):
    """D16: it is rolled back right after it was read, and others follow."""
    hooked(table)
    penguin = running(table, 1, 2)
    table.journal().batch(rows_of(3))
    Penguin(table).drain()

    def roll_back():
        (table.root / log_version(3)).unlink()
        for number in (1, 2):
            opened(Log(table.store)).commit((), (("theirs", number),), {}, NOW)

    Hooked.after["fetch", log_version(3)] = roll_back
    penguin.drain()
    assert Hooked.after == {}
    assert penguin.codes == {"events": "log_rolled_back"}


def test_a_table_that_is_replaced_while_it_is_read_is_not_recalled(table, tmp_path):
    """D16: what was read is of one table, and the object that is there of another."""
    hooked(table)
    penguin = running(table, 1, 2)
    penguin.run._log_cache.known = None
    other = another_log(tmp_path, 3)
    Hooked.after["fetch", log_version(2)] = lambda: put(table, other)
    penguin.step()
    assert Hooked.after == {}
    assert opened(Log(table.store, penguin.run._log_cache)).id == table.delta().metadata().id
    penguin.drain()
    assert penguin.codes == {"events": "log_rolled_back"}


@pytest.mark.parametrize("versions", [2, 3, 4])
def test_nothing_is_committed_to_a_table_that_has_taken_the_place_of_another(
    table, tmp_path, versions
):
    """D16: what is recalled of one log is never held against the files of another."""
    running(table, 1, 2)
    recalled = recalled_table(table)
    put(table, another_log(tmp_path, versions))
    with pytest.raises(CommitUnconfirmed, match="changed since"):
        recalled.commit((), (("a", 1),), {}, NOW)
    with pytest.raises(CommitUnconfirmed, match="changed since"):
        assert replace(recalled).files
    assert table.versions() == versions


def test_a_table_that_was_dropped_since_is_not_written_to(table):
    """D16."""
    running(table, 1, 2)
    recalled = recalled_table(table)
    shutil.rmtree(log_of(table))
    with pytest.raises(CommitUnconfirmed, match="changed since"):
        recalled.commit((), (("a", 1),), {}, NOW)
    assert not log_of(table).exists()


def test_what_is_asked_of_a_recalled_version_is_answered_by_that_version(table):
    """The transaction is read from the snapshot that the commit is made against."""
    running(table, 1, 2)
    opened(Log(table.store)).commit((), (("theirs", 1),), {}, NOW)
    recalled = recalled_table(table)
    opened(Log(table.store)).commit((), (("theirs", 2),), {}, NOW)
    assert recalled.transaction("theirs") == 1
    with pytest.raises(CommitUnconfirmed):
        recalled.commit((), (("theirs", 2),), {}, NOW)
    assert table.delta().transaction_version("theirs") == 2
    assert table.versions() == 5


def recalled_table(table):
    """Open a table as one that was looked at before."""
    log = Log(table.store, LogCache())
    for _ in range(2):
        opened(log)
    return opened(log)
