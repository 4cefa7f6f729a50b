"""The fast path of schemas with `json` fields and of short blocks: msgspec.

It keeps the text of a value, which Arrow's parser does not, and has none of the millisecond that a
call of Arrow's costs before it begins.

msgspec is strict: a value of another type, a number that is none and a broken line are errors. What
it lets pass is looked for here: two records on one line, a field that stands twice in a record, and
a negative zero. Wherever there is doubt the answer is "not here": the exact path decides.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Raw, UnsetType

from blizzard.ndjson.columns import Doubtful, conform
from blizzard.ndjson.guard import tame
from blizzard.ndjson.lines import Block, Decoded
from blizzard.ndjson.values import Refused
from lake.schema import ARROW, Field, FieldType, Schema

MAX_UNDECLARED = 100

_TEXT = str | None
_READ_AS: Mapping[FieldType, Any] = {
    FieldType.STRING: _TEXT,
    FieldType.INT32: int | None,
    FieldType.INT64: int | None,
    # By way of a double it would be rounded twice.
    FieldType.FLOAT32: Raw,
    FieldType.FLOAT64: float | None,
    FieldType.BOOLEAN: bool | None,
    FieldType.TIMESTAMP: _TEXT,
    FieldType.DATE: _TEXT,
    FieldType.JSON: Raw,
    FieldType.BINARY: _TEXT,
}
_AS_TEXT: Mapping[FieldType, pa.DataType] = {
    kind: pa.string() for kind, read in _READ_AS.items() if read in (_TEXT, Raw)
}
_NULL = b"null"
_NEGATIVE_ZERO = re.compile(rb"-0(?![0-9.])")
_QUOTE = ord('"')


class KeepingPath:
    """Reads blocks with msgspec, and says so when it cannot vouch for the answer.

    It remembers the undeclared fields seen so far, and whether declared ones are left out, so that
    such records are read at full speed.
    """

    def __init__(self, schema: Schema, *, max_line_bytes: int) -> None:
        self._fields = schema.fields
        self._schema = schema.arrow()
        self._max_line_bytes = max_line_bytes
        self._undeclared: list[str] = []
        self._sparse = False
        self._usable = all(_can_be_counted(field.name) for field in schema.fields)
        self._reader = _reader(self._fields, tuple(self._undeclared), self._sparse)
        self._transposed = _transposed(len(schema.fields))

    def read(self, block: Block) -> Decoded | None:
        """Give the block's rows exactly as the exact path would, or nothing."""
        if not self._usable:
            return None
        records = tame(block, max_line_bytes=self._max_line_bytes)
        if records is None:
            return None
        try:
            rows = self._rows(records.data)
            if len(rows) != records.rows:
                return None  # two records on one line
            columns, quotes = self._columns(rows, records.data)
            dropped, more = self._undeclared_values(rows)
            if quotes + more != _count_quotes(records.data):
                return None  # a field that stands twice in a record
            batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        except (Doubtful, Refused, msgspec.MsgspecError, pa.ArrowException, *_UNFIT):
            return None
        blank = block.lines - records.rows
        return Decoded(batch=batch, lines=block.lines, blank=blank, dropped=dropped)

    def _rows(self, data: bytes) -> list[Any]:
        try:
            return self._reader.decode_lines(data)
        except msgspec.ValidationError:
            # A new field, one that is left out, or a value of another type.
            if not self._learn(data):
                raise
            return self._reader.decode_lines(data)

    def _learn(self, data: bytes) -> bool:
        """Look which fields there are; say whether that was worth another try."""
        declared = {field.name for field in self._fields}
        known = set(self._undeclared)
        found: set[str] = set()
        sparse = self._sparse
        for record in _NAMES.decode_lines(data):
            found |= record.keys()
            sparse = sparse or not declared <= record.keys()
        found -= declared
        if len(found) > MAX_UNDECLARED or not all(map(_can_be_counted, found)):
            # Too many to remember. The exact path counts any number of them.
            return False
        if found <= known and sparse == self._sparse:
            return False
        known |= found
        # Other files have other fields: those of this one are what counts.
        self._undeclared = sorted(known if len(known) <= MAX_UNDECLARED else found)
        self._sparse = sparse
        self._reader = _reader(self._fields, tuple(self._undeclared), self._sparse)
        return True

    def _columns(self, rows: list[Any], data: bytes) -> "tuple[list[pa.Array[Any]], int]":
        """Give the declared columns, and how many quotes there must be for them in the data."""
        columns, quotes = [], 0
        escapes = b"\\" in data
        if escapes and b"\\u0022" in data:
            raise Doubtful  # a quote that is not written as one
        for field, found in zip(self._fields, self._transposed(rows), strict=True):
            values = found
            quotes += 2 * len(rows)
            if self._sparse and (missing := sum(value is UNSET for value in values)):
                quotes -= 2 * missing
                values = [None if value is UNSET else value for value in values]
            read_as = _READ_AS[field.type]
            if read_as is Raw:
                values = [None if v is None or (s := bytes(v)) == _NULL else s for v in values]
            column = pa.array(values, _AS_TEXT.get(field.type, ARROW[field.type]))
            if read_as is Raw:
                quotes += _quotes_in(column)
            elif read_as is _TEXT:
                quotes += 2 * (len(column) - column.null_count)
                quotes += _quotes_in(column) if escapes else 0
            columns.append(_conform(column, field, data))
        return columns, quotes

    def _undeclared_values(self, rows: list[Any]) -> tuple[Counter[str], int]:
        """Count the values of undeclared fields, and the quotes there must be for them."""
        dropped: Counter[str] = Counter()
        quotes = 0
        for place, name in enumerate(self._undeclared):
            values = map(attrgetter(f"u{place}"), rows)
            sources = [bytes(value) for value in values if value is not UNSET]
            quotes += 2 * len(sources) + sum(source.count(b'"') for source in sources)
            if count := len(sources) - sources.count(_NULL):
                dropped[name] = count
        return dropped, quotes


_UNFIT = (OverflowError, RecursionError, ValueError)
"""What Arrow and msgspec raise beside errors of their own, for numbers too large and such."""
_NAMES = msgspec.json.Decoder(dict[str, Raw])


def _can_be_counted(name: str) -> bool:
    """Say whether a field of this name has two quotes in the source, and no more."""
    return '"' not in name


def _quotes_in(column: "pa.Array[Any]") -> int:
    text = cast("list[Any]", column.buffers())[2]
    return 0 if text is None else _count_quotes(text)


def _count_quotes(data: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _QUOTE))


@lru_cache(maxsize=64)
def _reader(
    fields: tuple[Field, ...], undeclared: tuple[str, ...], sparse: bool
) -> "msgspec.json.Decoder[Any]":
    """Make a reader of the declared fields and of undeclared ones."""
    declared = [
        (f"d{place}", _READ_AS[field.type] | UnsetType, UNSET)
        if sparse
        else (f"d{place}", _READ_AS[field.type])
        for place, field in enumerate(fields)
    ]
    others = [(f"u{place}", Raw | UnsetType, UNSET) for place in range(len(undeclared))]
    names = {f"d{place}": str(field.name) for place, field in enumerate(fields)}
    names |= {f"u{place}": name for place, name in enumerate(undeclared)}
    record = msgspec.defstruct(
        "Record",
        cast("Any", declared + others),
        rename=names,
        forbid_unknown_fields=True,
        kw_only=True,
        gc=False,
        eq=False,
    )
    return msgspec.json.Decoder(record)


@lru_cache(maxsize=64)
def _transposed(columns: int) -> Callable[[list[Any]], list[list[Any]]]:
    """Give a function that turns records into columns.

    It is written out for the very fields, as a comprehension over one attribute is four times as
    fast as one that is told the name, and this is a large part of reading.
    """
    written = ", ".join(f"[row.d{place} for row in rows]" for place in range(columns))
    return cast("Callable[[list[Any]], list[list[Any]]]", eval(f"lambda rows: [{written}]"))  # noqa: S307 - no word of it comes from outside


def _conform(column: "pa.Array[Any]", field: Field, data: bytes) -> "pa.Array[Any]":
    match field.type:
        case FieldType.FLOAT32:
            return conform(column.cast(pa.float32()), field)
        case FieldType.FLOAT64 if _holds_zero(column) and _NEGATIVE_ZERO.search(data):
            raise Doubtful  # msgspec reads it as a zero without a sign
    return conform(column, field)


def _holds_zero(column: "pa.Array[Any]") -> bool:
    return pc.any(pc.equal(column, pa.scalar(0.0)), min_count=0).as_py() is True
