"""A set of names in eight bytes each, for tables of millions of files.

Names are held as their hashes, of 64 bits and keyed anew in each process. A name that was added is
always found. One that was not is found with a chance of one in 10^19 for each pair, so a set is
asked in the way in which a wrong answer keeps a file, wherever there is a choice.
"""

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from lakebed.storage.store import ObjectFacts

if TYPE_CHECKING:
    import numpy.typing as npt


class Names:
    """Names that are added first and asked for later."""

    def __init__(self) -> None:
        self._hashes = array("q")
        self._sorted: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """Return how many were added; one that was added twice counts twice."""
        return len(self._hashes)

    def add(self, names: Iterable[str]) -> None:
        """Add names."""
        self._hashes.extend(map(hash, names))
        self._sorted = None

    def __contains__(self, name: str) -> bool:
        """Whether a name was added."""
        if self._sorted is None:
            self._sorted = np.sort(np.array(self._hashes, dtype=np.int64))
        place = int(np.searchsorted(self._sorted, hash(name)))
        return place < len(self._sorted) and bool(self._sorted[place] == hash(name))


class SizedNames:
    """Objects and their sizes, by their names."""

    def __init__(self, found: Iterable[ObjectFacts]) -> None:
        names, sizes = array("q"), array("q")
        for facts in found:
            names.append(hash(facts.path))
            sizes.append(facts.size)
        order = np.argsort(np.array(names, dtype=np.int64))
        self._names = np.array(names, dtype=np.int64)[order]
        self._sizes = np.array(sizes, dtype=np.int64)[order]

    def size(self, path: str) -> int | None:
        """Return how large an object is; None for one that was not listed."""
        place = int(np.searchsorted(self._names, hash(path)))
        if place == len(self._names) or self._names[place] != hash(path):
            return None
        return int(self._sizes[place])
