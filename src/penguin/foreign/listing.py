"""Listing the data files of a table directory: all of them, or what may be new. Thin.

A sweep lists everything, folder by folder where a filter may leave some out. A poll lists each
folder that has got files lately from its mark on, a late window below it, and every folder that is
not known yet; folders that were quiet are left to the next sweep.

A listing that breaks off is an error: it is never taken for a short one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from lakebed.journal import JournalReader
from lakebed.layout import OURS, pipelines
from lakebed.listing.watermark import Marks, is_hot, look_from, newest, place
from lakebed.storage.store import ObjectFacts, Reader
from lakebed.storage.tolerant import Odd, objects
from lakebed.storage.tolerant import level as level_of
from penguin.foreign.rules import is_reserved

Wanted = Callable[[str], bool]
"""Whether a path, or what may be below a folder, is to be looked at."""

LAST_DIGIT = "9"
"""What the names of our time begin with at most; folders that begin with `_` come after them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How far below its mark a folder is listed again, and when it counts as quiet."""

    late: timedelta
    quiet: timedelta


def sweep(store: Reader, wanted: Wanted, odd: Odd, *, depth: int) -> Iterator[ObjectFacts]:
    """List every file; folders that are not wanted are not looked into, down to a depth."""
    for folder, files in _levels(store, wanted, odd, depth):
        if files is None:
            yield from _objects(store, folder, odd)
        else:
            yield from files


def poll(
    store: Reader, wanted: Wanted, odd: Odd, marks: Marks, windows: Windows
) -> Iterator[ObjectFacts]:
    """List what may be new: the folders that are known, from their marks on, and unknown ones."""
    depth = max((folder.count("/") + 1 for folder in marks if folder), default=0)
    if depth == 0:
        yield from _listed_after(store, "", odd, marks.get(""), windows.late)
        return
    latest = newest(marks)
    for folder, files in _levels(store, wanted, odd, depth):
        if files is not None:
            yield from files
        elif is_hot(marks.get(folder), latest, windows.quiet):
            yield from _listed_after(store, folder, odd, marks.get(folder), windows.late)


def _levels(
    store: Reader, wanted: Wanted, odd: Odd, depth: int
) -> Iterator[tuple[str, list[ObjectFacts] | None]]:
    """Walk the folders: those of the depth are given alone, what lies above them with its files."""
    if depth == 0:
        yield "", None
        return
    above = [""]
    for level in range(1, depth + 1):
        below: list[str] = []
        for prefix in above:
            folders, files = level_of(store, prefix, odd=odd)
            yield prefix, files
            names = (folder.rstrip("/") for folder in folders)
            below += (name for name in names if _holds_data(name) and wanted(name))
        above = below
        if level == depth:
            yield from ((folder, None) for folder in above)


def _listed_after(
    store: Reader, folder: str, odd: Odd, mark: str | None, late: timedelta
) -> Iterator[ObjectFacts]:
    start = look_from(mark, late)
    after = None if start is None else f"{folder}/{start}" if folder else start
    in_order = folder == "" and store.local_root is None
    for facts in _objects(store, folder, odd, after):
        if mark is not None and in_order and facts.path[:1] > LAST_DIGIT:
            return  # What begins with `_` or a letter, such as `_delta_log`, is behind us.
        if place(facts.path)[0] == folder or mark is None:
            yield facts


def _objects(
    store: Reader, folder: str, odd: Odd, after: str | None = None
) -> Iterator[ObjectFacts]:
    """List a folder, without those in it that hold no data, where that can be told beforehand."""
    return objects(store, folder, after=after, odd=odd, enters=_holds_data, into_links=False)


def _holds_data(folder: str) -> bool:
    return not is_reserved(folder.rpartition("/")[2])


def unnamed(store: Reader, paths: Iterable[str]) -> set[str]:
    """Return those of some files of blizzard's that no entry of any pipeline names."""
    left = set(paths)
    for pipeline in pipelines(store.folders(OURS)):
        entries = JournalReader(store, pipeline).until_missing(after=0)
        # No more entries are read than it takes.
        while left and (entry := next(entries, None)) is not None:
            left -= {file.filename for file in entry.files}
    return left
