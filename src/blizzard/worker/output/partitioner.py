"""Rows into partitions, a whole stretch at a time: Python sees distinct values, never rows.

Every distinct value of a partition column gets a number, the numbers of a row become one, and the
rows are gathered by it.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.model.event_time import DAY, RefusedRow, RowPartitions
from lakebed.columns.schema import Field
from lakebed.layout import NULL_FOLDER, escape
from lakebed.types import FieldType

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_FOLDER = 255
"""Bytes of one folder's name that file systems take."""
ESCAPED_BYTES = 3
"""One byte of a value is at most this many of a folder's name."""

Column = Any
"""An array of any type; pyarrow's stubs know one at a time."""
Values = tuple[str | None, ...]
Numbers = npt.NDArray[np.int64]
Numbered = tuple[Numbers, list[Values]]


def grouped(
    batches: Sequence[pa.RecordBatch], by: RowPartitions, columns: Sequence[str]
) -> Iterator[tuple[Values, list[pa.RecordBatch]]]:
    """Yield each partition of the rows once, with its rows in their order and these columns.

    The partitions share one copy of the rows, in the order of the partitions. Rows that are all of
    one partition are given as they came.
    """
    numbers, values = _numbered(pa.Table.from_batches(batches), by)
    kept = [batch.select(list(columns)) for batch in batches]
    if len(values) <= 1:
        yield from ((value, kept) for value in values)
        return
    (together,) = pa.Table.from_batches(kept).combine_chunks().to_batches()
    # Numbers of two bytes are sorted by their digits, in one go.
    small = numbers.astype(np.uint16) if len(values) <= 1 << 16 else numbers
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(values)))
    together = together.take(pa.array(order, pa.int64()))
    start = 0
    for value, end in zip(values, ends.tolist(), strict=True):
        yield value, [together.slice(start, end - start)]
        start = end


def refused_rows(batch: pa.RecordBatch, by: RowPartitions) -> dict[int, RefusedRow]:
    """Return the rows whose partition is impossible, each with what is wrong with it first.

    Such a value would be found when the file is uploaded, or by penguin, where it stops more than
    the file that it is in.
    """
    refused: dict[int, RefusedRow] = {}
    for name, code, why, found in _faults(batch, by):
        rows: list[Any] = pc.indices_nonzero(found).to_pylist()
        for row in rows:
            refused.setdefault(row, RefusedRow(code=code, message=why, field=name))
    return refused


def _faults(batch: pa.RecordBatch, by: RowPartitions) -> Iterator[tuple[str, str, str, Column]]:
    """Yield what may be wrong with partition values, and which rows it is true of."""
    for part in by.parts:
        name = part.column.name
        is_text = part.pattern is None and part.column.type is FieldType.STRING
        column = batch[name] if part.pattern is None else _timestamps(batch, by)
        if not part.column.nullable:
            why = "found no value, expected one: the partition column is required"
            yield name, "required_field_missing", why, _missing(column, is_text=is_text)
        if is_text:
            why = f"found a value whose folder name would be longer than {LONGEST_FOLDER} bytes"
            yield name, "partition_value_too_long", why, _too_long(column, name)


def _missing(column: Column, *, is_text: bool) -> Column:
    if not is_text:
        return pc.is_null(column)
    return pc.if_else(pc.is_null(column), True, pc.is_in(column, pa.array(["", NULL_FOLDER])))


def _too_long(column: Column, name: str) -> Column:
    room = LONGEST_FOLDER - len(f"{escape(name)}=".encode())
    lengths: Column = pc.binary_length(column)
    if (pc.max(lengths).as_py() or 0) * ESCAPED_BYTES <= room:
        return pa.array([], pa.bool_())
    values = pc.unique(column).to_pylist()
    return pc.is_in(
        column,
        pa.array([value for value in values if len(escape(value).encode()) > room], pa.string()),
    )


def _numbered(rows: pa.Table, by: RowPartitions) -> Numbered:
    """Return a number for each row's partition, and the values by number."""
    found: Numbered = (np.zeros(rows.num_rows, np.int64), [()] if rows.num_rows else [])
    names = [part.column.name for part in (*by.times, *by.columns)]
    if by.times:
        found = _together(found, _times(_timestamps(rows, by), by))
    for part in by.columns:
        found = _together(found, _column(rows[part.column.name], part.column))
    places = [names.index(part.column.name) for part in by.parts]
    numbers, values = found
    return numbers, [tuple(value[place] for place in places) for value in values]


def _timestamps(rows: pa.Table | pa.RecordBatch, by: RowPartitions) -> Column:
    """Return the times of the rows; one inside a null struct is null."""
    column, *inside = by.timestamp_path
    return pc.struct_field(rows[column], inside) if inside else rows[column]


def _times(column: Column, by: RowPartitions) -> Numbered:
    """Return the time spans of the rows as numbers, with how each is written."""
    whole = column.combine_chunks()
    if pa.types.is_date(whole.type):
        spans, unit = whole.cast(pa.int32()).cast(pa.int64()), DAY
    else:
        spans, unit = whole.cast(pa.int64()), by.seconds
        # numpy rounds down, before 1970 too; Arrow rounds towards zero.
        floor = spans.fill_null(0).to_numpy(zero_copy_only=False) // (unit * 1_000_000)
        spans = pa.array(floor, mask=spans.is_null().to_numpy(zero_copy_only=False))
    numbers, distinct = _distinct(spans)
    return _merged(
        numbers,
        [
            (None,) * len(by.times)
            if span is None
            else tuple(part.written(EPOCH + timedelta(seconds=span * unit)) for part in by.times)
            for span in distinct
        ],
    )


def _column(column: Column, field: Field) -> Numbered:
    """Return a column's values as numbers, and as Delta writes them; an empty string is null."""
    numbers, distinct = _distinct(column.combine_chunks())
    return _merged(numbers, [(_written(value, field),) for value in distinct])


def _written(value: Any, field: Field) -> str | None:  # noqa: ANN401 - any value of the column
    if value is None:
        return None
    match field.type:
        case FieldType.BOOLEAN:
            return "true" if value else "false"
        case FieldType.STRING:
            # Hive's name for null is null to every reader of the table.
            return None if value in ("", NULL_FOLDER) else value
        case _:
            return str(value)


def _distinct(array: Column) -> tuple[Numbers, list[Any]]:
    encoded = array.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _merged(numbers: Numbers, values: list[Values]) -> Numbered:
    """Assign one number to equal values."""
    first: dict[Values, int] = {}
    renamed = [first.setdefault(value, len(first)) for value in values]
    if len(first) == len(values):
        return numbers, values
    return np.array(renamed, np.int64)[numbers], list(first)


def _together(one: Numbered, other: Numbered) -> Numbered:
    """Return the pairs that occur, as numbers."""
    (left, before), (right, after) = one, other
    if len(before) <= 1 or len(after) <= 1:
        numbers = right if len(before) <= 1 else left
        return numbers, [first + second for first in before for second in after]
    numbers, pairs = _distinct(pa.array(left * len(after) + right))
    return numbers, [before[pair // len(after)] + after[pair % len(after)] for pair in pairs]
