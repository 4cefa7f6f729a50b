"""File patterns: `*.parquet`, `raw/**/part-*.parquet`. Pure.

`*` and `?` stay within one folder, `**` goes through any number of them. `[abc]`, `[a-z]` and
`[!abc]` are one character.
"""

import re
from collections.abc import Callable
from functools import lru_cache

_TOKEN = re.compile(r"\*\*/|\*\*|.", re.DOTALL)
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that says whether a path fits a pattern.

    One without a slash is held against a file's name, one with a slash against its whole path. A
    bracket that has no other, or that encloses a slash, is a character like any other, and `[^` is
    `[!`.
    """
    pattern = pattern.strip("/")
    whole = "/" in pattern
    found = compiled(pattern, lenient=True)

    def fits(path: str) -> bool:
        return found.fullmatch(path if whole else path.rpartition("/")[2]) is not None

    return fits


@lru_cache(maxsize=64)
def compiled(text: str, *, lenient: bool = False) -> re.Pattern[str]:
    """Return the expression that a whole name must match; a ValueError says what is wrong."""
    parts = []
    at = 0
    while token := _TOKEN.match(text, at):
        part, at = _MEANING.get(token[0]) or re.escape(token[0]), token.end()
        if token[0] == "[":
            part, at = _group(text, token.start(), lenient=lenient)
        parts.append(part)
    return re.compile("".join(parts), re.DOTALL)


def _group(text: str, at: int, *, lenient: bool) -> tuple[str, int]:
    """Read `[abc]`, `[a-z]` or `[!abc]`; return its expression, and where it ends."""
    start = at + 1 + text.startswith(("!", "^") if lenient else "!", at + 1)
    end = text.find("]", start + 1)
    if lenient and (end < 0 or "/" in text[start:end]):
        return r"\[", at + 1
    if end < 0:
        raise ValueError("has a [ without its ]")
    inner = re.sub(r"([^\w-])", r"\\\1", text[start:end]).replace("--", r"\-\-")
    negated = "^" if start == at + 2 else ""
    try:
        re.compile(f"[{negated}{inner}]")
    except re.error as wrong:
        raise ValueError("has an invalid [ ]") from wrong
    return f"(?!/)[{negated}{inner}]", end + 1
