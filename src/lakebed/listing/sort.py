"""Names in the order of object stores: by the characters of the whole path."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

LAST = "\U0010ffff"
"""Sorts after every name: `folder/` followed by it is the end of a folder."""

UNFINISHED = re.compile(r"#\d+")
"""The suffix of a local file that the store's library is still writing."""

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Python's stand-ins for bytes of a local name that is not UTF-8."""


def is_unfinished(path: str) -> bool:
    """Whether a local file is a temporary one of the store's library, current or left over."""
    return "#" in path and UNFINISHED.fullmatch(path[path.rfind("#") :]) is not None


def walk_unfinished(root: Path) -> Iterator[str]:
    """Yield the path of every unfinished file below a folder, relative to the root.

    Links to folders are not followed, and unreadable folders are left out: unseen files stay.
    """
    for folder, _folders, names in os.walk(root):
        below = Path(folder).relative_to(root)
        yield from (str(below / name) for name in sorted(names) if is_unfinished(name))


def end_of(folder: str) -> str:
    """Return the name after which a listing is past a folder; not for the root."""
    return f"{folder}/{LAST}"


class NameFault(StrEnum):
    """Why a listing leaves a name out: it would fail or never end otherwise."""

    NAME = "name"
    """It is unusable: not UTF-8, a control character, or an empty, `.` or `..` part."""
    LINK = "link"
    """A link to a folder, or to a file that is listed under its own name."""
    UNREADABLE = "unreadable"
    """It may not be read, so its content is unknown."""
    MARKER = "marker"
    """A marker of a folder in an object store, without content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingRules:
    """Rules of a listing: what to skip, and where to report skipped names.

    With a guide a listing skips names, links and folders that would otherwise make it fail.
    """

    skip: Callable[[str, NameFault], None]
    """Called with each skipped name; a folder's ends with a slash."""
    enters: Callable[[str], bool] = lambda _folder: True
    """Whether a folder of a local disk may contain wanted files."""
    lists: Callable[[str], bool] = lambda _path: True
    """Whether a path is listed itself, so that a link to it within the root is skipped."""


def walk_in_order(
    root: Path, prefix: str = "", *, after: str = "", guide: ListingRules | None = None
) -> Iterator[str]:
    """Yield the path of every file below a folder, relative to the root, in order.

    Memory holds the names of one folder per level, and no facts of files. A folder that vanishes
    meanwhile raises FileNotFoundError; with a guide it counts as empty, unless it is the requested
    one.
    """
    with os.scandir(root / prefix) as found:
        entries = sorted(_name(entry, guide) for entry in found)
    above = f"{prefix}/" if prefix else ""
    for name, fault in entries:
        path = f"{above}{name}"
        if name.endswith("/"):
            if f"{path}{LAST}" > after:
                yield from _folder(root, path, after, guide, fault)
        elif path > after and not is_unfinished(path):
            if guide is not None and fault is NameFault.LINK and not _elsewhere(root, path, guide):
                guide.skip(path, NameFault.LINK)
            elif guide is not None and fault is NameFault.NAME:
                guide.skip(readable(path), fault)
            else:
                yield path


def readable(path: str) -> str:
    """Return a path in printable form, with odd bytes and control characters escaped."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _name(entry: "os.DirEntry[str]", guide: ListingRules | None) -> tuple[str, NameFault | None]:
    """Return a name in its sorted form, and its fault; a folder sorts with its slash.

    So `a.b` comes before `a/x`, and `a-1` before both.
    """
    if guide is None:
        return f"{entry.name}/" if entry.is_dir() else entry.name, None
    if entry.is_file(follow_symlinks=False) and entry.name.isascii():
        return entry.name, None  # The fast path for most names.
    fault = None
    if SURROGATE.search(entry.name):
        fault = NameFault.NAME
    elif entry.is_symlink():
        fault = NameFault.LINK
    try:
        is_folder = entry.is_dir()
    except OSError:
        return f"{entry.name}/", NameFault.LINK  # A link to itself.
    return f"{entry.name}/" if is_folder else entry.name, fault


def _folder(
    root: Path, path: str, after: str, guide: ListingRules | None, fault: NameFault | None
) -> Iterator[str]:
    folder = path[:-1]
    if guide is None:
        yield from walk_in_order(root, folder, after=after)
        return
    if fault is not None:
        guide.skip(readable(path), fault)
        return
    if not guide.enters(folder):
        return
    try:
        yield from walk_in_order(root, folder, after=after, guide=guide)
    except PermissionError:
        guide.skip(path, NameFault.UNREADABLE)
    except (FileNotFoundError, NotADirectoryError):
        return  # It was removed since its name was read.


def _elsewhere(root: Path, path: str, guide: ListingRules) -> bool:
    """Whether the target of a link is not listed itself."""
    base, target = os.path.realpath(root), os.path.realpath(root / path)
    below = f"{base.rstrip('/')}/"
    return not (target.startswith(below) and guide.lists(target.removeprefix(below)))


LONGEST_REMOTE = 1024
"""The most bytes of a name in any store."""

_ELSEWHERE = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|[\x00\ud800-\udc7f\udd00-\udfff]")
"""An absolute path, an empty, `.` or `..` part, or characters that no name can have."""
_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that the library rejects and stores need not accept."""


def leads_elsewhere(path: str) -> bool:
    """Whether a path is not that of an object below a root, in any store."""
    return _ELSEWHERE.search(path) is not None


def is_usable(path: str, *, remote: bool) -> bool:
    """Whether a store accepts an object of this name."""
    if leads_elsewhere(path) or _UNSPEAKABLE.search(path):
        return False
    return not remote or len(path.encode()) <= LONGEST_REMOTE
