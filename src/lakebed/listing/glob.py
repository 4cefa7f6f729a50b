"""File patterns: `*.parquet`, `raw/**/part-*.parquet`. Pure.

A pattern without a slash is held against a file's name, one with a slash against its whole path.
`*` and `?` stay within one folder, `**` goes through any number of them.
"""

import re
from collections.abc import Callable

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[^\]/]+\]|.", re.DOTALL)


def matcher(pattern: str) -> Callable[[str], bool]:
    """Give a function that says whether a path fits a pattern."""
    whole = "/" in pattern.strip("/")
    found = re.compile("".join(map(_part, _TOKEN.findall(pattern.strip("/")))), re.DOTALL)

    def fits(path: str) -> bool:
        return found.fullmatch(path if whole else path.rpartition("/")[2]) is not None

    return fits


def _part(token: str) -> str:
    match token:
        case "**/":
            return "(?:.*/)?"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case _ if len(token) > 1:
            inside = token[1:-1].replace("\\", r"\\").replace("[", r"\[")
            return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
        case _:
            return re.escape(token)
