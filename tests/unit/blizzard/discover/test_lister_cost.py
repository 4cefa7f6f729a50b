"""What looks at a source cost, and that filters hide nothing that comes later."""

import threading
import tracemalloc
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from blizzard.discover.cursor import ListingCursor
from blizzard.discover.finding import Finding, Reason
from blizzard.discover.lister import SKIPPED
from blizzard.journal import segments
from blizzard.model.settings import ListingLimits
from blizzard.model.source.form import SourcePattern
from lakebed.listing.lookback import Window
from lakebed.listing.watermark import Range
from lakebed.storage.options import ObjectFacts
from tests.support.bucket import LONG_AGO
from tests.support.builders import NOON
from tests.support.site import HOUR, QUICK, SECOND, Backlog, Site, flat, taken


def known(names: list[str], **given: Any) -> Site:
    """Return a source whose files are all ingested."""
    site = Site(names, **given)
    site.finish_all()
    return site


def by_day(count: int) -> list[str]:
    return [
        f"date={2000 + day // 300}-{day % 300:03d}/{number:08d}.ndjson"
        for day in range(count // 250)
        for number in range(250)
    ]


def idle_poll(names: list[str]) -> tuple[dict[str, int], dict[str, int], int]:
    """Return the requests to source and table and the peak of memory of a poll with nothing new."""
    site = known(names)
    assert site.look().take == ()
    site.bucket.requests.clear()
    site.table.requests.clear()
    tracemalloc.start()
    try:
        finding = site.look(later=10 * SECOND)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert finding.take == ()
    return dict(site.bucket.requests), dict(site.table.requests), peak


@pytest.mark.parametrize("layout", [flat, by_day])
def test_an_idle_poll_costs_the_same_with_a_hundred_times_the_history(layout):
    """One listing of one page, no read of the table, and the memory of a page at most. W18."""
    small, large = idle_poll(layout(250)), idle_poll(layout(25_000))
    assert small[:2] == large[:2] == ({"list": 1}, {})
    assert large[2] <= small[2] + 100_000
    assert small[2] < 2_000_000


def in_folders(count: int) -> list[str]:
    return [f"user={number // 5:05d}/{number:08d}.ndjson" for number in range(count)]


def beside_folders(count: int) -> list[str]:
    return [f"{number // 3:05d}{'/x' * (number % 3)}.ndjson" for number in range(count)]


@pytest.mark.parametrize("once", [True, False], ids=["once", "polling"])
@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "old"])
@pytest.mark.parametrize("layout", [flat, by_day, in_folders, beside_folders])
def test_a_backlog_of_many_batches_is_listed_once(layout, fresh, once):
    """W18: a look goes on where the one before stopped."""
    site = Site(layout(2_000), max_files_per_batch=100, limits=ListingLimits(page=100))
    site.bucket.page = 100
    if fresh:
        site.bucket.modified = dict.fromkeys(site.bucket.names, site.now)
    backlog = Backlog(site, once=once)
    batches = [backlog.batch()]
    for _ in range(19):
        site.now += 11 * SECOND
        assert site.bucket.listed == len(batches) * 100 + 1
        known = site.bucket.listed, site.bucket.requests["list"]
        batches.append(backlog.batch())
    assert [len(batch) for batch in batches] == [100] * 20
    assert [path for batch in batches for path in batch] == site.bucket.names
    assert known <= (1.2 * 2_000, 1.2 * 20)
    assert "head" not in site.bucket.requests
    site.now += 11 * SECOND
    assert backlog.batch() == []


def test_a_look_that_fills_a_batch_lists_no_more_than_its_page():
    """W18."""
    site = Site(flat(20_000), max_files_per_batch=1_000)
    finding = site.look()
    assert (len(finding.take), finding.left_over, finding.swept) == (1_000, 1, False)
    assert site.bucket.requests == {"list": 2}


def test_a_sweep_of_a_long_history_reads_the_known_names_once_in_large_pieces():
    site = known(flat(20_000))
    site.table.requests.clear()
    assert site.look().take == ()
    assert site.bucket.requests == {"list": 20}
    assert site.table.requests["get"] <= 20_000 // (segments.BLOCK * segments.AHEAD) + 3


def test_a_new_file_costs_a_few_blocks_of_the_known_names_and_no_sweep():
    site = known(flat(20_000))
    site.look()
    site.table.requests.clear()
    site.bucket.requests.clear()
    site.arrive("00020000.ndjson")
    assert taken(site.look(later=10 * SECOND)) == ["00020000.ndjson"]
    assert site.bucket.requests == {"list": 1}
    assert site.table.requests["get"] <= 1


class Unasked(ListingCursor):
    """A cursor whose ranges take too long to work out."""

    def ranges(self) -> list[Range]:
        pytest.fail("nobody asked")


def test_many_live_folders_are_swept_rather_than_listed_one_by_one():
    """W18: ten thousand partitions. Nor are their ranges worked out, which takes a minute."""
    site = Site([f"user={number:05d}/a.ndjson" for number in range(10_000)])
    assert len(site.look().take) == 10_000
    site.bucket.requests.clear()
    found = site.lister._cursor
    site.lister._cursor = Unasked(
        swept_at=found.swept_at,
        pages=found.pages,
        folders=found.folders,
        incomplete=found.incomplete,
    )
    site.look(later=10 * SECOND)
    assert site.bucket.requests == {"list": 10}


def test_a_small_source_is_always_looked_at_whole():
    site = known(["a/1.ndjson", "z/1.ndjson"])
    site.look()
    site.arrive("a/0.ndjson")
    assert taken(site.look(later=10 * SECOND)) == ["a/0.ndjson"]
    assert site.look().swept


@pytest.mark.parametrize("once", [True, False], ids=["once", "polling"])
def test_a_look_goes_on_only_from_what_is_journaled(once):
    """L11: the files of a batch that failed, or that it left, come again; none is passed by."""
    site = Site(flat(30), max_files_per_batch=4, limits=ListingLimits(page=1, names=12))
    backlog = Backlog(site, once=once)
    done = backlog.batch()
    backlog.found()
    backlog.schedule.batch_failed()
    some = backlog.found()
    assert [file.path for file in some] == flat(8)[4:]
    backlog.journal(some[:3])
    done += [file.path for file in some[:3]]
    while len(done) < 30:
        site.now += 11 * SECOND
        done += backlog.batch()
    assert done == flat(30)


def test_what_lands_below_a_sweep_that_never_ends_is_found_within_the_sweep_interval():
    """L08, L22: files land behind the sweep faster than batches read them."""
    site = Site(flat(40), max_files_per_batch=4, sweep_interval=600, limits=ListingLimits(page=1))
    site.bucket.page = 4
    backlog = Backlog(site)
    backlog.batch()
    site.arrive("!late.ndjson")
    for number in range(8):
        site.arrive(*(f"~{number}{place}.ndjson" for place in range(8)))
        site.now += 100 * SECOND
        if "!late.ndjson" in backlog.batch():
            return
    pytest.fail("it waits for ever")


def test_the_last_names_have_their_turn_though_batches_are_filled_by_what_lands_before_them():
    """L08: each sweep comes further than the one before it, however many of them are made."""
    site = Site(flat(16), max_files_per_batch=4, sweep_interval=300, limits=ListingLimits(page=1))
    site.bucket.page = 4
    backlog = Backlog(site)
    read: set[str] = set()
    for number in range(60):
        # Each of them sorts before those that are there: no sweep under way comes by them.
        site.arrive(*(f"!{60 - number:02d}{place}.ndjson" for place in range(4)))
        site.now += 100 * SECOND
        read.update(backlog.batch())
    assert set(flat(16)) <= read


def test_a_store_that_loses_the_order_after_the_first_batch_is_listed_from_the_start():
    """L20: names before the position may come later in such a listing."""
    site = Site(flat(12), max_files_per_batch=4)
    in_order = site.bucket.objects

    def unordered(prefix: str = "", *, after: str | None = None) -> Iterator[ObjectFacts]:
        yield from in_order(prefix, after=after)
        yield from (site.bucket.facts(name) for name in ("!1.ndjson", "!0.ndjson"))

    site.bucket.objects = unordered  # type: ignore[method-assign]
    backlog = Backlog(site, once=True)
    read: list[str] = []
    while batch := backlog.batch():
        read += batch
    assert sorted(read) == ["!0.ndjson", "!1.ndjson", *flat(12)]


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


@pytest.mark.parametrize("template", ["date=%Y-%m-%d", "%Y/%m/%d"])
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
    site = known(flat(100), limits=QUICK)
    for skew in (-24 * HOUR, 24 * HOUR):
        name = f"{200 + len(site.bucket.names):08d}.ndjson"
        site.bucket.add(name, modified=site.now + skew)
        assert taken(site.look(later=10 * SECOND)) == [name]
        site.finish(name)
    assert site.now > LONG_AGO
