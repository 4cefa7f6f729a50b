"""The facts of a Parquet footer: counts, and bounds that never exclude a row. Pure.

The rules are in docs/adr/0024: a bound is given only where every row group has one; a long string
is cut so that the bound still holds; a timestamp is rounded outwards to milliseconds, which is
what Delta keeps; a decimal is written out, digit by digit; floats have bounds only if the caller
knows that none is NaN, which leaves no trace in a footer.
"""

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.columns.column_mapping import FieldPath, format_path
from lakebed.documents.records import Bound, ColumnStatistics

LONGEST_STRING = 32
HIGHEST = "\U0010ffff"
TAIL = 64 * 1024
"""The bytes at the end of a file that are read first; few footers are longer."""
MAGIC = b"PAR1"
LONGEST_FOOTER = 256 * 1024 * 1024
FEWEST_ELEMENTS = 1000
"""A list in a footer may have so many elements, however short the footer is."""
FRAME = 8
"""The length of the footer and the magic word, which end the file."""


def footer_length(tail: bytes) -> int | None:
    """Return how many bytes at the end of a file its footer takes; None if it ends otherwise."""
    if tail[-len(MAGIC) :] != MAGIC or len(tail) < FRAME:
        return None
    return int.from_bytes(tail[-FRAME : -len(MAGIC)], "little") + FRAME


def metadata_in(footer: bytes) -> pq.FileMetaData:
    """Read a footer with its frame; what it claims to hold costs no more memory than it has bytes.

    A few bytes can announce a million columns, and Arrow makes room for what is announced.
    """
    most = max(FEWEST_ELEMENTS, len(footer) // 4)
    return pq.ParquetFile(
        pa.BufferReader(footer),
        thrift_string_size_limit=len(footer),
        thrift_container_size_limit=most,
    ).metadata


def statistics(
    metadata: pq.FileMetaData, *, without_nan: bool = False
) -> dict[str, ColumnStatistics]:
    """Return what is known of each column of a file, and of each field of its structs, by path.

    A list or a map has no bounds, and neither has what is inside it. `without_nan` says that no
    float in the file is NaN.
    """
    found = {}
    for index, path in _leaves(metadata):
        if (facts := _column(metadata, index)) is None:
            continue
        if isinstance(facts.minimum, float) and not without_nan:
            facts = ColumnStatistics(null_count=facts.null_count)
        found[format_path(path)] = facts
    return found


def _leaves(metadata: pq.FileMetaData) -> Iterator[tuple[int, FieldPath]]:
    """Yield the columns of a footer that hold one value a row, with the path of each.

    A footer names columns by their names with dots between, and a name may have dots as well: so
    the paths are those of the schema, whose leaves come in the footer's order.
    """
    schema = metadata.schema
    places = [place for field in schema.to_arrow_schema() for place in leaf_paths(field)]
    if len(places) != metadata.num_columns:
        return  # of a type that Arrow shows as less than it is in the file
    for index, path in enumerate(places):
        column = schema.column(index)
        # What counts as a null inside a list is not one value a row.
        if not column.max_repetition_level and column.path == ".".join(path):
            yield index, path


def leaf_paths(field: "pa.Field[Any]", above: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the paths of the columns that a field has in a file."""
    path, kind = (*above, field.name), field.type
    if not pa.types.is_nested(kind):
        yield path
        return
    for place in range(kind.num_fields):
        yield from leaf_paths(kind.field(place), path)


def _column(metadata: pq.FileMetaData, index: int) -> ColumnStatistics | None:
    nulls = 0
    lows: list[Any] = []
    highs: list[Any] = []
    bounded = True
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(index)
        facts = chunk.statistics
        if facts is None or facts.null_count is None:
            return None
        nulls += facts.null_count
        if facts.null_count == chunk.num_values:
            continue
        try:
            if facts.has_min_max:
                lows.append(facts.min)
                highs.append(facts.max)
            else:
                bounded = False
        except (ValueError, OverflowError):
            # Another writer's bound that Python cannot hold: half a character, the year 12345.
            bounded = False
    if not bounded or not lows:
        return ColumnStatistics(null_count=nulls)
    try:
        low, high = lower_bound(min(lows)), upper_bound(max(highs))
    except (ValueError, OverflowError, TypeError):
        return ColumnStatistics(null_count=nulls)
    if low is None or high is None:
        return ColumnStatistics(null_count=nulls)
    return ColumnStatistics(null_count=nulls, minimum=low, maximum=high)


def lower_bound(value: object) -> Bound:
    """Return the least value, written so that no row lies below it, or None."""
    match value:
        case int() | float() if not isinstance(value, bool) and math.isfinite(value):
            return value
        case Decimal():
            return format(value, "f")
        case str():
            return value[:LONGEST_STRING]
        case datetime():
            return _milliseconds(value - timedelta(microseconds=value.microsecond % 1000))
        case date():
            return value.isoformat()
        case _:
            return None


def upper_bound(value: object) -> Bound:
    """Return the greatest value, written so that no row lies above it, or None."""
    match value:
        case str():
            return _cut_above(value)
        case datetime():
            excess = value.microsecond % 1000
            if not excess:
                return _milliseconds(value)
            # The last millisecond of the last year has no later one to round up to.
            latest = datetime.max.replace(microsecond=999_000, tzinfo=value.tzinfo)
            return (
                None
                if value > latest
                else _milliseconds(value + timedelta(microseconds=1000 - excess))
            )
        case _:
            return lower_bound(value)


def _cut_above(value: str) -> str:
    """Cut a string and end it with the highest character, past any that are the highest already."""
    if len(value) <= LONGEST_STRING:
        return value
    end = LONGEST_STRING
    while end < len(value) and value[end] == HIGHEST:
        end += 1
    return value if end >= len(value) else value[:end] + HIGHEST


def _milliseconds(instant: datetime) -> str:
    zone = "" if instant.tzinfo is None else "Z"
    if instant.tzinfo is not None:
        instant = instant.astimezone(UTC)
    return f"{instant.replace(tzinfo=None).isoformat(timespec='milliseconds')}{zone}"
