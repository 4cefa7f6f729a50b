"""Links in a table directory: a file has one name, and a folder is looked into once."""

from pathlib import Path

import pytest

from lakebed.listing.lookback import Window
from penguin.events.backlog import FilesLeftOut
from penguin.status import table_status
from tests.support.builders import NOON
from tests.support.foreign import DAY, Directory


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


def link(table: Directory, name: str, target: str) -> str:
    (table.root / name).symlink_to(table.root / target)
    return name


def left_out(penguin):
    return {path: told.code for told in penguin.told(FilesLeftOut) for path in told.paths}


# ------------------------------------------------------------------------------ a file's names


@pytest.mark.parametrize("committed_before", [True, False])
def test_a_link_with_a_uuid_of_its_own_does_not_double_its_file(table, committed_before):
    """HOLES D21: only names without a UUID were looked at."""
    real = table.file(1)
    penguin = table.penguin()
    if committed_before:
        penguin.drain()
    second = link(table, table.path(), real)
    table.hands.at += 2
    table.file(2)
    penguin.drain()
    assert table.ids() == [1, 2]
    assert left_out(penguin) == {second: "file_name_taken"}
    assert f"a link makes it the same file as {real}" in penguin.told(FilesLeftOut)[0].reason


@pytest.mark.parametrize("asked", [False, True])
def test_a_link_whose_name_sorts_first_does_not_stand_for_its_file(table, asked):
    """HOLES D21: also if a meta asks for it."""
    second = table.path()
    real = table.file(1)
    link(table, second, real)
    if asked:
        table.meta(second)
    penguin = table.penguin().drain()
    assert table.delta().get_add_actions().column("path").to_pylist() == [real]
    assert left_out(penguin) == {second: "file_name_taken"}


def test_a_link_to_a_name_that_no_scan_takes_is_left_out(table):
    """HOLES D21: two links to it would be its rows twice."""
    real = table.file(1, path=f"{DAY}/part-0.parquet")
    links = [link(table, table.path(), real) for _ in range(2)]
    penguin = table.penguin().drain()
    assert table.ids() == []
    assert left_out(penguin) == dict.fromkeys(links, "file_name_taken")


def test_a_file_that_the_log_knows_by_a_link_is_known(table):
    """HOLES D21: an earlier version, or another engine, has committed the link."""
    real = table.file(1)
    outside = table.root.parent / "elsewhere.parquet"
    (table.root / real).replace(outside)
    second = table.path()
    (table.root / second).symlink_to(outside)
    table.penguin().drain()
    assert table.ids() == [1]
    outside.replace(table.root / real)
    (table.root / second).unlink()
    link(table, second, real)
    penguin = table.penguin().drain()
    assert table.ids() == [1]
    assert left_out(penguin) == {real: "file_name_taken"}


def test_a_link_to_a_file_outside_the_directory_is_a_file(table):
    """It is the only name that the table has for it."""
    path = table.file(1)
    outside = table.root.parent / "elsewhere.parquet"
    (table.root / path).replace(outside)
    (table.root / path).symlink_to(outside)
    penguin = table.penguin().drain()
    assert (table.ids(), left_out(penguin)) == ([1], {})


# ------------------------------------------------------------------------------ links to folders


@pytest.mark.parametrize("window", [None, Window.parse("date=%Y-%m-%d", 7)])
@pytest.mark.parametrize("to", ["", DAY, "y"])
def test_a_link_to_a_folder_is_told_and_the_others_go_in(table, to, window):
    """HOLES W23: one that led to a folder above it stopped every look at the directory."""
    table.file(1)
    penguin = table.penguin(partition_filter=window, late_window=1.0).drain()
    link(table, "y", to)
    for number in (2, 3):
        table.hands.at += 10
        table.file(number)
        penguin.drain()
    assert table.ids() == [1, 2, 3]
    again = table.penguin(partition_filter=window).drain()
    assert left_out(again) == {"y/": "name_unusable"}
    assert "move the folder here, or remove the link" in again.told(FilesLeftOut)[0].reason
    shown = table_status(table.settings(), table.store, NOON).others.left_out
    assert [(one.path, one.code) for one in shown] == [("y/", "name_unusable")]


def test_a_link_in_a_partition_is_told_by_its_path(table):
    """HOLES W23"""
    table.file(1)
    link(table, f"{DAY}/up", ".")
    link(table, "_hidden", ".")
    penguin = table.penguin().drain()
    assert table.ids() == [1]
    assert left_out(penguin) == {f"{DAY}/up/": "name_unusable"}


def test_a_link_to_a_folder_elsewhere_is_not_followed_unless_a_meta_asks(table):
    """HOLES W23: what it leads to may lead back."""
    away = table.root.parent / "away"
    path = table.file(1)
    (table.root / DAY).replace(away)
    (table.root / DAY).symlink_to(away)
    penguin = table.penguin().drain()
    assert table.ids() == []
    assert left_out(penguin) == {f"{DAY}/": "name_unusable"}
    table.meta(path)
    table.penguin().drain()
    assert table.ids() == [1]


def test_a_link_among_the_metas_stops_none_of_them(table):
    """HOLES W23: `_staging/pending` is listed, too."""
    path = table.file(1, path=f"{DAY}/asked.parquet")
    table.meta(path)
    link(table, "_staging/pending/up", "")
    table.penguin().drain()
    assert table.ids() == [1]
