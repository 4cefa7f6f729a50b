"""Looks at a source: what they cost, and that they find everything."""

import threading
import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from blizzard.discover import cursor
from blizzard.discover.filter import Finding
from blizzard.discover.lister import SKIPPED, SourceLister
from blizzard.discover.skip_reason import Reason
from blizzard.journal import ingested
from blizzard.journal.state import History
from blizzard.model.files import IngestedFile, UnfinishedFile
from blizzard.model.source_glob import Pattern
from lakebed.clock import Clock
from lakebed.documents.entry import SourceRecord
from lakebed.errors import StoreUnavailable
from lakebed.listing.lookback import Window
from tests.support.bucket import LONG_AGO, Bucket
from tests.support.builders import NOON, failure, record, source_settings

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


class Site:
    """A source, the names that are done, and one who looks."""

    def __init__(self, names: Iterable[str] = (), **source: Any) -> None:
        self.bucket = Bucket(names)
        self.table = Bucket(uri="s3://bucket/table")
        self.history = History()
        self.now = NOON
        self.since: datetime | None = NOON
        self.settings = source_settings("s3://bucket/in", **source)
        self.lister = SourceLister(source=self.settings, template=None, partition_fields={})

    def finish(self, *paths: str) -> None:
        """Let files be in the table, as they are now."""
        for path in paths:
            facts = self.bucket.facts(path)
            key = f"default:{path}"
            self.history.recent[key] = IngestedFile(key=key, size=facts.size, etag=facts.etag)
            self.history.unfinished.pop(key, None)

    def finish_all(self) -> None:
        """Write all names to a segment, as a long history has them."""
        names = (
            IngestedFile(key=f"default:{path}", size=10, etag=f"e-{path}")
            for path in self.bucket.names
        )
        segment = ingested.write_segment(self.table, "default", names, Clock().fresh_id())
        self.history = History(segments=[segment])

    def fail(self, found: SourceRecord) -> None:
        self.history.unfinished[found.key] = UnfinishedFile(record=found, at=self.now)

    def look(self, *, later: timedelta = timedelta(0)) -> Finding:
        self.now += later
        return self.lister.look(
            self.bucket,
            self.history.lookup(self.table, "default"),
            unfinished=self.history.unfinished,
            since=self.since,
            tried=frozenset(),
            now=self.now,
        )

    def arrive(self, *paths: str) -> None:
        for path in paths:
            self.bucket.add(path, modified=self.now)

    def restart(self) -> None:
        self.lister = SourceLister(source=self.settings, template=None, partition_fields={})


def taken(finding: Finding) -> list[str]:
    return [file.path for file in finding.take]


def flat(count: int) -> list[str]:
    return [f"{number:08d}.ndjson" for number in range(count)]


def by_day(count: int) -> list[str]:
    return [
        f"date={2000 + day // 300}-{day % 300:03d}/{number:08d}.ndjson"
        for day in range(count // 500)
        for number in range(500)
    ]


# ------------------------------------------------------------------------------ cost


def idle_poll(names: list[str]) -> tuple[dict[str, int], dict[str, int], int]:
    """Give the requests to source and table and the peak of memory of a poll with nothing new."""
    site = Site(names)
    site.finish_all()
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
    small, large = idle_poll(layout(1_000)), idle_poll(layout(100_000))
    assert small[:2] == large[:2] == ({"list": 1}, {})
    assert large[2] <= small[2] + 100_000
    assert small[2] < 2_000_000


def cost_of_new(count: int) -> tuple[int, int]:
    """Give the requests and the peak of memory of a first look at so many new files."""
    site = Site(flat(count), max_files_per_batch=1_000)
    tracemalloc.start()
    try:
        finding = site.look()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(finding.take) == 1_000
    assert finding.left_over == count - 1_000
    return site.bucket.requests["list"], peak


def test_a_hundred_thousand_new_files_take_the_memory_of_one_batch():
    """W18."""
    few, many = cost_of_new(5_000), cost_of_new(100_000)
    assert (few[0], many[0]) == (5, 100)
    assert many[1] < 1.5 * few[1]


def test_a_sweep_of_a_long_history_reads_the_known_names_once_in_large_pieces():
    site = Site(flat(100_000))
    site.finish_all()
    site.table.requests.clear()
    assert site.look().take == ()
    assert site.bucket.requests == {"list": 100}
    assert site.table.requests["get"] <= 100_000 // (ingested.BLOCK * ingested.AHEAD) + 3


def test_a_new_file_costs_a_few_blocks_of_the_known_names_and_no_sweep():
    site = Site(flat(20_000))
    site.finish_all()
    site.look()
    site.table.requests.clear()
    site.bucket.requests.clear()
    site.arrive("00020000.ndjson")
    assert taken(site.look(later=10 * SECOND)) == ["00020000.ndjson"]
    assert site.bucket.requests == {"list": 1}
    assert site.table.requests["get"] <= 1


def test_many_live_folders_are_swept_rather_than_listed_one_by_one(monkeypatch):
    """W18: ten thousand partitions. Nor are their ranges worked out, which takes a minute."""
    site = Site([f"user={number:05d}/a.ndjson" for number in range(10_000)])
    assert len(site.look().take) == 10_000
    site.bucket.requests.clear()
    monkeypatch.setattr(cursor.ListingCursor, "ranges", lambda _cursor: pytest.fail("nobody asked"))
    site.look(later=10 * SECOND)
    assert site.bucket.requests == {"list": 10}


def test_a_small_source_is_always_looked_at_whole():
    site = Site(["a/1.ndjson", "z/1.ndjson"])
    site.finish_all()
    site.look()
    site.arrive("a/0.ndjson")
    assert taken(site.look(later=10 * SECOND)) == ["a/0.ndjson"]
    assert site.look().swept


# ------------------------------------------------------------------------------ quick looks


@pytest.fixture
def quick(monkeypatch):
    """Let sources of a few files count as large, so that quick looks are made."""
    monkeypatch.setattr(cursor, "PAGE", 1)


def test_files_that_finish_in_another_order_than_their_names_are_found_quickly(quick):
    """L07, L11."""
    site = Site(flat(100))
    site.finish_all()
    site.look()
    site.arrive("00000105.ndjson")
    assert taken(site.look(later=10 * SECOND)) == ["00000105.ndjson"]
    site.finish("00000105.ndjson")
    site.look(later=10 * SECOND)
    site.arrive("00000102.ndjson")
    finding = site.look(later=10 * SECOND)
    assert not finding.swept
    assert taken(finding) == ["00000102.ndjson"]
    assert finding.late == {"default:00000102.ndjson"}


def test_an_arrival_is_looked_behind_until_the_late_window_has_passed(quick):
    site = Site(flat(1000), sweep_interval=10**6, poll_interval=3600, late_window=600)
    site.finish_all()
    site.look()
    site.arrive("00001005.ndjson")
    site.look(later=SECOND)
    site.finish("00001005.ndjson")
    site.look(later=SECOND)
    site.look(later=599 * SECOND)
    site.arrive("00001003.ndjson")
    assert taken(site.look()) == ["00001003.ndjson"]
    site.finish("00001003.ndjson")
    for _ in range(2):
        site.look(later=601 * SECOND)
    site.arrive("00001002.ndjson")
    assert site.look(later=SECOND).take == ()
    site.lister.forget()
    found = site.look()
    assert taken(found) == ["00001002.ndjson"]
    assert found.late == {"default:00001002.ndjson"}


def test_a_name_from_the_future_does_not_hide_what_comes_after_it(quick):
    """L22, L11: names are compared with the journal, and a mark stands below every arrival."""
    site = Site([*flat(100), "zzz.ndjson"])
    site.finish_all()
    site.look()
    site.arrive("00000100.ndjson")
    assert site.look(later=10 * SECOND).take == ()  # It sorts before the mark: a sweep finds it.
    assert taken(site.look(later=HOUR)) == ["00000100.ndjson"]
    site.finish("00000100.ndjson")
    for number in range(101, 110):
        site.arrive(f"{number:08d}.ndjson")
        finding = site.look(later=SECOND)
        assert not finding.swept
        assert taken(finding) == [f"{number:08d}.ndjson"]
        site.finish(f"{number:08d}.ndjson")


def test_new_folders_are_found_quickly_behind_the_last_one_at_every_level(quick):
    """L08, L20."""
    site = Site(
        [
            *(f"region=a/date=2024-01-{day:02d}/x.ndjson" for day in range(1, 30)),
            *(f"region=b/date=2024-01-{day:02d}/x.ndjson" for day in range(1, 30)),
        ]
    )
    site.finish_all()
    for name in ("region=a/date=2024-01-29/x.ndjson", "region=b/date=2024-01-29/x.ndjson"):
        site.bucket.modified[name] = site.now
    site.look()
    new = ["region=a/date=2024-01-30/x.ndjson", "region=b/date=2024-02-01/y.ndjson", "z.ndjson"]
    site.arrive(*new)
    finding = site.look(later=10 * SECOND)
    assert not finding.swept
    assert sorted(taken(finding)) == new


def test_late_data_for_an_old_folder_is_found_by_the_next_sweep_and_its_folder_is_live_then(quick):
    """L08."""
    site = Site([f"date=2024-01-{day:02d}/x.ndjson" for day in range(1, 30)])
    site.finish_all()
    site.look()
    site.arrive("date=2024-01-03/late.ndjson")
    assert site.look(later=10 * SECOND).take == ()
    finding = site.look(later=HOUR)
    assert taken(finding) == ["date=2024-01-03/late.ndjson"]
    assert finding.late == {"default:date=2024-01-03/late.ndjson"}
    site.finish("date=2024-01-03/late.ndjson")
    site.arrive("date=2024-01-03/later.ndjson")
    finding = site.look(later=10 * SECOND)
    assert not finding.swept
    assert taken(finding) == ["date=2024-01-03/later.ndjson"]


def test_files_beside_folders_are_found(quick):
    """L19: before, between and after them."""
    folders = [f"d{day:02d}/x.ndjson" for day in range(1, 30)]
    site = Site(folders)
    site.finish_all()
    site.look()
    beside = ["a.ndjson", "d05.ndjson", "z.ndjson"]
    site.arrive(*beside)
    first = taken(site.look(later=10 * SECOND))
    assert first == ["z.ndjson"]
    assert sorted(taken(site.look(later=HOUR))) == beside
    site.finish(*beside)
    site.arrive("zz.ndjson")
    assert taken(site.look(later=10 * SECOND)) == ["zz.ndjson"]


def test_files_that_wait_are_listed_until_they_are_done(quick):
    """L11: a mark stays below the first one that is not done, however long that takes."""
    site = Site(flat(50), sweep_interval=10**7, poll_interval=10**6)
    site.finish_all()
    site.look()
    site.arrive("00000060.ndjson", "00000070.ndjson")
    for _ in range(5):
        assert taken(site.look(later=HOUR)) == ["00000060.ndjson", "00000070.ndjson"]
        assert not site.look().swept
    site.finish("00000070.ndjson")
    for _ in range(3):
        assert taken(site.look(later=HOUR)) == ["00000060.ndjson"]


def test_what_is_left_over_is_found_by_the_next_look(quick):
    site = Site([f"{number % 7}/{number:03d}.ndjson" for number in range(50)])
    site.settings = site.lister.source = replace(site.settings, max_files_per_batch=20)
    found: list[str] = []
    for _ in range(3):
        now = taken(site.look())
        site.finish(*now)
        found += now
    assert sorted(found) == site.bucket.names
    assert site.look().take == ()


def test_a_failed_file_that_is_due_is_taken_though_no_range_lists_it(quick):
    """L04."""
    site = Site(flat(100))
    site.finish_all()
    site.fail(record("00000000.ndjson", etag="other", failure=failure(retryable=True)))
    site.history.segments = []
    site.finish(*site.bucket.names[1:])
    site.look()
    site.bucket.requests.clear()
    finding = site.look(later=31 * SECOND)
    assert not finding.swept
    assert taken(finding) == ["00000000.ndjson"]
    assert site.bucket.requests == {"list": 1, "head": 1}


def test_a_file_that_rests_keeps_no_mark_from_moving(quick, monkeypatch):
    """L04: one file that fails for days does not make every look a sweep."""
    monkeypatch.setattr(cursor, "MOST_NAMES", 10)
    site = Site(flat(50))
    site.finish(*site.bucket.names[1:])
    bad = record("00000000.ndjson", etag="e-00000000.ndjson", failure=failure(retryable=True))
    site.fail(bad)
    site.look()
    for number in range(50, 90):
        site.arrive(f"{number:08d}.ndjson")
        finding = site.look(later=SECOND)
        assert (finding.swept, taken(finding)[-1:]) == (False, [f"{number:08d}.ndjson"])
        site.finish(f"{number:08d}.ndjson")
        site.fail(bad)


def test_a_sweep_is_made_in_time_and_at_once_when_the_clock_was_set_back(quick):
    """L22."""
    site = Site(flat(100), sweep_interval=300, poll_interval=10)
    site.finish_all()
    assert site.look().swept
    assert not site.look(later=299 * SECOND).swept
    assert site.look(later=SECOND).swept
    assert not site.look(later=10 * SECOND).swept
    assert site.look(later=-HOUR).swept


def test_a_folder_with_more_live_names_than_are_kept_is_left_to_the_sweeps(quick, monkeypatch):
    monkeypatch.setattr(cursor, "MOST_NAMES", 10)
    site = Site()
    site.arrive(*flat(100))
    site.finish(*site.bucket.names)
    site.look()
    assert sum(len(each.names) for each in site.lister._cursor.folders.values()) <= 10
    site.arrive("00000000a.ndjson", "00000100.ndjson")
    assert taken(site.look(later=10 * SECOND)) == ["00000100.ndjson"]
    assert taken(site.look(later=HOUR)) == ["00000000a.ndjson", "00000100.ndjson"]


# ------------------------------------------------------------------------------ never twice


def test_a_known_file_that_was_away_during_the_sweep_is_not_taken_again(quick):
    """D01: what a quick look lists is asked of the journal, not of the look before."""
    site = Site(flat(50))
    site.finish_all()
    site.bucket.remove("00000049.ndjson")
    site.look()
    site.bucket.add("00000049.ndjson")
    assert site.look(later=10 * SECOND).take == ()


def test_an_overwritten_file_is_noticed_by_quick_looks_and_by_sweeps(quick):
    """D15."""
    site = Site(flat(50))
    site.finish_all()
    site.bucket.modified["00000049.ndjson"] = site.now
    site.look()
    for path, later in (("00000049.ndjson", SECOND), ("00000000.ndjson", HOUR)):
        site.bucket.etags[path] = "another"
        finding = site.look(later=later)
        assert path in [facts.path for facts in finding.changed]
        assert finding.take == ()


def test_an_overwritten_file_is_counted_by_every_look_until_somebody_sees_to_it(quick):
    """D15: a look ahead, whose findings may be dropped, does not make it one that is done."""
    site = Site(flat(50))
    site.finish_all()
    site.bucket.modified["00000049.ndjson"] = site.now
    site.look()
    site.bucket.etags["00000049.ndjson"] = "another"
    for _ in range(3):
        assert site.look(later=SECOND).count(Reason.CHANGED) == 1


# ------------------------------------------------------------------------------ broken listings


@pytest.mark.parametrize("sweep", [True, False])
def test_a_listing_that_breaks_off_fails_whole_and_moves_no_mark(quick, sweep):
    """L10."""
    site = Site(flat(100))
    site.finish_all()
    site.look()
    before = site.lister._cursor
    site.arrive("00000200.ndjson", "00000201.ndjson")
    site.bucket.breaks_after = 1
    with pytest.raises(StoreUnavailable):
        site.look(later=HOUR if sweep else SECOND)
    assert site.lister._cursor is before
    site.bucket.breaks_after = None
    assert taken(site.look()) == ["00000200.ndjson", "00000201.ndjson"]


def test_a_store_that_lists_in_no_order_is_sorted():
    site = Site(["b/1.ndjson", "a/1.ndjson", "c/2.ndjson"])
    site.bucket.backwards = True
    site.finish("a/1.ndjson")
    assert taken(site.look()) == ["b/1.ndjson", "c/2.ndjson"]
    assert taken(site.look()) == ["b/1.ndjson", "c/2.ndjson"]


# ------------------------------------------------------------------------------ filters


def test_a_prefix_is_listed_from_its_start_to_its_end():
    names = [
        f"{kind}-{number:04d}.ndjson" for kind in ("aaa", "app", "zzz") for number in range(2000)
    ]
    site = Site(names, pattern=Pattern("app-*"))
    finding = site.look()
    assert len(finding.take) == 2000
    assert site.bucket.requests == {"list": 3}


DAYS = [f"date=2024-01-{day:02d}/{number}.ndjson" for day in range(1, 11) for number in range(3)]


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


def test_files_that_land_just_before_midnight_are_seen_after_it():
    """L12."""
    site = Site(lookback=Window.parse("date=%Y-%m-%d", 1))
    site.look(later=12 * HOUR - SECOND)
    site.arrive("date=2024-01-01/last.ndjson")
    assert taken(site.look(later=2 * SECOND)) == ["date=2024-01-01/last.ndjson"]


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
    look.join(60)
    assert [taken(finding) for finding in found] == [[new]]


def test_a_sweep_compares_no_more_than_its_horizon_and_does_not_list_on_in_what_is_older():
    names = [f"date=2023-{month:02d}-01/{n:05d}.ndjson" for month in (1, 12) for n in range(9_000)]
    site = Site([*names, "root.ndjson"], horizon=Window.parse("date=%Y-%m-%d", 31))
    finding = site.look()
    assert len(finding.take) == 9_001
    assert finding.count(Reason.BEYOND_HORIZON) == 1000
    assert site.bucket.requests["list"] <= 12


def test_the_clock_of_the_store_makes_no_difference_to_what_is_found(quick):
    """L22."""
    site = Site(flat(100))
    site.finish_all()
    for skew in (-24 * HOUR, 24 * HOUR):
        name = f"{200 + len(site.bucket.names):08d}.ndjson"
        site.bucket.add(name, modified=site.now + skew)
        assert taken(site.look(later=10 * SECOND)) == [name]
        site.finish(name)
    assert site.now > LONG_AGO
