"""New names in a folder, how its watermark may advance, and what the next listing covers. Pure.

Names are given when a file is opened, uploads finish out of order, and data comes late for old
folders. So a watermark is only a hint of where new names will be: each folder has its own, it never
passes a file that is seen and not settled, a name from the future never moves it, and every listing
begins a late window below it. UUIDv7 names carry their time: they sort by it, and the late window
is a range of names.

A *sweep* lists all of a place. In between, ranges of names are listed in which something new may
be; the next sweep finds what they leave out. The keeper of the positions says where a range begins:
by when files arrived (`blizzard.discover.cursor`), or by the times that names carry. The plan only
affects cost; `lakebed.storage.lister` carries it out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from lakebed.layout import timed_id

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


Watermarks = Mapping[str, str]
"""For each folder (the table's root is the empty name) the highest name that is settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How far below its watermark a folder is listed again, and when it counts as quiet."""

    late: timedelta
    quiet: timedelta


def named_at(path: str) -> int | None:
    """Return the time that a name carries, in milliseconds since the epoch; None for no time."""
    found = timed_id(path)
    return None if found is None else UUID(found).int >> 80


def look_from(watermark: str | None, late: timedelta) -> str | None:
    """Name the place in a folder after which to list; None to list it from its start."""
    at = None if watermark is None else named_at(watermark)
    if at is None:
        return None
    start = at - round(late / timedelta(milliseconds=1))
    # A name that is lower than every name of that millisecond, of whichever variant.
    return None if start <= 0 else f"{UUID(int=start << 80)}"


def is_late(path: str, watermarks: Watermarks) -> bool:
    """Whether a bare watermark would have lost a file: its folder's one is past it already."""
    folder, name = folder_and_name(path)
    return folder in watermarks and name <= watermarks[folder]


def newest(watermarks: Watermarks) -> int:
    """Return the time of the newest watermark of all, in milliseconds since the epoch."""
    return max(
        (at for name in watermarks.values() if (at := named_at(name)) is not None), default=0
    )


def is_hot(watermark: str | None, newest_of_all: int, within: timedelta) -> bool:
    """Whether a folder has got files lately, compared with the others; no clock is asked."""
    at = None if watermark is None else named_at(watermark)
    return at is None or newest_of_all - at <= within / timedelta(milliseconds=1)


def plan_above(
    watermarks: Watermarks, windows: Windows, *, wanted: Wanted, root_until: str | None
) -> ListingPlan:
    """Return the listing of what may be new, between two sweeps.

    That is each folder that has got files lately, from a late window below its watermark on, and
    every folder that is not known yet; folders that were quiet are left to the next sweep. Where
    all files are right in the root, names after `root_until` are left to it as well.
    """
    latest = newest(watermarks)

    def ranges(folder: str) -> list[Range]:
        watermark = watermarks.get(folder)
        if not is_hot(watermark, latest, windows.quiet):
            return []
        if watermark is None:
            return [Range(prefix=folder)]
        start = look_from(watermark, windows.late) or ""
        return [
            Range(
                prefix=folder,
                after=f"{folder}/{start}" if folder and start else start,
                until=None if folder else root_until,
                direct=True,
            )
        ]

    depth = max((folder.count("/") + 1 for folder in watermarks if folder), default=0)
    return ListingPlan(ranges=ranges, depth=depth, wanted=wanted)


def advance(
    watermarks: Watermarks, settled: Iterable[str], unsettled: Iterable[str], now: datetime
) -> dict[str, str]:
    """Raise each folder's watermark to its highest settled name, past nothing that is unsettled.

    A watermark never falls. A name that carries no time, or that lies in the future, moves none.
    """
    latest = now.timestamp() * 1000
    bounds: dict[str, str] = {}
    for path in unsettled:
        folder, name = folder_and_name(path)
        bounds[folder] = min(name, bounds.get(folder, name))
    raised = dict(watermarks)
    for path in settled:
        folder, name = folder_and_name(path)
        at = named_at(path)
        if at is None or at > latest or (folder in bounds and name >= bounds[folder]):
            continue
        if folder not in raised or name > raised[folder]:
            raised[folder] = name
    return raised
