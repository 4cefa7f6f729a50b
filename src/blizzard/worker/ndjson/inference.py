"""Observe the types of parsed values one by one; cheaper than joining a `Seen` per value."""

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from blizzard.model import seen as seeing
from blizzard.model.seen import Integers, Objects, Seen, Text
from blizzard.worker.ndjson.values import Number, ValueRefused, day, float64, string, timestamp
from lakebed.types import DEEPEST_COLUMN

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ZONED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ].*(?:Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)")
MOST_PATHS = 5000
"""The most paths that get a column; values at others stay in `_rescued`."""
LONGEST_INTEGER = 4000
"""The most digits that Python parses; no column holds more."""


class Gathered:
    """Accumulates the types of the values at one path."""

    __slots__ = (
        "_arrays",
        "_booleans",
        "_deep",
        "_depth",
        "_earlier",
        "_elements",
        "_fractions",
        "_greatest",
        "_least",
        "_members",
        "_most",
        "_objects",
        "_texts",
        "_unbounded",
    )

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._booleans = self._fractions = self._unbounded = self._deep = False
        self._least: int | None = None
        self._greatest = 0
        self._texts: list[Text] = []
        self._objects = self._arrays = False
        self._members: dict[str, Gathered] = {}
        self._most = 0
        self._earlier = Objects()
        """The members observed before there were too many to track separately."""
        self._elements: Gathered | None = None

    def add(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Observe one more value, parsed by `parse`."""
        kind = type(value)
        if kind is str:
            text = text_kind(value)
            if text not in self._texts:
                self._texts.append(text)
        elif kind is Number:
            self._add_number(value)
        elif kind is dict or kind is list:
            if self._depth >= DEEPEST_COLUMN:
                self._deep = True
            elif kind is dict:
                self._add_object(value)
            else:
                self._add_array(value)
        elif kind is bool:
            self._booleans = True
        elif value is not None:
            raise TypeError(f"{kind.__name__} is not a JSON value")

    def seen(self) -> Seen:
        """Return what was observed so far."""
        elements = self._elements
        return Seen(
            booleans=self._booleans,
            integers=None if self._least is None else Integers(self._least, self._greatest),
            fractions=self._fractions,
            unbounded=self._unbounded,
            deep=self._deep,
            texts=frozenset(self._texts),
            objects=self._joined_objects() if self._objects else None,
            arrays=self._arrays,
            elements=None if elements is None else elements.seen(),
        )

    def _add_number(self, number: Number) -> None:
        if number.lstrip("-").isdigit():
            if len(number) > LONGEST_INTEGER:
                self._unbounded = True
                return
            integer = int(number)
            if self._least is None:
                self._least = self._greatest = integer
            elif integer < self._least:
                self._least = integer
            elif integer > self._greatest:
                self._greatest = integer
            return
        try:
            float64(number)
        except ValueRefused:
            self._unbounded = True
        else:
            self._fractions = True

    def _add_object(self, value: dict[str, Any]) -> None:
        self._objects = True
        self._most = max(self._most, len(value))
        members = self._members
        for name, inner in value.items():
            member = members.get(name)
            if member is None:
                member = members[name] = Gathered(self._depth + 1)
            member.add(inner)
        if len(members) > seeing.MOST_MEMBERS:
            self._earlier = self._joined_objects()
            self._members = {}

    def _add_array(self, value: list[Any]) -> None:
        self._arrays = True
        if not value:
            return
        if self._elements is None:
            self._elements = Gathered(self._depth + 1)
        for inner in value:
            self._elements.add(inner)

    def _joined_objects(self) -> Objects:
        members = {name: member.seen() for name, member in self._members.items()}
        return self._earlier.join(Objects(members, self._most))


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


def infer(values: Iterable[Any]) -> Seen:
    """Observe values that were parsed by `parse`."""
    gathered = Gathered()
    for value in values:
        gathered.add(value)
    return gathered.seen()


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
