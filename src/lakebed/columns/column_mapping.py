"""Physical names and ids of mapped columns, paths of fields, and nested types. Pure.

A Delta table with column mapping has two names for a column: the display name, which may change,
and the name in its data files, which never does. Only data files, their statistics and their
partition values in the Delta log use the latter.

`user.id` is the field `id` of the struct `user`. Paths of values in a record are different: they
also lead to elements of lists.

The id of a field in a Parquet file is derived from its path alone. Readers that go by ids
(Iceberg's, and Delta's with column mapping) find a field under the same id in every file, whichever
pipeline wrote it.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from lakebed.columns.schema import ELEMENT, KEY, VALUE, Field

if TYPE_CHECKING:
    import pyarrow as pa

FieldPath = tuple[str, ...]
"""The names from the column down to the field."""

_PLAIN = re.compile(r"[^.`]+")
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def format_path(path: Iterable[str]) -> str:
    """Format a path; quote names with a dot or a backtick, as Delta does."""
    return ".".join(
        name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`" for name in path
    )


def parse_path(text: str) -> FieldPath:
    """Parse a path; raise ValueError if it is not one."""
    names, end = [], 0
    while True:
        found = _PART.match(text, end)
        if found is None:
            raise ValueError(f"{text!r} is not the path of a field")
        quoted, plain = found.groups()
        names.append(plain if quoted is None else quoted.replace("``", "`"))
        end = found.end()
        if end == len(text):
            return tuple(names)
        if text[end] != ".":
            raise ValueError(f"{text!r} is not the path of a field")
        end += 1


DeltaType = Any
"""A Delta type: a name, or an object for a struct, an array or a map."""


def types_within(
    kind: DeltaType, path: FieldPath = (), metadata: Mapping[str, Any] | None = None
) -> Iterator[tuple[FieldPath, DeltaType, Mapping[str, Any] | None]]:
    """Yield a type and all types within it, each with its path and the metadata of its field.

    Elements of arrays, and keys and values of maps, are not fields: their metadata is None.
    """
    yield path, kind, metadata
    match kind:
        case {"type": "struct", "fields": fields}:
            for field in fields:
                metadata = field.get("metadata") or {}
                yield from types_within(field["type"], (*path, field["name"]), metadata)
        case {"type": "array", "elementType": element}:
            yield from types_within(element, (*path, ELEMENT))
        case {"type": "map", "keyType": key, "valueType": value}:
            yield from types_within(key, (*path, KEY))
            yield from types_within(value, (*path, VALUE))


def rebuilt(
    kind: DeltaType, change: Callable[[DeltaType, FieldPath], DeltaType], path: FieldPath = ()
) -> DeltaType:
    """Apply `change` to each type within a type, innermost first; map keys are left alone."""
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


MODE = "delta.columnMapping.mode"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
COLUMN_ID = "delta.columnMapping.id"


@dataclass(frozen=True, slots=True)
class PhysicalField:
    """The name and id of a field in data files."""

    name: str
    id: int


ColumnMapping = Mapping[FieldPath, PhysicalField]
"""A table's fields at every depth, by display path, with their names and ids in files."""


def mode_of(configuration: Mapping[str, str]) -> str:
    """Return a table's column mapping mode: `none`, `name` or `id`."""
    return configuration.get(MODE, "none").strip().lower()


def maps_columns(configuration: Mapping[str, str]) -> bool:
    """Whether columns may have other names in files than in the table."""
    return mode_of(configuration) != "none"


def mapping_of(schema: Mapping[str, Any], configuration: Mapping[str, str]) -> ColumnMapping | None:
    """Return a table's column mapping; None if it maps no columns."""
    if not maps_columns(configuration):
        return None
    return {
        path: PhysicalField(str(said[PHYSICAL_NAME]), int(said[COLUMN_ID]))
        for path, _kind, said in types_within(schema)
        if said is not None and PHYSICAL_NAME in said and COLUMN_ID in said
    }


def marked(schema: Mapping[str, Any], columns: ColumnMapping) -> dict[str, Any]:
    """Return a Delta schema with the names and ids in files in each field's metadata."""

    def mark(kind: DeltaType, above: FieldPath) -> DeltaType:
        if isinstance(kind, str) or kind["type"] != "struct":
            return kind
        fields = []
        for field in kind["fields"]:
            found = columns.get((*above, field["name"]))
            metadata = {} if found is None else {COLUMN_ID: found.id, PHYSICAL_NAME: found.name}
            fields.append({**field, "metadata": {**field["metadata"], **metadata}})
        return {**kind, "fields": fields}

    return cast("dict[str, Any]", rebuilt(schema, mark))


def path_in_files(path: FieldPath, columns: ColumnMapping | None) -> FieldPath:
    """Return a path as files spell it; fields that the table lacks keep their names."""
    if columns is None:
        return path
    ends = range(1, len(path) + 1)
    return tuple(
        found.name if (found := columns.get(path[:end])) else path[end - 1] for end in ends
    )


FIELD_ID = b"PARQUET:field_id"
"""The metadata key of Arrow for a field's id in a Parquet file."""
MOST_IDS = 1 << 30
"""Only half of Parquet's range is used, so that ids above the highest remain free."""


@cache
def field_id(path: FieldPath) -> int:
    """Return the id of a field in Parquet files, which depends on its path alone."""
    digest = hashlib.sha256(format_path(path).encode()).digest()
    return 1 + int.from_bytes(digest[:8], "big") % MOST_IDS


def with_field_ids(schema: "pa.Schema") -> "pa.Schema":
    """Return a schema whose fields carry their ids, at every depth."""
    import pyarrow as pa  # noqa: PLC0415 - most of penguin needs no Arrow

    return pa.schema([_numbered(field, (field.name,)) for field in schema])


def same_ids(fields: Iterable[Field]) -> Iterator[tuple[str, ...]]:
    """Yield groups of fields with the same id, by path; collisions are very rare."""
    for _, alike in groupby(sorted(paths_by_id(fields), key=itemgetter(0)), key=itemgetter(0)):
        found = tuple(dict.fromkeys(format_path(path) for _id, path in alike))
        if len(found) > 1:
            yield found


def paths_by_id(fields: Iterable[Field], above: FieldPath = ()) -> Iterator[tuple[int, FieldPath]]:
    """Yield the id and the path of every field, at every depth."""
    for field in fields:
        for path, *_ in types_within(field.delta_type(), (*above, field.name)):
            yield field_id(path), path


def _numbered(field: "pa.Field[Any]", path: FieldPath) -> "pa.Field[Any]":
    import pyarrow as pa  # noqa: PLC0415

    ids = {FIELD_ID: str(field_id(path)).encode()}
    kind = _numbered_type(field.type, path)
    return pa.field(field.name, kind, field.nullable, metadata={**(field.metadata or {}), **ids})


def _numbered_type(kind: Any, path: FieldPath) -> "pa.DataType":  # noqa: ANN401 - pyarrow's stubs know one type at a time
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_struct(kind):
        inner = [kind.field(place) for place in range(kind.num_fields)]
        return pa.struct([_numbered(one, (*path, one.name)) for one in inner])
    if pa.types.is_map(kind):
        key: Any = _numbered(kind.key_field, (*path, KEY))
        item: Any = _numbered(kind.item_field, (*path, VALUE))
        return cast("pa.DataType", pa.map_(key, item))
    if pa.types.is_list(kind):
        return pa.list_(_numbered(kind.value_field, (*path, ELEMENT)))
    return cast("pa.DataType", kind)
