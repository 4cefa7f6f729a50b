"""A look at JSON values: what they look like, for those who want to know what columns they need."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from blizzard.model.json_path import any_element, member_path
from blizzard.model.seen import NOTHING, Integers, Objects, Seen, Text
from blizzard.worker.ndjson.values import Number, Refused, day, float64, string, timestamp

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ZONED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ].*(?:Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)")
LONGEST_INTEGER = 4000
"""Digits; Python refuses to read more, and no column holds as many."""


def look(values: Iterable[Any]) -> Seen:
    """Return what values look like that were parsed by `parse`."""
    found = NOTHING
    for value in values:
        found = found.join(_value(value))
    return found


MOST_PATHS = 5000
"""So many different paths are looked at; values at others stay in `_rescued`."""
MOST_ROWS = 10_000
"""So many rows with rescued values are looked at by one task. Values of later ones that do not fit
the column that is found stay in `_rescued`."""


@dataclass(slots=True)
class Looks:
    """What values look like, by their paths, while a file after the other is gone through."""

    seen: dict[str, Seen] = field(default_factory=dict)
    rows: int = 0

    def at_lines(self, data: bytes) -> None:
        """Look at the members of the records of some lines; what is no record is passed over."""
        for line in data.split(b"\n"):
            try:
                record = parse(line.decode()) if line.strip() else None
            except (ValueError, RecursionError):
                continue  # Whoever reads the file in earnest says what is wrong with it.
            if isinstance(record, dict):
                for name, value in record.items():
                    self._add(member_path("", name), value)

    def at_rescued(self, texts: Iterable[str | None]) -> None:
        """Look at what no column takes."""
        for text in texts:
            if text is not None and self.rows < MOST_ROWS:
                self.rows += 1
                for path, value in parse(text).items():
                    self._add(any_element(path), value)

    def _add(self, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
        known = self.seen.get(path)
        if known is not None or len(self.seen) < MOST_PATHS:
            look = _value(value)
            self.seen[path] = look if known is None else known.join(look)


def parse(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON so that the way a number is written stays known; a ValueError if it is none."""
    return _PARSER.decode(text)


def parse_next(text: str, at: int) -> tuple[Any, int]:
    """Parse the JSON value that begins at a place of a text; return it, and where it ends."""
    return _PARSER.raw_decode(text, at)


def _value(value: Any) -> Seen:  # noqa: ANN401 - one for each kind of value
    match value:
        case None:
            return NOTHING
        case bool():
            return Seen(booleans=True)
        case Number():
            return _number(value)
        case str():
            return Seen(texts=frozenset({text_kind(value)}))
        case list():
            return Seen(arrays=True, elements=look(value) if value else None)
        case dict():
            members = {name: _value(inner) for name, inner in value.items()}
            return Seen(objects=Objects({}, 0).join(Objects(members, len(members))))
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
