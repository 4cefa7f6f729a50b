"""The names and ids under which data files hold columns, where a table maps them. Pure.

A Delta table with column mapping has two names for a column: the one that people see, which may
change, and the one in its data files, which never does. Everything but the data files, their
statistics and their partition values in the Delta log goes by the first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from lakebed.columns.field_path import FieldPath
from lakebed.columns.nested_types import DeltaType, rebuilt, types_within

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


def maps_columns(configuration: Mapping[str, str]) -> bool:
    """Whether columns may have other names in files than in the table."""
    return mode_of(configuration) != "none"


def mapping_of(schema: Mapping[str, Any], configuration: Mapping[str, str]) -> ColumnMapping | None:
    """Return how the files of a table hold its columns; None where the table maps none."""
    if not maps_columns(configuration):
        return None
    return {
        path: InFiles(str(said[PHYSICAL_NAME]), int(said[COLUMN_ID]))
        for path, _kind, said in types_within(schema)
        if said is not None and PHYSICAL_NAME in said and COLUMN_ID in said
    }


def marked(schema: Mapping[str, Any], columns: ColumnMapping) -> dict[str, Any]:
    """Return a Delta schema that says of every field how files hold it."""

    def mark(kind: DeltaType, above: FieldPath) -> DeltaType:
        if isinstance(kind, str) or kind["type"] != "struct":
            return kind
        fields = []
        for field in kind["fields"]:
            found = columns.get((*above, field["name"]))
            said = {} if found is None else {COLUMN_ID: found.id, PHYSICAL_NAME: found.name}
            fields.append({**field, "metadata": {**field["metadata"], **said}})
        return {**kind, "fields": fields}

    return cast("dict[str, Any]", rebuilt(schema, mark))


def path_in_files(path: FieldPath, columns: ColumnMapping | None) -> FieldPath:
    """Return a path with the names of files; what the table does not have keeps its own."""
    if columns is None:
        return path
    ends = range(1, len(path) + 1)
    return tuple(
        found.name if (found := columns.get(path[:end])) else path[end - 1] for end in ends
    )
