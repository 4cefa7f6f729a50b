"""What the texts of a whole column mean, as the exact path would say of each of them."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.worker.ndjson.taking import taker
from blizzard.worker.ndjson.values import (
    DAY_MICROS,
    FIRST_MICROS,
    LAST_MICROS,
    JsonValue,
    Number,
    Refused,
    decimal,
)
from lakebed.columns.arrow_types import ARROW
from lakebed.columns.schema import Field
from lakebed.types import FieldType

_NAIVE = pa.timestamp("us")
_COLON = ord(":")


class Doubtful(Exception):
    """The answer may not be the exact one."""


def converted(texts: "pa.Array[Any]", field: Field) -> "pa.Array[Any]":
    """Return what the texts of a field's values mean, as the exact path would.

    `Doubtful` and Arrow's own refusals say that it may be something else.
    """
    if field.type in _TEXTS:
        return texts
    convert = _CONVERT.get(field.type)
    return one_by_one(texts, field) if convert is None else convert(texts, field)


def one_by_one(
    texts: "pa.Array[Any]", field: Field, as_value: Callable[[str], JsonValue] = str
) -> "pa.Array[Any]":
    """Take each distinct value by the rules of the exact path."""
    encoded: Any = texts.dictionary_encode()
    take = taker(field)
    try:
        cells = [take(as_value(text)) for text in encoded.dictionary.to_pylist()]
    except Refused:
        raise Doubtful from None
    return cast("pa.Array[Any]", pa.array(cells, field.arrow_type()).take(encoded.indices))


def _numbers(texts: "pa.Array[Any]", field: Field) -> "pa.Array[Any]":
    return texts.cast(field.arrow_type())


def _decimals(texts: "pa.Array[Any]", field: Field) -> "pa.Array[Any]":
    """Convert numbers; those that are not written with the digits of the column, one by one.

    Of those, Arrow would make other numbers without a word: what overflows while it moves the
    point is cut off.
    """
    written = pc.match_substring_regex(texts, _plain_decimal(field))
    plain: Any = pc.fill_null(cast("Any", written), cast("Any", True))
    if pc.all(plain, min_count=0).as_py():
        return texts.cast(field.arrow_type())
    others = pc.invert(plain)
    try:
        exact = [
            decimal(Number(text), field.precision, field.scale)
            for text in texts.filter(others).to_pylist()
        ]
    except Refused as refused:
        raise Doubtful from refused
    usual = pc.if_else(plain, texts, None).cast(field.arrow_type())
    together: pa.Array[Any] = pc.replace_with_mask(
        usual, others, pa.array(exact, field.arrow_type())
    )
    return together


def _plain_decimal(field: Field) -> str:
    """Return the pattern of a number without an exponent that has no more digits than a column."""
    whole = field.precision - field.scale
    digits = f"[0-9]{{1,{whole}}}" if whole else "0"
    fraction = f"([.][0-9]{{1,{field.scale}}})?" if field.scale else ""
    return f"^-?{digits}{fraction}$"


def _finite(texts: "pa.Array[Any]", field: Field) -> "pa.Array[Any]":
    numbers = texts.cast(field.arrow_type())
    if pc.all(pc.is_finite(numbers), min_count=0).as_py() is False:
        raise Doubtful
    return numbers


def _timestamps(texts: "pa.Array[Any]", _: Field) -> "pa.Array[Any]":
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


_CONVERT: Mapping[FieldType, Callable[["pa.Array[Any]", Field], "pa.Array[Any]"]] = {
    FieldType.INT8: _numbers,
    FieldType.INT16: _numbers,
    FieldType.INT32: _numbers,
    FieldType.INT64: _numbers,
    FieldType.FLOAT32: _finite,
    FieldType.FLOAT64: _finite,
    FieldType.DECIMAL: _decimals,
    FieldType.TIMESTAMP: _timestamps,
}
"""Conversions of whole columns; values of other types are taken one by one."""
_TEXTS = (FieldType.STRING, FieldType.JSON)
