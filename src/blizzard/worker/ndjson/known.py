"""What is found out once of each field of a schema, for a path that comes upon it line after line.

To look things up by a field takes longer than reading most values, as a field is all that is in it;
so they are looked up by its identity, which it has as long as the schema is there.
"""

from collections.abc import Mapping

from blizzard.model.json_path import member_path
from blizzard.worker.ndjson.level import Level, Place, level_within, places_inside
from blizzard.worker.ndjson.taking import Take, taker
from lakebed.columns.schema import Field, Schema
from lakebed.types import NESTED_TYPES, FieldType

Way = tuple[Field, tuple[str, ...], str, Mapping[str, Place]]
"""A field, the members that lead to it, the last of them as paths write it, and what other fields
take of its value."""


class Known:
    """The levels of a schema, and what takes the values of its fields."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._takers: dict[int, Take | None] = {}
        self._levels: dict[tuple[int, int], Level] = {}
        self._ways: dict[int, tuple[Level, list[Way]]] = {}

    def taker(self, one: Field) -> Take | None:
        """Return what takes the values of a field; None where that is more than a value."""
        try:
            return self._takers[id(one)]
        except KeyError:
            is_value = one.type not in NESTED_TYPES and one.type is not FieldType.JSON
            return self._takers.setdefault(id(one), taker(one) if is_value else None)

    def level(self, one: Field, elsewhere: Mapping[str, Place]) -> Level:
        """Return the level of a struct's fields; other fields take members of it `elsewhere`."""
        key = id(one), id(elsewhere)
        try:
            return self._levels[key]
        except KeyError:
            return self._levels.setdefault(key, level_within(one.fields, elsewhere))

    def ways(self, level: Level) -> list[Way]:
        """Return how to come to each of a level's fields."""
        try:
            return self._ways[id(level)][1]
        except KeyError:
            ways = [
                (one, way, member_path("", way[-1]), places_inside(level.places, way))
                for one, way in ((one, one.path) for one in level.fields)
            ]
            return self._ways.setdefault(id(level), (level, ways))[1]
