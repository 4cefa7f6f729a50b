"""Guess what strings and numbers mean beyond JSON: times, numbers, nulls. Pure.

A guess is kept while every value fits, by the rules by which rows are read.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isfinite

from blizzard.model.seen import Text
from blizzard.worker.ndjson.fields import converter
from blizzard.worker.ndjson.inference import LONGEST_INTEGER, text_kind
from blizzard.worker.ndjson.values import NUMBER, Number, ValueRefused
from lakebed.columns.schema import Field, Reading
from lakebed.types import FieldType

NULLS = frozenset(("", "-", "null", "NULL", "None", "N/A", "n/a", "NaN", "nan"))
"""Strings that commonly stand for null."""
PATTERNS = (
    "%d/%b/%Y:%H:%M:%S %z",
    "%a %b %d %H:%M:%S %z %Y",
    "%a, %d %b %Y %H:%M:%S %z",
    "%a, %d %b %Y %H:%M:%S %Z",
    "%Y/%m/%d %H:%M:%S",
)
"""Time formats of web server logs, tweets, mail and HTTP (RFC 2822), and nginx error logs."""
_FIRST_SECOND, _LAST_SECOND = 946_684_800, 4_102_444_800
"""Numbers count as times from 2000 to 2099; these ranges do not overlap between units."""
_UNITS = {
    "epoch_s": ("seconds", 1, 6),
    "epoch_ms": ("milliseconds", 10**3, 3),
    "epoch_us": ("microseconds", 10**6, 0),
    "epoch_ns": ("nanoseconds", 10**9, 0),
}
"""Units of time: name, number per second, digits allowed after the point."""
_TIME_WORDS = frozenset([
    "time", "timestamp", "ts", "date", "datetime", "at", "on", "when", "epoch", "created",
    "updated", "modified", "changed", "expires", "expiry", "expiration", "started", "finished",
    "ended", "start", "end", "begin", "since", "until", "birthday", "dob", "seen", "published",
    "received", "sent", "occurred", "unix", "nano", "nanos", "ms", "msec", "us", "ns", "utc",
    "exp", "iat", "nbf", "modification",
])  # fmt: skip
_ID_WORDS = frozenset([
    "id", "ids", "uuid", "guid", "key", "code", "zip", "postcode", "phone", "account", "number",
    "no", "ref", "reference", "version", "hash", "arn", "sku", "isbn", "ean", "serial", "token",
    "digest", "build", "release", "name", "title",
])  # fmt: skip
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST_NUMBER = 15
"""The most digits of an integer in text; longer ones are identifiers."""
MOST_DIGITS = 38
"""The most digits of a decimal."""
ONE_IN = 10
"""A field counts as numeric if at most one value in this many is other text."""


def words(name: str) -> frozenset[str]:
    """Split a name into words: both `createdAt` and `created_at` give created and at."""
    return frozenset(word.lower() for word in _WORD.findall(name))


@dataclass(frozen=True, slots=True)
class Guess:
    """A way to read the values of a field, with a remark."""

    field: Field
    remark: str = ""


def _way(kind: FieldType, remark: str = "", **reading: object) -> Guess:
    return Guess(Field(name="", type=kind, reading=Reading(**reading)), remark)  # type: ignore[arg-type]


_ISO = _way(FieldType.TIMESTAMP)
_DAY = _way(FieldType.DATE)
_NTZ = _way(FieldType.TIMESTAMP_NTZ, "times without a zone")
_FINER = _way(FieldType.TIMESTAMP, truncate=True)
_BOOLEAN = _way(FieldType.BOOLEAN, "true and false as text", coerce=True)
_INTEGER = _way(FieldType.INT64, "numbers as text", coerce=True)
_FLOAT = _way(FieldType.FLOAT64, "numbers as text", coerce=True)
WAYS = (
    _DAY,
    _ISO,
    _NTZ,
    *(
        _way(
            FieldType.TIMESTAMP if "%z" in each.lower() else FieldType.TIMESTAMP_NTZ,
            formats=(each,),
        )
        for each in PATTERNS
    ),
    _BOOLEAN,
    _INTEGER,
    _FLOAT,
    _FINER,
)


@dataclass(slots=True)
class Values:
    """Statistics of the strings and numbers at one place."""

    numbers: int = 0
    """The count of JSON numbers."""
    strings: int = 0
    """The count of strings that do not stand for null."""
    nulls: Counter[str] = field(default_factory=Counter)
    """Strings that may stand for null, in order of appearance."""
    ways: list[Guess] = field(default_factory=lambda: list(WAYS))
    """The guesses that fit all of those strings."""
    least: Decimal | None = None
    greatest: Decimal | None = None
    """The largest number, in strings or not."""
    finest: int = 0
    """The most digits after the point."""
    whole_micros: bool = True
    """Whether all are multiples of a thousand."""
    longest: int = 0

    def add(self, value: str) -> None:
        """Add a value; a number is passed as written."""
        if isinstance(value, Number):
            self.numbers += 1
            self._number(value)
        elif value in NULLS:
            self.nulls[value] += 1
        else:
            self.strings += 1
            if self.ways:
                self.ways = [way for way in self.ways if _takes(way, value)]
            if _INTEGER in self.ways or _FLOAT in self.ways:
                self._number(Number(value))

    def _number(self, number: Number) -> None:
        if len(number) > LONGEST_INTEGER:
            return
        exact = Decimal(number)
        _sign, digits, exponent = exact.as_tuple()
        self.longest = max(self.longest, len(digits))
        self.finest = max(self.finest, -int(exponent))
        self.whole_micros = self.whole_micros and number.endswith("000")
        self.least = exact if self.least is None else min(self.least, exact)
        self.greatest = exact if self.greatest is None else max(self.greatest, exact)


def _takes(way: Guess, value: str) -> bool:
    if way is _ISO:
        return text_kind(value) is Text.TIMESTAMP
    if way is _FLOAT:
        return NUMBER.fullmatch(value) is not None and isfinite(float(value))
    if way is _INTEGER and not value.removeprefix("-").isdecimal():
        return False
    try:
        converter(way.field)(value)
    except ValueRefused:
        return False
    return way is not _FINER or ":" in value


def of_strings(name: str, values: Values) -> Guess | None:
    """Return a guess for the strings of a field; None if they are plain text."""
    nulls = tuple(values.nulls)
    if not values.strings or not values.ways:
        marks = [each for each in nulls if each]
        if not marks:
            return None
        remark = f"{_quoted(marks)} may mean null: null_values: [{', '.join(map(_mark, marks))}]"
        return Guess(Field(name="", type=FieldType.STRING), remark)
    way = values.ways[0]
    if way is _FINER:
        remark = "times finer than microseconds; type: timestamp, truncate: true cuts them"
        return Guess(Field(name="", type=FieldType.STRING), remark)
    if way in (_INTEGER, _FLOAT):
        if (epoch := _epoch(name, values)) is not None:
            way = _timestamp(epoch, values, coerce=True)
        else:
            number = _INTEGER if way is _INTEGER else _decimal(values)
            is_name = way is _INTEGER and values.longest > _LONGEST_NUMBER
            if number is None or is_name or words(name) & _ID_WORDS:
                shape = f"; type: {number.field.shown}, coerce: true" if number else ""
                return Guess(Field(name="", type=FieldType.STRING), f"numbers as text{shape}")
            way = number
    return _with_nulls(way, nulls)


def of_mixture(number: Field, values: Values) -> Guess | None:
    """Return a guess for mostly numeric values; None if text is common.

    `number` is the column of the JSON numbers. Numeric text is converted if that loses nothing;
    other text goes to `_rescued`, even words that may mean null: they differ from null here.
    """
    texts = values.strings + values.nulls.total()
    are_numbers = not values.nulls and (not values.strings or _FLOAT in values.ways)
    if not are_numbers and ONE_IN * texts > texts + values.numbers:
        return None
    way: Guess | None = Guess(number)
    if values.strings and number.type is FieldType.FLOAT64 and are_numbers:
        way = _decimal(values)
    elif values.strings and number.type is not FieldType.FLOAT64:
        way = Guess(replace(number, reading=replace(number.reading, coerce=True)))
    if way is None:
        return None
    remark = f"{texts:,} of {texts + values.numbers:,} values are text"
    if not are_numbers:
        remark += " that is kept in _rescued"
    return Guess(way.field, remark if texts else "")


def _decimal(values: Values) -> Guess | None:
    """Return a decimal that holds all numbers; None if they have too many digits."""
    before = max(
        (one.adjusted() + 1 for one in (values.least, values.greatest) if one is not None),
        default=0,
    )
    if max(before, 1) + values.finest > MOST_DIGITS:
        return None
    kind = Field(
        name="",
        type=FieldType.DECIMAL,
        precision=MOST_DIGITS,
        scale=values.finest,
        reading=Reading(coerce=True),
    )
    return Guess(kind, "numbers as text")


def _with_nulls(way: Guess, nulls: tuple[str, ...]) -> Guess:
    if not nulls or way.field.type is FieldType.STRING:
        return way
    remark = f"{way.remark + '; ' if way.remark else ''}{_quoted(nulls)} for null"
    reading = replace(way.field.reading, null_values=nulls)
    return Guess(replace(way.field, reading=reading), remark)


def _mark(text: str) -> str:
    return f'"{text}"'


def _quoted(texts: Sequence[str]) -> str:
    return " and ".join(map(_mark, texts))


def of_numbers(name: str, values: Values) -> Guess | None:
    """Return a guess of a time for numbers; None if they are plain numbers."""
    epoch = _epoch(name, values)
    return None if epoch is None else _timestamp(epoch, values)


def _timestamp(epoch: str, values: Values, *, coerce: bool = False) -> Guess:
    remark = f"epoch {_UNITS[epoch][0]}{' as text' if coerce else ''}"
    if epoch == "epoch_ns" and not values.whole_micros:
        kind = FieldType.STRING if coerce else FieldType.INT64
        shape = f"{{type: timestamp, format: {epoch}, truncate: true}}"
        return Guess(Field(name="", type=kind), f"{remark}; {shape} cuts them to microseconds")
    reading = Reading(formats=(epoch,), coerce=coerce)
    return Guess(Field(name="", type=FieldType.TIMESTAMP, reading=reading), remark)


def _epoch(name: str, values: Values) -> str | None:
    """Return the unit in which the numbers of this field are plausible times, if any."""
    least, greatest = values.least, values.greatest
    if least is None or greatest is None or not words(name) & _TIME_WORDS:
        return None
    for unit, (_name, per_second, finest) in _UNITS.items():
        if _FIRST_SECOND * per_second <= least and greatest < _LAST_SECOND * per_second:
            return unit if values.finest <= finest else None
    return None
