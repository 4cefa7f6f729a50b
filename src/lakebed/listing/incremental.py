"""Which names the next look at a place has to list. Pure, and only about cost.

A place is listed over and over, in two ways. A *sweep* lists all of it. In between, ranges of names
are listed in which something new may be; what they leave out the next sweep finds. Where a range
begins is up to the keeper of the positions between two looks: by when files arrived
(`blizzard.discover.cursor`), or by the times that names carry (`lakebed.listing.watermark`).

`lakebed.storage.lister` carries a plan out.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

Wanted = Callable[[str], bool]
"""Whether a path, or what may be below a folder, is to be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """One listing: the names below a prefix that sort after one, and not after another."""

    prefix: str
    after: str = ""
    until: str | None = None
    direct: bool = False
    """Whether only files right in the folder count, and none in the folders below it."""

    def covers(self, path: str) -> bool:
        """Whether a path that was listed for this range counts."""
        return not self.direct or folder_and_name(path)[0] == self.prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingPlan:
    """What one look lists, and what it leaves out on the way."""

    ranges: Callable[[str], Iterable[Range]]
    """The ranges to list below a folder at the depth; none where nothing new is expected."""
    depth: int = 0
    """Folders down to this depth are asked for level by level, with the files right in them.

    So new folders are found wherever their names sort, and unwanted ones cost nothing. At 0 the
    root is the only folder, and a whole look comes in the order of the names.
    """
    wanted: Wanted = lambda _path: True
    skip_after: int | None = None
    """After so many unwanted names the listing goes on behind their folder; None for never."""


def folder_and_name(path: str) -> tuple[str, str]:
    """Return the folder that a file is right in, and its name there; the root has no name."""
    folder, _, name = path.rpartition("/")
    return folder, name


def sweep_is_due(swept_at: float | None, now: float, *, every: float) -> bool:
    """Whether everything is to be listed: it never was, or not for so many seconds."""
    if swept_at is None:
        return True
    age = now - swept_at
    # A clock that was set back must not put the sweep off.
    return age < 0 or age >= every


def widest_unwanted(path: str, wanted: Wanted) -> str | None:
    """Return the widest folder of a path that is unwanted as a whole.

    There is none where only the file's own name says so: wanted ones may be beside it.
    """
    folders = path.split("/")[:-1]
    for depth in range(1, len(folders) + 1):
        folder = "/".join(folders[:depth])
        if not wanted(folder):
            return folder
    return None
