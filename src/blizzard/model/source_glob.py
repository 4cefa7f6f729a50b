"""The forms of a source's path: a folder, or names with `*`, `?` and `[…]` below one. Pure.

Files are known by their names below the last folder that is written out, so that a pattern may
become wider or narrower and the same file keeps its name.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from lakebed.listing.sort import LAST

WILD = re.compile(r"[*?\[]")
LOST_AND_FOUND = "lost+found"
"""What a file system keeps for itself; only its administrator may read it."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which names below a folder belong to a source. `*` and `?` stop at a slash, `**` does not."""

    text: str

    def __post_init__(self) -> None:
        self.compiled()

    def compiled(self) -> re.Pattern[str]:
        """Give the expression that a whole name must match; a ValueError says what is wrong."""
        return _compiled(self.text)

    @property
    def start(self) -> str:
        """Give the text that every matching name starts with."""
        return WILD.split(self.text, maxsplit=1)[0]

    @property
    def after(self) -> str:
        """Give a name after which all matching names come."""
        start = self.start
        return f"{start[:-1]}{chr(ord(start[-1]) - 1)}{LAST}" if start else ""

    @property
    def names_suffix(self) -> bool:
        """Whether it says how the names end, as `*.log` does."""
        return "." in WILD.split(self.text.rpartition("/")[2].replace("]", "*"))[-1]

    def may_hold(self, folder: str) -> bool:
        """Whether matching names may be below a folder; only where it is certain, none are."""
        parts, wanted = folder.split("/"), self.text.split("/")
        for depth, part in enumerate(parts):
            if depth >= len(wanted) - 1 and "**" not in wanted[min(depth, len(wanted) - 1)]:
                return False
            if "**" in wanted[depth]:
                return True
            if _compiled(wanted[depth]).fullmatch(part) is None:
                return False
        return True


def split(path: str) -> tuple[str, Pattern | None]:
    """Divide a path into the folder that is written out and the pattern below it."""
    wild = WILD.search(path)
    if wild is None:
        return path, None
    slash = path.rfind("/", 0, wild.start())
    if slash < 0:
        return ".", Pattern(path)
    folder = path[:slash]
    if folder.endswith((":/", "//")) or folder == "":
        folder = path[: slash + 1]
    return folder, Pattern(path[slash + 1 :])


def is_hidden(path: str) -> bool:
    """Whether a name, or a folder of it, is somebody's bookkeeping."""
    return any(part[:1] in ("_", ".") or part == LOST_AND_FOUND for part in path.split("/"))


@lru_cache(maxsize=64)
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(_expression(text), re.DOTALL)


def _expression(text: str) -> str:
    parts = []
    at = 0
    while at < len(text):
        if text.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif text.startswith("**", at):
            parts.append(".*")
            at += 2
        elif text[at] == "*":
            parts.append("[^/]*")
            at += 1
        elif text[at] == "?":
            parts.append("[^/]")
            at += 1
        elif text[at] == "[":
            part, at = _group(text, at)
            parts.append(part)
        else:
            parts.append(re.escape(text[at]))
            at += 1
    return "".join(parts)


def _group(text: str, at: int) -> tuple[str, int]:
    """Read `[abc]`, `[a-z]` or `[!abc]`."""
    start = at + 1 + text.startswith("!", at + 1)
    end = text.find("]", start + 1)
    if end < 0:
        raise ValueError("has a [ without its ]")
    inner = re.sub(r"([^\w-])", r"\\\1", text[start:end]).replace("--", r"\-\-")
    negated = "^/" if start == at + 2 else ""
    try:
        re.compile(f"[{negated}{inner}]")
    except re.error as wrong:
        raise ValueError("has a [ ] that cannot be read") from wrong
    return f"(?!/)[{negated}{inner}]", end + 1
