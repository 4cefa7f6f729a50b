"""Times as sources write them: epochs, and patterns of a closed set of codes. Pure.

No code depends on a locale or on a time zone of this machine. Names of months and days are English.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from functools import lru_cache

from blizzard.worker.ndjson.values import (
    DAY_MICROS,
    EPOCH_DAY,
    FIRST_MICROS,
    JsonValue,
    Number,
    Refused,
    fraction_micros,
    in_range,
)

ISO = "iso"
EPOCHS: Mapping[str, Decimal] = {
    "epoch_s": Decimal(1_000_000),
    "epoch_ms": Decimal(1000),
    "epoch_us": Decimal(1),
    "epoch_ns": Decimal("0.001"),
}
"""The formats that are numbers, with the microseconds of one."""
LONGEST_EPOCH = 40
"""Characters; no moment within the range needs more of them, whatever its fraction."""

_LONG_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_MONTHS = [name[:3] for name in _LONG_MONTHS]
_CODES: Mapping[str, str] = {
    "%Y": r"(?P<year>[0-9]{4})",
    "%y": r"(?P<short_year>[0-9]{2})",
    "%m": r"(?P<month>[0-9]{1,2})",
    "%d": r"(?P<day>[0-9]{1,2})",
    "%e": r" ?(?P<day>[0-9]{1,2})",
    "%j": r"(?P<day_of_year>[0-9]{1,3})",
    "%b": rf"(?P<month_name>{'|'.join(_MONTHS)})",
    "%B": rf"(?P<month_name>{'|'.join(_LONG_MONTHS)})",
    "%a": r"(?:mon|tue|wed|thu|fri|sat|sun)",
    "%A": r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)",
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
_CODE = re.compile("%.?", re.DOTALL)
_EXACT = Context(prec=2 * LONGEST_EPOCH)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of codes, ready to be matched."""

    text: str
    regex: re.Pattern[str]
    codes: frozenset[str]

    @property
    def tells_zone(self) -> bool:
        """Whether it tells the zone of a time."""
        return bool(self.codes & {"%z", "%Z"})


@lru_cache(maxsize=256)
def pattern_of(text: str) -> Pattern:
    """Compile a pattern; a ValueError says what is wrong with it."""
    written = _CODE.sub(lambda code: _SHORT_FOR.get(code[0], code[0]), text)
    codes = _CODE.findall(written)
    if unknown := [code for code in codes if code not in _CODES]:
        known = " ".join([*_CODES, *_SHORT_FOR])
        raise ValueError(f"{unknown[0]} is not a known code; known are {known}")
    if not codes:
        epochs = ", ".join(EPOCHS)
        raise ValueError(f"must be {ISO}, {epochs} or a pattern such as %d/%b/%Y:%H:%M:%S %z")
    for choice in (
        ("%d", "%e", "%j"),
        ("%m", "%b", "%B"),
        ("%Y", "%y"),
        ("%H", "%I"),
        ("%z", "%Z"),
    ):
        if len([code for code in codes if code in choice]) > 1:
            raise ValueError(f"{text} tells the same thing twice: {' and '.join(choice)}")
    if repeated := [code for code in codes if code != "%%" and codes.count(code) > 1]:
        raise ValueError(f"{text} has {repeated[0]} twice")
    found = set(codes)
    has_day = "%j" in found or (found & {"%d", "%e"} and found & {"%m", "%b", "%B"})
    if not (found & {"%Y", "%y"} and has_day):
        raise ValueError(f"{text} does not tell a day: it needs a year, a month and a day")
    if ("%I" in found) != ("%p" in found):
        raise ValueError(f"{text} needs both %I and %p, or %H")
    parts = re.split(r"(%.)", written)
    regex = "".join(_CODES[part] if part in _CODES else re.escape(part) for part in parts)
    return Pattern(text, re.compile(regex, re.IGNORECASE | re.ASCII), frozenset(found))


def epoch_micros(value: JsonValue, unit: str, *, truncate: bool) -> int:
    """Take a number of seconds, or of smaller units, since 1970 as microseconds."""
    expected = f"a number ({unit})"
    if not isinstance(value, Number):
        raise Refused("wrong_type", expected)
    if len(value) > LONGEST_EPOCH:
        raise Refused("out_of_range", f"a number of at most {LONGEST_EPOCH} characters ({unit})")
    micros = _EXACT.multiply(Decimal(value), EPOCHS[unit])
    if micros.adjusted() > LONGEST_EPOCH:  # a large exponent, of which no integer is made
        return in_range(FIRST_MICROS - 1)
    whole = int(micros)
    if micros != whole:
        if not truncate:
            expected = "a moment in whole microseconds; truncate: true cuts off the rest"
            raise Refused("out_of_range", expected)
        # Towards the past, before 1970 too, as a fraction that is written out is cut.
        whole -= micros < whole
    return in_range(whole)


def pattern_micros(value: JsonValue, pattern: Pattern, *, truncate: bool) -> int:
    """Take a text that a pattern matches as microseconds since 1970; no zone means UTC."""
    expected = f"a time written {pattern.text}"
    if type(value) is not str:
        raise Refused("wrong_type", expected)
    match = pattern.regex.fullmatch(value)
    if match is None:
        raise Refused("wrong_type", expected)
    part = {name: text for name, text in match.groupdict().items() if text is not None}
    hour, minute = _hour(part, expected), int(part.get("minute", "0"))
    second = int(part.get("second", "0"))
    offset = int(part.get("zone_hour", "0")) * 60 + int(part.get("zone_minute", "0"))
    if hour > 23 or minute > 59 or second > 59:
        raise Refused("out_of_range", "a time from 00:00:00 to 23:59:59")
    if int(part.get("zone_hour", "0")) > 23 or int(part.get("zone_minute", "0")) > 59:
        raise Refused("out_of_range", "an offset from -23:59 to +23:59")
    minutes = hour * 60 + minute + (offset if part.get("sign") == "-" else -offset)
    return in_range(
        _day(part) * DAY_MICROS
        + (minutes * 60 + second) * 1_000_000
        + fraction_micros(part.get("fraction", "0"), truncate=truncate)
    )


def _hour(part: Mapping[str, str], expected: str) -> int:
    if "half" not in part:
        return int(part.get("hour", "0"))
    hour = int(part["hour_of_half"])
    if not 1 <= hour <= 12:
        raise Refused("out_of_range", expected)
    return hour % 12 + 12 * (part["half"].lower() == "pm")


def _day(part: Mapping[str, str]) -> int:
    """Return the days since 1970. A year of two digits is one of 1969 to 2068, as in POSIX."""
    year = int(part.get("year", "0"))
    if "short_year" in part:
        short = int(part["short_year"])
        year = short + (1900 if short >= 69 else 2000)
    try:
        if "day_of_year" in part:
            found = date(year, 1, 1).toordinal() + int(part["day_of_year"]) - 1
            if int(part["day_of_year"]) < 1 or date.fromordinal(found).year != year:
                raise ValueError
        else:
            name = part.get("month_name", "").lower()[:3]
            month = _MONTHS.index(name) + 1 if name else int(part["month"])
            found = date(year, month, int(part["day"])).toordinal()
    except ValueError:
        raise Refused("out_of_range", "a day of the calendar, 0001-01-01 to 9999-12-31") from None
    return found - EPOCH_DAY


Micros = Callable[[JsonValue], int]


def whole_days(micros: int, *, truncate: bool) -> int:
    """Return the day of a moment in UTC; a time of day is cut off or refused."""
    days, rest = divmod(micros, DAY_MICROS)
    if rest and not truncate:
        expected = "a day without a time of day; truncate: true cuts the time off"
        raise Refused("out_of_range", expected)
    return days
