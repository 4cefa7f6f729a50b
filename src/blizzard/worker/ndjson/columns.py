"""Arrow columns of the tokens of a block, made to mean what the exact path means by them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.worker.ndjson import scan
from blizzard.worker.ndjson.values import DAY_MICROS, FIRST_MICROS, LAST_MICROS, binary
from blizzard.worker.ndjson.vector import WIDTH
from lakebed.schema import ARROW, Field
from lakebed.types import FieldType

_NAIVE = pa.timestamp("us")
_FIRST_DAY, _LAST_DAY = FIRST_MICROS // DAY_MICROS, LAST_MICROS // DAY_MICROS
_COLON = ord(":")

_STRING = (scan.TEXT, scan.ESCAPED)
_ANY_NUMBER = (scan.INTEGER, scan.NUMBER)
TAKES: Mapping[FieldType, tuple[int, ...]] = {
    FieldType.STRING: _STRING,
    FieldType.INT8: (scan.INTEGER,),
    FieldType.INT16: (scan.INTEGER,),
    FieldType.INT32: (scan.INTEGER,),
    FieldType.INT64: (scan.INTEGER,),
    FieldType.FLOAT32: _ANY_NUMBER,
    FieldType.FLOAT64: _ANY_NUMBER,
    FieldType.BOOLEAN: (scan.TRUE, scan.FALSE),
    FieldType.TIMESTAMP: _STRING,
    FieldType.TIMESTAMP_NTZ: _STRING,
    FieldType.DATE: _STRING,
    FieldType.JSON: tuple(range(scan.ABSENT + 1, scan.SIZE)),
    FieldType.BINARY: _STRING,
}


class Doubtful(Exception):
    """The answer may not be the exact one."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Where the values of each declared field stand in a block, row by row; see `scan`."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.uint8]
    counts: npt.NDArray[np.int64]
    rows: int


def column(tokens: Tokens, place: int, field: Field) -> "pa.Array[Any]":
    """Return the column of a declared field.

    `Doubtful` says that it may not be what the exact path would give.
    """
    *counts, size = tokens.counts[place].tolist()
    present = sum(counts[kind] for kind in TAKES[field.type])
    if present != sum(counts[scan.ABSENT + 1 :]) or (present < tokens.rows and not field.nullable):
        raise Doubtful
    kinds = tokens.kinds[place, : tokens.rows]
    validity = _bits(kinds != scan.ABSENT) if present < tokens.rows else None
    nulls = tokens.rows - present
    if field.type is FieldType.BOOLEAN:
        flags = [validity, _bits(kinds == scan.TRUE)]
        return pa.Array.from_buffers(pa.bool_(), tokens.rows, flags, nulls)
    out = np.empty(size + WIDTH, np.uint8)
    offsets = np.empty(tokens.rows + 1, np.int32)
    if not scan.gather(
        tokens.data,
        tokens.starts[place, : tokens.rows],
        tokens.lengths[place, : tokens.rows],
        kinds,
        field.type is FieldType.JSON,
        out,
        offsets,
    ):
        raise Doubtful
    buffers = [validity, pa.py_buffer(offsets.data), pa.py_buffer(out.data)]
    return _converted(pa.Array.from_buffers(pa.string(), tokens.rows, buffers, nulls), field.type)


def _bits(flags: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little").data)


def _converted(texts: "pa.Array[Any]", kind: FieldType) -> "pa.Array[Any]":
    match kind:
        case FieldType.INT8 | FieldType.INT16 | FieldType.INT32 | FieldType.INT64:
            return texts.cast(ARROW[kind])
        case FieldType.FLOAT32 | FieldType.FLOAT64:
            numbers = texts.cast(ARROW[kind])
            if pc.all(pc.is_finite(numbers), min_count=0).as_py() is False:
                raise Doubtful
            return numbers
        case FieldType.TIMESTAMP | FieldType.TIMESTAMP_NTZ:
            is_naive = kind is FieldType.TIMESTAMP_NTZ
            return _naive_timestamps(texts) if is_naive else _timestamps(texts)
        case FieldType.DATE:
            days = texts.cast(pa.date32())
            _require_between(days.view(pa.int32()), _FIRST_DAY, _LAST_DAY)
            return days
        case FieldType.BINARY:
            written = texts.to_pylist()
            return pa.array(
                [None if text is None else binary(text) for text in written], pa.binary()
            )
    return texts


def _naive_timestamps(texts: "pa.Array[Any]") -> "pa.Array[Any]":
    _require_minutes(texts)
    moments = texts.cast(_NAIVE)
    _require_between(moments.view(pa.int64()), FIRST_MICROS, LAST_MICROS)
    return moments


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


def _require_between(column: "pa.Array[Any]", lowest: int, highest: int) -> None:
    found = cast("dict[str, Any]", pc.min_max(column).as_py())
    if found["min"] is not None and not lowest <= found["min"] <= found["max"] <= highest:
        raise Doubtful
