"""Arrow columns from tokens, with the same values that the exact path gives.

Compiled code reads most values straight from their tokens. Arrow converts the text of other
numbers, and the exact path converts the rest, each distinct text once.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.worker.ndjson.compiled import scalars, syntax
from blizzard.worker.ndjson.compiled.scalars import gather
from blizzard.worker.ndjson.compiled.syntax import Array
from blizzard.worker.ndjson.compiled.vector import WIDTH
from blizzard.worker.ndjson.fields import INTEGERS, converter
from blizzard.worker.ndjson.values import FIRST_DAY, JsonValue, Number, ValueRefused
from lakebed.columns.schema import Field
from lakebed.types import FieldType

_STRING = (syntax.TEXT, syntax.ESCAPED)
_ANY_NUMBER = (syntax.INTEGER, syntax.NUMBER)
ACCEPTED: Mapping[FieldType, tuple[int, ...]] = {
    FieldType.STRING: _STRING,
    FieldType.INT8: (syntax.INTEGER,),
    FieldType.INT16: (syntax.INTEGER,),
    FieldType.INT32: (syntax.INTEGER,),
    FieldType.INT64: (syntax.INTEGER,),
    FieldType.FLOAT32: _ANY_NUMBER,
    FieldType.FLOAT64: _ANY_NUMBER,
    FieldType.DECIMAL: _ANY_NUMBER,
    FieldType.BOOLEAN: (syntax.TRUE, syntax.FALSE),
    FieldType.TIMESTAMP: _STRING,
    FieldType.TIMESTAMP_NTZ: _STRING,
    FieldType.DATE: _STRING,
    FieldType.JSON: tuple(range(syntax.ABSENT + 1, syntax.SIZE)),
    FieldType.BINARY: _STRING,
    FieldType.STRUCT: (syntax.OBJECT,),
    FieldType.LIST: (syntax.ARRAY,),
    FieldType.MAP: (syntax.OBJECT,),
}
"""The token kinds that a field type accepts; the fast path treats any other as a misfit."""

MANY = 10
"""If compiled code cannot read more than one value in this many, all later values are converted."""
FEW = 8
"""Values that compiled code may leave unread before `MANY` applies."""
EXACT_DIGITS = {FieldType.FLOAT32: 7, FieldType.FLOAT64: 15}
"""An integer of at most this many digits is exact in the float type."""
SAFE_SCALE = 20
"""With at most this scale, 18 digits still fit a decimal of 38 digits."""
_SHORT_DECIMAL = r"^-?[0-9](?:\.?[0-9]){0,17}$"

Bytes = npt.NDArray[np.uint8]
Texts = Any
"""An Arrow string array; pyarrow's stubs are too narrow for it."""


class Doubtful(Exception):
    """The fast path cannot guarantee the exact path's result."""


class Tokens(NamedTuple):
    """The positions of one field's values, row by row; see `scan`."""

    starts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    kinds: Bytes
    counts: list[int]
    """Tokens by kind, then their total size; the count for ABSENT is incomplete."""
    objects: int
    """Rows with an enclosing object."""
    around: Bytes | None = None
    """The kinds of the enclosing objects, ABSENT if missing; None if every row has one."""


def valid(tokens: Tokens, field: Field) -> tuple[pa.Buffer | None, int]:
    """Return the validity bitmap and the null count.

    Raise `Doubtful` if a value is not of the field's type or a required one is missing.
    """
    counts = tokens.counts
    present = 0
    for kind in ACCEPTED[field.type]:
        present += counts[kind]
    if present != sum(counts[syntax.ABSENT + 1 : syntax.SIZE]) or (
        present < tokens.objects and not field.nullable
    ):
        raise Doubtful
    nulls = len(tokens.kinds) - present
    return _bits(tokens.kinds != syntax.ABSENT) if nulls else None, nulls


class Leaf:
    """Builds the columns of a field without nested fields."""

    def __init__(self, field: Field) -> None:
        self._field, self._type = field, field.arrow_type()
        self._numbers = _NUMBERS.get(field.type)

    def column(self, data: Bytes, tokens: Tokens) -> "pa.Array[Any]":
        """Return the column of these tokens, or raise `Doubtful`."""
        validity, nulls = valid(tokens, self._field)
        rows = len(tokens.kinds)
        if self._numbers is None:
            return required(self._converted(data, tokens, validity, nulls), self._field)
        values, read = self._numbers(data, tokens)
        if read < rows and self._field.type in _CAST:
            return required(self._converted(data, tokens, validity, nulls), self._field)
        if read < rows:
            odd = self.unread(data, tokens)
            values, _ = self._numbers(data, tokens._replace(kinds=np.where(odd, 0, tokens.kinds)))
            others = self._converted(data, tokens_of(tokens, odd), None, 0)
            values[odd] = np.frombuffer(cast("Any", others.buffers()[1]), values.dtype)
        array = pa.Array.from_buffers(self._type, rows, [validity, pa.py_buffer(values)], nulls)
        return required(array, self._field)

    def unread(self, data: Bytes, tokens: Tokens) -> npt.NDArray[np.bool_]:
        """Return a mask of the unread tokens: those that compiled code cannot read, or the rest."""
        found: npt.NDArray[np.bool_] = tokens.kinds != syntax.ABSENT
        if self._numbers is None:
            return found
        at, rows, odd = 0, len(tokens.kinds), 0
        while at < rows and odd * MANY <= at + FEW * MANY:
            starts, lengths, kinds = tokens.starts[at:], tokens.lengths[at:], tokens.kinds[at:]
            rest = tokens._replace(starts=starts, lengths=lengths, kinds=kinds)
            read = self._numbers(data, rest)[1]
            found[at : at + read] = False
            at, odd = at + read + 1, odd + 1
        return found

    def _converted(
        self, data: Bytes, tokens: Tokens, validity: pa.Buffer | None, nulls: int
    ) -> "pa.Array[Any]":
        if self._field.reading.exact:
            _require_exact(data, tokens, self._field)
        as_written = self._field.type is FieldType.JSON
        texts = texts_of(data, tokens, as_written=as_written, validity=validity, nulls=nulls)
        return converted(texts, self._field)


def _require_exact(data: Bytes, tokens: Tokens, field: Field) -> None:
    """Raise `Doubtful` if a float cannot hold an integer of the source exactly."""
    which = (tokens.kinds == syntax.INTEGER) & (tokens.lengths > EXACT_DIGITS[field.type])
    if not which.any():
        return
    one_by_one(texts_of(data, tokens_of(tokens, which)), field, Number)


def converted(texts: "pa.Array[Any]", field: Field) -> "pa.Array[Any]":
    """Convert the texts of a field's values as the exact path would.

    Raise `Doubtful` or an Arrow error if the result may differ.
    """
    match field.type:
        case FieldType.STRING | FieldType.JSON:
            return texts
        case FieldType.FLOAT32 | FieldType.FLOAT64:
            numbers_read = texts.cast(field.arrow_type())
            if pc.all(pc.is_finite(numbers_read), min_count=0).as_py() is False:
                raise Doubtful
            return numbers_read
        case FieldType.DECIMAL:
            return _decimals(texts, field)
        case FieldType.DATE:
            return _days(texts, field)
    return texts.cast(field.arrow_type()) if field.type in INTEGERS else one_by_one(texts, field)


def _decimals(texts: "pa.Array[Any]", field: Field) -> "pa.Array[Any]":
    """Read decimals with Arrow if rescaling cannot overflow, which Arrow does not detect."""
    if field.scale <= SAFE_SCALE and all_match(texts, _SHORT_DECIMAL):
        with suppress(pa.ArrowException):
            return texts.cast(field.arrow_type())
    return one_by_one(texts, field, Number)


def _days(texts: "pa.Array[Any]", field: Field) -> "pa.Array[Any]":
    """Read days with Arrow unless one is before year 1, which Arrow accepts."""
    with suppress(pa.ArrowException):
        days = texts.cast(field.arrow_type())
        least: Any = pc.min(days.cast(pa.int32()))
        if (least.as_py() or 0) >= FIRST_DAY:
            return days
    return one_by_one(texts, field)


def all_match(texts: "pa.Array[Any]", pattern: str) -> bool:
    """Whether every text contains a match of the pattern."""
    return bool(pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py())


def one_by_one(
    texts: "pa.Array[Any]", field: Field, as_value: Callable[[str], JsonValue] = str
) -> "pa.Array[Any]":
    """Convert each distinct value by the rules of the exact path."""
    encoded: Any = texts.dictionary_encode()
    take = converter(field)
    try:
        cells = [take(as_value(text)) for text in encoded.dictionary.to_pylist()]
    except ValueRefused:
        raise Doubtful from None
    return cast("pa.Array[Any]", pa.array(cells, field.arrow_type()).take(encoded.indices))


Values = tuple[Array, int]
"""Values, and the number of rows before the first unread one."""


def _flags(_: Bytes, tokens: Tokens) -> Values:
    return np.packbits(tokens.kinds == syntax.TRUE, bitorder="little"), len(tokens.kinds)


@dataclass(frozen=True, slots=True)
class _TokenReader:
    """Reads values from tokens with a compiled function and type-specific arguments."""

    read: Callable[..., int]
    kind: str
    """The numpy type that the function writes."""
    arguments: tuple[int, ...] = ()
    stored: str = ""
    """The numpy type of the column, if different."""

    def __call__(self, data: Bytes, tokens: Tokens) -> Values:
        found = np.empty(len(tokens.kinds), self.kind)
        span = tokens.starts, tokens.lengths, tokens.kinds
        rows = self.read(data, *span, *self.arguments, found)
        return found.astype(self.stored or self.kind, copy=False), rows


def _integers(bits: int) -> _TokenReader:
    limit = 1 << (bits - 1)
    return _TokenReader(scalars.integers, "int64", (-limit, limit - 1), stored=f"int{bits}")


_CAST = INTEGERS | {FieldType.FLOAT64}
"""Types whose texts Arrow converts as the exact path does."""
_NUMBERS: Mapping[FieldType, Callable[[Bytes, Tokens], Values]] = {
    FieldType.BOOLEAN: _flags,
    FieldType.INT8: _integers(8),
    FieldType.INT16: _integers(16),
    FieldType.INT32: _integers(32),
    FieldType.INT64: _integers(64),
    FieldType.FLOAT64: _TokenReader(scalars.doubles, "float64"),
    FieldType.TIMESTAMP: _TokenReader(scalars.moments, "int64", (True,)),
    FieldType.TIMESTAMP_NTZ: _TokenReader(scalars.moments, "int64", (False,)),
}
"""Readers that take values straight from tokens, without building texts first."""


def texts_of(
    data: Bytes,
    tokens: Tokens,
    *,
    as_written: bool = False,
    validity: pa.Buffer | None = None,
    nulls: int = 0,
) -> Texts:
    """Return the texts of tokens, empty if ABSENT, or raise `Doubtful`.

    Strings are unescaped unless `as_written` is set.
    """
    texts = np.empty(tokens.counts[syntax.SIZE] + WIDTH, np.uint8)
    offsets = np.empty(len(tokens.kinds) + 1, np.int32)
    if not gather(data, tokens.starts, tokens.lengths, tokens.kinds, as_written, texts, offsets):
        raise Doubtful
    buffers = [validity, pa.py_buffer(offsets.data), pa.py_buffer(texts.data)]
    return pa.Array.from_buffers(pa.string(), len(tokens.kinds), buffers, nulls)


def tokens_of(tokens: Tokens, which: npt.NDArray[np.bool_] | slice) -> Tokens:
    """Return the tokens of some rows."""
    kinds, lengths = tokens.kinds[which], tokens.lengths[which]
    counts = [*np.bincount(kinds, minlength=syntax.SIZE).tolist(), int(lengths.sum())]
    return Tokens(tokens.starts[which], lengths, kinds, counts, len(kinds))


def required(array: "pa.Array[Any]", field: Field) -> "pa.Array[Any]":
    """Drop the validity bitmap of a required field: it is null only inside a null object."""
    if field.nullable or not array.null_count:
        return array
    buffers: list[Any] = array.buffers()[: array.type.num_buffers]
    inner: Any = None
    if pa.types.is_struct(array.type):
        inner = [array.field(place) for place in range(array.type.num_fields)]  # type: ignore[attr-defined]
    elif pa.types.is_map(array.type) or pa.types.is_list(array.type):
        inner = [array.values]  # type: ignore[attr-defined]
    return pa.Array.from_buffers(
        array.type, len(array), [None, *buffers[1:]], 0, array.offset, inner
    )


def _bits(flags: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little").data)
