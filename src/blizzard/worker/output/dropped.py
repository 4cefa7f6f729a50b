"""Values without the fields inside of them that their table has dropped. Pure."""

from collections.abc import Container
from typing import Any

import pyarrow as pa

from lakebed.columns.field_path import FieldPath
from lakebed.columns.schema import ELEMENT, KEY, VALUE

Array = Any
"""An Arrow array of any type, which pyarrow's stubs cannot say."""


def fields_of(kind: Any) -> "list[pa.Field[Any]]":  # noqa: ANN401 - pyarrow's stubs know one type at a time
    """Return the fields of a struct."""
    return [kind.field(place) for place in range(kind.num_fields)]


def without_dropped(
    column: "pa.ChunkedArray[Any]", path: FieldPath, there: Container[FieldPath]
) -> "pa.ChunkedArray[Any]":
    """Return a column without the fields that are not there, at every depth.

    Whatever has none of them is not copied.
    """
    kind = _type_without(column.type, path, there)
    if kind == column.type:
        return column
    return pa.chunked_array([_array(_whole(one), path, there) for one in column.chunks], kind)


def _whole(values: Array) -> Array:
    """Return values that are no part of others: lists of which only a part is meant do not do."""
    return values.take(pa.array(range(len(values)))) if values.offset else values


def _type_without(kind: Any, path: FieldPath, there: Container[FieldPath]) -> Any:  # noqa: ANN401 - as above
    def inner(field: "pa.Field[Any]", step: str) -> "pa.Field[Any]":
        return field.with_type(_type_without(field.type, (*path, step), there))

    if pa.types.is_struct(kind):
        kept = [one for one in fields_of(kind) if (*path, one.name) in there]
        return pa.struct([inner(one, one.name) for one in kept])
    if pa.types.is_map(kind):
        return pa.map_(inner(kind.key_field, KEY), inner(kind.item_field, VALUE))
    if pa.types.is_list(kind):
        return pa.list_(inner(kind.value_field, ELEMENT))
    return kind


def _array(values: Array, path: FieldPath, there: Container[FieldPath]) -> Array:
    kind = _type_without(values.type, path, there)
    if kind == values.type:
        return values
    if pa.types.is_struct(kind):
        children = [
            _array(values.field(place), (*path, one.name), there)
            for place, one in enumerate(fields_of(values.type))
            if (*path, one.name) in there
        ]
        return pa.StructArray.from_arrays(children, fields=fields_of(kind), mask=values.is_null())
    if pa.types.is_map(kind):
        keys = _array(values.keys, (*path, KEY), there)
        items = _array(values.items, (*path, VALUE), there)
        of_map: Any = pa.MapArray.from_arrays
        return of_map(values.offsets, keys, items, kind, mask=values.is_null())
    inside = _array(values.values, (*path, ELEMENT), there)
    return pa.ListArray.from_arrays(values.offsets, inside, type=kind, mask=values.is_null())
