"""Observed types of the values at a path, and the narrowest column that holds them all. Pure.

Observations are joined. The join is commutative, associative and idempotent, so the result does not
depend on how values are spread over files, tasks and batches.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from lakebed.columns.schema import ELEMENT, VALUE, Field
from lakebed.types import FORBIDDEN_IN_NAMES, RESCUED, FieldType

EXACT_IN_FLOAT64 = 1 << 53
INT64_LIMIT = 1 << 63
DECIMAL_DIGITS = 38
MOST_MEMBERS = 1000
"""The most distinguished members of an object; with more, the names are data."""
FEWEST_KEYS = 50
"""An object with fewer different members than this is a struct."""
KEYS_PER_OBJECT = 4
"""Names are data if there are this many times more of them than members of any one object."""
_IDENTIFIER = re.compile(r"[@$]?[^\W\d][\w$@-]*")
"""A likely field name, unlike `app.kubernetes.io/name`, `80/tcp` and `2024`, which are data."""


class Text(StrEnum):
    """The class of a string."""

    TIMESTAMP = "timestamp"
    """An ISO 8601 timestamp with a zone."""
    DATE = "date"
    """A day, YYYY-MM-DD."""
    OTHER = "other"
    BROKEN = "broken"
    """With half a surrogate pair, which no string column can hold."""


@dataclass(frozen=True, slots=True)
class Integers:
    """The range of observed integers."""

    least: int
    greatest: int

    def join(self, other: "Integers") -> "Integers":
        """Return the range of both."""
        return Integers(min(self.least, other.least), max(self.greatest, other.greatest))


@dataclass(frozen=True, slots=True)
class Objects:
    """The members of observed objects."""

    members: Mapping[str, "Seen"] = field(default_factory=dict)
    """By name, in order of appearance; empty if there were too many names."""
    most: int = 0
    """The most members of any one object."""
    values: "Seen | None" = None
    """The joined types of all members, if there were too many names to distinguish."""

    def join(self, other: "Objects") -> "Objects":
        """Return the members of both."""
        most = max(self.most, other.most)
        if self.values is None and other.values is None:
            members = dict(self.members)
            for name, seen in other.members.items():
                members[name] = members[name].join(seen) if name in members else seen
            if len(members) <= MOST_MEMBERS:
                return Objects(members, most)
            return Objects({}, most, _all(members))
        values = self.values or _all(self.members)
        return Objects({}, most, values.join(other.values or _all(other.members)))


@dataclass(frozen=True, slots=True)
class Seen:
    """The observed types of the values at one path; empty if all were null."""

    booleans: bool = False
    integers: Integers | None = None
    fractions: bool = False
    """Numbers that are not written as integers, within the range of float64."""
    unbounded: bool = False
    """Numbers beyond the range of float64."""
    deep: bool = False
    """Values nested deeper than any column may be."""
    texts: frozenset[Text] = frozenset()
    objects: Objects | None = None
    arrays: bool = False
    elements: "Seen | None" = None
    """The joined types of the elements of all arrays; None if there were none."""

    def join(self, other: "Seen") -> "Seen":
        """Return the observed types of both."""
        if self == other:
            return self
        return Seen(
            booleans=self.booleans or other.booleans,
            integers=_joined(self.integers, other.integers),
            fractions=self.fractions or other.fractions,
            unbounded=self.unbounded or other.unbounded,
            deep=self.deep or other.deep,
            texts=self.texts | other.texts,
            objects=_joined(self.objects, other.objects),
            arrays=self.arrays or other.arrays,
            elements=_joined(self.elements, other.elements),
        )

    @property
    def families(self) -> int:
        """Count the observed JSON types; all numbers are one."""
        number = self.integers is not None or self.fractions or self.unbounded
        return sum((self.booleans, number, bool(self.texts), self.objects is not None, self.arrays))


NOTHING = Seen()


Observed = TypeVar("Observed", "Integers", "Objects", "Seen")


def _joined(one: Observed | None, other: Observed | None) -> Observed | None:
    if one is None or other is None:
        return one if other is None else other
    return one.join(other)


def _all(members: Mapping[str, Seen]) -> Seen:
    found = NOTHING
    for seen in members.values():
        found = found.join(seen)
    return found


def joined(some: Iterable[Mapping[str, Seen]]) -> dict[str, Seen]:
    """Join observations by path."""
    found: dict[str, Seen] = {}
    for each in some:
        for path, seen in each.items():
            found[path] = found[path].join(seen) if path in found else seen
    return found


def column_of(name: str, seen: Seen) -> Field | None:
    """Return the narrowest column that holds every value; None if no type is known yet.

    Nulls, and arrays and objects that were always empty, have no known type. Values of several
    types become a column of JSON text, and so do arrays nested to different depths.
    """
    if _is_json(seen):
        return Field(name=name, type=FieldType.JSON)
    if seen.arrays:
        items = column_of(ELEMENT, seen.elements or NOTHING)
        return items and Field(name=name, type=FieldType.LIST, items=items)
    if seen.objects is not None:
        return _object(name, seen.objects)
    if seen.integers is not None or seen.fractions:
        return _number(name, seen)
    kind: FieldType | None = None
    if seen.booleans:
        kind = FieldType.BOOLEAN
    elif seen.texts == {Text.TIMESTAMP}:
        kind = FieldType.TIMESTAMP
    elif seen.texts == {Text.DATE}:
        kind = FieldType.DATE
    elif seen.texts:
        kind = FieldType.STRING
    return None if kind is None else Field(name=name, type=kind)


def columns_of(members: Mapping[str, Seen]) -> tuple[Field, ...]:
    """Return the columns of an object's members, except for members without a known type.

    Of names that differ only in case, the first wins: Delta column names are case-insensitive.
    """
    taken: set[str] = set()
    columns = []
    for name, seen in members.items():
        column = column_of(name, seen) if is_column_name(name) else None
        if column is not None and name.casefold() not in taken:
            taken.add(name.casefold())
            columns.append(column)
    return tuple(columns)


def is_column_name(name: str) -> bool:
    """Whether every reader of a Delta table accepts a name for a column."""
    return name not in ("", RESCUED) and name.isprintable() and not set(name) & FORBIDDEN_IN_NAMES


def _is_json(seen: Seen) -> bool:
    """Whether only JSON text holds every value; types inside arrays and objects do not count."""
    if seen.families > 1 or seen.unbounded or seen.deep or Text.BROKEN in seen.texts:
        return True
    if seen.arrays:
        return _differs_in_depth(seen.elements or NOTHING)
    if seen.integers is None:
        return False
    limit = EXACT_IN_FLOAT64 if seen.fractions else 10**DECIMAL_DIGITS - 1
    return seen.integers.least < -limit or seen.integers.greatest > limit


def _differs_in_depth(elements: Seen) -> bool:
    """Whether elements mix arrays with other values, as in the coordinates of GeoJSON."""
    if not elements.arrays:
        return False
    return elements.families > 1 or _differs_in_depth(elements.elements or NOTHING)


def _number(name: str, seen: Seen) -> Field:
    integers = seen.integers
    if integers is None or seen.fractions:
        return Field(name=name, type=FieldType.FLOAT64)
    if integers.least >= -INT64_LIMIT and integers.greatest < INT64_LIMIT:
        return Field(name=name, type=FieldType.INT64)
    return Field(name=name, type=FieldType.DECIMAL, precision=DECIMAL_DIGITS)


def _object(name: str, objects: Objects) -> Field | None:
    """Return a struct of the members, or a map if their names are data.

    Names that are data are kept as JSON text if there are no values.
    """
    together = objects.values or _all(objects.members)
    if not _has_values(together):
        is_data = _are_many(objects) or _are_keys(objects.members)
        return Field(name=name, type=FieldType.JSON) if is_data and together != NOTHING else None
    if objects.values is not None or _names_are_data(objects, together):
        value = column_of(VALUE, together)
        return value and Field(name=name, type=FieldType.MAP, items=value)
    fields = columns_of(objects.members)
    return Field(name=name, type=FieldType.STRUCT, fields=fields) if fields else None


def _names_are_data(objects: Objects, together: Seen) -> bool:
    """Whether all values have one type, and the names are many or cannot be field names."""
    if _is_json(together):
        return False
    return _are_many(objects) or (_is_flat(together) and _are_keys(objects.members))


def _are_many(objects: Objects) -> bool:
    """Whether there are many names, most of them in only a few objects."""
    count = len(objects.members)
    return count >= FEWEST_KEYS and count >= KEYS_PER_OBJECT * objects.most


def _are_keys(members: Mapping[str, Seen]) -> bool:
    """Whether some names cannot be fields of a struct, or at least half are not identifiers.

    A member that is always null needs no field. Names that were too many to keep are keys, too.
    """
    names = [name for name, seen in members.items() if seen != NOTHING]
    return not _are_field_names(names) or 2 * sum(map(_is_identifier, names)) <= len(names)


def _are_field_names(names: Collection[str]) -> bool:
    different = {name.casefold() for name in names}
    return len(different) == len(names) and all(map(is_column_name, names))


def _is_identifier(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None


def _is_flat(seen: Seen) -> bool:
    """Whether neither the values nor elements of arrays are objects.

    A map would join objects of different names, but each may have its own members.
    """
    return seen.objects is None and (seen.elements is None or _is_flat(seen.elements))


def _has_values(seen: Seen) -> bool:
    """Whether there is anything but nulls and empty arrays and objects, at any depth."""
    number = seen.integers is not None or seen.fractions or seen.unbounded
    if seen.booleans or number or seen.texts:
        return True
    if seen.elements is not None and _has_values(seen.elements):
        return True
    if seen.objects is None:
        return False
    inside = (*seen.objects.members.values(), seen.objects.values or NOTHING)
    return any(map(_has_values, inside))
