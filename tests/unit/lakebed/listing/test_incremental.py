"""When everything is listed, which folder is left out as a whole, and what a range covers."""

from datetime import timedelta

import pytest

from lakebed.clock import uuid7
from lakebed.listing.incremental import Range, sweep_is_due, widest_unwanted
from lakebed.listing.watermark import Windows, look_from, plan_above

START = 1_700_000_000_000
WINDOWS = Windows(late=timedelta(minutes=1), quiet=timedelta(hours=1))


def name_at(milliseconds: int) -> str:
    return f"{uuid7(milliseconds, bytes(10))}.parquet"


@pytest.mark.parametrize(
    ("swept_at", "now", "expected"),
    [(None, 0, True), (100, 100, False), (100, 159, False), (100, 160, True), (100, 99, True)],
)
def test_a_sweep_is_due_at_first_in_time_and_when_the_clock_was_set_back(swept_at, now, expected):
    assert sweep_is_due(swept_at, now, every=60) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [("old/a/1", "old"), ("new/old/a/1", "new/old"), ("new/1-old", None), ("old", None)],
)
def test_the_widest_folder_that_is_unwanted_as_a_whole(path, expected):
    assert widest_unwanted(path, lambda part: "old" not in part) == expected


def test_a_direct_range_covers_files_right_in_its_folder_only():
    assert Range(prefix="a", direct=True).covers("a/1")
    assert not Range(prefix="a", direct=True).covers("a/b/1")
    assert Range(prefix="a").covers("a/b/1")
    assert Range(prefix="", direct=True).covers("1")


def test_between_sweeps_live_and_unknown_folders_are_listed_and_quiet_ones_are_not():
    live, quiet = name_at(START), name_at(START - 3_600_001)
    plan = plan_above(
        {"a/live": live, "a/quiet": quiet}, WINDOWS, wanted=lambda _path: True, root_until="9"
    )
    assert plan.depth == 2
    after = f"a/live/{look_from(live, WINDOWS.late)}"
    assert plan.ranges("a/live") == [Range(prefix="a/live", after=after, direct=True)]
    assert plan.ranges("a/quiet") == []
    assert plan.ranges("a/unknown") == [Range(prefix="a/unknown")]


def test_where_all_files_are_in_the_root_it_is_listed_up_to_a_name():
    mark = name_at(START)
    plan = plan_above({"": mark}, WINDOWS, wanted=lambda _path: True, root_until="9")
    assert plan.depth == 0
    after = look_from(mark, WINDOWS.late)
    assert plan.ranges("") == [Range(prefix="", after=after or "", until="9", direct=True)]
