"""Watermarks of folders: how they advance, and what the next listing covers. Pure.

Files are named when opened, uploads finish out of order, and data arrives late in old folders. So a
watermark is only a hint at where new names will be: each folder has its own, it never passes a file
that is seen and not settled, a name with a future time never moves it, and every listing begins a
late window below it. UUIDv7 names carry their time and sort by it, so the late window is a range of
names.

A *sweep* lists a whole place. In between, only ranges of names that may contain something new are
listed; the next sweep finds the rest. Where a range begins depends on the owner of the positions:
on when files arrived (`blizzard.discover.cursor`), or on the times in names. The plan affects only
cost; `lakebed.storage.lister` carries it out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from lakebed.layout import timed_id

Wanted = Callable[[str], bool]
"""Tests whether to list a path, or files below a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """One listing: names below a prefix that sort after `after` and not after `until`."""

    prefix: str
    after: str = ""
    until: str | None = None
    direct: bool = False
    """Whether only direct files of the folder count, not those in subfolders."""

    def covers(self, path: str) -> bool:
        """Whether a path listed for this range counts."""
        return not self.direct or folder_and_name(path)[0] == self.prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingPlan:
    """The ranges to list, and the folders to skip."""

    ranges: Callable[[str], Iterable[Range]]
    """The ranges to list below a folder at the depth; none if nothing new is expected."""
    depth: int = 0
    """Down to this depth folders are listed level by level, with their direct files.

    So new folders are found wherever their names sort, and unwanted ones cost nothing. At 0 only
    the root is listed, and a sweep yields files in the order of their names.
    """
    wanted: Wanted = lambda _path: True
    skip_after: int | None = None
    """After this many unwanted names the listing restarts behind their folder; None for never."""


def folder_and_name(path: str) -> tuple[str, str]:
    """Return a file's folder and name; the root's folder is empty."""
    folder, _, name = path.rpartition("/")
    return folder, name


def sweep_is_due(swept_at: float | None, now: float, *, every: float) -> bool:
    """Whether a sweep is due: there was none, or not for `every` seconds."""
    if swept_at is None:
        return True
    age = now - swept_at
    # A clock that was set back must not delay the sweep.
    return age < 0 or age >= every


def widest_unwanted(path: str, wanted: Wanted) -> str | None:
    """Return the outermost unwanted folder of a path.

    None if only the file's own name is unwanted: wanted files may be beside it.
    """
    folders = path.split("/")[:-1]
    for depth in range(1, len(folders) + 1):
        folder = "/".join(folders[:depth])
        if not wanted(folder):
            return folder
    return None


Watermarks = Mapping[str, str]
"""By folder (the root is the empty name), the highest settled name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The late window below watermarks, and when a folder counts as quiet."""

    late: timedelta
    quiet: timedelta


def named_at(path: str) -> int | None:
    """Return the time in a name, in milliseconds since the epoch; None without one."""
    found = timed_id(path)
    return None if found is None else UUID(found).int >> 80


def list_after(watermark: str | None, late: timedelta) -> str | None:
    """Return the name in a folder after which to list; None for its start."""
    at = None if watermark is None else named_at(watermark)
    if at is None:
        return None
    start = at - round(late / timedelta(milliseconds=1))
    # Lower than every name of that millisecond, of any variant.
    return None if start <= 0 else f"{UUID(int=start << 80)}"


def newest(watermarks: Watermarks) -> int:
    """Return the time of the newest watermark, in milliseconds since the epoch."""
    return max(
        (at for name in watermarks.values() if (at := named_at(name)) is not None), default=0
    )


def is_hot(watermark: str | None, newest_of_all: int, within: timedelta) -> bool:
    """Whether a folder received files lately, compared with the others; no clock is used."""
    at = None if watermark is None else named_at(watermark)
    return at is None or newest_of_all - at <= within / timedelta(milliseconds=1)


def plan_above(
    watermarks: Watermarks, windows: Windows, *, wanted: Wanted, root_until: str | None
) -> ListingPlan:
    """Return the plan of a listing between two sweeps.

    It covers folders that received files lately, from a late window below their watermarks on, and
    every unknown folder; quiet folders are left to the next sweep. If all files are directly in the
    root, names after `root_until` are left to it as well.
    """
    latest = newest(watermarks)

    def ranges(folder: str) -> list[Range]:
        watermark = watermarks.get(folder)
        if not is_hot(watermark, latest, windows.quiet):
            return []
        if watermark is None:
            return [Range(prefix=folder)]
        start = list_after(watermark, windows.late) or ""
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
    """Raise each folder's watermark to its highest settled name, but not past unsettled ones.

    A watermark never falls. A name without a time, or with a future one, moves none.
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
