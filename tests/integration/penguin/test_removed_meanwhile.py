"""Removed files stay out: between a look and a commit, and under whichever name."""

import shutil
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakebed.errors import CommitUnconfirmed
from lakebed.layout import DELTA_LOG, log_version
from penguin.delta.table import Log, WritableTable
from penguin.events.backlog import FilesIgnored, FilesLeftOut
from penguin.events.commits import PlanSuperseded
from penguin.status import explain
from tests.support.checkpoints import with_sidecar
from tests.support.foreign import DAY, Directory, Visitor
from tests.support.removals import (
    HOUR,
    add,
    aged,
    begin,
    checkpoint,
    left_out,
    remove,
    write_version,
)
from tests.support.tables import before_commit, log_of


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    """Make a directory whose files are named by the store's own time."""
    found = Directory(tmp_path / "table")
    found.hands.at = time.time()
    return found


# ---------------------------------------------------------------------- between a look and a commit


def put_in_and_compact(table: Directory, path: str) -> None:
    """Let another engine commit a file and rewrite it: its rows are there, and it is not."""
    add(table, path)
    before = DeltaTable(str(table.root))
    before.optimize.compact()
    assert path not in table.delta().get_add_actions().column("path").to_pylist()


def before_opening(happens: Callable[[], None]) -> type[Log]:
    """Return a log to which something happens after a look, before it is opened for the commit."""
    opened = []

    class Interrupted(Log):
        def open(self) -> WritableTable | None:
            opened.append(True)
            if len(opened) == 2:
                happens()
            return super().open()

    return Interrupted


@pytest.mark.parametrize("moment", [before_opening, before_commit])
def test_a_file_that_another_commits_and_rewrites_meanwhile_is_not_doubled(table, moment):
    """HOLES D22: between the look and the commit, and between its opening and its writing."""
    begin(table)
    path = table.file(2)
    turns = [True]

    def overtake() -> None:
        turns.clear()
        put_in_and_compact(table, path)

    penguin = Visitor(table, log=moment(overtake)).drain()
    assert not turns
    assert table.ids() == [1, 2]
    assert len(penguin.told(PlanSuperseded)) == 1


def test_what_others_commit_meanwhile_keeps_no_file_out(table):
    """HOLES D22: only what touches the very files is in the way."""
    begin(table)
    table.file(2)
    theirs = iter([12, 11, 10])

    def overtake() -> None:
        more = pa.table({"id": [next(theirs)], "date": ["2024-01-01"]})
        write_deltalake(str(table.root), more, mode="append")

    penguin = Visitor(table, log=before_commit(overtake, times=3)).drain()
    assert table.ids() == [1, 2, 10, 11, 12]
    assert penguin.told(PlanSuperseded) == []


# ---------------------------------------------------------------------- a log from a backup


def drained(penguin: Visitor, most: int = 20) -> None:
    for _ in range(most):
        if not penguin.run.step():
            return
    raise AssertionError("it goes on and on")


@pytest.mark.parametrize("others", [0, 1, 2, 5])
def test_a_log_from_a_backup_gets_again_what_it_has_lost(table, tmp_path, others):
    """HOLES W36: fewer versions, as many, or more than before, by others."""
    penguin = table.penguin(late_window=1.0)
    backup = tmp_path / "backup"
    for number in range(4):
        table.file(number)
        table.hands.at += HOUR
        drained(penguin)
        if number == 1:
            shutil.copytree(table.root / DELTA_LOG, backup)
    shutil.rmtree(table.root / DELTA_LOG)
    shutil.copytree(backup, table.root / DELTA_LOG)
    for number in range(others):
        more = pa.table({"id": [100 + number], "date": ["2024-01-01"]})
        write_deltalake(str(table.root), more, mode="append")
    for _ in range(2):
        drained(penguin)
    more_ids = [100 + number for number in range(others)]
    assert table.ids() == [0, 1, 2, 3, *more_ids]
    table.file(9)
    drained(penguin)
    assert table.ids() == [0, 1, 2, 3, 9, *more_ids]
    assert penguin.told(PlanSuperseded) == []


def test_a_memory_that_is_wrong_in_a_way_nobody_knows_is_given_up(table):
    """HOLES W36: a plan that is overtaken at one and the same version is not made for ever."""
    begin(table)
    penguin = table.penguin().drain()
    assert penguin.run._search is not None
    known = penguin.run._search._known
    assert known is not None
    known.transactions["penguin/scan"] = 7
    table.file(2)
    drained(penguin)
    assert table.ids() == [1, 2]

    counted = count(1000)

    class Wavering(WritableTable):
        def transaction(self, app_id: str) -> int | None:
            return next(counted) if app_id == "penguin/scan" else super().transaction(app_id)

    table.file(3)
    with pytest.raises(CommitUnconfirmed, match="keeps changing while it is being read"):
        drained(Visitor(table, log=log_of(Wavering)))


def test_a_look_without_a_commit_reads_the_same(table):
    """What `plan` shows is what a commit would do."""
    begin(table, "365 days")
    gone = aged(table, 2, 20)
    add(table, gone)
    remove(table, gone, days_ago=8)
    checkpoint(table, clean=True, days_old=2)
    shown = explain(table.settings(), table.store)
    penguin = table.penguin().drain()
    assert (shown.proposal.left_out, penguin.told(FilesLeftOut)) == ((), [])
    assert [one.some for one in penguin.told(FilesIgnored)] == [(gone,)]


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "{}"])
def test_a_file_that_the_log_names_by_its_whole_path_is_known(table, form):
    """HOLES D21"""
    begin(table)
    gone = table.file(2)
    name = form.format(f"{table.root.absolute()}/{gone}")
    add(table, gone, name=name)
    write_version(table, {"remove": {"path": name, "dataChange": True, "deletionTimestamp": 1}})
    penguin = table.penguin().drain()
    assert (table.ids(), left_out(penguin)) == ([1], {})


def test_a_file_that_the_log_names_through_a_link_is_known(table, tmp_path):
    """HOLES D21: penguin is given a link to the directory, another engine the directory itself."""
    begin(table)
    gone = table.file(2)
    name = f"file://{table.root.absolute()}/{gone}"
    write_version(table, {"remove": {"path": name, "dataChange": True, "deletionTimestamp": 1}})
    link = tmp_path / "link"
    link.symlink_to(table.root)
    other = Directory(link)
    other.hands.at = table.hands.at
    other.penguin().drain()
    assert table.ids() == [1]
    third = tmp_path / "third"
    third.symlink_to(table.root)
    again = table.file(3)
    name = f"{third.absolute()}/{again}"
    write_version(table, {"remove": {"path": name, "dataChange": True, "deletionTimestamp": 1}})
    table.penguin().drain()
    assert table.ids() == [1]


def test_a_linked_folder_does_not_double_what_another_engine_committed(table):
    """HOLES D21: a UUID is committed once, whoever did it and wherever the file lies."""
    begin(table)
    known = table.file(2)
    add(table, known)
    (table.root / "date=2024-01-02").symlink_to(table.root / DAY)
    penguin = table.penguin().drain()
    assert table.ids() == [1, 2]
    assert left_out(penguin) == {"date=2024-01-02/": "name_unusable"}


def test_a_plain_name_in_a_linked_folder_is_one_file(table):
    """HOLES D21"""
    begin(table)
    (table.root / "date=2024-01-02").symlink_to(table.root / DAY)
    real = table.file(2, path=f"{DAY}/part-0.parquet")
    add(table, real)
    remove(table, real)
    new = table.file(3, path=f"{DAY}/part-1.parquet")
    penguin = table.penguin(file_pattern="part-*.parquet").drain()
    assert table.ids() == [1, 3]
    assert new in table.delta().get_add_actions().column("path").to_pylist()
    reasons = " ".join(told.reason for told in penguin.told(FilesLeftOut))
    assert "it is a link to a folder" in reasons


def test_a_checkpoint_with_sidecars_under_the_classic_name_is_read_whole(table):
    """HOLES D21: its files and tombstones are in the sidecars."""
    begin(table)
    gone, stays = table.file(2), table.file(3)
    for path in (gone, stays):
        add(table, path)
    remove(table, gone)
    table.delta().create_checkpoint()
    with_sidecar(table.root)
    for version in range(table.delta().version()):
        (table.root / log_version(version)).unlink()
    for path in (gone, stays):
        table.meta(path)
    table.penguin().drain()
    assert table.ids() == [1, 3]
    assert len(table.delta().get_add_actions().column("path")) == 2
