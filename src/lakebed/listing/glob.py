"""File patterns: `*.parquet`, `raw/**/part-*.parquet`. Pure.

`*` and `?` stay within one folder, `**` goes through any number of them. `[abc]`, `[a-z]` and
`[!abc]` are one character.
"""

import re
from collections.abc import Callable
from functools import lru_cache

_TOKEN = re.compile(r"(?:\A|(?<=/))\*\*/|\*\*|.", re.DOTALL)
_DEEP = {"**/": ("(?:.*?/)??", "(?:.*/)?"), "**": (".*?", ".*")}
"""What goes through folders: as few of them as fit, and as many."""
_MEANING = {"?": "[^/]"}


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
    chunks: list[tuple[tuple[str, str], list[str]]] = [(("", ""), [""])]
    at = 0
    while token := _TOKEN.match(text, at):
        at = token.end()
        if token[0] in _DEEP:
            chunks.append((_DEEP[token[0]], [""]))
            continue
        pieces = chunks[-1][1]
        if token[0] == "*":
            pieces.append("")
        elif token[0] == "[":
            part, at = _group(text, token.start(), lenient=lenient)
            pieces[-1] += part
        else:
            pieces[-1] += _MEANING.get(token[0]) or re.escape(token[0])
    *before, ((_few, many), last) = chunks
    first = "".join(f"(?>{few}{_first_fit(pieces)})" for (few, _many), pieces in before)
    ends = f"[^/]*{last[-1]}" if len(last) > 1 else ""
    return re.compile(f"{first}{many}{_first_fit(last[:-1] or last)}{ends}", re.DOTALL)


def _first_fit(pieces: list[str]) -> str:
    """Return the expression for pieces between stars, each at the first place where it fits.

    If the rest does not fit behind that place, it does not fit behind a later one, as a star takes
    what is between them. So the group is atomic, and no name costs more than its length squared.
    """
    first, *others = pieces
    return first + "".join(f"(?>[^/]*?{piece})" for piece in others)


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
