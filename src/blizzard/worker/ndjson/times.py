"""Times that are no ISO 8601, taken as microseconds since 1970. Pure."""

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Context, Decimal

from blizzard.model.time_format import EPOCHS, MONTHS, WEEKDAYS, Pattern
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

LONGEST_EPOCH = 40
"""Characters; no moment within the range needs more of them, whatever its fraction."""
_EXACT = Context(prec=2 * LONGEST_EPOCH)


def epoch_micros(value: JsonValue, unit: str, *, truncate: bool) -> int:
    """Take a number of seconds, or of smaller units, since 1970 as microseconds."""
    expected = f"a number ({unit})"
    if not isinstance(value, Number):
        raise Refused("wrong_type", expected)
    if len(value) > LONGEST_EPOCH:
        raise Refused("out_of_range", f"a number of at most {LONGEST_EPOCH} characters ({unit})")
    try:
        micros = _EXACT.multiply(Decimal(value), EPOCHS[unit])
    except ArithmeticError:  # an exponent of many digits
        raise Refused("out_of_range", expected) from None
    if (
        micros and micros.adjusted() > LONGEST_EPOCH
    ):  # a large exponent, of which no integer is made
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
            month = MONTHS.index(name) + 1 if name else int(part["month"])
            found = date(year, month, int(part["day"])).toordinal()
    except ValueError:
        raise Refused("out_of_range", "a day of the calendar, 0001-01-01 to 9999-12-31") from None
    for name in ("weekday", "long_weekday"):
        if name in part and WEEKDAYS.index(part[name].lower()[:3]) != (found - 1) % 7:
            raise Refused("out_of_range", "the weekday of its date")
    return found - EPOCH_DAY


Micros = Callable[[JsonValue], int]


def whole_days(micros: int, *, truncate: bool) -> int:
    """Return the day of a moment in UTC; a time of day is cut off or refused."""
    days, rest = divmod(micros, DAY_MICROS)
    if rest and not truncate:
        expected = "a day without a time of day; truncate: true cuts the time off"
        raise Refused("out_of_range", expected)
    return days
