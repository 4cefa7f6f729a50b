"""Format quantities and counts, and convert printed names back. Pure.

A name typed in the form of `lakebed.errors.printable` means the same file.
"""

import re
from datetime import timedelta
from shlex import quote

from lakebed.errors import HIDDEN, printable

MEBIBYTE = 1_048_576
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def mebibytes(count: float) -> int:
    """Convert the `_mb` of a setting to bytes (1 MB = 1,048,576 bytes)."""
    return int(count * MEBIBYTE)


def parse_span(text: str) -> timedelta | None:
    """Parse a time span such as `90m`, `24h` or `7d`; None if it is not one."""
    found = SPAN.fullmatch(text)
    try:
        return None if found is None else timedelta(seconds=float(found[1]) * SECONDS[found[2]])
    except OverflowError:
        return None  # Longer than the calendar.


def in_words(size: int) -> str:
    """Format a number of bytes."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("unreachable")


def span(seconds: float) -> str:
    """Format seconds: `41 s`, `2 min 5 s`, `1 h`, `2 d 4 h`."""
    whole = max(0, round(seconds))
    for unit, size, smaller, part in (
        ("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1),
    ):  # fmt: skip
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def took(seconds: float) -> str:
    """Format a duration: `0.4 s`, `41.2 s`, then as a span."""
    return f"{seconds:.1f} s" if seconds < 59.95 else span(seconds)


def entries_from(first: int, last: int) -> str:
    """Format a range of entries: `entry 3`, `entries 3 to 5`."""
    return f"entry {first}" if first == last else f"entries {first} to {last}"


def is_are(count: int) -> str:
    """Return the verb for a count: `1 file is`, `2 files are`."""
    return "is" if count == 1 else "are"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Format a count: `1 file`, `2 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


_WRITTEN_OUT = re.compile(r"\\(?:[nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5})")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}


def printable_json(text: str) -> str:
    """Escape misleading characters in a JSON text, without changing its value."""
    return HIDDEN.sub(lambda found: _escaped(found[0]), text)


def _escaped(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def typable(name: str) -> str:
    """Quote the name of a file, as it is printed, for a shell."""
    return quote(printable(name))


def typed(text: str) -> str | None:
    """Return the name that was printed as this text; None if the text has no escapes."""
    name = _WRITTEN_OUT.sub(_meant, text)
    return None if name == text else name


def _meant(found: re.Match[str]) -> str:
    body = found[0][1:]
    letter = _LETTERS.get(body) or chr(int(body[1:], 16))
    return letter if HIDDEN.fullmatch(letter) else found[0]
