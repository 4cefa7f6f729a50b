"""Names of objects on every store: awkward ones, their order, where a listing begins, its pages."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from lakebed.errors import ListingUnordered, StoreUnavailable
from lakebed.listing.sort import ListingRules
from lakebed.listing.watermark import ListingPlan, Range
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.store import Created, Store
from tests.support.servers_reached import Contestant

pytestmark = pytest.mark.stores

AWKWARD = (
    *("sp ace", " leads", "trails ", "%", "%41", "%%25", "%2E%2E", "a%2Fb", "+", "a+b", "#x"),
    *("?y=1", "a&b=c;d", "'single'", '"double"', "*", "(1)", "[1]", "{1}", "<1>", "1:2", "1,2"),
    *("@", "~", "|1", "^", "`", "$1", "!", "..dots", "dots..", "...", ".hidden", "-", "_", "="),
    *("a=b/c=%20 d/e", "Ünï", "e\u0301", "日本/語", "😀", "\u00a0", "\ufeff"),
    *("x" * 200, "/".join("y" * 100 for _ in range(7))),
)

AROUND_THE_SLASH = (
    "0",
    "a!/1",
    "a-b",
    "a-b/1",
    "a.b/c/1",
    "a/1",
    "a/2",
    "a/b/1",
    "a0",
    "aa/1",
    "b",
)
"""In the order of their bytes; by folders, what is in `a` would come first.

Nothing is both an object and a folder: a local disk cannot have that.
"""
NAMES = tuple(name for name in AROUND_THE_SLASH if name != "a-b")
UNORDERED = ("seaweedfs",)
OF_FILES = ("versitygw",)
"""Stores that keep objects as files, so that none is beside a folder of its name."""
PAGES = {"azurite": 5000}
"""How many names a page holds; a thousand where nothing is said."""


def test_awkward_names_are_written_listed_read_moved_and_deleted(store: Store) -> None:
    """L12: of what is listed, everything can be read."""

    def travels(path: str) -> bool:
        name = path.removeprefix("in/")
        facts = store.head(path)
        assert facts == found[path]
        assert facts is not None
        assert b"".join(store.stream(path, size=facts.size, etag=facts.etag)) == name.encode()
        assert store.move(path, f"out/{name}", size=facts.size)
        assert store.get(f"out/{name}") == name.encode()
        store.delete(f"out/{name}")
        return True

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda name: store.create(f"in/{name}", name.encode()), AWKWARD))
        assert made == [Created()] * len(AWKWARD)
        found = {facts.path: facts for facts in store.objects("in")}
        assert set(found) == {f"in/{name}" for name in AWKWARD}
        for folder in ("in", "in/日本", "in/a=b/c=%20 d"):
            direct = {path for path in found if path.rpartition("/")[0] == folder}
            assert {facts.path for facts in store.level(folder)[1]} == direct
        assert all(pool.map(travels, found))
    assert list(store.objects()) == []


@pytest.fixture(scope="module")
def filled(contestant: Contestant) -> Store:
    """Return a store with names around the slash."""
    store = contestant.open(contestant.fresh())
    for name in NAMES:
        store.create(name, name.encode())
    return store


def test_everything_below_a_folder_is_listed_and_nothing_beside_it(filled: Store) -> None:
    assert sorted(facts.path for facts in filled.objects()) == list(NAMES)
    assert sorted(facts.path for facts in filled.objects("a")) == ["a/1", "a/2", "a/b/1"]
    assert [facts.path for facts in filled.objects("a/b")] == ["a/b/1"]


def test_one_level_names_its_folders_and_its_objects(filled: Store) -> None:
    folders, files = filled.level("")
    assert sorted(folders) == ["a", "a!", "a-b", "a.b", "aa"]
    assert sorted(facts.path for facts in files) == ["0", "a0", "b"]
    folders, files = filled.level("a")
    assert folders == ["a/b"]
    assert sorted(facts.path for facts in files) == ["a/1", "a/2"]


@pytest.mark.parametrize("after", [*NAMES, "a", "a/", "a/b", "a/zzz", "zzz"])
def test_a_listing_begins_after_any_name(filled: Store, contestant: Contestant, after: str) -> None:
    """L10: a store without order leaves out some that are later, but none in a folder of files."""
    found = sorted(facts.path for facts in filled.objects(after=after))
    later = [name for name in NAMES if name > after]
    assert found == later or (contestant.name in UNORDERED and set(found) < set(later))
    inside = filled.objects("a", after="a/1")
    assert sorted(facts.path for facts in inside) == ["a/2", "a/b/1"]


def test_names_come_in_the_order_of_their_bytes_or_their_disorder_is_told(
    filled: Store, contestant: Contestant
) -> None:
    try:
        found = [facts.path for facts in filled.in_order()]
    except ListingUnordered:
        assert contestant.name in UNORDERED
    else:
        assert found == list(NAMES)


@pytest.mark.parametrize("after", ["", "a-b/1", "a/1", "a0"])
def test_the_lister_yields_names_in_order_whatever_the_store_does(
    filled: Store, after: str
) -> None:
    """L10: everything is listed first, and then what is new."""
    lister = IncrementalLister()
    assert listed(filled, Range(prefix=""), lister) == list(NAMES)
    each = Range(prefix="", after=after)
    assert listed(filled, each, lister) == [name for name in NAMES if name > after]


def listed(store: Store, each: Range, lister: IncrementalLister) -> list[str]:
    """List as the programs do."""
    guide = ListingRules(skip=lambda _path, _fault: None)
    plan = ListingPlan(ranges=lambda _root: [each])
    return lister.attempt(lambda: [facts.path for facts in lister.files(store, plan, guide)])


def test_an_object_and_a_folder_of_one_name_are_both_found(remote: Contestant) -> None:
    store = remote.open(remote.fresh())
    if remote.name in OF_FILES:
        store.create("a-b", b"")
        with pytest.raises(StoreUnavailable, match="409 Conflict"):
            store.create("a-b/1", b"")
        return
    for name in AROUND_THE_SLASH:
        assert store.create(name, name.encode()) == Created()
    assert sorted(facts.path for facts in store.objects()) == list(AROUND_THE_SLASH)
    assert listed(store, Range(prefix=""), IncrementalLister()) == list(AROUND_THE_SLASH)
    assert [store.get(name) for name in ("a-b", "a-b/1")] == [b"a-b", b"a-b/1"]


def test_every_page_of_a_long_listing_is_read(contestant: Contestant) -> None:
    """L10."""
    store = contestant.open(contestant.fresh())
    count = PAGES.get(contestant.name, 1000) + 2
    names = [f"in/{number % 3}/{number:05d}" for number in range(count)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.replace(name, b""), names))
    names.sort()
    lister = IncrementalLister()
    assert sorted(facts.path for facts in store.objects("in")) == names
    assert listed(store, Range(prefix="in"), lister) == names
    assert sorted(facts.path for facts in store.objects("in", after=names[7])) == names[8:]
    assert listed(store, Range(prefix="in", after=names[-3]), lister) == names[-2:]
    assert len(store.level("in/1")[1]) == sum(name.startswith("in/1/") for name in names)
