"""Partition filters and file patterns: the folders and names that a listing covers. Pure.

A template such as `date=%Y-%m-%d` or `%Y/%m/%d` gives the position of the time in a path; the
lookback counts in its finest unit. The window is generous on purpose, since what it hides is not
listed: it holds the present unit and `lookback` units before it, everything newer, and every path
without a time.

In a pattern such as `raw/**/part-*.parquet`, `*` and `?` stay within one folder and `**` crosses
any number of them. `[abc]`, `[a-z]` and `[!abc]` or `[^abc]` are one character.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from urllib.parse import unquote

UNITS = "YmdH"
"""The time directives, from the coarsest to the finest."""
ANYTHING = "s"

_FIRST = datetime.min.replace(tzinfo=UTC)
_DIGITS = {"Y": r"\d{4}", "m": r"\d{1,2}", "d": r"\d{1,2}", "H": r"\d{1,2}"}
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Window:
    """The folders of a template that are not older than a number of its finest units."""

    segments: tuple[re.Pattern[str], ...]
    """One pattern per folder of the template, with the groups Y, m, d and H."""
    units: str
    """The time directives of the template, coarsest first: `Y`, `Ym`, `Ymd` or `YmdH`."""
    lookback: int
    since: datetime | None = None
    """When to count from; None for the present."""

    @classmethod
    def parse(cls, prefix_template: str, lookback: int) -> "Window":
        """Parse a template; a ValueError says what is wrong with it."""
        if lookback < 1:
            raise ValueError(f"lookback is {lookback}, and must be at least 1")
        seen: list[str] = []
        folders = prefix_template.strip("/").split("/")
        segments = tuple(re.compile(_pattern(folder, seen), re.DOTALL) for folder in folders)
        units = "".join(unit for unit in UNITS if unit in seen)
        if not units or not UNITS.startswith(units):
            raise ValueError(
                f"{prefix_template!r} gives no time to count from; it needs %Y, and before a finer "
                "unit of %m, %d and %H each coarser one"
            )
        return cls(segments, units, lookback)

    def oldest(self, now: datetime) -> tuple[int, ...]:
        """Return the time of the oldest folder in the window, in the template's units."""
        start = now if self.since is None else min(self.since, now)
        at = _back(start.astimezone(UTC), self.units[-1], self.lookback)
        return (at.year, at.month, at.day, at.hour)[: len(self.units)]

    def time(self, folder_or_path: str) -> tuple[int, ...] | None:
        """Return the time in a path, from the year on; None if it has no comparable time.

        Two times compare as far as both are known.
        """
        times: dict[str, int] = {}
        for pattern, segment in zip(
            self.segments, folder_or_path.strip("/").split("/"), strict=False
        ):
            found = pattern.fullmatch(unquote(segment))
            if found is None:
                break
            times |= {unit: int(text) for unit, text in found.groupdict().items()}
        units = "".join(unit for unit in self.units if unit in times)
        return tuple(times[unit] for unit in units) if units and UNITS.startswith(units) else None

    def counted_from(self, since: datetime) -> "Window":
        """Return the window of a first listing, counted from when a place was first listed.

        It reaches from `lookback` units before that moment until now, so it hides nothing that came
        later.
        """
        return replace(self, since=since)

    def holds(self, folder_or_path: str, now: datetime) -> bool:
        """Whether to list a folder, or to use a path.

        Only what is clearly older than the window is excluded: a path that does not follow the
        template is included, and so is one in the future, since the clock may be wrong.
        """
        found = self.time(folder_or_path)
        return found is None or found >= self.oldest(now)[: len(found)]


def _pattern(folder: str, seen: list[str]) -> str:
    """Convert one folder of a template to a pattern, and record its time directives."""
    if not folder:
        raise ValueError("the template has an empty folder name")
    parts = []
    end = 0
    for found in _DIRECTIVE.finditer(folder):
        parts.append(re.escape(folder[end : found.start()]))
        end = found.end()
        directive = found[1]
        if directive == ANYTHING:
            parts.append(".*")
        elif directive not in _DIGITS:
            raise ValueError(f"{found[0]!r} is not supported here; use %Y, %m, %d, %H and %s")
        elif directive in seen:
            raise ValueError(f"{found[0]!r} appears twice in the template")
        else:
            seen.append(directive)
            parts.append(f"(?P<{directive}>{_DIGITS[directive]})")
    return "".join(parts) + re.escape(folder[end:])


def _back(at: datetime, unit: str, count: int) -> datetime:
    """Step back by `count` units, or to the start of the calendar."""
    try:
        match unit:
            case "Y":
                return at.replace(year=at.year - count, month=1, day=1)
            case "m":
                months = at.year * 12 + at.month - 1 - count
                return at.replace(year=months // 12, month=months % 12 + 1, day=1)
            case "d":
                return at - timedelta(days=count)
            case _:
                return at - timedelta(hours=count)
    except (ValueError, OverflowError):
        return _FIRST


_TOKEN = re.compile(r"(?:\A|(?<=/))\*\*/|\*\*|.", re.DOTALL)
_DEEP = {"**/": ("(?:.*?/)??", "(?:.*/)?"), "**": (".*?", ".*")}
"""Expressions that cross folders: lazy and greedy."""


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether a path matches a pattern.

    A pattern without a slash is matched against a file's name, one with a slash against its whole
    path.
    """
    pattern = pattern.strip("/")
    whole = "/" in pattern
    found = compiled(pattern)

    def fits(path: str) -> bool:
        return found.fullmatch(path if whole else path.rpartition("/")[2]) is not None

    return fits


@lru_cache(maxsize=64)
def compiled(text: str) -> re.Pattern[str]:
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
            part, at = _group(text, token.start())
            pieces[-1] += part
        else:
            pieces[-1] += "[^/]" if token[0] == "?" else re.escape(token[0])
    *before, ((_few, many), last) = chunks
    first = "".join(f"(?>{few}{_first_fit(pieces)})" for (few, _many), pieces in before)
    ends = f"[^/]*{last[-1]}" if len(last) > 1 else ""
    return re.compile(f"{first}{many}{_first_fit(last[:-1] or last)}{ends}", re.DOTALL)


def _first_fit(pieces: list[str]) -> str:
    """Return the expression for pieces between stars, each at the first place where it fits.

    If the rest does not match after that place, it does not match after a later one, since a star
    matches what is between. So the group is atomic, and no match costs more than the square of the
    name's length.
    """
    first, *others = pieces
    return first + "".join(f"(?>[^/]*?{piece})" for piece in others)


def _group(text: str, at: int) -> tuple[str, int]:
    """Parse `[abc]`, `[a-z]` or `[!abc]`; return its expression and its end."""
    start = at + 1 + text.startswith(("!", "^"), at + 1)
    end = text.find("]", start + 1)
    if end < 0:
        raise ValueError("has a [ without its ]")
    inner = re.sub(r"([^\w-])", r"\\\1", text[start:end]).replace("--", r"\-\-")
    negated = "^" if start == at + 2 else ""
    try:
        re.compile(f"[{negated}{inner}]")
    except re.error as wrong:
        raise ValueError("has an invalid [ ]") from wrong
    return f"(?!/)[{negated}{inner}]", end + 1
