"""Rows of data files in plain types, whoever wrote them.

Other writers note in a footer that texts are views, or large ones. Arrow reads them as that, and
cannot take, compare or count them as it does plain ones. A table that maps its columns has other
names for them in its files; here they have those that people see.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from blizzard.worker.output.mapped import as_people_see, logical_schema
from blizzard.worker.output.row_ids import RowIds
from lakebed.columns.column_mapping import ColumnMapping, path_in_files


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
    """The ids of its rows, to be read with them; None where nobody asks for them."""

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

    def read(self, group: int, columns: Collection[str] | None = None) -> pa.Table:
        """Return the rows of one row group, or some columns of them."""
        if self.row_ids is None:
            return self._read(group, columns)
        kept = self.row_ids.columns.names
        ids = self.row_ids.read(self.file, group)
        if columns is None:
            table = self._read(group, None)
            table = table.drop_columns([one for one in kept if one in table.column_names])
        else:
            others = [one for one in columns if one not in kept]
            ids = ids.select([one for one in kept if one in columns])
            if not others:
                return ids
            table = self._read(group, others)
        for field, column in zip(ids.schema, ids.columns, strict=True):
            table = table.append_column(field, column)
        return table

    def _read(self, group: int, columns: Collection[str] | None) -> pa.Table:
        if self.mapping is None:
            return read_group(self.file, group, columns)
        wanted = columns
        if wanted is None:
            wanted = logical_schema(plain_schema(self.file.schema_arrow), self.mapping).names
        table = read_group(self.file, group, [*map(self.in_file, wanted)])
        return as_people_see(table, self.mapping)


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
