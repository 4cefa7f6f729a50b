"""Directories of other programs' files: found by their names, each committed once."""

from pathlib import Path

import pytest

from lakebed.listing.lookback import Window
from lakebed.storage.store import Store
from penguin.events.backlog import FilesLeftOut, ForeignFilesSearched
from tests.support.builders import NOON
from tests.support.foreign import DAY, Directory, date_folder, name_at

HOUR = 3600.0


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


def days(back: int, template: str = "date=%Y-%m-%d") -> Window:
    return Window.parse(template, back)


def noting(table: Directory) -> tuple[list[tuple[str, str]], list[str]]:
    """Note what is listed of a table from now on, and which paths come of it."""
    listed: list[tuple[str, str]] = []
    shown: list[str] = []

    class Noting(Store):
        def in_order(self, prefix="", *, after="", guide=None):
            listed.append((prefix, after))
            for facts in super().in_order(prefix, after=after, guide=guide):
                shown.append(facts.path)
                yield facts

    table.store = Noting(table.store.uri, table.store.options)
    return listed, shown


# ------------------------------------------------------------------------------ what is found


def test_files_of_another_program_are_committed_once(table):
    for number in range(3):
        table.file(number, folder=date_folder(number))
    penguin = table.penguin().drain()
    assert table.ids() == [0, 1, 2]
    assert penguin.run.totals.commits == 1
    table.penguin().drain()
    assert table.versions() == 2
    assert {row["date"] for row in table.rows()} == {"2024-01-01", "2023-12-31", "2023-12-30"}


def test_only_names_of_the_expected_kind_are_taken(table):
    """HOLES D10: other engines leave unfinished files in the same folders."""
    table.file(1)
    for odd in ("part-00000.parquet", "x.parquet", "1f0e4c5a-0000-4000-8000-000000000000.parquet"):
        table.file(9, path=f"{DAY}/{odd}")
    table.file(9, path=f"_temporary/{name_at(1)}")
    table.file(9, path=f"{DAY}/.hidden/{name_at(2)}")
    table.penguin().drain()
    assert table.ids() == [1]


def test_a_file_pattern_widens_what_is_taken_and_each_file_counts_once(table):
    table.file(1)
    table.file(2, path=f"{DAY}/part-0.parquet")
    table.file(3, path="date=2024-01-02/part-0.parquet")
    table.file(9, path=f"{DAY}/_part.parquet")
    table.penguin(file_pattern="part-*.parquet").drain()
    assert table.ids() == [1, 2, 3]
    table.delta().optimize.compact()
    table.penguin(file_pattern="part-*.parquet").drain()
    assert table.ids() == [1, 2, 3]


def test_a_pattern_finds_names_that_sort_anywhere_at_every_poll(table):
    penguin = table.penguin(file_pattern="*.parquet")
    for number, name in enumerate(["m.parquet", "a.parquet", "z.parquet", "b.parquet"]):
        table.file(number, path=f"{DAY}/{name}")
        penguin.drain()
    assert table.ids() == [0, 1, 2, 3]


def test_files_at_the_root_of_an_unpartitioned_table(table):
    penguin = table.penguin()
    for number in range(3):
        table.file(number, folder="")
        table.hands.at += 1
        penguin.drain()
    assert table.ids() == [0, 1, 2]
    assert table.delta().metadata().partition_columns == []


def test_the_table_is_created_by_the_configured_partitions(table):
    table.file(1, folder="date=2024-01-01/region=eu west")
    settings = {
        "partition_columns": ("date", "region"),
        "partition_template": "date=%Y-%m-%d/region=%s",
    }
    table.penguin(**settings).drain()
    fields = {one.name: one.type.type for one in table.delta().schema().fields}
    assert fields == {"id": "long", "date": "date", "region": "string"}
    assert table.rows()[0]["region"] == "eu west"
    bad = table.file(2, folder="date=yesterday/region=eu")
    table.file(3, folder="date=2024-01-02/region=us")
    penguin = table.penguin(**settings).drain()
    assert table.ids() == [1, 3]
    (said,) = penguin.told(FilesLeftOut)
    assert said.paths == (bad,)
    assert "partition column date" in said.reason


def test_partition_values_are_read_from_escaped_folders(table):
    """HOLES W09"""
    null = "p=__HIVE_DEFAULT_PARTITION__"
    values = {"p=a%2Fb": "a/b", null: None, "p=100%25": "100%", "p=ü ñ": "ü ñ"}
    for number, folder in enumerate(values):
        table.file(number, folder=folder)
    table.penguin().drain()
    assert {row["id"]: row["p"] for row in table.rows()} == dict(enumerate(values.values()))
    table.penguin().drain()
    assert table.versions() == 2


def test_a_file_in_a_folder_that_is_no_partition_of_the_table_is_left_out(table):
    table.file(1)
    table.penguin().drain()
    table.file(2, folder="region=eu")
    table.file(3, folder="date=2024-01-01/region=eu")
    penguin = table.penguin().drain()
    assert table.ids() == [1]
    assert {said.code for said in penguin.told(FilesLeftOut)} == {"file_unfit"}


# ------------------------------------------------------------------------------ late files


def test_uploads_that_finish_out_of_order_between_polls_are_all_committed(table):
    """HOLES L07: the lower name appears after the higher one was committed."""
    penguin = table.penguin()
    lower = table.path(age=60)
    table.file(2)
    penguin.drain()
    table.file(1, path=lower)
    penguin.drain()
    assert table.ids() == [1, 2]
    assert [
        event.sweep for event in penguin.told(ForeignFilesSearched) if event.sweep is not None
    ] == [
        True,
        False,
    ]


@pytest.mark.parametrize(("late_window", "first"), [(60.0, [2]), (900.0, [1, 2])])
def test_a_file_below_the_late_window_is_found_by_the_next_sweep(table, late_window, first):
    """HOLES L07: and within it by the next poll."""
    penguin = table.penguin(late_window=late_window, sweep_interval=HOUR)
    lower = table.path(age=600)
    table.file(2)
    penguin.drain()
    table.file(1, path=lower)
    penguin.drain()
    assert table.ids() == first
    table.hands.at += HOUR
    penguin.drain()
    assert table.ids() == [1, 2]


def test_late_data_for_an_older_partition_is_committed(table):
    """HOLES L08: a quiet folder is looked at by the next sweep, a new one at once."""
    penguin = table.penguin(late_window=60.0, sweep_interval=600.0)
    table.file(1, folder=date_folder(9))
    table.hands.at += 2 * HOUR
    table.file(2)
    penguin.drain()
    table.file(3, folder=date_folder(9))
    table.file(4, folder=date_folder(5))
    penguin.drain()
    assert table.ids() == [1, 2, 4]
    table.hands.at += 600
    penguin.drain()
    assert table.ids() == [1, 2, 3, 4]


def test_a_restart_sweeps(table):
    """HOLES L08, D01"""
    table.file(2)
    table.penguin().drain()
    table.file(1, age=10 * HOUR)
    table.penguin().drain()
    assert table.ids() == [1, 2]


def test_a_poll_lists_only_what_may_be_new(table):
    """A quiet folder and old names are not listed between two sweeps."""
    listed, shown = noting(table)
    table.file(1, folder=date_folder(3), age=3 * 24 * HOUR)
    last = table.file(2)
    penguin = table.penguin(late_window=60.0)
    penguin.drain()
    assert listed == [("", "")]
    assert len(shown) == 2
    listed.clear()
    shown.clear()
    penguin.drain()
    ((level, _), (prefix, after)) = listed  # The names of the folders come first.
    assert (level, prefix) == ("", DAY)
    assert shown == [last]
    assert f"{DAY}/{name_at(int((table.hands.at - 61) * 1000))}" < after < last


@pytest.mark.parametrize("step", [-HOUR, -48 * HOUR, 7 * 24 * HOUR])
def test_a_clock_that_steps_loses_nothing(table, step):
    """HOLES L22"""
    penguin = table.penguin(late_window=60.0)
    table.file(1)
    penguin.drain()
    table.hands.at += step
    for number in (2, 3):
        table.file(number)
        penguin.drain()
    table.hands.at -= step
    for number in (4, 5):
        table.hands.at += 1
        table.file(number)
        penguin.drain()
        table.hands.at += HOUR  # the next sweep
        penguin.drain()
    assert table.ids() == [1, 2, 3, 4, 5]


def test_a_name_from_the_future_hides_nothing(table):
    """HOLES L22: it is committed, and moves no mark."""
    penguin = table.penguin(late_window=60.0)
    table.file(1, age=-30 * 24 * HOUR)
    table.file(2)
    penguin.drain()
    for number in (3, 4):
        table.hands.at += 100
        table.file(number)
        penguin.drain()
    assert table.ids() == [1, 2, 3, 4]


# ------------------------------------------------------------------------------ the filter


def test_a_filter_bounds_a_cold_start_and_never_hides_what_is_newer(table):
    """HOLES L12, L20: lookback counts days, over hourly folders, and later starts go on."""
    options = {"partition_filter": days(2)}
    for ago in (30, 3, 2, 1, 0):
        table.file(ago, folder=f"{date_folder(ago)}/hour=23")
    table.penguin(**options).drain()
    assert table.ids() == [0, 1, 2]
    # Penguin was away for longer than the lookback: everything newer is seen all the same.
    table.hands.at += 30 * 24 * HOUR
    table.file(100, folder=f"{date_folder(-5)}/hour=00")
    table.file(101, folder=f"{date_folder(1)}/hour=07")
    table.penguin(**options).drain()
    assert table.ids() == [0, 1, 2, 100, 101]
    # What the first look did not reach stays out of sight, until the filter is taken away.
    table.penguin().drain()
    assert table.ids() == [0, 1, 2, 3, 30, 100, 101]


def test_files_that_land_just_before_midnight_are_seen(table):
    """HOLES L12"""
    options = {"partition_filter": days(1)}
    midnight = NOON.timestamp() + 12 * HOUR
    penguin = table.penguin(**options)
    table.hands.at = midnight - 1
    table.file(1, folder=date_folder(0))
    penguin.drain()
    lower = table.path(folder=date_folder(0))
    table.hands.at = midnight + 1
    table.file(2, folder=date_folder(-1))
    penguin.drain()
    table.file(3, path=lower)
    penguin.drain()
    assert table.ids() == [1, 2, 3]


def test_a_cold_start_does_not_look_into_old_folders(table):
    listed, _shown = noting(table)
    for ago in (30, 1, 0):
        table.file(ago, folder=f"{date_folder(ago)}/hour=23")
    table.penguin(partition_filter=days(2)).drain()
    assert table.ids() == [0, 1]
    looked = [prefix for prefix, _after in listed]
    assert date_folder(30) not in looked
    assert date_folder(1) in looked


def test_the_sweep_horizon_bounds_sweeps_and_never_hides_what_is_newer(table):
    options = {"sweep_horizon": days(3)}
    table.file(1, folder=date_folder(0))
    table.penguin(**options).drain()
    table.file(2, folder=date_folder(4))
    table.file(3, folder=date_folder(2))
    table.penguin(**options).drain()
    assert table.ids() == [1, 3]
    table.hands.at += 20 * 24 * HOUR
    table.file(4, folder=date_folder(-1))
    table.penguin(**options).drain()
    assert table.ids() == [1, 3, 4]
    table.penguin().drain()
    assert table.ids() == [1, 2, 3, 4]
