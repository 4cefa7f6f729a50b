"""Infer the types of parsed values, path by path; cheaper than joining a `Seen` per value."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from blizzard.model.seen import Integers, Objects, Seen, Text
from blizzard.worker.ndjson.values import Number, ValueRefused, day, float64, string, timestamp
from lakebed.types import DEEPEST_COLUMN

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ZONED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ].*(?:Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)")
MOST_PATHS = 5000
"""The most paths that get a column; values at others stay in `_rescued`."""
LONGEST_INTEGER = 4000
"""The most digits that Python parses; no column holds more."""


def infer(values: Iterable[Any], depth: int = 0) -> Seen:
    """Return the types of values that were parsed by `parse`; `depth` counts the levels above."""
    by_kind: dict[type, list[Any]] = {}
    for value in values:
        by_kind.setdefault(type(value), []).append(value)
    nested = by_kind.keys() & {dict, list}
    deep = bool(nested) and depth >= DEEPEST_COLUMN
    objects, arrays = ([] if deep else by_kind.get(kind, []) for kind in (dict, list))
    elements = [element for array in arrays for element in array]
    return replace(
        _numbers(by_kind.get(Number, [])),
        booleans=bool in by_kind,
        deep=deep,
        texts=frozenset(map(text_kind, by_kind.get(str, ()))),
        objects=_objects(objects, depth) if objects else None,
        arrays=bool(arrays),
        elements=infer(elements, depth + 1) if elements else None,
    )


def _objects(objects: Sequence[Mapping[str, Any]], depth: int) -> Objects:
    members: dict[str, list[Any]] = {}
    for each in objects:
        for name, value in each.items():
            members.setdefault(name, []).append(value)
    found = Objects(
        {name: infer(values, depth + 1) for name, values in members.items()},
        max(map(len, objects)),
    )
    return Objects().join(found)  # If there are too many names, this joins the members.


def _numbers(numbers: Iterable[Number]) -> Seen:
    integers: list[int] = []
    fractions = unbounded = False
    for number in numbers:
        if not number.lstrip("-").isdigit():
            try:
                float64(number)
            except ValueRefused:
                unbounded = True
            else:
                fractions = True
        elif len(number) > LONGEST_INTEGER:
            unbounded = True
        else:
            integers.append(int(number))
    known = Integers(min(integers), max(integers)) if integers else None
    return Seen(integers=known, fractions=fractions, unbounded=unbounded)


def text_kind(text: str) -> Text:
    """Classify a string."""
    if text[4:5] == "-":
        try:
            if _DAY.fullmatch(text):
                day(text)
                return Text.DATE
            if _ZONED.fullmatch(text):
                timestamp(text)
                return Text.TIMESTAMP
        except ValueRefused:
            pass  # It only resembles a time.
    try:
        string(text)
    except ValueRefused:
        return Text.BROKEN
    return Text.OTHER


def parse(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON, keeping numbers as written; raise ValueError if invalid."""
    return _PARSER.decode(text)


def parse_next(text: str, at: int) -> tuple[Any, int]:
    """Parse the JSON value at a position of a text; return it and its end."""
    return _PARSER.raw_decode(text, at)


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


_PARSER: json.JSONDecoder = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_refuse
)
