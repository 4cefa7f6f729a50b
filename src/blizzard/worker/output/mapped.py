"""Rows under the names and ids that a table with column mapping has in files, and back. Pure."""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, cast

import pyarrow as pa

from lakebed.columns.column_mapping import ColumnMapping, InFiles, path_in_files
from lakebed.columns.field_ids import FIELD_ID, field_id
from lakebed.columns.field_path import FieldPath, format_path
from lakebed.columns.schema import ELEMENT, KEY, VALUE
from lakebed.errors import LakeError, Whose


def fields_of(kind: Any) -> "list[pa.Field[Any]]":  # noqa: ANN401 - pyarrow's stubs know one type at a time
    """Return the fields of a struct."""
    return [kind.field(place) for place in range(kind.num_fields)]


def without_dropped(
    column: "pa.ChunkedArray[Any]", path: FieldPath, there: Container[FieldPath]
) -> "pa.ChunkedArray[Any]":
    """Return a column without the fields that are not there, at every depth.

    A value without any of them is not copied.
    """

    def kept(fields: "Iterable[pa.Field[Any]]", at: FieldPath) -> "list[pa.Field[Any]]":
        return [
            one.with_type(_retyped(one.type, (*at, one.name), kept))
            for one in fields
            if (*at, one.name) in there
        ]

    kind: Any = _retyped(column.type, path, kept)
    return column if kind == column.type else column.cast(kind)


Renamed = Callable[["Iterable[pa.Field[Any]]", FieldPath], "list[pa.Field[Any]]"]
"""Returns the fields of a struct under other names, from where it is."""


class ColumnsUnknown(LakeError, code="columns_unknown", whose=Whose.EXTERNAL):
    """A data file holds columns in a way that its table does not tell."""


def physical_schema(schema: pa.Schema, columns: ColumnMapping) -> pa.Schema:
    """Return a schema with the names and ids of files.

    A field that the table does not have keeps its name, and the id that it has anywhere else.
    """
    return pa.schema(_physical(schema, (), columns))


def _physical(
    fields: "Iterable[pa.Field[Any]]", above: FieldPath, columns: ColumnMapping
) -> "list[pa.Field[Any]]":
    renamed: list[pa.Field[Any]] = []
    for field in fields:
        path = (*above, field.name)
        found = columns.get(path) or InFiles(field.name, field_id(path))
        ids = {FIELD_ID: str(found.id).encode()}
        kind = _retyped(field.type, path, lambda inside, at: _physical(inside, at, columns))
        renamed.append(pa.field(found.name, kind, field.nullable, metadata=ids))
    return renamed


def _retyped(kind: Any, path: FieldPath, renamed: Renamed) -> pa.DataType:  # noqa: ANN401 - pyarrow's stubs know one type at a time
    """Return a type whose fields are renamed, at every depth."""

    def inner(field: "pa.Field[Any]", step: str) -> "pa.Field[Any]":
        # Elements, keys and values have neither names nor ids of their own.
        return field.with_type(_retyped(field.type, (*path, step), renamed))

    if pa.types.is_struct(kind):
        return pa.struct(renamed(fields_of(kind), path))
    if pa.types.is_map(kind):
        key: Any = inner(kind.key_field, KEY)
        item: Any = inner(kind.item_field, VALUE)
        return cast("pa.DataType", pa.map_(key, item))
    if pa.types.is_list(kind):
        return pa.list_(inner(kind.value_field, ELEMENT))
    return cast("pa.DataType", kind)


def as_in_files(table: pa.Table, columns: ColumnMapping) -> pa.Table:
    """Return the same rows under the names of files, at every depth."""
    schema = physical_schema(table.schema, columns)
    found = map(_under, table.columns, schema)
    return pa.Table.from_arrays([*found], schema=schema)


def _under(column: "pa.ChunkedArray[Any]", field: "pa.Field[Any]") -> "pa.ChunkedArray[Any]":
    """Return a column as a field that has the same type, but for the names inside of it."""
    if not pa.types.is_nested(field.type):
        # Nothing is copied; a dictionary could not be read back alone, either.
        return column
    schema = pa.schema([field])
    batches = (pa.record_batch([chunk], names=[field.name]) for chunk in column.chunks)
    # A serialised batch has no names, so the same bytes are read back under others.
    read = (pa.ipc.read_record_batch(one.serialize(), schema) for one in batches)
    return pa.Table.from_batches(read, schema).column(0)


def logical_schema(schema: pa.Schema, columns: ColumnMapping) -> pa.Schema:
    """Return the columns of a file that its table has, under the names that people see.

    A column that was dropped since is left out, and so is a field inside of one. Raise where a file
    holds one that the table has, but not under its name: it would be taken for one that was
    dropped.
    """
    return pa.schema(_logical(schema, (), _InTable(columns)))


class _InTable:
    """The fields of a table by their names in files."""

    def __init__(self, columns: ColumnMapping) -> None:
        self.names = {path_in_files(path, columns): path[-1] for path in columns}
        self._ids = {(len(path) == 1, one.id) for path, one in columns.items()}

    def has(self, field: "pa.Field[Any]", path: FieldPath) -> bool:
        """Whether the table has a field of a file, under the name that the file has for it."""
        if path in self.names:
            return True
        if (len(path) == 1, _id_in_file(field)) in self._ids:
            raise ColumnsUnknown(
                "a data file holds a column of the table under another name than the table says",
                column=format_path(path),
            )
        return False


def _id_in_file(field: "pa.Field[Any]") -> int | None:
    said = (field.metadata or {}).get(FIELD_ID)
    return None if said is None else int(said)


def _logical(
    fields: "Iterable[pa.Field[Any]]", above: FieldPath, table: _InTable
) -> "list[pa.Field[Any]]":
    def inside(below: "Iterable[pa.Field[Any]]", at: FieldPath) -> "list[pa.Field[Any]]":
        found = _logical(below, at, table)
        if not found:
            raise ColumnsUnknown(
                "every field of a struct in a data file was dropped from the table since: which of "
                "its structs are null could not be kept; rewrite it with the engine that dropped "
                "them",
                column=format_path(at),
            )
        return found

    return [
        pa.field(table.names[path], _retyped(one.type, path, inside), one.nullable)
        for one in fields
        if table.has(one, path := (*above, one.name))
    ]


def as_people_see(table: pa.Table, columns: ColumnMapping) -> pa.Table:
    """Return the same rows under the names that people see, at every depth."""
    schema, there = logical_schema(table.schema, columns), _InTable(columns).names
    found = []
    for one in schema:
        path = path_in_files((one.name,), columns)
        found.append(_under(without_dropped(table[path[0]], path, there), one))
    return pa.Table.from_arrays(found, schema=schema)


def logical_paths(schema: pa.Schema, columns: ColumnMapping) -> dict[str, str]:
    """Return the names that people see of the plain fields of a schema, by those in files."""
    return {
        format_path(path_in_files(path, columns)): format_path(path)
        for field in schema
        for path in _plain((field.name,), field)
    }


def _plain(path: FieldPath, field: "pa.Field[Any]") -> Iterator[FieldPath]:
    kind: Any = field.type
    if not pa.types.is_struct(kind):
        yield path
        return
    for place in range(kind.num_fields):
        inner = kind.field(place)
        yield from _plain((*path, inner.name), inner)
