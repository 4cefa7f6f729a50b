"""Which objects a table directory has, and how large they are, in sixteen bytes each."""

from array import array
from collections.abc import Iterable

import numpy as np

from lakebed.listing.sort import Oddity
from lakebed.storage.store import ObjectFacts, Reader
from lakebed.storage.tolerant import level, objects
from penguin.foreign.rules import may_be_entered


class Listed:
    """The objects of a table directory by their names, which are held as hashes."""

    def __init__(self, found: Iterable[ObjectFacts]) -> None:
        names, sizes = array("q"), array("q")
        for facts in found:
            names.append(hash(facts.path))
            sizes.append(facts.size)
        order = np.argsort(np.array(names, dtype=np.int64))
        self._names = np.array(names, dtype=np.int64)[order]
        self._sizes = np.array(sizes, dtype=np.int64)[order]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._names)

    def size(self, path: str) -> int | None:
        """Return how large an object is; None for one that was not listed."""
        place = int(np.searchsorted(self._names, hash(path)))
        if place == len(self._names) or self._names[place] != hash(path):
            return None
        return int(self._sizes[place])


def list_all(store: Reader) -> Listed:
    """List every object that may be a data file; hidden folders are not gone into."""
    folders, files = level(store, "", odd=_ignore)
    found = list(files)
    names = [folder.rstrip("/") for folder in folders if may_be_entered(folder.rstrip("/"))]
    below = (
        facts for name in names for facts in objects(store, name, odd=_ignore, into_links=False)
    )
    return Listed(_both(found, below))


def _both(first: list[ObjectFacts], then: Iterable[ObjectFacts]) -> Iterable[ObjectFacts]:
    yield from first
    yield from then


def _ignore(_name: str, _oddity: Oddity) -> None:
    """Pass over a name that cannot be used: no log names it."""
