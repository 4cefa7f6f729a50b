"""A look at JSON values: what they look like, for those who want to know what columns they need."""

import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from blizzard.model.seen import NOTHING, Integers, Objects, Seen, Text
from blizzard.worker.ndjson.values import Number, Refused, day, float64, string, timestamp

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ZONED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ].*(?:Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)")
LONGEST_INTEGER = 4000
"""Digits; Python refuses to read more, and no column holds as many."""


def look(values: Sequence[Any]) -> Seen:
    """Return what values look like that were parsed by `parse`."""
    objects = [value for value in values if isinstance(value, dict)]
    arrays = [value for value in values if isinstance(value, list)]
    found = NOTHING
    for value in values:
        # Most values look like one before: only what they add is joined.
        if value is not None and not isinstance(value, dict | list):
            plain = _plain(value)
            if plain != found:
                found = found.join(plain)
    if objects:
        found = found.join(Seen(objects=_objects(objects)))
    if arrays:
        elements = [element for array in arrays for element in array]
        found = found.join(Seen(arrays=True, elements=look(elements) if elements else None))
    return found


def _objects(some: Sequence[dict[str, Any]]) -> Objects:
    members: dict[str, list[Any]] = {}
    for each in some:
        for name, value in each.items():
            members.setdefault(name, []).append(value)
    most = max(len(each) for each in some)
    seen = {name: look(values) for name, values in members.items()}
    return Objects({}, 0).join(Objects(seen, most))


def parse(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON so that the way a number is written stays known; a ValueError if it is none."""
    return _PARSER.decode(text)


def _plain(value: Any) -> Seen:  # noqa: ANN401 - any JSON value but objects and arrays
    match value:
        case bool():
            return Seen(booleans=True)
        case Number():
            return _number(value)
        case str():
            return Seen(texts=frozenset({text_kind(value)}))
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _number(number: Number) -> Seen:
    if number.lstrip("-").isdigit():
        if len(number) > LONGEST_INTEGER:
            return Seen(unbounded=True)
        return Seen(integers=Integers(int(number), int(number)))
    try:
        float64(number)
    except Refused:
        return Seen(unbounded=True)
    return Seen(fractions=True)


def text_kind(text: str) -> Text:
    """Return what a string looks like."""
    try:
        if _DAY.fullmatch(text):
            day(text)
            return Text.DATE
        if _ZONED.fullmatch(text):
            timestamp(text)
            return Text.TIMESTAMP
    except Refused:
        return Text.OTHER
    try:
        string(text)
    except Refused:
        return Text.BROKEN
    return Text.OTHER


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


_PARSER: json.JSONDecoder = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_refuse
)
