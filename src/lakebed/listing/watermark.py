"""What is new in a folder, and how a mark may advance. Pure.

Names are given when a file is opened, uploads finish out of order, and data comes late for old
folders. So a mark is only a hint of where new names will be: each folder has its own, it never
passes a file that is seen and not settled, a name from the future never moves it, and every look
begins a late window below it.

UUIDv7 names carry their time. The names of a folder sort by it, and the late window below a mark
is a range of names.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from lakebed.layout import timed_id

Marks = Mapping[str, str]
"""For each folder (the table's root is the empty name) the highest name that is settled."""


def place(path: str) -> tuple[str, str]:
    """Split a path into its folder and its name."""
    folder, _, name = path.rpartition("/")
    return folder, name


def named_at(path: str) -> int | None:
    """Return the time that a name carries, in milliseconds since the epoch; None for no time."""
    found = timed_id(path)
    return None if found is None else UUID(found).int >> 80


def look_from(mark: str | None, late: timedelta) -> str | None:
    """Name the place in a folder after which to list; None to list it from its start."""
    at = None if mark is None else named_at(mark)
    if at is None:
        return None
    start = at - round(late / timedelta(milliseconds=1))
    # A name that is lower than every name of that millisecond, of whichever variant.
    return None if start <= 0 else f"{UUID(int=start << 80)}"


def is_late(path: str, marks: Marks) -> bool:
    """Whether a bare watermark would have lost a file: its folder's mark is past it already."""
    folder, name = place(path)
    return folder in marks and name <= marks[folder]


def newest(marks: Marks) -> int:
    """Return the time of the newest mark of all, in milliseconds since the epoch."""
    return max((at for mark in marks.values() if (at := named_at(mark)) is not None), default=0)


def is_hot(mark: str | None, newest_mark: int, within: timedelta) -> bool:
    """Whether a folder has got files lately, compared with the others; no clock is asked."""
    at = None if mark is None else named_at(mark)
    return at is None or newest_mark - at <= within / timedelta(milliseconds=1)


def advance(
    marks: Marks, settled: Iterable[str], unsettled: Iterable[str], now: datetime
) -> dict[str, str]:
    """Raise each folder's mark to its highest settled name, and past nothing that is unsettled.

    A mark never falls. A name that carries no time, or one that lies in the future, moves none.
    """
    latest = now.timestamp() * 1000
    bounds: dict[str, str] = {}
    for path in unsettled:
        folder, name = place(path)
        bounds[folder] = min(name, bounds.get(folder, name))
    raised = dict(marks)
    for path in settled:
        folder, name = place(path)
        at = named_at(path)
        if at is None or at > latest or (folder in bounds and name >= bounds[folder]):
            continue
        if folder not in raised or name > raised[folder]:
            raised[folder] = name
    return raised
