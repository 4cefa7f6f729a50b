"""Rows and what was rescued, put together again: the record that went in, in one way of writing.

In that way a member that is null is not there, a timestamp is its microseconds and a day its days
since 1970, and a number is the number, however it is written.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

from blizzard.model.bad_lines import steps
from blizzard.model.seen import Text
from blizzard.worker.ndjson.inference import text_kind
from blizzard.worker.ndjson.values import Number, day, timestamp
from lakebed.columns.schema import Field
from lakebed.types import RESCUED, FieldType

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def record_of(row: Mapping[str, Any], fields: Sequence[Field]) -> Any:
    """Return the record that a row and its `_rescued` mean. Maps are lists of pairs."""
    found = {one.name: _typed(row[one.name], one) for one in fields}
    for path, value in json.loads(row.get(RESCUED) or "{}").items():
        _put(found, steps(path), plain(value))
    return without_nulls(found)


def plain(value: Any) -> Any:
    """Return any JSON value in the one way of writing."""
    match value:
        case dict():
            return {name: plain(inner) for name, inner in value.items()}
        case list():
            return [plain(inner) for inner in value]
        case str() if not isinstance(value, Number):
            match text_kind(value):
                case Text.TIMESTAMP:
                    return ("micros", timestamp(value))
                case Text.DATE:
                    return ("days", day(value))
    return value


def without_nulls(value: Any) -> Any:
    """Leave out members that are null, at every depth; null elements of arrays stay."""
    match value:
        case dict():
            kept = {name: without_nulls(inner) for name, inner in value.items()}
            return {name: inner for name, inner in kept.items() if inner is not None}
        case list():
            return [without_nulls(inner) for inner in value]
    return value


def _typed(value: Any, field: Field) -> Any:
    if value is None:
        return None
    match field.type:
        case FieldType.JSON:
            return plain(json.loads(value))
        case FieldType.STRUCT:
            return {one.name: _typed(value[one.name], one) for one in field.fields}
        case FieldType.LIST:
            assert field.items is not None
            return [_typed(inner, field.items) for inner in value]
        case FieldType.MAP:
            assert field.items is not None
            return {name: _typed(inner, field.items) for name, inner in value}
    return _leaf(value)


def _leaf(value: Any) -> Any:
    match value:
        case datetime():
            since = value - EPOCH
            return ("micros", (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds)
        case date():
            return ("days", (value - EPOCH.date()).days)
        case Decimal():
            return int(value) if value == int(value) else value
        case str():
            return plain(value)
    return value


def _put(into: Any, path: list[str | int], value: Any) -> None:
    """Set a value at a path, making the objects that lead to it."""
    for step, following in pairwise(path):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int):
            into = _element(into, step, empty)
        else:
            if into.get(step) is None:
                into[step] = empty
            into = into[step]
    into[path[-1]] = value


def _element(into: list[Any], index: int, empty: Any) -> Any:
    if into[index] is None:
        into[index] = empty
    return into[index]
