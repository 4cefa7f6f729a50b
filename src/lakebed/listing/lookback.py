"""Partition filters and file patterns: the folders and names that a listing covers. Pure.

A template such as `date=%Y-%m-%d` or `%Y/%m/%d` gives the position of the time in a path; the
lookback counts in its finest unit. The window is generous on purpose, since what it hides is not
listed: it holds the present unit and `lookback` units before it, everything newer, and every path
without a time.

In a pattern such as `raw/**/part-*.parquet`, `*` and `?` stay within one folder and `**` crosses
any number of them. `[abc]`, `[a-z]` and `[!abc]` are one character.
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
_LAST = datetime.max.replace(tzinfo=UTC)
_DIGITS = {"Y": r"\d{4}", "m": r"\d{1,2}", "d": r"\d{1,2}", "H": r"\d{1,2}"}
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Window:
    """The folders of a template that are not older than a number of its finest units."""

    segments: tuple[re.Pattern[str], ...]
    """One pattern per folder of the template, with the groups Y, m, d and H."""
    units: str
    """The time directives of the template, coarsest first."""
    lookback: int

    @classmethod
    def parse(cls, prefix_template: str, lookback: int) -> "Window":
        """Parse a template; a ValueError says what is wrong with it."""
        if lookback < 1:
            raise ValueError(f"lookback is {lookback}, and must be at least 1")
        seen: list[str] = []
        folders = prefix_template.strip("/").split("/")
        segments = tuple(re.compile(_pattern(folder, seen), re.DOTALL) for folder in folders)
        if not seen:
            raise ValueError(
                f"{prefix_template!r} contains no time; it needs one of %Y, %m, %d and %H"
            )
        return cls(segments, "".join(unit for unit in UNITS if unit in seen), lookback)

    def oldest(self, now: datetime) -> tuple[int, ...]:
        """Return the time of the oldest folder in the window, in the template's units."""
        return self._parts(_back(now.astimezone(UTC), self.units[-1], self.lookback))

    def time(self, folder_or_path: str) -> tuple[int, ...] | None:
        """Return the time in a path, from the year on; None if it has no comparable time.

        Two times compare as far as both are known.
        """
        times = self._parsed_times(folder_or_path)
        units = "".join(times)
        return tuple(times.values()) if units and UNITS.startswith(units) else None

    def counted_from(self, since: datetime, now: datetime) -> "Window":
        """Return the window of a first listing, counted from when a place was first listed.

        It reaches from `lookback` units before that moment until now, so it hides nothing that came
        later, even if a template without the year repeats.
        """
        since, now = since.astimezone(UTC), now.astimezone(UTC)
        match self.units[-1]:
            case "Y":
                units = now.year - since.year
            case "m":
                units = (now.year - since.year) * 12 + now.month - since.month
            case "d":
                units = (now.date() - since.date()).days
            case _:
                units = int(now.timestamp() // 3600) - int(since.timestamp() // 3600)
        return replace(self, lookback=self.lookback + max(units, 0))

    def holds(self, folder_or_path: str, now: datetime) -> bool:
        """Whether to list a folder, or to use a path.

        Only what is clearly older than the window is excluded: a path that does not follow the
        template is included, and so is one in the future, since the clock may be wrong.
        """
        found = self.time(folder_or_path)
        if found is not None:
            return found >= self.oldest(now)[: len(found)]
        times = self._parsed_times(folder_or_path)
        if not times:
            return True
        if UNITS.startswith(self.units):
            return True  # `day=02` of a template with the year further down.
        return any(
            all(_part(at, unit) == number for unit, number in times.items())
            for at in self._instants(now.astimezone(UTC))
        )

    def _parsed_times(self, path: str) -> dict[str, int]:
        """Parse the time in a path by unit, as far as its folders follow the template."""
        times: dict[str, int] = {}
        for pattern, segment in zip(self.segments, path.strip("/").split("/"), strict=False):
            found = pattern.fullmatch(unquote(segment))
            if found is None:
                break
            times |= {unit: int(text) for unit, text in found.groupdict().items()}
        return {unit: times[unit] for unit in self.units if unit in times}

    def _instants(self, now: datetime) -> list[datetime]:
        """Return an instant in each unit of the window, and in the next one.

        A template without the year, such as `month=%m`, repeats: which folder is earlier is
        unknown, so the folders of the window are compared one by one. The next one is included
        because our clock may be behind the one that named the folders.
        """
        finest = self.units[-1]
        # A longer window repeats the same folders.
        back = min(self.lookback, {"Y": 9999, "m": 12, "d": 366, "H": 366 * 24}[finest])
        return [_back(now, finest, count) for count in range(-1, back + 1)]

    def _parts(self, at: datetime) -> tuple[int, ...]:
        return tuple(_part(at, unit) for unit in self.units)


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
    """Step back by `count` units, or to the limits of the calendar."""
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
        return _FIRST if count > 0 else _LAST


def _part(at: datetime, unit: str) -> int:
    return {"Y": at.year, "m": at.month, "d": at.day, "H": at.hour}[unit]


_TOKEN = re.compile(r"(?:\A|(?<=/))\*\*/|\*\*|.", re.DOTALL)
_DEEP = {"**/": ("(?:.*?/)??", "(?:.*/)?"), "**": (".*?", ".*")}
"""Expressions that cross folders: lazy and greedy."""
_MEANING = {"?": "[^/]"}


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether a path matches a pattern.

    A pattern without a slash is matched against a file's name, one with a slash against its whole
    path. A bracket without a partner, or around a slash, is a plain character, and `[^` is `[!`.
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

    If the rest does not match after that place, it does not match after a later one, since a star
    matches what is between. So the group is atomic, and no match costs more than the square of the
    name's length.
    """
    first, *others = pieces
    return first + "".join(f"(?>[^/]*?{piece})" for piece in others)


def _group(text: str, at: int, *, lenient: bool) -> tuple[str, int]:
    """Parse `[abc]`, `[a-z]` or `[!abc]`; return its expression and its end."""
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
