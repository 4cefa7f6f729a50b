"""The values of declared fields: the members that they read, and their conversion. Pure.

A level is an object: the line itself, or the value of a struct. A field reads the member of its own
name, or the one at its path, through objects that need not be declared. Conversion depends on the
field's type and its `reading`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Context, Decimal
from functools import lru_cache, partial
from types import MappingProxyType

from blizzard.model.time_pattern import EPOCHS, ISO, MONTHS, WEEKDAYS, TimePattern, pattern_of
from blizzard.worker.ndjson import values
from blizzard.worker.ndjson.values import (
    CONVERTERS,
    DAY_MICROS,
    EPOCH_DAY,
    EXACT_CONVERTERS,
    FIRST_MICROS,
    NUMBER,
    Cell,
    JsonValue,
    Number,
    ValueRefused,
    fraction_micros,
    in_range,
    time_micros,
)
from lakebed.columns.schema import Field
from lakebed.types import FieldType

ABOVE = -1


@dataclass(slots=True)
class MemberPlace:
    """A member that at least one field reads."""

    columns: list[int] = field(default_factory=list)
    """The fields that read it whole, by index in the level, or `ABOVE` for an outer level."""
    inside: dict[str, "MemberPlace"] = field(default_factory=dict)
    """Its members that fields read by path."""
    is_kept: bool = False
    """Whether a `json` field holds all of it, so that nothing inside is left over."""


NOWHERE: Mapping[str, MemberPlace] = MappingProxyType({})


def takes_twice(fields: tuple[Field, ...]) -> bool:
    """Whether two fields read the same value, or one reads a member of another's value."""
    places = list(places_of(fields).values())
    while places:
        place = places.pop()
        if len(place.columns) > 1 or (place.inside and place.columns):
            return True
        places += place.inside.values()
    return any(takes_twice(_innermost(one).fields) for one in fields)


def _innermost(one: Field) -> Field:
    return one if one.items is None else _innermost(one.items)


def is_kept(places: Mapping[str, MemberPlace], path: Iterable[str]) -> bool:
    """Whether a `json` field holds the value at a path, or an object around it."""
    for name in path:
        if places[name].is_kept:
            return True
        places = places[name].inside
    return False


def places_inside(
    places: Mapping[str, MemberPlace], path: Iterable[str]
) -> Mapping[str, MemberPlace]:
    """Return the members that other fields read inside the value at a path."""
    for name in path:
        places = places[name].inside
    return places


def places_of(
    fields: tuple[Field, ...], elsewhere: Mapping[str, MemberPlace] = NOWHERE
) -> Mapping[str, MemberPlace]:
    """Return the members that these fields read, merged with those that fields `elsewhere` read."""
    places: dict[str, MemberPlace] = {}
    for index, one in enumerate(fields):
        here = places
        for name in one.path[:-1]:
            here = here.setdefault(name, MemberPlace()).inside
        place = here.setdefault(one.path[-1], MemberPlace())
        place.columns.append(index)
        place.is_kept |= one.type is FieldType.JSON
    return _joined(places, elsewhere) if elsewhere else places


def _joined(
    own: Mapping[str, MemberPlace], above: Mapping[str, MemberPlace]
) -> dict[str, MemberPlace]:
    nothing = MemberPlace()
    return {
        name: MemberPlace(
            [*own.get(name, nothing).columns, *(ABOVE for _ in above.get(name, nothing).columns)],
            _joined(own.get(name, nothing).inside, above.get(name, nothing).inside),
            own.get(name, nothing).is_kept or above.get(name, nothing).is_kept,
        )
        for name in (*own, *(name for name in above if name not in own))
    }


LONGEST_EPOCH = 40
"""Characters; no timestamp in range needs more, with any fraction."""
_EXACT = Context(prec=2 * LONGEST_EPOCH)


def epoch_micros(value: JsonValue, unit: str, *, truncate: bool, coerce: bool) -> int:
    """Convert a number of seconds, or of smaller units, since 1970 into microseconds."""
    expected = f"a number ({unit})"
    value = _number(value) if coerce else value
    if not isinstance(value, Number):
        raise ValueRefused("wrong_type", expected)
    if len(value) > LONGEST_EPOCH:
        raise ValueRefused(
            "out_of_range", f"a number of at most {LONGEST_EPOCH} characters ({unit})"
        )
    try:
        micros = _EXACT.multiply(Decimal(value), EPOCHS[unit])
    except ArithmeticError:  # an exponent of many digits
        raise ValueRefused("out_of_range", expected) from None
    if (
        micros and micros.adjusted() > LONGEST_EPOCH
    ):  # a large exponent, too costly to make an integer of
        return in_range(FIRST_MICROS - 1)
    whole = int(micros)
    if micros != whole:
        if not truncate:
            expected = "a moment in whole microseconds; truncate: true cuts off the rest"
            raise ValueRefused("out_of_range", expected)
        # Round towards the past, also before 1970, like a truncated written fraction.
        whole -= micros < whole
    return in_range(whole)


def pattern_micros(value: JsonValue, pattern: TimePattern, *, truncate: bool) -> int:
    """Convert a text that matches a pattern into microseconds since 1970; no zone means UTC."""
    expected = f"a time written {pattern.text}"
    if type(value) is not str:
        raise ValueRefused("wrong_type", expected)
    match = pattern.regex.fullmatch(value)
    if match is None:
        raise ValueRefused("wrong_type", expected)
    part = {name: text for name, text in match.groupdict().items() if text is not None}
    since_midnight = time_micros(part, _hour(part, expected))
    micros = _day(part) * DAY_MICROS + since_midnight
    return in_range(micros + fraction_micros(part.get("fraction", "0"), truncate=truncate))


def _hour(part: Mapping[str, str], expected: str) -> int:
    if "half" not in part:
        return int(part.get("hour", "0"))
    hour = int(part["hour_of_half"])
    if not 1 <= hour <= 12:
        raise ValueRefused("out_of_range", expected)
    return hour % 12 + 12 * (part["half"].lower() == "pm")


def _day(part: Mapping[str, str]) -> int:
    """Return the days since 1970. A two-digit year means 1969 to 2068, as in POSIX."""
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
        raise ValueRefused(
            "out_of_range", "a day of the calendar, 0001-01-01 to 9999-12-31"
        ) from None
    for name in ("weekday", "long_weekday"):
        if name in part and WEEKDAYS.index(part[name].lower()[:3]) != (found - 1) % 7:
            raise ValueRefused("out_of_range", "the weekday of its date")
    return found - EPOCH_DAY


Micros = Callable[[JsonValue], int]


def whole_days(micros: int, *, truncate: bool) -> int:
    """Return the day of a moment in UTC; a time of day is cut off or refused."""
    days, rest = divmod(micros, DAY_MICROS)
    if rest and not truncate:
        expected = "a day without a time of day; truncate: true cuts the time off"
        raise ValueRefused("out_of_range", expected)
    return days


INTEGERS = frozenset({FieldType.INT8, FieldType.INT16, FieldType.INT32, FieldType.INT64})
_NUMBERS = INTEGERS | {FieldType.FLOAT32, FieldType.FLOAT64, FieldType.DECIMAL}
_FLOATS = frozenset({FieldType.FLOAT32, FieldType.FLOAT64})
_TIMES = frozenset({FieldType.TIMESTAMP, FieldType.TIMESTAMP_NTZ, FieldType.DATE})
_MANTISSA = re.compile("-|[eE].*")
_MOST_SIGNIFICANT = 17
"""Digits that identify any double."""
MOST_DIGITS = 40
"""Digits of an integer written with an exponent; no integer type holds more."""

Converter = Callable[[JsonValue], Cell]


@lru_cache(maxsize=4096)
def converter(field: Field) -> Converter:
    """Return the converter of a field without nested fields."""
    reading = field.reading
    take = _typed(field)
    if reading.coerce:
        take = partial(_coerced, take=take, field=field)
    if reading.null_values:
        take = partial(_or_null, take=take, nulls=frozenset(reading.null_values))
    return take


def _typed(field: Field) -> Converter:
    if field.type is FieldType.DECIMAL:
        return partial(values.decimal, precision=field.precision, scale=field.scale)
    reading = field.reading
    if field.type in _TIMES and (reading.formats or reading.truncate):
        ways = [_time(field, name) for name in reading.formats or (ISO,)]
        return ways[0] if len(ways) == 1 else partial(_first, ways=ways)
    return (
        EXACT_CONVERTERS.get(field.type, CONVERTERS[field.type])
        if reading.exact
        else CONVERTERS[field.type]
    )


def _time(field: Field, name: str) -> Converter:
    """Return the converter of times in one format."""
    truncate, is_date = field.reading.truncate, field.type is FieldType.DATE
    micros: Micros
    if name == ISO:
        if is_date:
            return _day_of_time if truncate else values.day
        zone = field.type is FieldType.TIMESTAMP
        expected = values.ISO if zone else values.ISO_NTZ
        return partial(values.iso_micros, expected=expected, zone=zone, truncate=truncate)
    if name in EPOCHS:
        coerce = field.reading.coerce
        micros = partial(epoch_micros, unit=name, truncate=truncate, coerce=coerce)
    else:
        pattern = pattern_of(name)
        micros = partial(pattern_micros, pattern=pattern, truncate=truncate)
    if not is_date:
        return micros
    return lambda value: whole_days(micros(value), truncate=truncate)


def _day_of_time(value: JsonValue) -> int:
    """Convert a date, or a timestamp truncated to its day in UTC."""
    try:
        return values.day(value)
    except ValueRefused as refused:
        if refused.code != "wrong_type":
            raise
    return whole_days(values.iso_micros(value, values.ISO, truncate=True), truncate=True)


def _first(value: JsonValue, ways: Sequence[Converter]) -> Cell:
    """Convert a value with the first converter that accepts it."""
    refusals: list[ValueRefused] = []
    for take in ways:
        try:
            return take(value)
        except ValueRefused as refused:
            refusals.append(refused)
    # A value in the right format but out of range explains more than one in another format.
    near = next((one for one in refusals if one.code != "wrong_type"), None)
    if near is not None:
        raise near
    raise ValueRefused("wrong_type", " or ".join(dict.fromkeys(one.expected for one in refusals)))


def _or_null(value: JsonValue, take: Converter, nulls: frozenset[str]) -> Cell:
    return None if type(value) is str and value in nulls else take(value)


def _coerced(value: JsonValue, take: Converter, field: Field) -> Cell:
    """Convert a value of another JSON type if that is lossless."""
    kind = field.type
    if kind is FieldType.STRING:
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, Number) else take(value)
    if kind is FieldType.BOOLEAN:
        known = {"true": True, "false": False}
        return known[value] if type(value) is str and value in known else take(value)
    if kind in _FLOATS and type(value) is str:
        return _held(take(_number(value)), value, kind)
    if kind in _NUMBERS:
        value = _number(value)
    return take(_integral(value) if kind in INTEGERS and isinstance(value, Number) else value)


def _held(taken: Cell, text: str, kind: FieldType) -> Cell:
    """Refuse a float that, rounded to the digits of its text, is another number."""
    digits = _MANTISSA.sub("", text).replace(".", "").strip("0")
    rounded = taken if len(digits) > _MOST_SIGNIFICANT else f"{taken:.{max(len(digits), 1) - 1}e}"
    if digits and (not taken or Decimal(rounded) != Decimal(text)):
        expected = f"one that {kind.value} holds; decimal(p,s) and string hold every digit"
        raise ValueRefused(
            "out_of_range", expected, f"a number with more digits than {kind.value} holds"
        )
    return taken


def _number(value: JsonValue) -> JsonValue:
    """Return the number in a string that holds nothing else; any other value as it is."""
    return Number(value) if type(value) is str and NUMBER.fullmatch(value) else value


def _integral(number: Number) -> Number:
    """Rewrite an integral number such as 1.0 or 1e3 as an integer; return any other unchanged."""
    try:
        exact = Decimal(number)
        if not exact or (exact.adjusted() < MOST_DIGITS and exact == exact.to_integral_value()):
            return Number(int(exact))
    except ArithmeticError:  # an exponent of many digits
        pass
    return number
