"""Rows of data files in plain types, under the names that people see, and the ids of rows.

Other writers note in a footer that texts are views, or large ones. Arrow reads them as that, and
cannot take, compare or count them as it does plain ones. A table that maps its columns has other
names for them in its files.

In a table that tracks its rows, a row has the id that its file gives it, or else the one that
follows from its place in the file and the id of the first row, which is in the log. The same holds
for the version that wrote it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blizzard.model.rewriting import ActiveFile, Rewriting
from blizzard.worker.matching import ColumnBounds
from blizzard.worker.output.mapped import as_people_see, logical_schema
from lakebed.columns.column_mapping import ColumnMapping, path_in_files
from lakebed.columns.field_path import FieldPath
from lakebed.columns.row_tracking import FirstRow, RowColumns


@dataclass(frozen=True, slots=True)
class RowIds:
    """The ids of the rows of one file, and the columns in which other files keep them."""

    columns: RowColumns
    first: FirstRow

    @property
    def fields(self) -> "tuple[pa.Field[Any], ...]":
        """Return both columns."""
        return tuple(pa.field(name, pa.int64()) for name in self.columns.names)

    def read(self, file: pq.ParquetFile, index: int, start: int, rows: int) -> pa.Table:
        """Return both for the rows of the row group that starts at a row of the file."""
        at = self.first.id + start
        implied = (np.arange(at, at + rows), np.full(rows, self.first.version))
        there = [name for name in self.columns.names if name in file.schema_arrow.names]
        stored = file.read_row_group(index, columns=there)
        columns: list[Any] = []
        for name, values in zip(self.columns.names, implied, strict=True):
            column: Any = pa.array(values, pa.int64())
            if name in there:
                column = pc.coalesce(stored[name].combine_chunks().cast(pa.int64()), column)
            columns.append(column)
        return pa.Table.from_arrays(columns, schema=pa.schema(self.fields))


def row_ids_of(old: ActiveFile, work: Rewriting) -> RowIds | None:
    """Return the ids of the rows of a file; None where the table tracks none."""
    if work.row_columns is None:
        return None
    if old.first_row is None:
        raise AssertionError("the log does not say what the rows of a file are numbered from")
    return RowIds(work.row_columns, old.first_row)


def read_group(
    file: pq.ParquetFile, group: int, columns: Collection[str] | None = None
) -> pa.Table:
    """Return the rows of one row group, or some columns of them, in plain types."""
    chosen = None if columns is None else sorted(columns)
    table = file.read_row_group(group, columns=chosen)
    return table.cast(plain_schema(table.schema))


@dataclass(frozen=True, slots=True)
class TableFile:
    """An open data file of a table: its columns in plain types, under the names that people see."""

    file: pq.ParquetFile
    mapping: ColumnMapping | None = None
    """How files of the table hold its columns; None where it maps none."""
    row_ids: RowIds | None = None
    """The ids of its rows, to be read with them; None where they are not needed."""

    @property
    def schema(self) -> pa.Schema:
        """Return its columns, those left out that were dropped from the table."""
        found = plain_schema(self.file.schema_arrow)
        shown = found if self.mapping is None else logical_schema(found, self.mapping)
        if self.row_ids is None:
            return shown
        kept = self.row_ids.columns.names
        return pa.schema([*(one for one in shown if one.name not in kept), *self.row_ids.fields])

    @property
    def names(self) -> list[str]:
        """Name its columns."""
        return self.schema.names

    def in_file(self, name: str) -> str:
        """Return what the file calls a column."""
        return path_in_files((name,), self.mapping)[0]

    def row_groups(self) -> "Iterator[RowGroup]":
        """Yield the row groups of the file in their order."""
        start = 0
        for index in range(self.file.num_row_groups):
            rows = self.file.metadata.row_group(index).num_rows
            yield RowGroup(self, index, start, rows)
            start += rows


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows of a data file that follow each other and are read as a whole."""

    file: TableFile
    index: int
    start: int
    """The place of its first row in the data file, from 0."""
    rows: int

    def read(self, columns: Collection[str] | None = None) -> pa.Table:
        """Return its rows, or some columns of them."""
        row_ids = self.file.row_ids
        if row_ids is None:
            return self._stored(columns)
        ids = row_ids.read(self.file.file, self.index, self.start, self.rows)
        names = row_ids.columns.names
        if columns is not None:
            ids = ids.select([name for name in names if name in columns])
            columns = [name for name in columns if name not in names]
            if not columns:
                return ids
        table = self._stored(columns)
        table = table.drop_columns([name for name in names if name in table.column_names])
        for field, column in zip(ids.schema, ids.columns, strict=True):
            table = table.append_column(field, column)
        return table

    def bounds(self, path: FieldPath) -> ColumnBounds | None:
        """Return what the footer says of the values of a column."""
        if len(path) > 1:
            return None
        schema = self.file.file.schema_arrow
        place = schema.get_field_index(self.file.in_file(path[0]))
        group = self.file.file.metadata.row_group(self.index)
        # Columns after a nested one have other places in the file than in the schema.
        if place < 0 or group.num_columns != len(schema):
            return None
        known: Any = group.column(place).statistics
        if known is None or not known.has_min_max:
            return None
        return ColumnBounds(plain_type(schema.field(place).type), known.min, known.max)

    def _stored(self, columns: Collection[str] | None) -> pa.Table:
        mapping = self.file.mapping
        if mapping is None:
            return read_group(self.file.file, self.index, columns)
        if columns is None:
            columns = logical_schema(plain_schema(self.file.file.schema_arrow), mapping).names
        table = read_group(self.file.file, self.index, [*map(self.file.in_file, columns)])
        return as_people_see(table, mapping)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose texts are plain, those inside of columns included."""
    return pa.schema([one.with_type(plain_type(one.type)) for one in schema])


def plain_type(kind: Any) -> Any:  # noqa: ANN401 - pyarrow's stubs know one type at a time
    """Return a type in which all texts are plain."""
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        inner = (kind.field(place) for place in range(kind.num_fields))
        return pa.struct([one.with_type(plain_type(one.type)) for one in inner])
    if pa.types.is_map(kind):
        item = kind.item_field
        return pa.map_(plain_type(kind.key_type), item.with_type(plain_type(item.type)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    return kind
