"""The incremental lister: what a plan names is listed, and costs no more requests than it must."""

from collections.abc import Iterable

import pytest

from lakebed.errors import ListingUnordered, StoreUnavailable
from lakebed.listing.sort import ListingRules
from lakebed.listing.watermark import ListingPlan, Range
from lakebed.storage.lister import IncrementalLister
from tests.support.bucket import PAGE, Bucket


def names_of(
    store: Bucket,
    plan: ListingPlan,
    *,
    lister: IncrementalLister | None = None,
    left_out: list[str] | None = None,
) -> list[str]:
    lister = lister or IncrementalLister()
    guide = ListingRules(
        skip=lambda _path, _fault: None, enters=lambda folder: not folder.startswith("_")
    )

    def look() -> list[str]:
        told = [] if left_out is None else left_out
        files = lister.files(store, plan, guide, left_out=lambda facts: told.append(facts.path))
        return [facts.path for facts in files]

    return lister.attempt(look)


def whole(folder: str) -> Iterable[Range]:
    return [Range(prefix=folder)]


def test_a_range_begins_after_a_name_and_ends_at_another():
    store = Bucket(["a/1", "a/2", "a/b/1", "a/c", "b/1", *(f"z/{n:05d}" for n in range(3 * PAGE))])
    each = Range(prefix="", after="a/1", until="b/1")
    assert names_of(store, ListingPlan(ranges=lambda _root: [each])) == [
        *("a/2", "a/b/1", "a/c", "b/1")
    ]
    direct = Range(prefix="a", direct=True)
    assert names_of(store, ListingPlan(ranges=lambda _root: [direct])) == ["a/1", "a/2", "a/c"]
    assert store.requests["list"] == 2


def test_folders_are_asked_for_level_by_level_and_their_files_come_along():
    store = Bucket(["1", "_log/1", "a/1", "a/x/1", "b/x/1", "b/y/1", "old/x/1", "quiet/x/1"])
    plan = ListingPlan(
        ranges=lambda folder: [] if folder.startswith("quiet") else [Range(prefix=folder)],
        depth=2,
        wanted=lambda path: not path.startswith("old"),
    )
    assert names_of(store, plan) == ["1", "a/1", "a/x/1", "b/x/1", "b/y/1"]
    # The root; a, b and quiet; a/x, b/x and b/y: nothing in `_log` and `old`.
    assert store.requests["list"] == 1 + 3 + 3


def test_unwanted_files_above_the_depth_are_left_out_and_told():
    store = Bucket(["new", "old", "a/new", "a/old"])
    left_out: list[str] = []
    plan = ListingPlan(ranges=whole, depth=1, wanted=lambda path: "old" not in path)
    assert names_of(store, plan, left_out=left_out) == ["new", "a/new"]
    assert left_out == ["old", "a/old"]


@pytest.mark.parametrize(("skip_after", "requests", "told"), [(PAGE, 2, PAGE), (None, 6, 5 * PAGE)])
def test_behind_enough_unwanted_names_the_listing_goes_on_after_their_folder(
    skip_after, requests, told
):
    store = Bucket([*(f"2020/01/{n:05d}" for n in range(5 * PAGE)), "2021/1"])
    left_out: list[str] = []
    plan = ListingPlan(
        ranges=whole, wanted=lambda path: not path.startswith("2020"), skip_after=skip_after
    )
    assert names_of(store, plan, left_out=left_out) == ["2021/1"]
    assert (store.requests["list"], len(left_out)) == (requests, told)


def test_a_store_that_lists_in_no_order_is_sorted_and_that_is_remembered():
    store = Bucket(["a", "b/1", "b/2", "c"])
    store.backwards = True
    lister = IncrementalLister()
    plan = ListingPlan(ranges=whole, skip_after=1, wanted=lambda path: path[0] != "b")
    assert names_of(store, plan, lister=lister) == ["a", "c"]
    assert store.requests["list"] == 2
    assert names_of(store, plan, lister=lister) == ["a", "c"]
    assert store.requests["list"] == 3


def test_a_look_is_made_once_more_and_no_oftener():
    def look() -> None:
        looks.append(1)
        raise ListingUnordered("no order", path="x")

    looks: list[int] = []
    lister = IncrementalLister()
    with pytest.raises(ListingUnordered):
        lister.attempt(look)
    assert len(looks) == 2
    with pytest.raises(ListingUnordered):
        lister.attempt(look)
    assert len(looks) == 3


def test_a_listing_that_breaks_off_is_an_error_and_never_short():
    """HOLES L10"""
    store = Bucket(["a/1", "a/2", "a/3"])
    store.breaks_after = 2
    with pytest.raises(StoreUnavailable):
        names_of(store, ListingPlan(ranges=whole, depth=1))


def test_a_store_without_order_is_asked_for_everything_that_a_range_may_hold():
    """It begins a listing by its own order, and would leave out names that sort later."""

    class ByFolder(Bucket):
        def objects(self, prefix="", *, after=None):
            found = sorted(super().objects(prefix), key=lambda facts: facts.path.split("/"))
            start = (after or "").split("/")
            return iter([facts for facts in found if facts.path.split("/") > start])

    store = ByFolder(["a!/1", "a/1", "b/1"])
    lister = IncrementalLister()
    assert names_of(store, ListingPlan(ranges=whole), lister=lister) == ["a!/1", "a/1", "b/1"]
    later = ListingPlan(ranges=lambda _root: [Range(prefix="", after="a!/1")])
    assert names_of(store, later, lister=lister) == ["a/1", "b/1"]
