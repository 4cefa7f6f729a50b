"""Types as the Delta protocol nests them: walked, and rebuilt. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lakebed.columns.field_path import FieldPath
from lakebed.columns.schema import ELEMENT, KEY, VALUE

DeltaType = Any
"""A Delta type: a name, or an object for a struct, an array or a map."""


def types_within(
    kind: DeltaType, path: FieldPath = (), metadata: Mapping[str, Any] | None = None
) -> Iterator[tuple[FieldPath, DeltaType, Mapping[str, Any] | None]]:
    """Yield a type and all types within it, each with its path and the metadata of its field.

    Elements of arrays, and keys and values of maps, are no fields: their metadata is None.
    """
    yield path, kind, metadata
    match kind:
        case {"type": "struct", "fields": fields}:
            for field in fields:
                said = field.get("metadata") or {}
                yield from types_within(field["type"], (*path, field["name"]), said)
        case {"type": "array", "elementType": element}:
            yield from types_within(element, (*path, ELEMENT))
        case {"type": "map", "keyType": key, "valueType": value}:
            yield from types_within(key, (*path, KEY))
            yield from types_within(value, (*path, VALUE))


def rebuilt(
    kind: DeltaType, change: Callable[[DeltaType, FieldPath], DeltaType], path: FieldPath = ()
) -> DeltaType:
    """Return a type after `change` of each type within it, innermost first; keys of maps stay."""
    match kind:
        case {"type": "struct", "fields": fields}:
            inner = [
                {**field, "type": rebuilt(field["type"], change, (*path, field["name"]))}
                for field in fields
            ]
            kind = {**kind, "fields": inner}
        case {"type": "array", "elementType": element}:
            kind = {**kind, "elementType": rebuilt(element, change, (*path, ELEMENT))}
        case {"type": "map", "valueType": value}:
            kind = {**kind, "valueType": rebuilt(value, change, (*path, VALUE))}
    return change(kind, path)
