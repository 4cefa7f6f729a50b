"""The names and ids under which data files hold columns, where a table maps them. Pure.

A Delta table with column mapping has two names for a column: the one that people see, which may
change, and the one in its data files, which never does. Everything but the data files, their
statistics and their partition values in the Delta log goes by the first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from lakebed.columns.field_path import FieldPath
from lakebed.columns.schema import ELEMENT, KEY, VALUE

MODE = "delta.columnMapping.mode"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
COLUMN_ID = "delta.columnMapping.id"


@dataclass(frozen=True, slots=True)
class InFiles:
    """How data files hold a field."""

    name: str
    id: int


ColumnMapping = Mapping[FieldPath, InFiles]
"""How files hold the fields of a table, at every depth, by the names that people see."""


def mode_of(configuration: Mapping[str, str]) -> str:
    """Return how a table maps its columns: `none`, `name` or `id`."""
    return configuration.get(MODE, "none").strip().lower()


def mapping_of(schema: Mapping[str, Any], configuration: Mapping[str, str]) -> ColumnMapping | None:
    """Return how the files of a table hold its columns; None where the table maps none."""
    return None if mode_of(configuration) == "none" else dict(_mapped(schema, ()))


def _mapped(kind: Any, above: FieldPath) -> Iterator[tuple[FieldPath, InFiles]]:  # noqa: ANN401 - Delta's types
    match kind:
        case {"type": "struct", "fields": fields}:
            for one in fields:
                path, said = (*above, one["name"]), one.get("metadata") or {}
                if PHYSICAL_NAME in said and COLUMN_ID in said:
                    yield path, InFiles(str(said[PHYSICAL_NAME]), int(said[COLUMN_ID]))
                yield from _mapped(one["type"], path)
        case {"type": "array", "elementType": inner}:
            yield from _mapped(inner, (*above, ELEMENT))
        case {"type": "map", "keyType": key, "valueType": value}:
            yield from _mapped(key, (*above, KEY))
            yield from _mapped(value, (*above, VALUE))


def marked(schema: Mapping[str, Any], columns: ColumnMapping) -> dict[str, Any]:
    """Return a Delta schema that says of every field how files hold it."""
    return cast("dict[str, Any]", _marked(schema, (), columns))


def _marked(kind: Any, above: FieldPath, columns: ColumnMapping) -> Any:  # noqa: ANN401 - Delta's types
    match kind:
        case {"type": "struct", "fields": fields}:
            return {**kind, "fields": [_marked_field(one, above, columns) for one in fields]}
        case {"type": "array", "elementType": inner}:
            return {**kind, "elementType": _marked(inner, (*above, ELEMENT), columns)}
        case {"type": "map", "valueType": inner}:
            return {**kind, "valueType": _marked(inner, (*above, VALUE), columns)}
    return kind


def _marked_field(one: Any, above: FieldPath, columns: ColumnMapping) -> dict[str, Any]:  # noqa: ANN401
    path = (*above, one["name"])
    found = columns.get(path)
    said = {} if found is None else {COLUMN_ID: found.id, PHYSICAL_NAME: found.name}
    return {
        **one,
        "type": _marked(one["type"], path, columns),
        "metadata": {**one["metadata"], **said},
    }


def path_in_files(path: FieldPath, columns: ColumnMapping | None) -> FieldPath:
    """Return a path with the names of files; what the table does not have keeps its own."""
    if columns is None:
        return path
    ends = range(1, len(path) + 1)
    return tuple(
        found.name if (found := columns.get(path[:end])) else path[end - 1] for end in ends
    )
