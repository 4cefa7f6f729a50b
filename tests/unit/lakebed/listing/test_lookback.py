from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.listing.lookback import Window

NOW = datetime(2024, 1, 5, 10, 30, tzinfo=UTC)
INSTANTS = st.integers(631_152_000, 3_786_912_000).map(lambda at: datetime.fromtimestamp(at, UTC))


@pytest.mark.parametrize(
    ("template", "lookback", "oldest"),
    [
        ("year=%Y", 2, (2022,)),
        ("month=%Y-%m", 2, (2023, 11)),
        ("date=%Y-%m-%d", 7, (2023, 12, 29)),
        ("date=%Y-%m-%d/hour=%H", 11, (2024, 1, 4, 23)),
        ("%Y/%m/%d", 5, (2023, 12, 31)),
        ("year=%Y/month=%m", 1, (2023, 12)),
        ("region=%s/date=%Y-%m-%d", 1, (2024, 1, 4)),
        ("day=%d/month=%m/year=%Y", 5, (2023, 12, 31)),
        ("date=%Y-%m-%d", 10**9, (1, 1, 1)),
    ],
)
def test_the_lookback_counts_in_the_finest_unit_of_the_template(template, lookback, oldest):
    assert Window.parse(template, lookback).oldest(NOW) == oldest


@pytest.mark.parametrize(
    ("template", "path", "held"),
    [
        ("date=%Y-%m-%d", "date=2024-01-03/x.parquet", True),
        ("date=%Y-%m-%d", "date=2024-01-02/x.parquet", False),
        ("date=%Y-%m-%d", "/date=2024-01-02/", False),
        # Finer folders below, and the hour that a day-level filter does not ask for.
        ("date=%Y-%m-%d", "date=2024-01-03/hour=00/x.parquet", True),
        ("date=%Y-%m-%d", "date=2024-01-02/hour=23/x.parquet", False),
        # A coarse folder, when the window is finer.
        ("year=%Y/month=%m/day=%d", "year=2024", True),
        ("year=%Y/month=%m/day=%d", "year=2023", False),
        ("year=%Y/month=%m/day=%d", "year=2024/month=01", True),
        ("year=%Y/month=%m/day=%d", "year=2024/month=01/day=02/x", False),
        ("%Y/%m/%d", "2024/01/03/x", True),
        ("%Y/%m/%d", "2024/01/02/x", False),
        ("%Y/%m/%d", "2024/1/3/x", True),
        ("region=%s/date=%Y-%m-%d", "region=eu west/date=2024-01-02/x", False),
        ("region=%s/date=%Y-%m-%d", "region=eu%2Fwest/date=2024-01-03/x", True),
        ("region=%s/date=%Y-%m-%d", "region=/date=2023-01-03/x", False),
        ("at=%Y-%m-%d %H:00", "at=2024-01-05 08%3A00/x", True),
        ("at=%Y-%m-%d %H:00", "at=2024-01-05 07%3A00/x", False),
        ("day=%d/month=%m/year=%Y", "day=02/month=01/year=2024/x", False),
        ("day=%d/month=%m/year=%Y", "day=03/month=01/year=2024/x", True),
        ("day=%d/month=%m/year=%Y", "day=01", True),
    ],
)
def test_only_what_is_clearly_older_than_the_window_is_left_out(template, path, held):
    assert Window.parse(template, 2).holds(path, NOW) is held


@pytest.mark.parametrize(
    "path",
    [
        "",
        "x.parquet",
        "date=unknown/x.parquet",
        "date=__HIVE_DEFAULT_PARTITION__/x.parquet",
        "date=2024-01-02-part/x.parquet",
        "region=eu/date=2020-01-01/x.parquet",
    ],
)
def test_a_path_that_does_not_tell_its_time_is_held(path):
    assert Window.parse("date=%Y-%m-%d", 1).holds(path, NOW)


@pytest.mark.parametrize("lookback", [1, 7])
def test_a_file_from_just_before_midnight_is_seen(lookback):
    """HOLES L12: the day changes between the upload and the first look."""
    midnight = datetime(2024, 3, 1, 0, 0, 1, tzinfo=UTC)
    assert Window.parse("date=%Y-%m-%d", lookback).holds("date=2024-02-29/x.parquet", midnight)
    assert Window.parse("%Y/%m/%d/%H", lookback).holds("2024/02/29/23/x.parquet", midnight)
    assert Window.parse("month=%Y-%m", lookback).holds("month=2024-02/x.parquet", midnight)


def test_the_window_is_counted_in_utc():
    """HOLES L12: a local clock that is behind does not hide the day that has begun in UTC."""
    local = datetime(2023, 12, 31, 23, 0, tzinfo=timezone(timedelta(hours=-8)))
    assert Window.parse("date=%Y-%m-%d", 1).oldest(local) == (2023, 12, 31)


@pytest.mark.parametrize("hours", [-24 * 400, -1, 0, 1])
def test_a_clock_that_was_stepped_back_hides_nothing_new(hours):
    """HOLES L22"""
    window = Window.parse("date=%Y-%m-%d/hour=%H", 3)
    clock = NOW + timedelta(hours=hours)
    assert window.holds(f"date={NOW:%Y-%m-%d}/hour={NOW:%H}/x.parquet", clock)


@pytest.mark.parametrize("days", [0, 1, 400])
def test_a_first_listing_counts_from_its_beginning(days):
    """A place that is listed for long hides nothing that came since; a clock may be set back."""
    window = Window.parse("date=%Y-%m-%d", 2).counted_from(NOW)
    assert window.holds("date=2024-01-03", NOW + timedelta(days=days))
    assert not window.holds("date=2024-01-02", NOW + timedelta(days=days))
    assert window.holds("date=2024-01-02", NOW - timedelta(days=1))


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("region=%s", "gives no time"),
        ("month=%m", "gives no time"),
        ("year=%Y/hour=%H", "gives no time"),
        ("date=%F", "'%F' is not supported"),
        ("date=%", "'%' is not supported"),
        ("date=%Y//day=%d", "empty folder name"),
        ("date=%Y-%m/month=%m", "'%m' appears twice in the template"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_by_name(template, why):
    with pytest.raises(ValueError, match=why):
        Window.parse(template, 1)


UNITS = ["%Y", "%Y/%m", "%Y/%m/%d", "%Y/%m/%d/%H"]


@settings(max_examples=200, deadline=None)
@given(
    unit=st.sampled_from(UNITS),
    now=INSTANTS,
    ago=st.timedeltas(timedelta(0), timedelta(hours=1)),
    back=st.integers(1, 50),
)
def test_the_last_hour_is_in_every_window(unit, now, ago, back):
    """HOLES L12: whatever the template counts in, the folder of an hour ago is looked at."""
    assert Window.parse(unit, back).holds(f"{now - ago:{unit}}/x", now)


@settings(max_examples=60, deadline=None)
@given(now=INSTANTS, days=st.integers(0, 1000), back=st.integers(1, 400))
def test_a_day_is_held_exactly_if_it_is_within_the_lookback(now, days, back):
    window = Window.parse("date=%Y-%m-%d", back)
    assert window.holds(f"date={now - timedelta(days=days):%Y-%m-%d}", now) is (days <= back)


@settings(max_examples=60, deadline=None)
@given(
    now=INSTANTS, then=INSTANTS, back=st.integers(1, 400), finer=st.sampled_from(["", "/hour=07"])
)
def test_a_folder_is_held_whenever_one_below_it_is(now, then, back, finer):
    """HOLES L20: whoever walks the folders from the top never misses one that is held."""
    window = Window.parse("year=%Y/month=%m/day=%d", back)
    path = f"{then:year=%Y/month=%m/day=%d}{finer}"
    if window.holds(path, now):
        assert window.holds(path.partition("/")[0], now)
        assert window.holds("/".join(path.split("/")[:2]), now)
