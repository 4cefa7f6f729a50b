"""Names in the order in which object stores list them: by the characters of the whole path."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

LAST = "\U0010ffff"
"""Sorts after every name: `folder/` with this behind it is the end of a folder."""

UNFINISHED = re.compile(r"#\d+")
"""How the store's library ends the name of a local file that it is still writing."""


def is_unfinished(path: str) -> bool:
    """Whether a local file is one that the store's library is writing, or has left behind."""
    return UNFINISHED.fullmatch(path[path.rfind("#") :]) is not None


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
    """Give the name after which a listing is past a folder; the root has no end to be past."""
    return f"{folder}/{LAST}"


def walk_in_order(root: Path, prefix: str = "", *, after: str = "") -> Iterator[str]:
    """Give the path of every file below a folder, relative to the root, in order.

    One folder's names are held at a time, for each folder on the way down, and no file's facts.
    A folder that vanishes on the way is a FileNotFoundError.
    """
    with os.scandir(root / prefix) as found:
        # A folder sorts with its slash: `a.b` comes before `a/x`, and `a-1` before both.
        entries = sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in found)
    above = f"{prefix}/" if prefix else ""
    for name in entries:
        path = f"{above}{name}"
        if name.endswith("/"):
            if f"{path}{LAST}" > after:
                yield from walk_in_order(root, path[:-1], after=after)
        elif path > after and not is_unfinished(path):
            yield path
