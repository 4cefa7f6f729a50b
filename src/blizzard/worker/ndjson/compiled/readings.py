"""Values that are written otherwise: in formats of time, in strings, with strings that mean null.

Each different value is taken once, by the rules of the exact path itself, and most columns of this
kind repeat their values. What is most often different in every row, numbers of an epoch and
numbers in strings, is taken a column at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.model.time_format import EPOCHS
from blizzard.worker.ndjson.compiled import syntax
from blizzard.worker.ndjson.compiled.columns import (
    EXACT_DIGITS,
    Bytes,
    Doubtful,
    Leaf,
    Tokens,
    all_match,
    converted,
    one_by_one,
    required,
    texts_of,
    tokens_of,
)
from blizzard.worker.ndjson.taking import INTEGERS
from blizzard.worker.ndjson.values import (
    FIRST_MICROS,
    LAST_MICROS,
    JsonValue,
    Number,
)
from lakebed.columns.schema import AS_WRITTEN, Field
from lakebed.types import FieldType

Rows = npt.NDArray[np.bool_]
Column = Any

_WHOLE = r"^-?(?:0|[1-9][0-9]*)$"
_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$"
_MOMENTS = (FieldType.TIMESTAMP, FieldType.TIMESTAMP_NTZ)
_FLOATS = (FieldType.FLOAT32, FieldType.FLOAT64, FieldType.DECIMAL)
_FEW_DIGITS = {FieldType.FLOAT32: "^[-.0-9]{1,6}$", FieldType.FLOAT64: "^[-.0-9]{1,15}$"}
"""Numbers in texts that a float holds to their last digit; the others are taken one by one."""


def leaf_of(field: Field) -> "MakesColumn":
    """Return what makes the columns of a field that holds no fields of its own."""
    usual = replace(field.reading, path=(), exact=False) == AS_WRITTEN
    usual |= field.type is FieldType.JSON  # It takes every value as it is written.
    return Leaf(field) if usual else _OtherReading(field)


@dataclass(frozen=True, slots=True)
class _OtherReading:
    field: Field

    def column(self, data: Bytes, tokens: Tokens) -> Column:
        """Return the column of these tokens, or raise `Doubtful`."""
        return required(_column(data, tokens, self.field), self.field)


MakesColumn = Leaf | _OtherReading


def _column(data: Bytes, tokens: Tokens, field: Field) -> Column:
    parts: list[tuple[Rows, Column]] = []
    for which, as_value in kinds_of(tokens):
        some = tokens_of(tokens, which)
        texts = texts_of(data, some)
        array = _at_once(texts, field, as_value)
        if array is None:
            array = one_by_one(texts, field, as_value)
        parts.append((which, array))
    column = _together(parts, len(tokens.kinds), field)
    if not field.nullable and len(column) - column.null_count < tokens.objects:
        raise Doubtful
    return column


def kinds_of(tokens: Tokens) -> Iterator[tuple[Rows, Callable[[str], JsonValue]]]:
    """Yield the rows of each kind of value, and what makes such a value of a text."""
    kinds, counts = tokens.kinds, tokens.counts
    if counts[syntax.OBJECT] or counts[syntax.ARRAY]:
        raise Doubtful
    if counts[syntax.TEXT] or counts[syntax.ESCAPED]:
        yield (kinds == syntax.TEXT) | (kinds == syntax.ESCAPED), str
    if counts[syntax.INTEGER] or counts[syntax.NUMBER]:
        yield (kinds == syntax.INTEGER) | (kinds == syntax.NUMBER), Number
    if counts[syntax.TRUE] or counts[syntax.FALSE]:
        yield (kinds == syntax.TRUE) | (kinds == syntax.FALSE), "true".__eq__


def _at_once(texts: Column, field: Field, as_value: Callable[[str], JsonValue]) -> Column | None:
    """Return a whole column where that is sure to be right; None where it is not."""
    reading, kind = field.reading, field.type
    try:
        if kind in _MOMENTS and as_value is Number and len(reading.formats) == 1:
            return _epochs(texts, field)
        if reading.coerce and not reading.null_values:
            if kind is FieldType.STRING and as_value is not str:
                return texts
            if kind in INTEGERS and all_match(texts, _WHOLE):
                return converted(texts, field)
            written = _NUMBER if as_value is Number else _FEW_DIGITS.get(kind, _NUMBER)
            is_plain = all_match(texts, _NUMBER) and all_match(texts, written)
            if kind in _FLOATS and is_plain and not _may_round(texts, field):
                return converted(texts, field)
    except (Doubtful, pa.ArrowException):
        return None
    return None


def _epochs(texts: Column, field: Field) -> Column | None:
    unit = field.reading.formats[0]
    if unit not in EPOCHS or not all_match(texts, _WHOLE):
        return None
    numbers = texts.cast(pa.int64()).to_numpy(zero_copy_only=False)
    factor, divisor = EPOCHS[unit].as_integer_ratio()
    lowest, highest = (micros * divisor // factor for micros in (FIRST_MICROS, LAST_MICROS))
    if len(numbers) and not lowest <= int(numbers.min()) <= int(numbers.max()) <= highest:
        return None
    if not field.reading.truncate and (numbers % divisor).any():
        return None
    return pa.array(numbers * factor // divisor, pa.int64()).view(field.arrow_type())


def _together(parts: list[tuple[Rows, Column]], rows: int, field: Field) -> Column:
    """Put the values of several kinds back into their rows."""
    if not parts:
        kind: Any = field.arrow_type()
        return pa.nulls(rows, kind)
    places = np.full(rows, -1, np.int64)
    start = 0
    for which, array in parts:
        places[which] = np.arange(start, start + len(array))
        start += len(array)
    whole = parts[0][1] if len(parts) == 1 else pa.concat_arrays([array for _, array in parts])
    if start == rows and len(parts) == 1:
        return whole
    return whole.take(pa.array(places, mask=places < 0))


def _may_round(texts: Column, field: Field) -> bool:
    """Whether there are integers that may not be rounded, and have so many digits that they may be.

    Of what is no integer, the nearest value is taken.
    """
    if not field.reading.exact:
        return False
    longer = rf"^-?[0-9]{{{EXACT_DIGITS[field.type] + 1},}}$"
    return bool(pc.any(pc.match_substring_regex(texts, longer), min_count=0).as_py())
