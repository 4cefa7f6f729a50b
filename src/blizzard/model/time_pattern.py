"""Time formats of sources. Pure.

Sources write times as ISO 8601, epochs or patterns of codes. The set of codes is closed: none
depends on a locale or on the local time zone. Names of months and days are English.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

CODE = re.compile("%.?", re.DOTALL)
ISO = "iso"
EPOCHS: Mapping[str, Decimal] = {
    "epoch_s": Decimal(1_000_000),
    "epoch_ms": Decimal(1000),
    "epoch_us": Decimal(1),
    "epoch_ns": Decimal("0.001"),
}
"""The numeric formats, with the microseconds per unit."""
_LONG_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
MONTHS = [name[:3] for name in _LONG_MONTHS]
_LONG_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAYS = [name[:3] for name in _LONG_WEEKDAYS]
_CODES: Mapping[str, str] = {
    "%Y": r"(?P<year>[0-9]{4})",
    "%y": r"(?P<short_year>[0-9]{2})",
    "%m": r"(?P<month>[0-9]{1,2})",
    "%d": r"(?P<day>[0-9]{1,2})",
    "%e": r" ?(?P<day>[0-9]{1,2})",
    "%j": r"(?P<day_of_year>[0-9]{1,3})",
    "%b": rf"(?P<month_name>{'|'.join(MONTHS)})",
    "%B": rf"(?P<month_name>{'|'.join(_LONG_MONTHS)})",
    "%a": rf"(?P<weekday>{'|'.join(WEEKDAYS)})",
    "%A": rf"(?P<long_weekday>{'|'.join(_LONG_WEEKDAYS)})",
    "%H": r"(?P<hour>[0-9]{1,2})",
    "%I": r"(?P<hour_of_half>[0-9]{1,2})",
    "%p": r"(?P<half>am|pm)",
    "%M": r"(?P<minute>[0-9]{1,2})",
    "%S": r"(?P<second>[0-9]{1,2})",
    "%f": r"(?P<fraction>[0-9]+)",
    "%z": r"(?P<zone>z|(?P<sign>[+-])(?P<zone_hour>[0-9]{2})(?::?(?P<zone_minute>[0-9]{2}))?)",
    "%Z": r"(?P<zone>utc|gmt|z)",
    "%%": "%",
}
_SHORT_FOR: Mapping[str, str] = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%D": "%m/%d/%y"}
_ONE_OF = (("%d", "%e", "%j"), ("%m", "%b", "%B"), ("%Y", "%y"), ("%H", "%I"), ("%z", "%Z"))


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A compiled pattern of codes."""

    text: str
    regex: re.Pattern[str]
    codes: frozenset[str]


@lru_cache(maxsize=256)
def pattern_of(text: str) -> TimePattern:
    """Compile a pattern; raise ValueError if it is invalid."""
    written = CODE.sub(lambda code: _SHORT_FOR.get(code[0], code[0]), text)
    codes = CODE.findall(written)
    if unknown := [code for code in codes if code not in _CODES]:
        known = " ".join([*_CODES, *_SHORT_FOR])
        raise ValueError(f"{unknown[0]} is not a known code; use {known}")
    if not codes:
        epochs = ", ".join(EPOCHS)
        raise ValueError(f"must be {ISO}, {epochs} or a pattern such as %d/%b/%Y:%H:%M:%S %z")
    for choice in _ONE_OF:
        if len([code for code in codes if code in choice]) > 1:
            raise ValueError(f"{text} sets the same field twice: {' and '.join(choice)}")
    if repeated := [code for code in codes if code != "%%" and codes.count(code) > 1]:
        raise ValueError(f"{text} has {repeated[0]} twice")
    found = set(codes)
    has_day = "%j" in found or (found & {"%d", "%e"} and found & {"%m", "%b", "%B"})
    if not (found & {"%Y", "%y"} and has_day):
        raise ValueError(f"{text} has no complete date: it needs a year, a month and a day")
    if ("%I" in found) != ("%p" in found):
        raise ValueError(f"{text} needs both %I and %p, or %H")
    parts = re.split(r"(%.)", written)
    regex = "".join(_CODES[part] if part in _CODES else re.escape(part) for part in parts)
    return TimePattern(text, re.compile(regex, re.IGNORECASE | re.ASCII), frozenset(found))
