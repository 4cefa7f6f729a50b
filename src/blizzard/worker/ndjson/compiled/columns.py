"""Arrow columns of the tokens of some rows, with the values that the exact path would give.

Compiled code reads most values from their tokens. Arrow converts the texts of other numbers, and
the exact path itself takes what is left, each distinct text once.
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
"""The tokens that a field of a type takes; any other does not fit, as far as is known here."""

MANY = 10
"""If more than one value in so many is not read by compiled code, all that follow are converted."""
FEW = 8
"""Values that compiled code may leave unread before their share counts."""
EXACT_DIGITS = {FieldType.FLOAT32: 7, FieldType.FLOAT64: 15}
"""An integer of so many digits is always exact in a float."""
SAFE_SCALE = 20
"""With so many digits after the point, 18 digits more are a decimal of 38 digits."""
_SHORT_DECIMAL = r"^-?[0-9](?:\.?[0-9]){0,17}$"

Bytes = npt.NDArray[np.uint8]
Texts = Any
"""An Arrow array of texts, which pyarrow's stubs do not know well enough."""


class Doubtful(Exception):
    """The answer may not be the exact one."""


class Tokens(NamedTuple):
    """Where the values of one field stand, row by row; see `scan`."""

    starts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    kinds: Bytes
    counts: list[int]
    """By kind, and the size of all; of what is ABSENT, only some."""
    objects: int
    """How many of the rows have an object that the field could be in."""
    around: Bytes | None = None
    """The kinds of these objects, ABSENT where there is none; None where every row has one."""


def valid(tokens: Tokens, field: Field) -> tuple[pa.Buffer | None, int]:
    """Return which of the values are there, and how many are not.

    `Doubtful` says that some value is not of the field's type, or that a required one is missing.
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
    """Makes the columns of a field that holds no fields of its own."""

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
        """Return which tokens compiled code does not read; after many, all that follow."""
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
    """Raise `Doubtful` where a float would be another number than the integer in the source."""
    which = (tokens.kinds == syntax.INTEGER) & (tokens.lengths > EXACT_DIGITS[field.type])
    if not which.any():
        return
    one_by_one(texts_of(data, tokens_of(tokens, which)), field, Number)


def converted(texts: "pa.Array[Any]", field: Field) -> "pa.Array[Any]":
    """Return what the texts of a field's values mean, as the exact path would.

    `Doubtful` and Arrow's own refusals say that it may be something else.
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
    """Read decimals by Arrow where moving the point cannot overflow, which it does not notice."""
    if field.scale <= SAFE_SCALE and all_match(texts, _SHORT_DECIMAL):
        with suppress(pa.ArrowException):
            return texts.cast(field.arrow_type())
    return one_by_one(texts, field, Number)


def _days(texts: "pa.Array[Any]", field: Field) -> "pa.Array[Any]":
    """Read days by Arrow where all of them are of the calendar; it takes the year 0, too."""
    with suppress(pa.ArrowException):
        days = texts.cast(field.arrow_type())
        least: Any = pc.min(days.cast(pa.int32()))
        if (least.as_py() or 0) >= FIRST_DAY:
            return days
    return one_by_one(texts, field)


def all_match(texts: "pa.Array[Any]", pattern: str) -> bool:
    """Whether a pattern is found in each text."""
    return bool(pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py())


def one_by_one(
    texts: "pa.Array[Any]", field: Field, as_value: Callable[[str], JsonValue] = str
) -> "pa.Array[Any]":
    """Take each distinct value by the rules of the exact path."""
    encoded: Any = texts.dictionary_encode()
    take = converter(field)
    try:
        cells = [take(as_value(text)) for text in encoded.dictionary.to_pylist()]
    except ValueRefused:
        raise Doubtful from None
    return cast("pa.Array[Any]", pa.array(cells, field.arrow_type()).take(encoded.indices))


Values = tuple[Array, int]
"""Values, and how many rows come before the first that is not read."""


def _flags(_: Bytes, tokens: Tokens) -> Values:
    return np.packbits(tokens.kinds == syntax.TRUE, bitorder="little"), len(tokens.kinds)


@dataclass(frozen=True, slots=True)
class _TokenReader:
    """Reads values from their tokens: by a compiled function, with the arguments of a type."""

    read: Callable[..., int]
    kind: str
    """The type of the numbers that are read."""
    arguments: tuple[int, ...] = ()
    stored: str = ""
    """The type of the column's numbers, if it is another."""

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
"""What reads values without making texts of them first, as far as it can."""


def texts_of(
    data: Bytes,
    tokens: Tokens,
    *,
    as_written: bool = False,
    validity: pa.Buffer | None = None,
    nulls: int = 0,
) -> Texts:
    """Return the texts of tokens, an empty one for each that is ABSENT, or raise `Doubtful`.

    Of strings that is what they mean, unless all are wanted `as_written`.
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
    """Return the array of a required field without nulls: it has them where its object is none."""
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
