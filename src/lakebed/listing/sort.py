"""Names in the order in which object stores list them: by the characters of the whole path."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

LAST = "\U0010ffff"
"""Sorts after every name: `folder/` with this behind it is the end of a folder."""

UNFINISHED = re.compile(r"#\d+")
"""How the store's library ends the name of a local file that it is still writing."""

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
SURROGATE = re.compile(r"[\ud800-\udfff]")
"""What Python makes of the bytes of a local name that is no UTF-8."""


def is_unfinished(path: str) -> bool:
    """Whether a local file is one that the store's library is writing, or has left behind."""
    return "#" in path and UNFINISHED.fullmatch(path[path.rfind("#") :]) is not None


def finished_name(path: str) -> str:
    """Return the name that an unfinished file was to get."""
    return path[: path.rfind("#")]


def walk_unfinished(root: Path) -> Iterator[str]:
    """Yield the path of every unfinished file below a folder, relative to the root.

    Links to folders are not followed, and a folder that cannot be read is left out: what is not
    seen here stays where it is.
    """
    for folder, _folders, names in os.walk(root):
        below = Path(folder).relative_to(root)
        yield from (str(below / name) for name in sorted(names) if is_unfinished(name))


def end_of(folder: str) -> str:
    """Return the name after which a listing is past a folder; the root has no end to be past."""
    return f"{folder}/{LAST}"


class Oddity(StrEnum):
    """Why a name is left out of a listing that would otherwise fail on it, or never end."""

    NAME = "name"
    """It cannot be used: no UTF-8, a control character, or a folder called nothing, . or .. ."""
    LINK = "link"
    """It leads to a folder, or to a file that is listed under its own name."""
    UNREADABLE = "unreadable"
    """It may not be read: what is in it is not known."""
    MARKER = "marker"
    """It marks a folder of an object store, and has no content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """What a listing need not go into, and what is notified of the names it leaves out.

    A listing with a guide goes on past names, links and folders that would fail one without.
    """

    passes: Callable[[str, Oddity], None]
    """Called with each name that is left out; a folder's ends with a slash."""
    enters: Callable[[str], bool] = lambda _folder: True
    """Whether a folder of a local disk may hold anything that is wanted."""
    lists: Callable[[str], bool] = lambda _path: True
    """Whether a path is wanted: a link to such a file within the root is not."""


def walk_in_order(
    root: Path, prefix: str = "", *, after: str = "", guide: Guide | None = None
) -> Iterator[str]:
    """Yield the path of every file below a folder, relative to the root, in order.

    One folder's names are held at a time, for each folder on the way down, and no file's facts.
    A folder that vanishes on the way is a FileNotFoundError; with a guide it holds no files any
    more, unless it is the one that was asked for.
    """
    with os.scandir(root / prefix) as found:
        entries = sorted(_name(entry, guide) for entry in found)
    above = f"{prefix}/" if prefix else ""
    for name, oddity in entries:
        path = f"{above}{name}"
        if name.endswith("/"):
            if f"{path}{LAST}" > after:
                yield from _folder(root, path, after, guide, oddity)
        elif path > after and not is_unfinished(path):
            if guide is not None and oddity is Oddity.LINK and not _is_elsewhere(root, path, guide):
                guide.passes(path, Oddity.LINK)
            elif guide is not None and oddity is Oddity.NAME:
                guide.passes(readable(path), oddity)
            else:
                yield path


def readable(path: str) -> str:
    """Return a path in printable form, with odd bytes and control characters escaped."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _name(entry: "os.DirEntry[str]", guide: Guide | None) -> tuple[str, Oddity | None]:
    """Return a name as it sorts, and what is odd about it; a folder sorts with its slash.

    So `a.b` comes before `a/x`, and `a-1` before both.
    """
    if guide is None:
        return f"{entry.name}/" if entry.is_dir() else entry.name, None
    if entry.is_file(follow_symlinks=False) and entry.name.isascii():
        return entry.name, None  # Nothing is odd about most of them, and they are many.
    oddity = None
    if SURROGATE.search(entry.name):
        oddity = Oddity.NAME
    elif entry.is_symlink():
        oddity = Oddity.LINK
    try:
        is_folder = entry.is_dir()
    except OSError:
        return f"{entry.name}/", Oddity.LINK  # A link that leads to itself.
    return f"{entry.name}/" if is_folder else entry.name, oddity


def _folder(
    root: Path, path: str, after: str, guide: Guide | None, oddity: Oddity | None
) -> Iterator[str]:
    folder = path[:-1]
    if guide is None:
        yield from walk_in_order(root, folder, after=after)
        return
    if oddity is not None:
        guide.passes(readable(path), oddity)
        return
    if not guide.enters(folder):
        return
    try:
        yield from walk_in_order(root, folder, after=after, guide=guide)
    except PermissionError:
        guide.passes(path, Oddity.UNREADABLE)
    except (FileNotFoundError, NotADirectoryError):
        return  # It was removed since its name was read, and all that was in it.


def _is_elsewhere(root: Path, path: str, guide: Guide) -> bool:
    """Whether what a link leads to is not listed by itself."""
    base, target = os.path.realpath(root), os.path.realpath(root / path)
    below = f"{base.rstrip('/')}/"
    return not (target.startswith(below) and guide.lists(target.removeprefix(below)))


LONGEST_REMOTE = 1024
"""Bytes of a name, which no store exceeds."""

_ELSEWHERE = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|[\x00\ud800-\udc7f\udd00-\udfff]")
"""An absolute path, a part that is empty, `.` or `..`, and characters that no name can have."""
_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""What the stores' library takes for no name, and no store has to accept."""


def leads_elsewhere(path: str) -> bool:
    """Whether a path is not one of an object below a root, in any store."""
    return _ELSEWHERE.search(path) is not None


def is_usable(path: str, *, remote: bool) -> bool:
    """Whether a store can be asked for an object of this name."""
    if leads_elsewhere(path) or _UNSPEAKABLE.search(path):
        return False
    return not remote or len(path.encode()) <= LONGEST_REMOTE
