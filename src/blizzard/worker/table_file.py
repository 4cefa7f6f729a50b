"""Read data files in plain types under their logical names, and evaluate conditions on rows.

Other writers may declare strings as views or large strings, which Arrow cannot take, compare or
count like plain ones. With column mapping, files have physical column names.

With row tracking, a row has the id stored in its file, or else the file's first row id from the
log plus its position. The same holds for the version that wrote it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blizzard.model.predicate import (
    Combined,
    Comparison,
    IsNull,
    Operator,
    Predicate,
    PredicateInvalid,
    Value,
)
from blizzard.model.rewriting import ActiveFile, Rewriting
from blizzard.worker.output.encoding import as_logical, logical_schema
from lakebed.columns.column_mapping import ColumnMapping, FieldPath, format_path, path_in_files
from lakebed.documents.records import FirstRow, RowColumns

Column = Any
"""An array of any type; pyarrow's stubs know one type at a time."""
ColumnOf = Callable[[FieldPath], Column]
"""Returns the values of a column, or of a field inside one; nulls if the file lacks it."""

COMPARE: dict[Operator, Callable[[Column, Column], Column]] = {
    Operator.EQUAL: pc.equal,
    Operator.UNEQUAL: pc.not_equal,
    Operator.LESS: pc.less,
    Operator.AT_MOST: pc.less_equal,
    Operator.GREATER: pc.greater,
    Operator.AT_LEAST: pc.greater_equal,
}


def matches(predicate: Predicate, column_of: ColumnOf) -> Column:
    """Evaluate a condition for each row; null if it depends on a null."""
    match predicate:
        case Combined(how=how, parts=parts):
            together: Column = pc.and_kleene if how == "and" else pc.or_kleene
            found = matches(parts[0], column_of)
            for part in parts[1:]:
                found = together(found, matches(part, column_of))
            return found
        case IsNull(column=path, negated=negated):
            column = column_of(path)
            return pc.is_valid(column) if negated else pc.is_null(column)
        case Comparison(column=path, operator=operator, value=value):
            return _compared(column_of(path), operator, value, format_path(path))


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of some rows: those of the file, its partition columns, and nulls for others."""

    table: pa.Table
    rows: int
    partition: Mapping[str, str | None]
    kinds: Mapping[str, pa.DataType]

    def __call__(self, path: FieldPath) -> Column:
        """Return the values of a column, or of a field inside one."""
        name, *inner = path
        if name in self.table.column_names:
            return field_inside(self.table[name].combine_chunks(), inner)
        value = self.partition.get(name)
        if value is None:
            return pa.nulls(self.rows)
        constant: Column = pa.scalar(value).cast(self.kinds[name])
        return pa.repeat(constant, self.rows)


def field_inside(column: Column, names: Sequence[str]) -> Column:
    """Return a field inside a struct; null inside null structs, all null if missing."""
    for name in names:
        place = column.type.get_field_index(name)
        if place < 0:
            return pa.nulls(len(column))
        column = pc.struct_field(column, [place])
    return column


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """The type and bounds of a column."""

    kind: Any
    least: Any
    greatest: Any


def may_match(predicate: Predicate, bounds_of: Callable[[FieldPath], ColumnBounds | None]) -> bool:
    """Whether a condition may hold for any row, given bounds of its columns."""
    match predicate:
        case Combined(how=how, parts=parts):
            each = (may_match(part, bounds_of) for part in parts)
            return all(each) if how == "and" else any(each)
        case IsNull():
            return True
        case Comparison(column=path, operator=operator, value=value):
            bounds = bounds_of(path)
            return bounds is None or _may_hold(bounds, operator, value)


def _may_hold(bounds: ColumnBounds, operator: Operator, value: Value) -> bool:
    if not (pa.types.is_integer(bounds.kind) or pa.types.is_string(bounds.kind)):
        return True  # NaN is outside of all bounds, and other types rarely allow skipping.
    if not isinstance(value, int if pa.types.is_integer(bounds.kind) else str):
        return True  # The comparison itself reports the type error.
    least, greatest = bounds.least, bounds.greatest
    holds = {
        Operator.EQUAL: least <= value <= greatest,
        Operator.LESS: least < value,
        Operator.AT_MOST: least <= value,
        Operator.GREATER: greatest > value,
        Operator.AT_LEAST: greatest >= value,
    }
    return bool(holds.get(operator, True))


def _compared(column: Column, operator: Operator, value: Value, name: str) -> Column:
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.bool_())
    if pa.types.is_integer(kind):
        column, kind = column.cast(pa.int64()), pa.int64()
    try:
        other = _scalar(value, kind)
    except (ValueError, OverflowError, ArithmeticError, pa.ArrowException):
        other = None
    if other is None:
        shown = "text" if pa.types.is_string(kind) else str(kind)
        raise PredicateInvalid(
            f"the column {name} has the type {shown}, which cannot be compared with "
            f"{repr(value) if isinstance(value, str) else value}{_hint(kind)}",
            column=name,
        )
    return COMPARE[operator](column, other)


def _scalar(value: Value, kind: Any) -> Column | None:  # noqa: ANN401 - as above
    """Return a value as a scalar of a type; None if it is of another kind."""
    if pa.types.is_boolean(kind):
        return pa.scalar(value, kind) if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _text_as(value, kind)
    if pa.types.is_floating(kind):
        return pa.scalar(float(value), kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(value), kind)
    return pa.scalar(value, kind) if pa.types.is_integer(kind) and isinstance(value, int) else None


def _text_as(value: str, kind: Any) -> Column | None:  # noqa: ANN401 - as above
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.scalar(value, kind)
    if pa.types.is_date(kind):
        return pa.scalar(date.fromisoformat(value), kind)
    if pa.types.is_timestamp(kind):
        at = datetime.fromisoformat(value)
        # A missing zone must not be guessed.
        return pa.scalar(at, kind) if (at.tzinfo is None) == (kind.tz is None) else None
    return None


def _hint(kind: Any) -> str:  # noqa: ANN401 - as above
    if pa.types.is_string(kind):
        return "; put the value in single quotes"
    if pa.types.is_timestamp(kind):
        zone = "" if kind.tz is None else "Z"
        return f"; write it as '2024-01-31T12:00:00{zone}'"
    if pa.types.is_nested(kind):
        return "; compare a field inside it, such as user.id, or use is null"
    return ""


@dataclass(frozen=True, slots=True)
class RowIds:
    """The row ids of one file, and the columns in which files may store them."""

    columns: RowColumns
    first: FirstRow

    @property
    def fields(self) -> "tuple[pa.Field[Any], ...]":
        """Return the id and version columns."""
        return tuple(pa.field(name, pa.int64()) for name in self.columns.names)

    def read(self, file: pq.ParquetFile, index: int, start: int, rows: int) -> pa.Table:
        """Return the ids and versions of a row group that starts at a row of the file."""
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
    """Return the row ids of a file; None without row tracking."""
    if work.row_columns is None:
        return None
    if old.first_row is None:
        raise AssertionError("the log lacks the first row id of a file")
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
    """An open data file of a table: its columns in plain types, under their logical names."""

    file: pq.ParquetFile
    mapping: ColumnMapping | None = None
    """The physical columns of the table; None without column mapping."""
    row_ids: RowIds | None = None
    """The row ids to read as well; None if not needed."""

    @property
    def schema(self) -> pa.Schema:
        """Return its columns, without those dropped from the table."""
        found = plain_schema(self.file.schema_arrow)
        shown = found if self.mapping is None else logical_schema(found, self.mapping)
        if self.row_ids is None:
            return shown
        kept = self.row_ids.columns.names
        return pa.schema([*(one for one in shown if one.name not in kept), *self.row_ids.fields])

    @property
    def names(self) -> list[str]:
        """Return the names of its columns."""
        return self.schema.names

    def in_file(self, name: str) -> str:
        """Return the physical name of a column."""
        return path_in_files((name,), self.mapping)[0]

    def row_groups(self) -> "Iterator[RowGroup]":
        """Yield the row groups of the file in order."""
        start = 0
        for index in range(self.file.num_row_groups):
            rows = self.file.metadata.row_group(index).num_rows
            yield RowGroup(self, index, start, rows)
            start += rows


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a data file."""

    file: TableFile
    index: int
    start: int
    """The position of its first row in the data file, from 0."""
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
        """Return the bounds of a column from the footer; None if unknown."""
        if len(path) > 1:
            return None
        schema = self.file.file.schema_arrow
        place = schema.get_field_index(self.file.in_file(path[0]))
        group = self.file.file.metadata.row_group(self.index)
        # Nested columns shift the indexes of the columns in the footer.
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
        return as_logical(table, mapping)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with plain strings at every depth."""
    return pa.schema([one.with_type(plain_type(one.type)) for one in schema])


def plain_type(kind: Any) -> Any:  # noqa: ANN401 - pyarrow's stubs know one type at a time
    """Return a type with plain strings at every depth."""
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(plain_type(one.type)) for one in kind])
    if pa.types.is_map(kind):
        item = kind.item_field
        return pa.map_(plain_type(kind.key_type), item.with_type(plain_type(item.type)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    return kind
