"""A filter bounds the first look at a source and hides nothing that comes later."""

import threading
from datetime import datetime

import pytest

from blizzard.discover.finding import Finding
from blizzard.discover.lister import SKIPPED
from blizzard.discover.skip_reason import Reason
from blizzard.model.source.glob import SourcePattern
from lakebed.listing.lookback import Window
from tests.support.bucket import LONG_AGO
from tests.support.builders import NOON
from tests.support.site import HOUR, QUICK, SECOND, Site, flat, taken


def test_a_prefix_is_listed_from_its_start_to_its_end():
    names = [
        f"{kind}-{number:04d}.ndjson" for kind in ("aaa", "app", "zzz") for number in range(2000)
    ]
    site = Site(names, pattern=SourcePattern("app-*"))
    finding = site.look()
    assert len(finding.take) == 2000
    assert site.bucket.requests == {"list": 3}


@pytest.mark.parametrize(
    ("template", "lookback", "names", "expected"),
    [
        (
            "date=%Y-%m-%d",
            2,
            ["date=2023-12-29/a.ndjson", "date=2023-12-30/a.ndjson", "date=2024-01-01/a.ndjson"],
            ["date=2023-12-30/a.ndjson", "date=2024-01-01/a.ndjson"],
        ),
        (
            "year=%Y/month=%m",
            1,
            ["year=2023/month=11/a.ndjson", "year=2023/month=12/day=31/a.ndjson", "x.ndjson"],
            ["x.ndjson", "year=2023/month=12/day=31/a.ndjson"],
        ),
        (
            "date=%Y-%m-%d/hour=%H",
            3,
            ["date=2024-01-01/hour=08/a.ndjson", "date=2024-01-01/hour=09/a.ndjson"],
            ["date=2024-01-01/hour=09/a.ndjson"],
        ),
        (
            "region=%s/date=%Y-%m-%d",
            1,
            ["region=eu/date=2023-12-30/a.ndjson", "region=us/date=2023-12-31/a.ndjson"],
            ["region=us/date=2023-12-31/a.ndjson"],
        ),
    ],
)
def test_a_filter_bounds_the_first_look(template, lookback, names, expected):
    """D12, L20."""
    site = Site(names, lookback=Window.parse(template, lookback))
    site.since = None
    finding = site.look()
    assert taken(finding) == expected
    assert finding.count(Reason.TOO_OLD) == len(names) - len(expected)


@pytest.mark.parametrize("template", ["date=%Y-%m-%d", "month=%m/day=%d"])
def test_a_filter_never_hides_what_came_after_the_first_look(template):
    """L12: the window is that of the first look, whenever and however often it is looked."""
    site = Site(lookback=Window.parse(template, 1))

    def folder(at: datetime) -> str:
        return at.strftime(template)

    site.arrive(f"{folder(NOON - 5 * 24 * HOUR)}/old.ndjson", f"{folder(NOON)}/a.ndjson")
    assert taken(site.look()) == [f"{folder(NOON)}/a.ndjson"]
    site.finish(f"{folder(NOON)}/a.ndjson")
    # It was down for three weeks, and in each of them files came.
    weeks = [f"{folder(NOON + week * 7 * 24 * HOUR)}/b.ndjson" for week in (1, 2, 3)]
    site.arrive(*weeks)
    site.restart()
    found = site.look(later=21 * 24 * HOUR)
    assert sorted(taken(found)) == sorted(weeks)
    assert found.count(Reason.TOO_OLD) == 1


def test_a_source_that_was_never_journaled_counts_its_window_from_the_first_look():
    """L12: the table's store is out of order for hours; meanwhile no entry says since when."""
    site = Site(lookback=Window.parse("%Y/%m/%d/%H", 1))
    site.since = None
    site.arrive("2024/01/01/12/a.ndjson", "2024/01/01/09/old.ndjson")
    assert taken(site.look()) == ["2024/01/01/12/a.ndjson"]
    assert taken(site.look(later=5 * HOUR)) == ["2024/01/01/12/a.ndjson"]
    site.since = site.now
    site.arrive("2024/01/01/13/late.ndjson")
    found = site.look(later=HOUR)
    assert taken(found) == ["2024/01/01/12/a.ndjson", "2024/01/01/13/late.ndjson"]
    assert found.count(Reason.TOO_OLD) == 1


@pytest.mark.parametrize("folder", ["", "in/"])
def test_old_files_whose_own_names_tell_their_time_hide_none_beside_them(folder):
    """However many there are, the listing goes on behind them, and comes to its end (L11)."""
    new = f"{folder}{NOON:%Y-%m-%d}-new.ndjson"
    old = [f"{folder}2020-01-01-{number:04d}.ndjson" for number in range(2 * SKIPPED)]
    template = f"{folder}%Y-%m-%d%s"
    site = Site([*old, new], horizon=Window.parse(template, 31))
    found: list[Finding] = []
    look = threading.Thread(target=lambda: found.append(site.look()), daemon=True)
    look.start()
    look.join(300)
    assert [taken(finding) for finding in found] == [[new]]


def test_a_sweep_compares_no_more_than_its_horizon_and_does_not_list_on_in_what_is_older():
    names = [f"date=2023-{month:02d}-01/{n:05d}.ndjson" for month in (1, 12) for n in range(9_000)]
    site = Site([*names, "root.ndjson"], horizon=Window.parse("date=%Y-%m-%d", 31))
    finding = site.look()
    assert len(finding.take) == 9_001
    assert finding.count(Reason.BEYOND_HORIZON) == 1000
    assert site.bucket.requests["list"] <= 12


def test_the_clock_of_the_store_makes_no_difference_to_what_is_found():
    """L22."""
    site = Site(flat(100), limits=QUICK)
    site.finish_all()
    for skew in (-24 * HOUR, 24 * HOUR):
        name = f"{200 + len(site.bucket.names):08d}.ndjson"
        site.bucket.add(name, modified=site.now + skew)
        assert taken(site.look(later=10 * SECOND)) == [name]
        site.finish(name)
    assert site.now > LONG_AGO
