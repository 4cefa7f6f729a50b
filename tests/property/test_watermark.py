"""A mark never passes a file that is not settled, and no file is lost between the looks."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.clock import uuid7
from lakebed.listing.watermark import (
    advance,
    folder_and_name,
    is_hot,
    list_after,
    named_at,
    newest,
)

START = 1_700_000_000_000
NOW = datetime.fromtimestamp(START / 1000 + 10, UTC)
TIMES = st.integers(START, START + 20_000)
FOLDERS = st.sampled_from(["", "date=2024-01-01", "date=2024-01-02/region=eu"])


def path_of(folder: str, at: int, salt: int) -> str:
    name = f"{uuid7(at, salt.to_bytes(10, 'big'))}.parquet"
    return f"{folder}/{name}" if folder else name


PATHS = st.builds(path_of, FOLDERS, TIMES, st.integers(0, 1 << 70))
SETS = st.frozensets(PATHS, max_size=12)


@settings(max_examples=60, deadline=None)
@given(SETS, SETS, SETS)
def test_a_mark_never_passes_an_unsettled_file_or_the_present_and_never_falls(
    before, settled, unsettled
):
    marks = advance({}, before, (), NOW)
    after = advance(marks, settled - unsettled, unsettled, NOW)
    for folder, mark in marks.items():
        assert after[folder] >= mark
    for path in unsettled:
        folder, name = folder_and_name(path)
        if after.get(folder) != marks.get(folder):
            assert after[folder] < name
    for mark in after.values():
        at = named_at(mark)
        assert at is not None
        assert at <= NOW.timestamp() * 1000


@settings(max_examples=60, deadline=None)
@given(SETS, SETS, SETS)
def test_it_does_not_matter_in_which_order_files_are_settled(one, two, unsettled):
    both = advance({}, (one | two) - unsettled, unsettled, NOW)
    first = advance({}, one - unsettled, unsettled, NOW)
    assert advance(first, two - unsettled, unsettled, NOW) == both


@settings(max_examples=60, deadline=None)
@given(TIMES, TIMES, st.integers(0, 1 << 70), st.integers(0, 1 << 70), st.integers(0, 30))
def test_the_late_window_is_a_range_of_names(mark_at, other_at, salt, other_salt, seconds):
    """HOLES L07: a file that is named up to a late window before the mark is listed again."""
    mark, other = path_of("", mark_at, salt), path_of("", other_at, other_salt)
    start = list_after(mark, timedelta(seconds=seconds))
    assert start is not None
    if other_at >= mark_at - seconds * 1000:
        assert other > start
    if other_at < mark_at - seconds * 1000:
        assert other < start


@settings(max_examples=60, deadline=None)
@given(SETS)
def test_a_folder_without_a_mark_is_listed_whole_and_is_hot(paths):
    assert list_after(None, timedelta(seconds=1)) is None
    marks = advance({}, paths, (), NOW)
    assert is_hot(None, newest(marks), timedelta())


def test_a_name_without_a_time_moves_no_mark_and_leaves_the_folder_listed_whole():
    assert advance({}, ["part-0001.parquet"], (), NOW) == {}
    assert list_after("part-0001.parquet", timedelta(hours=1)) is None


def test_a_name_from_the_future_moves_no_mark():
    """HOLES L22: a clock that jumped ahead for a moment does not hide what comes after."""
    ahead = path_of("p", START + 3_600_000, 1)
    now = path_of("p", START, 2)
    assert advance({}, [ahead, now], (), NOW) == {"p": now.rpartition("/")[2]}


def test_a_folder_is_hot_as_long_as_its_last_file_is_close_to_the_newest():
    marks = advance({}, [path_of("old", START, 1), path_of("new", START + 9_000, 1)], (), NOW)
    assert newest(marks) == START + 9_000
    assert is_hot(marks["new"], newest(marks), timedelta(seconds=5))
    assert is_hot(marks["old"], newest(marks), timedelta(seconds=9))
    assert not is_hot(marks["old"], newest(marks), timedelta(seconds=8))
