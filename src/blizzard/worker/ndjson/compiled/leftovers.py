"""Values without a column, counted and rescued as the exact path does, and custom formats.

Custom formats are time patterns, values in strings, and strings that mean null. Each distinct value
is converted once, by the exact path's own rules; most such columns repeat their values. Epoch
numbers and numbers in strings often differ in every row, so Arrow converts them by column.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.model.bad_lines import any_element, member_path
from blizzard.model.time_pattern import EPOCHS
from blizzard.worker.ndjson.compiled import syntax
from blizzard.worker.ndjson.compiled.columns import (
    EXACT_DIGITS,
    Bytes,
    Doubtful,
    Leaf,
    Texts,
    Tokens,
    all_match,
    converted,
    one_by_one,
    required,
    texts_of,
    tokens_of,
)
from blizzard.worker.ndjson.compiled.syntax import SIZE, TEXT
from blizzard.worker.ndjson.fields import INTEGERS
from blizzard.worker.ndjson.values import FIRST_MICROS, LAST_MICROS, JsonValue, Number
from lakebed.columns.schema import AS_WRITTEN, Field
from lakebed.types import FieldType

Numbers = npt.NDArray[np.integer[Any]]


class Trail(NamedTuple):
    """The path to the objects of a level; list indexes and map keys differ by row."""

    parent: "Trail | None" = None
    name: str = ""
    """The member at this step; empty for list elements and map values."""
    offsets: npt.NDArray[np.int32] | None = None
    """The first element of each parent row."""
    keys: Texts | None = None
    """The map keys of the elements; None for lists."""
    is_keyed: bool = False
    """Whether the path depends on keys, which are data."""

    def member(self, name: str) -> "Trail":
        """Extend the path by a member."""
        return Trail(parent=self, name=name, is_keyed=self.is_keyed)

    def elements(self, offsets: npt.NDArray[np.int32]) -> "Trail":
        """Extend the path by list elements."""
        return Trail(parent=self, offsets=offsets, is_keyed=self.is_keyed)

    def entries(self, offsets: npt.NDArray[np.int32], keys: Texts) -> "Trail":
        """Extend the path by map values."""
        return Trail(parent=self, offsets=offsets, keys=keys, is_keyed=True)

    def label(self) -> str:
        """Return the path without element indexes; only valid without map keys."""
        if self.parent is None:
            return ""
        above = self.parent.label()
        return member_path(above, self.name) if self.offsets is None else f"{above}[]"

    def rows_above(self, rows: Numbers) -> Numbers:
        """Return the parent's rows that these rows belong to."""
        if self.offsets is None:
            return rows
        return np.searchsorted(self.offsets, rows, side="right") - 1

    def paths(self, rows: Numbers) -> Texts:
        """Return the path of each row, escaped for JSON, without quotes."""
        if self.parent is None:
            return pa.repeat("", len(rows))
        above_rows = self.rows_above(rows)
        above = self.parent.paths(above_rows)
        if self.offsets is None:
            return _joined(above, escaped(self._after(self.name)))
        if self.keys is not None:
            pieces = [escaped(self._after(name)) for name in self.keys.take(rows).to_pylist()]
            return _joined(above, pa.array(pieces, pa.string()))
        numbers = pa.array(rows - self.offsets[above_rows]).cast(pa.string())
        return _joined(above, "[", numbers, "]")

    def _after(self, name: str) -> str:
        dotted = member_path("x", name)[1:]
        is_first = self.parent is None or self.parent.parent is None
        return dotted[1:] if is_first and self.offsets is None else dotted

    def named(self, rows: Numbers, names: Sequence[str], which: Numbers) -> Texts:
        """Return the paths of some members as JSON keys, each with its colon."""
        dot = 0 if self.parent is not None else 1
        pieces = [escaped(member_path("x", name)[1 + dot :]) for name in names]
        return _joined('"', self.paths(rows), pa.array(pieces, pa.string()).take(which), '":')


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Values without a column, in the order in which the exact path meets them."""

    rows: Numbers
    """Their rows, ascending."""
    prefixes: Texts
    """The JSON key of each in `_rescued`."""
    starts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]

    def above(self, trail: Trail) -> "Leftovers":
        """Attribute them to the parent rows of the trail's elements."""
        return replace(self, rows=trail.rows_above(self.rows))

    def labels(self) -> list[str]:
        """Return the path of each value, without element indexes."""
        encoded = self.prefixes.dictionary_encode()
        paths = [any_element(json.loads(text[:-1])) for text in encoded.dictionary.to_pylist()]
        return [paths[number] for number in encoded.indices.to_pylist()]


def in_text_order(parts: Sequence[Leftovers]) -> Leftovers:
    """Merge leftovers of the same objects in text order."""
    return _sorted(parts, lambda whole: whole.starts)


def in_row_order(parts: Sequence[Leftovers]) -> Leftovers:
    """Merge leftovers of the same rows in row order; within a row, part by part."""
    return _sorted(parts, lambda whole: whole.rows)


def once(
    parts: Sequence[Leftovers], ends: npt.NDArray[np.int64], counted: Mapping[int, Counter[str]]
) -> Leftovers:
    """Merge leftovers of the same rows without duplicates, and correct the counts.

    Fields that read the same object may each leave over the same member.
    """
    whole = in_row_order(parts)
    _, first = np.unique(whole.starts, return_index=True)
    if len(first) == len(whole.starts):
        return whole
    again = np.setdiff1d(np.arange(len(whole.starts)), first)
    repeated = _some(whole, again)
    blocks = np.searchsorted(ends, repeated.starts, side="right").tolist()
    for label, block in zip(repeated.labels(), blocks, strict=True):
        counted[block][label] -= 1
    return _some(whole, np.sort(first))


def column(data: Bytes, rows: int, parts: Sequence[Leftovers]) -> Texts:
    """Return the `_rescued` column: the leftovers of each row as JSON text."""
    if not parts:
        return pa.nulls(rows, pa.string())
    whole = in_row_order(parts)
    count = len(whole.starts)
    kinds = np.full(count, TEXT, np.uint8)
    sizes = [0] * SIZE + [int(whole.lengths.sum())]
    values = Tokens(whole.starts, whole.lengths, kinds, sizes, count)
    members = _joined(whole.prefixes, texts_of(data, values, as_written=True))
    first = np.searchsorted(whole.rows, np.arange(rows + 1)).astype(np.int32)
    lists: Any = pa.ListArray.from_arrays(first, members)  # type: ignore[call-overload]
    objects = _joined("{", pc.binary_join(lists, ","), "}")
    return pc.if_else(pa.array(np.diff(first) > 0), objects, None)


def count_labels(
    counted: Mapping[int, Counter[str]], labels: Sequence[str], blocks: Sequence[int]
) -> None:
    """Count values by block and label."""
    for label, block in zip(labels, blocks, strict=True):
        counted[block][label] += 1


def escaped(text: str) -> str:
    """Escape a text for JSON, without quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _sorted(parts: Sequence[Leftovers], key: Callable[[Leftovers], Numbers]) -> Leftovers:
    if len(parts) == 1:
        return parts[0]
    whole = Leftovers(
        np.concatenate([part.rows for part in parts]),
        pa.concat_arrays([part.prefixes for part in parts]),
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )
    return _some(whole, np.argsort(key(whole), kind="stable"))


def _some(whole: Leftovers, which: Numbers) -> Leftovers:
    return Leftovers(
        whole.rows[which], whole.prefixes.take(which), whole.starts[which], whole.lengths[which]
    )


def _joined(*pieces: "str | Texts") -> Texts:
    return pc.binary_join_element_wise(*pieces, "")  # type: ignore[call-overload]


Rows = npt.NDArray[np.bool_]
Column = Any

_WHOLE = r"^-?(?:0|[1-9][0-9]*)$"
_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$"
_MOMENTS = (FieldType.TIMESTAMP, FieldType.TIMESTAMP_NTZ)
_FLOATS = (FieldType.FLOAT32, FieldType.FLOAT64, FieldType.DECIMAL)
_FEW_DIGITS = {FieldType.FLOAT32: "^[-.0-9]{1,6}$", FieldType.FLOAT64: "^[-.0-9]{1,15}$"}
"""Numbers in strings that a float holds to the last digit; others are converted one by one."""


def leaf_of(field: Field) -> "MakesColumn":
    """Return the column builder of a field without nested fields."""
    usual = replace(field.reading, path=(), exact=False) == AS_WRITTEN
    usual |= field.type is FieldType.JSON  # It keeps every value as written.
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
    """Yield the rows of each kind of value, with the constructor of a value from its text."""
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
    """Convert a whole column if that is certain to be exact; else return None."""
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
    """Whether an integer that must stay exact has too many digits to be sure.

    Fractions always take the nearest value.
    """
    if not field.reading.exact:
        return False
    longer = rf"^-?[0-9]{{{EXACT_DIGITS[field.type] + 1},}}$"
    return bool(pc.any(pc.match_substring_regex(texts, longer), min_count=0).as_py())
