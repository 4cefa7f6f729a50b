"""Which members of an object give which fields. Pure.

A level is an object: the line itself, or the value of a struct. A field takes the member of its own
name, or the one that its path leads to, through objects that need not be declared.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lakebed.columns.schema import Field
from lakebed.types import FieldType

ABOVE = -1


@dataclass(slots=True)
class MemberPlace:
    """A member that some field takes."""

    columns: list[int] = field(default_factory=list)
    """The fields that take it whole, by their place in the level; a field of a level above is
    `ABOVE`."""
    inside: dict[str, "MemberPlace"] = field(default_factory=dict)
    """The members of it that other fields take."""
    is_kept: bool = False
    """Whether a `json` field takes it, which holds all of it: nothing inside is left over."""


NOWHERE: Mapping[str, MemberPlace] = MappingProxyType({})


def takes_twice(fields: tuple[Field, ...]) -> bool:
    """Whether a field takes a value whole that others take, too, or take members of."""
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
    """Whether a `json` field holds the value that a path leads to, or an object around it."""
    for name in path:
        if places[name].is_kept:
            return True
        places = places[name].inside
    return False


def places_inside(
    places: Mapping[str, MemberPlace], path: Iterable[str]
) -> Mapping[str, MemberPlace]:
    """Return what other fields take of the value that a path leads to."""
    for name in path:
        places = places[name].inside
    return places


def places_of(
    fields: tuple[Field, ...], elsewhere: Mapping[str, MemberPlace] = NOWHERE
) -> Mapping[str, MemberPlace]:
    """Return the members that give these fields, and those that fields `elsewhere` take."""
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
