"""Which folders of a table directory are Delta tables of their own, whose files are not its own."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lakebed.layout import DELTA_LOG
from lakebed.storage.ahead import ahead
from lakebed.storage.store import Reader
from lakebed.storage.tolerant import objects

MOST_KNOWN = 10_000
"""Folders that are remembered; of a table with more, some are looked at again."""


@dataclass(slots=True, kw_only=True)
class NestedTables:
    """Answers which files lie below a folder with a log of its own.

    Only folders above the files that are asked for are looked at, each once, so that it costs
    little where there is little to delete.
    """

    store: Reader
    _known: dict[str, bool] = field(default_factory=dict)

    def below(self, paths: Iterable[str]) -> frozenset[str]:
        """Return those of some files that are below such a folder."""
        above = {path: tuple(_folders(path)) for path in paths}
        wanted = {folder for folders in above.values() for folder in folders}
        if len(self._known) + len(wanted) > MOST_KNOWN:
            self._known.clear()
        unknown = sorted(wanted - self._known.keys())
        self._known |= dict(ahead(self._has_log, unknown))
        return frozenset(
            path for path, folders in above.items() if any(self._known[one] for one in folders)
        )

    def _has_log(self, folder: str) -> bool:
        log = f"{folder}/{DELTA_LOG}"
        odd: list[str] = []
        # A name in there that cannot be used tells that there is something as well.
        found = objects(self.store, log, odd=lambda name, _oddity: odd.append(name))
        return next(iter(found), None) is not None or bool(odd)


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that a file is in, but not the root."""
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
