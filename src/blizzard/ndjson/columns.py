"""Arrow columns of what a fast parser has read, made to mean what the exact path means by them."""

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.ndjson.values import DAY_MICROS, FIRST_MICROS, LAST_MICROS, binary
from lake.schema import ARROW, Field, FieldType

_NAIVE = pa.timestamp("us")
_FIRST_DAY, _LAST_DAY = FIRST_MICROS // DAY_MICROS, LAST_MICROS // DAY_MICROS
_COLON = ord(":")


class Doubtful(Exception):
    """The answer may not be the exact one."""


def conform(column: "pa.Array[Any]", field: Field) -> "pa.Array[Any]":
    """Give a column its declared type: times and bytes come as text.

    `Doubtful` says that it may not be what the exact path would give.
    """
    if not field.nullable and column.null_count:
        raise Doubtful
    match field.type:
        case FieldType.FLOAT32 | FieldType.FLOAT64:
            require_finite(column)
        case FieldType.TIMESTAMP:
            return _timestamps(column)
        case FieldType.DATE:
            days = column.cast(pa.date32())
            _require_between(days.view(pa.int32()), _FIRST_DAY, _LAST_DAY)
            return days
        case FieldType.BINARY:
            texts = column.to_pylist()
            return pa.array([None if text is None else binary(text) for text in texts], pa.binary())
    return column


def _timestamps(texts: "pa.Array[Any]") -> "pa.Array[Any]":
    """Convert timestamps; all of them give a zone, or none does."""
    _require_minutes(texts)
    utc = ARROW[FieldType.TIMESTAMP]
    try:
        moments = texts.cast(utc)
    except pa.ArrowInvalid:
        moments = texts.cast(_NAIVE).view(utc)
    # On the first day a moment may come from the year 0000 by way of its offset.
    _require_between(moments.view(pa.int64()), FIRST_MICROS + DAY_MICROS, LAST_MICROS)
    return moments


def _require_minutes(texts: "pa.Array[Any]") -> None:
    """Refuse a time of hours alone, which Arrow takes: after the hour there must be a colon."""
    _, offsets_buffer, text_buffer = cast("list[Any]", texts.buffers())
    offsets = np.frombuffer(offsets_buffer, np.int32, len(texts) + 1, texts.offset * 4)
    starts, lengths = offsets[:-1], np.diff(offsets)
    timed = lengths > len("YYYY-MM-DD")
    if (lengths[timed] < len("YYYY-MM-DDTHH:MM")).any():
        raise Doubtful
    if timed.any():
        after_hour = starts[timed] + len("YYYY-MM-DDTHH")
        if not (np.frombuffer(text_buffer, np.uint8)[after_hour] == _COLON).all():
            raise Doubtful


def require_finite(column: "pa.Array[Any]") -> None:
    """Refuse NaN and the infinite, which are no JSON."""
    if pc.all(pc.is_finite(column), min_count=0).as_py() is False:
        raise Doubtful


def _require_between(column: "pa.Array[Any]", lowest: int, highest: int) -> None:
    found = cast("dict[str, Any]", pc.min_max(column).as_py())
    if found["min"] is not None and not lowest <= found["min"] <= found["max"] <= highest:
        raise Doubtful
