"""Whatever odd names a store holds, every good one is listed once, in order, and the odd are told.

The store here is as its library is: one odd name on a page fails the page.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import NameUnusable
from lakebed.listing.sort import ListingRules, NameFault, is_usable
from lakebed.storage import unusable_names
from lakebed.storage.options import ObjectFacts, StorageOptions
from lakebed.storage.store import Reader
from tests.support.builders import facts

PARTS = st.sampled_from(
    ["a", "b", "b-1", "0", " ", "!", ".x", "~", "é", "", ".", "..", "a\tb", "\x7f"]
)
KEYS = st.lists(PARTS, min_size=1, max_size=4).map("/".join).filter(lambda key: key.strip("/"))


def is_good(path: str) -> bool:
    return all(is_usable(part, remote=True) for part in path.split("/"))


@dataclass
class Refuses(Reader):
    """A store that refuses a page, or a level, for one odd name."""

    keys: list[str]
    page: int

    def __post_init__(self) -> None:
        self.uri = "s3://bucket"
        self.options = StorageOptions()
        self.local_root = None

    def objects(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectFacts]:
        assert after is None or is_good(after), "the library takes no odd name"
        below = f"{prefix}/" if prefix else ""
        keys = [key for key in self.keys if key.startswith(below) and key > (after or "")]
        for start in range(0, len(keys), self.page):
            page = keys[start : start + self.page]
            self._refuse(page)
            yield from map(facts, page)

    def level(self, prefix: str) -> tuple[list[str], list[ObjectFacts]]:
        below = f"{prefix}/" if prefix else ""
        inside = [key.removeprefix(below) for key in self.keys if key.startswith(below)]
        folders = sorted({name.partition("/")[0] for name in inside if "/" in name})
        files = [name for name in inside if "/" not in name]
        self._refuse([below + name for name in (*folders, *files)])
        return [below + name for name in folders], [facts(below + name) for name in files]

    def head(self, path: str) -> ObjectFacts | None:
        assert is_good(path), "the library takes no odd name"
        return facts(path) if path in self.keys else None

    def usable(self, folder: str) -> list[str]:
        below = f"{folder}/" if folder else ""
        return sorted(key for key in self.keys if key.startswith(below) and is_good(key))

    def _refuse(self, page: list[str]) -> None:
        for key in page:
            if not is_good(key):
                refused = NameUnusable("the store holds an object whose name cannot be used")
                refused.key = key
                raise refused


@given(
    keys=st.sets(KEYS, max_size=12), page=st.integers(1, 4), after=st.sampled_from(["", "a", "b"])
)
@settings(max_examples=200, deadline=None)
def test_every_good_name_is_listed_once_in_order_whatever_is_beside_it(
    keys: set[str], page: int, after: str
) -> None:
    """W23."""
    store = Refuses(sorted(keys), page)
    told: list[tuple[str, NameFault]] = []
    guide = ListingRules(skip=lambda path, why: told.append((path, why)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unusable_names, "names", lambda _uri, folder, _options: store.usable(folder))
        listed = [each.path for each in store.in_order(after=after, guide=guide)]
    assert listed == [key for key in sorted(keys) if is_good(key) and key > after]
    odd = {
        unusable_names.unusable_name(key).shown for key in keys if not is_good(key) and key > after
    }
    assert bool(told) is bool(odd)
    assert {path for path, _why in told} <= odd
