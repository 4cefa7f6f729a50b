"""What looks at a source cost, however long its history is."""

import tracemalloc

import pytest

from blizzard.discover.cursor import ListingCursor
from blizzard.journal import ingested
from lakebed.listing.incremental import Range
from tests.support.site import SECOND, Site, flat, taken


def by_day(count: int) -> list[str]:
    return [
        f"date={2000 + day // 300}-{day % 300:03d}/{number:08d}.ndjson"
        for day in range(count // 500)
        for number in range(500)
    ]


def idle_poll(names: list[str]) -> tuple[dict[str, int], dict[str, int], int]:
    """Return the requests to source and table and the peak of memory of a poll with nothing new."""
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
    """Return the requests and the peak of memory of a first look at so many new files."""
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
    site = Site(["a/1.ndjson", "z/1.ndjson"])
    site.finish_all()
    site.look()
    site.arrive("a/0.ndjson")
    assert taken(site.look(later=10 * SECOND)) == ["a/0.ndjson"]
    assert site.look().swept
