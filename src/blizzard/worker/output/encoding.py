"""Encodings of Parquet columns, chosen by a sample, and physical column names and ids. Pure.

With column mapping, files have other column names and ids than the table's schema.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.columns.column_mapping import (
    FIELD_ID,
    ColumnMapping,
    FieldPath,
    PhysicalField,
    field_id,
    format_path,
    path_in_files,
)
from lakebed.columns.schema import ELEMENT, KEY, VALUE
from lakebed.errors import LakeError, Whose
from lakebed.types import ParquetCodec

Values = Any
"""A chunked array of any type; pyarrow's stubs are generic in one type."""


def leaves(rows: pa.Table) -> Iterator[tuple[str, Values]]:
    """Yield the Parquet path and the values of each leaf column."""
    for name in rows.column_names:
        yield from _leaves(name, rows[name])


def fields_in(kind: Any) -> int:  # noqa: ANN401 - as above
    """Count a field and all fields inside it."""
    inner = range(kind.num_fields) if pa.types.is_nested(kind) else ()
    return 1 + sum(fields_in(kind.field(place).type) for place in inner)


def _leaves(path: str, values: Values) -> Iterator[tuple[str, Values]]:
    kind = values.type
    if pa.types.is_map(kind):
        pairs = pa.struct([pa.field(KEY, kind.key_type), pa.field(VALUE, kind.item_type)])
        for name, inner in zip((KEY, VALUE), _elements(values.cast(pa.list_(pairs))), strict=True):
            yield from _leaves(f"{path}.key_value.{name}", inner)
    elif pa.types.is_struct(kind):
        for place, inner in enumerate(values.flatten()):
            yield from _leaves(f"{path}.{kind.field(place).name}", inner)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.{ELEMENT}", pc.list_flatten(values))
    else:
        yield path, values


def _elements(pairs: Values) -> Any:  # noqa: ANN401 - as above
    elements: Values = pc.list_flatten(pairs)
    return elements.flatten()


SAMPLE_ROWS = 10_000
MOST_DISTINCT = 0.5
"""A column repeats if at most this share of the sample is distinct."""
FEW_ROWS = 2_048
HARDLY_REPEATS = 0.9
"""Beyond this share of distinct values, `FEW_ROWS` decide for the whole sample: a column with 50 %
distinct values in 10,000 rows has about 85 % in 2,048."""
LEAST_SAVED = 0.15
"""The least saving for which a column is compressed. Times and measurements hardly compress, and
trying costs as much as the rest of writing them."""
SHORTEST_BITS = 32
"""Shorter numbers are written as 32 bits each and so always compress."""

Codec = Literal["snappy", "gzip", "zstd", "lz4", "none"]
PARQUET_CODEC: Mapping[ParquetCodec, Codec] = {
    ParquetCodec.SNAPPY: "snappy",
    ParquetCodec.GZIP: "gzip",
    ParquetCodec.ZSTD: "zstd",
    ParquetCodec.LZ4: "lz4",
    ParquetCodec.UNCOMPRESSED: "none",
}


@dataclass(frozen=True, slots=True)
class Encoding:
    """The leaf columns of a file, by path, with a special encoding."""

    repeating: tuple[str, ...] = ()
    """Dictionary-encoded columns."""
    incompressible: tuple[str, ...] = ()
    """Uncompressed columns."""

    def options(
        self, schema: pa.Schema, codec: ParquetCodec, named: pa.Schema | None = None
    ) -> dict[str, Any]:
        """Return the Parquet writer's options for a file with these columns.

        The file may lack columns of the sample. `named` is the schema with physical names.
        """
        paths, names = (
            [path for path, _values in leaves(one.empty_table())]
            for one in (schema, named or schema)
        )
        # Columns missing from this dictionary would not be compressed at all.
        compression = {
            name: "none" if path in self.incompressible else PARQUET_CODEC[codec]
            for path, name in zip(paths, names, strict=True)
        }
        repeating = [
            name for path, name in zip(paths, names, strict=True) if path in self.repeating
        ]
        return {"compression": compression, "use_dictionary": repeating}


ChooseEncoding = Callable[[pa.Table], Encoding]
"""Chooses the encoding of some rows."""


def encoding_of(table: pa.Table, codec: ParquetCodec) -> Encoding:
    """Choose the encoding of a file that begins with these rows.

    A dictionary saves time and space only if values repeat. Parquet abandons a dictionary that
    grows too large, but only after paying for it.
    """
    sample = list(leaves(table.slice(0, SAMPLE_ROWS)))
    repeating = tuple(
        path for path, values in sample if not pa.types.is_boolean(values.type) and _repeats(values)
    )
    return Encoding(
        repeating,
        tuple(
            path
            for path, values in sample
            if path not in repeating and _is_incompressible(values, codec)
        ),
    )


def _repeats(values: Values) -> bool:
    few = _distinct(values.slice(0, FEW_ROWS))
    return few <= MOST_DISTINCT or (few <= HARDLY_REPEATS and _distinct(values) <= MOST_DISTINCT)


def _distinct(values: Values) -> float:
    return float(pc.count_distinct(values, mode="all").as_py()) / max(1, len(values))


def _is_incompressible(values: Values, codec: ParquetCodec) -> bool:
    """Whether numbers or times hardly compress; False if there are too few to tell."""
    if codec is ParquetCodec.UNCOMPRESSED or not _is_fixed_width(values.type):
        return False
    present = pc.drop_null(values.slice(0, 2 * FEW_ROWS)).slice(0, FEW_ROWS)
    if len(present) < FEW_ROWS:
        return False
    together: Values = pa.concat_arrays(present.chunks)
    width = together.type.bit_width // 8
    size = len(together) * width
    # Parquet's LZ4 is Arrow's lz4_raw.
    by: Any = "lz4_raw" if codec is ParquetCodec.LZ4 else PARQUET_CODEC[codec]
    compressed = pa.Codec(by).compress(together.buffers()[1].slice(together.offset * width, size))
    return bool(len(compressed) > (1 - LEAST_SAVED) * size)


def _is_fixed_width(kind: Any) -> bool:  # noqa: ANN401 - any column type
    return pa.types.is_primitive(kind) and kind.bit_width >= SHORTEST_BITS


def without_dropped(
    column: "pa.ChunkedArray[Any]", path: FieldPath, there: Container[FieldPath]
) -> "pa.ChunkedArray[Any]":
    """Drop the fields that are not in `there`, at every depth; copy nothing if all are."""

    def kept(fields: "Iterable[pa.Field[Any]]", at: FieldPath) -> "list[pa.Field[Any]]":
        return [
            one.with_type(_retyped(one.type, (*at, one.name), kept))
            for one in fields
            if (*at, one.name) in there
        ]

    kind: Any = _retyped(column.type, path, kept)
    return column if kind == column.type else column.cast(kind)


Renamed = Callable[["Iterable[pa.Field[Any]]", FieldPath], "list[pa.Field[Any]]"]
"""Renames the fields of the struct at a path."""


class ColumnsUnknown(LakeError, code="columns_unknown", whose=Whose.EXTERNAL):
    """The columns of a data file do not match the table's column mapping."""


def physical_schema(schema: pa.Schema, columns: ColumnMapping) -> pa.Schema:
    """Return a schema with physical names and ids.

    A field that the table lacks keeps its name and gets the id derived from its path.
    """
    return pa.schema(_physical(schema, (), columns))


def _physical(
    fields: "Iterable[pa.Field[Any]]", above: FieldPath, columns: ColumnMapping
) -> "list[pa.Field[Any]]":
    renamed: list[pa.Field[Any]] = []
    for field in fields:
        path = (*above, field.name)
        found = columns.get(path) or PhysicalField(field.name, field_id(path))
        ids = {FIELD_ID: str(found.id).encode()}
        kind = _retyped(field.type, path, lambda inside, at: _physical(inside, at, columns))
        renamed.append(pa.field(found.name, kind, field.nullable, metadata=ids))
    return renamed


def _retyped(kind: Any, path: FieldPath, renamed: Renamed) -> pa.DataType:  # noqa: ANN401 - pyarrow's stubs know one type at a time
    """Rename the fields of a type at every depth."""

    def inner(field: "pa.Field[Any]", step: str) -> "pa.Field[Any]":
        # Elements, keys and values have neither names nor ids of their own.
        return field.with_type(_retyped(field.type, (*path, step), renamed))

    if pa.types.is_struct(kind):
        return pa.struct(renamed(list(kind), path))
    if pa.types.is_map(kind):
        key: Any = inner(kind.key_field, KEY)
        item: Any = inner(kind.item_field, VALUE)
        return cast("pa.DataType", pa.map_(key, item))
    if pa.types.is_list(kind):
        return pa.list_(inner(kind.value_field, ELEMENT))
    return cast("pa.DataType", kind)


def as_physical(table: pa.Table, columns: ColumnMapping) -> pa.Table:
    """Return the rows under physical names, at every depth."""
    schema = physical_schema(table.schema, columns)
    found = map(_under, table.columns, schema)
    return pa.Table.from_arrays([*found], schema=schema)


def _under(column: "pa.ChunkedArray[Any]", field: "pa.Field[Any]") -> "pa.ChunkedArray[Any]":
    """Return a column as a field whose type differs only in the names inside it."""
    if not pa.types.is_nested(field.type):
        # Nothing to rename; a dictionary could not be deserialised alone, either.
        return column
    schema = pa.schema([field])
    batches = (pa.record_batch([chunk], names=[field.name]) for chunk in column.chunks)
    # A serialised batch has no names, so it can be read back under others.
    read = (pa.ipc.read_record_batch(one.serialize(), schema) for one in batches)
    return pa.Table.from_batches(read, schema).column(0)


def logical_schema(schema: pa.Schema, columns: ColumnMapping) -> pa.Schema:
    """Return the columns of a file that its table has, under their logical names.

    Columns and nested fields that the table has dropped are left out. Raise if a file has a column
    of the table under an unexpected name, which would be mistaken for a dropped one.
    """
    return pa.schema(_logical(schema, (), _InTable(columns)))


class _InTable:
    """The fields of a table by physical name."""

    def __init__(self, columns: ColumnMapping) -> None:
        self.names = {path_in_files(path, columns): path[-1] for path in columns}
        self._ids = {(len(path) == 1, one.id) for path, one in columns.items()}

    def has(self, field: "pa.Field[Any]", path: FieldPath) -> bool:
        """Whether the table has a field of a file; raise if the names disagree."""
        if path in self.names:
            return True
        if (len(path) == 1, _id_in_file(field)) in self._ids:
            raise ColumnsUnknown(
                "a data file has a column of the table under a name that its mapping does not have",
                column=format_path(path),
            )
        return False


def _id_in_file(field: "pa.Field[Any]") -> int | None:
    text = (field.metadata or {}).get(FIELD_ID)
    return None if text is None else int(text)


def _logical(
    fields: "Iterable[pa.Field[Any]]", above: FieldPath, table: _InTable
) -> "list[pa.Field[Any]]":
    def inside(below: "Iterable[pa.Field[Any]]", at: FieldPath) -> "list[pa.Field[Any]]":
        found = _logical(below, at, table)
        if not found:
            raise ColumnsUnknown(
                "the table has dropped every field of a struct in a data file, and blizzard cannot "
                "keep which of its structs are null; rewrite the file with the engine that dropped "
                "them",
                column=format_path(at),
            )
        return found

    return [
        pa.field(table.names[path], _retyped(one.type, path, inside), one.nullable)
        for one in fields
        if table.has(one, path := (*above, one.name))
    ]


def as_logical(table: pa.Table, columns: ColumnMapping) -> pa.Table:
    """Return the rows under logical names, at every depth."""
    schema, there = logical_schema(table.schema, columns), _InTable(columns).names
    found = []
    for one in schema:
        path = path_in_files((one.name,), columns)
        found.append(_under(without_dropped(table[path[0]], path, there), one))
    return pa.Table.from_arrays(found, schema=schema)


def logical_paths(schema: pa.Schema, columns: ColumnMapping) -> dict[str, str]:
    """Return the logical names of a schema's non-struct fields by physical name."""
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
    for inner in kind:
        yield from _plain((*path, inner.name), inner)
