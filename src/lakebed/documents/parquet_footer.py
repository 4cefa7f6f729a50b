"""The facts of a Parquet footer: counts, and bounds that never exclude a row. Pure.

docs/adr/0024 has the rules: a bound is given only if every row group has one; a long string is cut
so that the bound still holds; a timestamp is rounded outwards to milliseconds, which Delta keeps; a
decimal is a text of all digits; floats have bounds only if the caller knows that none is NaN, which
a footer does not show.
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
"""Bytes at the end of a file to read first; few footers are longer."""
MAGIC = b"PAR1"
LONGEST_FOOTER = 256 * 1024 * 1024
FEWEST_ELEMENTS = 1000
"""The number of elements that a list in even the shortest footer may have."""
FRAME = 8
"""The length of the footer length and the magic word, which end the file."""


def footer_length(tail: bytes) -> int | None:
    """Return the length of a footer, frame included; None if the file does not end like Parquet."""
    if tail[-len(MAGIC) :] != MAGIC or len(tail) < FRAME:
        return None
    return int.from_bytes(tail[-FRAME : -len(MAGIC)], "little") + FRAME


def metadata_in(footer: bytes) -> pq.FileMetaData:
    """Parse a footer with its frame, in memory proportional to its length.

    A few bytes can announce a million columns, for which Arrow would allocate memory.
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
    """Return the statistics of each column of a file, and of each field of its structs, by path.

    Lists and maps have no bounds, nor do fields inside them. `without_nan` asserts that no float in
    the file is NaN.
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
    """Yield the columns of a footer with one value per row, each with its path.

    A footer joins names with dots, and names may contain dots. So paths come from the schema, whose
    leaves are in the footer's order.
    """
    schema = metadata.schema
    places = [place for field in schema.to_arrow_schema() for place in leaf_paths(field)]
    if len(places) != metadata.num_columns:
        return  # A type that Arrow shows with fewer leaves than the file has.
    for index, path in enumerate(places):
        column = schema.column(index)
        # Null counts inside lists are not per row.
        if not column.max_repetition_level and column.path == ".".join(path):
            yield index, path


def leaf_paths(field: "pa.Field[Any]", above: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the paths of a field's columns in a file."""
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
    """Return a lower bound of all rows as text, or None."""
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
    """Return an upper bound of all rows as text, or None."""
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
    """Cut a string and append the highest character, after any that are the highest already."""
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
