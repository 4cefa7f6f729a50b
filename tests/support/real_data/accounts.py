"""Where every value of a record has gone: into a typed column, a column of JSON, or `_rescued`."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from blizzard.model.bad_lines import element_path, member_path, steps
from blizzard.model.seen import NOTHING, Seen, column_of, columns_of, is_column_name
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.inference import infer, parse
from lakebed.columns.schema import Field, Schema
from lakebed.types import RESCUED, FieldType, OnMismatch, UnknownFields
from tests.support.real_data.kind import Record, lines
from tests.support.together import plain, record_of, without_nulls


class Place(StrEnum):
    """Where a value is found again."""

    TYPED = "typed"
    JSON = "json"
    RESCUED = "rescued"


@dataclass(slots=True)
class Accounts:
    """What became of the values of some records."""

    columns: tuple[Field, ...]
    places: Counter[Place] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)
    """Paths of values that are not found again as they were."""
    rescued: dict[str, None] = field(default_factory=dict)
    """Paths of what is in `_rescued`, in the order of their appearance."""


def seen_of(records: Sequence[Record]) -> Mapping[str, Seen]:
    """Return what the members of records look like."""
    objects = infer(parse(json.dumps(record)) for record in records).objects
    return objects.members if objects else {}


def accounts(records: Sequence[Record], columns: tuple[Field, ...]) -> Accounts:
    """Decode records with columns, and find every value again."""
    decoder = Decoder(Schema(columns), unknown=UnknownFields.ADD, on_mismatch=OnMismatch.RESCUE)
    rows = [row for each in decoder.decode([lines(records)]) for row in each.batch.to_pylist()]
    found = Accounts(columns)
    for row, record in zip(rows, records, strict=True):
        came = dict(leaves(without_nulls(plain(record))))
        there = dict(leaves(without_nulls(record_of(row, columns))))
        found.different += [path for path in {**came, **there} if not same(path, came, there)]
        rescued = list(json.loads(row.get(RESCUED) or "{}"))
        found.rescued |= dict.fromkeys(rescued)
        ways = [steps(path) for path in rescued]
        for path in came:
            found.places[place_of(path, ways, columns)] += 1
    return found


def inferred(records: Sequence[Record]) -> tuple[Field, ...]:
    """Return the columns that records need."""
    return columns_of(seen_of(records))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values that hold no others, each with its path; empty containers are such."""
    match value:
        case dict() if value:
            for name, inner in value.items():
                yield from leaves(inner, member_path(path, name))
        case list() if value:
            for index, inner in enumerate(value):
                yield from leaves(inner, element_path(path, index))
        case _ if path:
            yield path, value


def same(path: str, came: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    """Whether a value is there as it came; to Python alone, true would be 1."""
    if path not in came or path not in there:
        return False
    one, other = came[path], there[path]
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def place_of(path: str, rescued: Sequence[list[str | int]], columns: Sequence[Field]) -> Place:
    """Return where a value of a row is, of which some paths are rescued."""
    way = steps(path)
    if any(way[: len(each)] == each for each in rescued):
        return Place.RESCUED
    known, _rest = field_at(path, columns)
    return Place.JSON if known is not None and known.type is FieldType.JSON else Place.TYPED


def field_at(path: str, columns: Sequence[Field]) -> tuple[Field | None, list[str | int]]:
    """Return the innermost field on the way to a path, and the steps that lead on from it."""
    at: Field | None = None
    way = steps(path)
    for number, step in enumerate(way):
        if at is not None and at.items is not None:
            following: Field | None = at.items
        else:
            inner = columns if at is None else at.fields
            following = next((one for one in inner if one.name == step), None)
        if following is None:
            return at, way[number:]
        at = following
    return at, []


def is_nameless_or_untold(path: str, columns: Sequence[Field], seen: Mapping[str, Seen]) -> bool:
    """Whether what is at a path can have no column: for its name, or for want of a type."""
    at, rest = field_at(path, columns)
    if not rest:
        return False
    name = rest[0]
    if not isinstance(name, str) or not is_column_name(name):
        return True
    beside = columns if at is None else at.fields
    if name.casefold() in {one.name.casefold() for one in beside}:
        return True
    return column_of(name, _seen_at(steps(path), seen)) is None


def _seen_at(way: Sequence[str | int], members: Mapping[str, Seen]) -> Seen:
    name, *rest = way
    at = members[str(name)]
    for step in rest:
        if isinstance(step, int):
            at = at.elements or NOTHING
        else:
            assert at.objects is not None
            at = at.objects.values or at.objects.members[step]
    return at
