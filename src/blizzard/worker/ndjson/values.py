"""Convert JSON values to a declared type without loss, or refuse them.

Nothing is rounded, guessed or cast: a number in a string is a string, 1.5 is not an integer, and a
timestamp finer than a microsecond is refused. Only floats take the nearest value; where configured,
they refuse integers that they cannot hold exactly.
"""

import base64
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from functools import partial
from typing import Any

import pyarrow as pa

from lakebed.types import FieldType

EPOCH_DAY = date(1970, 1, 1).toordinal()
DAY_MICROS = 86_400_000_000
FIRST_DAY = date(1, 1, 1).toordinal() - EPOCH_DAY
FIRST_MICROS = FIRST_DAY * DAY_MICROS
LAST_MICROS = (date(9999, 12, 31).toordinal() - EPOCH_DAY + 1) * DAY_MICROS - 1

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))?)?"
    r"(?P<zone>Z| ?UTC|(?P<sign>[+-])(?P<zone_hour>[0-9]{2})(?::?(?P<zone_minute>[0-9]{2}))?)?)?"
)
ISO = "a timestamp written YYYY-MM-DDTHH:MM:SS.ffffffZ or with an offset"
ISO_NTZ = "a timestamp written YYYY-MM-DDTHH:MM:SS.ffffff, without a zone"
FINER = "a fraction of a second in whole microseconds; truncate: true cuts off the rest"


class Number(str):
    """A JSON number as written; the spelling decides which types accept it."""

    __slots__ = ()


class Nested:
    """A JSON object or array."""

    __slots__ = ()


class ValueRefused(Exception):
    """A value does not fit a declared field: a code, and the expected value.

    `found` describes the value if its kind alone does not.
    """

    def __init__(self, code: str, expected: str, found: str | None = None) -> None:
        super().__init__(expected)
        self.code = code
        self.expected = expected
        self.found = found


JsonValue = str | Number | bool | Nested
Cell = Any
"""A value that Arrow accepts: a scalar, or a dictionary or list of cells."""


def kind_of(value: JsonValue | None, source: str) -> str:
    """Describe the kind of a value without quoting it."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case Number():
            return "an integer" if is_integer(value) else "a number that is not an integer"
        case str():
            return "a string" if value else "an empty string"
        case Nested():
            return "an array" if source.startswith("[") else "an object"


def is_integer(value: JsonValue) -> bool:
    """Whether a number is written as an integer."""
    return isinstance(value, Number) and value.lstrip("-").isdigit()


def string(value: JsonValue) -> str:
    """Convert a JSON string; refuse half a surrogate pair."""
    text = _text(value, "a string")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueRefused("not_utf8", "text without half a surrogate pair") from None
    return text


def integer(value: JsonValue, bits: int) -> int:
    """Convert an integer of at most this many bits."""
    if not isinstance(value, Number) or not is_integer(value):
        raise ValueRefused("wrong_type", f"an integer (int{bits})")
    limit = 1 << (bits - 1)
    # Python refuses to parse thousands of digits; no such integer is in range.
    if len(value) > 20 or not -limit <= int(value) < limit:
        raise ValueRefused("out_of_range", f"an integer from {-limit} to {limit - 1} (int{bits})")
    return int(value)


def float64(value: JsonValue) -> float:
    """Convert a JSON number to the nearest double."""
    if not isinstance(value, Number):
        raise ValueRefused("wrong_type", "a number (float64)")
    double = float(value)
    if math.isinf(double):
        raise _beyond("float64", "1.8e308")
    return double


def float32(value: JsonValue) -> float:
    """Convert a JSON number to the nearest single, rounded once, not via the nearest double."""
    float64(value)
    single: float = pa.scalar(str(value)).cast(pa.float32()).as_py()
    if math.isinf(single):
        raise _beyond("float32", "3.4e38")
    return single


def exact_float64(value: JsonValue) -> float:
    """Convert a JSON number to the nearest double; refuse an integer that it cannot hold."""
    return _exact(value, float64(value), "float64")


def exact_float32(value: JsonValue) -> float:
    """Convert a JSON number to the nearest single; refuse an integer that it cannot hold."""
    return _exact(value, float32(value), "float32")


def boolean(value: JsonValue) -> bool:
    """Convert true or false."""
    if not isinstance(value, bool):
        raise ValueRefused("wrong_type", "true or false")
    return value


def day(value: JsonValue) -> int:
    """Convert a YYYY-MM-DD date into days since 1970-01-01."""
    text = _text(value, "a date written YYYY-MM-DD")
    if not _DATE.fullmatch(text):
        raise ValueRefused("wrong_type", "a date written YYYY-MM-DD")
    try:
        return date(int(text[:4]), int(text[5:7]), int(text[8:])).toordinal() - EPOCH_DAY
    except ValueError:
        raise ValueRefused(
            "out_of_range", "a day of the calendar, 0001-01-01 to 9999-12-31"
        ) from None


def timestamp(value: JsonValue) -> int:
    """Convert an ISO 8601 timestamp into microseconds since 1970 in UTC; no zone means UTC."""
    return iso_micros(value, ISO)


def timestamp_ntz(value: JsonValue) -> int:
    """Convert an ISO 8601 timestamp without a zone into microseconds since 1970-01-01T00:00."""
    return iso_micros(value, ISO_NTZ, zone=False)


def iso_micros(
    value: JsonValue, expected: str, *, zone: bool = True, truncate: bool = False
) -> int:
    """Convert an ISO 8601 timestamp; `truncate` drops digits beyond microseconds."""
    match = _TIMESTAMP.fullmatch(_text(value, expected))
    if match is None:
        raise ValueRefused("wrong_type", expected)
    if match["zone"] and not zone:
        raise ValueRefused("wrong_type", expected, "a timestamp with a zone")
    part = match.groupdict(default="0")
    since_midnight = time_micros(part, int(part["hour"]))
    micros = day(part["day"]) * DAY_MICROS + since_midnight
    return in_range(micros + fraction_micros(part["fraction"], truncate=truncate))


def time_micros(part: Mapping[str, str], hour: int) -> int:
    """Return the microseconds since midnight UTC of the parts of a time, without its fraction."""
    minute, second, zone_hour, zone_minute = (
        int(part.get(name, "0")) for name in ("minute", "second", "zone_hour", "zone_minute")
    )
    if hour > 23 or minute > 59 or second > 59:
        raise ValueRefused("out_of_range", "a time from 00:00:00 to 23:59:59")
    if zone_hour > 23 or zone_minute > 59:
        raise ValueRefused("out_of_range", "an offset from -23:59 to +23:59")
    offset = zone_hour * 60 + zone_minute
    minutes = hour * 60 + minute + (offset if part.get("sign") == "-" else -offset)
    return (minutes * 60 + second) * 1_000_000


def fraction_micros(digits: str, *, truncate: bool) -> int:
    """Return the microseconds of a fraction of a second."""
    if not truncate and digits[6:].strip("0"):
        raise ValueRefused("out_of_range", FINER)
    return int(digits[:6].ljust(6, "0"))


def in_range(micros: int) -> int:
    """Refuse a timestamp outside the years 0001 to 9999."""
    if not FIRST_MICROS <= micros <= LAST_MICROS:
        raise ValueRefused("out_of_range", "a moment within the years 0001 to 9999 in UTC")
    return micros


def binary(value: JsonValue) -> bytes:
    """Convert padded base64 in its canonical form.

    Decoders accept excess padding and stray bits after the last byte, which would be lost.
    """
    text = _text(value, "a string in base64")
    with suppress(ValueError):
        taken = base64.b64decode(text, validate=True)
        if base64.b64encode(taken).decode() == text:
            return taken
    raise ValueRefused("wrong_type", "a string in canonical base64 with padding")


def decimal(value: JsonValue, precision: int, scale: int) -> Decimal:
    """Convert a number that fits the column's precision and scale; only zeros are cut off."""
    shape = f"decimal({precision},{scale})"
    if not isinstance(value, Number):
        raise ValueRefused("wrong_type", f"a number ({shape})")
    digits = Context(
        prec=precision, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact]
    )
    try:
        # Arrow misreads a number with excess digits, even if they are zeros.
        return Decimal(value).quantize(Decimal(1).scaleb(-scale), context=digits)
    except ArithmeticError:
        raise ValueRefused(
            "out_of_range",
            f"at most {precision - scale} digits before the point and {scale} after it ({shape})",
        ) from None


CONVERTERS: Mapping[FieldType, Callable[[JsonValue], Cell]] = {
    FieldType.STRING: string,
    FieldType.INT8: partial(integer, bits=8),
    FieldType.INT16: partial(integer, bits=16),
    FieldType.INT32: partial(integer, bits=32),
    FieldType.INT64: partial(integer, bits=64),
    FieldType.FLOAT32: float32,
    FieldType.FLOAT64: float64,
    FieldType.BOOLEAN: boolean,
    FieldType.TIMESTAMP: timestamp,
    FieldType.TIMESTAMP_NTZ: timestamp_ntz,
    FieldType.DATE: day,
    FieldType.BINARY: binary,
}


EXACT_CONVERTERS: Mapping[FieldType, Callable[[JsonValue], Cell]] = {
    FieldType.FLOAT32: exact_float32,
    FieldType.FLOAT64: exact_float64,
}
"""The converters that refuse to round integers."""


def _text(value: JsonValue, expected: str) -> str:
    if type(value) is not str:
        raise ValueRefused("wrong_type", expected)
    return value


def _exact(value: JsonValue, taken: float, kind: str) -> float:
    # Within a float's range, an integer has few enough digits for Python to parse.
    if is_integer(value) and int(str(value)) != taken:
        found = f"an integer that {kind} cannot hold exactly"
        expected = (
            "one that it can; schema.on_mismatch: rescue keeps such values in _rescued, and a "
            f"column that you declare as {kind} takes the nearest value"
        )
        raise ValueRefused("out_of_range", expected, found)
    return taken


def _beyond(kind: str, largest: str) -> ValueRefused:
    found = f"a number beyond the range of {kind}"
    return ValueRefused("out_of_range", f"a number from -{largest} to {largest}", found)
