"""Which rows of a data file a condition holds for. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from blizzard.model.predicate import (
    Combined,
    Comparison,
    IsNull,
    Operator,
    Predicate,
    PredicateInvalid,
    Value,
)
from lakebed.columns.field_path import FieldPath, format_path

Column = Any
"""An array of any type; pyarrow's stubs know one type at a time."""
ColumnOf = Callable[[FieldPath], Column]
"""Returns the values of a column, or of a field inside one; null where a file lacks it."""

COMPARE: dict[Operator, Callable[[Column, Column], Column]] = {
    Operator.EQUAL: pc.equal,
    Operator.UNEQUAL: pc.not_equal,
    Operator.LESS: pc.less,
    Operator.AT_MOST: pc.less_equal,
    Operator.GREATER: pc.greater,
    Operator.AT_LEAST: pc.greater_equal,
}


def matches(predicate: Predicate, column_of: ColumnOf) -> Column:
    """Return of each row whether a condition holds; null where that depends on a null."""
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
    """The columns of some rows: those of the file, those of its partition, and others as nulls."""

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
    """Return a field inside a struct, null where a struct around it is; all null without one."""
    for name in names:
        place = column.type.get_field_index(name)
        if place < 0:
            return pa.nulls(len(column))
        column = pc.struct_field(column, [place])
    return column


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """A column of which no value lies outside of two others."""

    kind: Any
    least: Any
    greatest: Any


def may_match(predicate: Predicate, bounds_of: Callable[[FieldPath], ColumnBounds | None]) -> bool:
    """Whether a condition may hold for one of some rows, of whose columns bounds are known."""
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
        return True  # A NaN lies outside of all bounds, and other types have few files to skip.
    if not isinstance(value, int if pa.types.is_integer(bounds.kind) else str):
        return True  # The comparison itself reports what is wrong.
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
    """Return a value as one of a type; None where it is of another kind."""
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
        # Whether it has a zone must not be guessed.
        return pa.scalar(at, kind) if (at.tzinfo is None) == (kind.tz is None) else None
    return None


def _hint(kind: Any) -> str:  # noqa: ANN401 - as above
    if pa.types.is_string(kind):
        return "; put the value in single quotes"
    if pa.types.is_timestamp(kind):
        zone = "" if kind.tz is None else "Z"
        return f"; write it as '2024-01-31T12:00:00{zone}'"
    if pa.types.is_nested(kind):
        return "; compare a field inside of it, as in user.id, or ask for is null"
    return ""
