"""The fast path: Arrow's JSON parser on a whole block, where it provably says the same.

Arrow's parser is quick but lenient: it takes NaN for a number, 1e39 for an infinite float32, and
two records on one line for two rows. So a block is looked over before it is parsed and again
afterwards, and wherever there is doubt the answer is "not here": the exact path decides.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any, Literal, cast

import pyarrow as pa
import pyarrow.json as pj

from blizzard.ndjson.columns import Doubtful, conform, require_finite
from blizzard.ndjson.guard import tame
from blizzard.ndjson.lines import Block, Decoded
from blizzard.ndjson.values import Refused
from lake.schema import ARROW, FieldType, Schema

# How much is parsed at once while there are unknown names: each one becomes a column.
PIECE_BYTES = 16 << 10
MAX_UNDECLARED = 100

_NOT_FINITE = re.compile(rb"[\[:,\s-](?:NaN|Inf)")
_AS_TEXT = frozenset({FieldType.TIMESTAMP, FieldType.DATE, FieldType.BINARY})


class FastPath:
    """Reads blocks with Arrow, and says so when it cannot vouch for the answer.

    No field of the schema may be `json`: Arrow does not give the text of a value.

    It belongs to one file: it remembers the undeclared fields seen so far and their likely types,
    so that they are counted at full speed.
    """

    def __init__(self, schema: Schema, *, max_line_bytes: int) -> None:
        self._fields = schema.fields
        self._schema = schema.arrow()
        self._max_line_bytes = max_line_bytes
        self._parsed = [
            pa.field(field.name, pa.string() if field.type in _AS_TEXT else ARROW[field.type])
            for field in schema.fields
        ]
        self._undeclared: dict[str, pa.DataType] = {}
        self._usable = True

    def read(self, block: Block) -> Decoded | None:
        """Give the block's rows exactly as the exact path would, or nothing."""
        if not self._usable:
            return None
        records = tame(block, max_line_bytes=self._max_line_bytes)
        if records is None:
            return None
        tables: list[pa.Table] = []
        dropped: Counter[str] = Counter()
        try:
            for source, table in self._parse(records.data):
                tables.append(table.select(range(len(self._fields))))
                dropped.update(self._undeclared_values(source, table))
            batch = self._conform(tables[0] if len(tables) == 1 else pa.concat_tables(tables))
        except (Doubtful, Refused, pa.ArrowException, ValueError):
            return None
        if batch.num_rows != records.rows:
            return None  # two records on one line
        blank = block.lines - records.rows
        return Decoded(batch=batch, lines=block.lines, blank=blank, dropped=dropped)

    def _parse(self, data: bytes) -> Iterator[tuple[bytes, pa.Table]]:
        """Parse a block at once if it has only known fields, otherwise in small pieces.

        Every unknown name becomes a column as long as what is parsed: a whole block with a new
        name on each line would take memory with the square of its size.
        """
        known = [pa.field(name, kind) for name, kind in self._undeclared.items()]
        try:
            table = _arrow(data, self._parsed + known, unexpected="error")
        except pa.ArrowInvalid:
            pass  # a new field, a value of another type, or a bad line
        else:
            yield data, table
            return
        for piece in _pieces(data):
            table = _arrow(piece, self._parsed, unexpected="infer")
            self._learn(table.schema)
            yield piece, table

    def _learn(self, found: pa.Schema) -> None:
        names = found.names[len(self._fields) :]
        if len(names) > MAX_UNDECLARED:
            self._usable = False
            raise Doubtful
        for name in names:
            kind = _wide(found.field(name).type)
            if name not in self._undeclared or not pa.types.is_null(kind):
                self._undeclared[name] = kind
        if len(self._undeclared) > MAX_UNDECLARED:
            self._undeclared = {}

    def _conform(self, table: pa.Table) -> pa.RecordBatch:
        arrays = [
            conform(_one_array(table.column(place)), field)
            for place, field in enumerate(self._fields)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _undeclared_values(self, source: bytes, table: pa.Table) -> dict[str, int]:
        columns = table.columns[len(self._fields) :]
        names = table.schema.names[len(self._fields) :]
        if columns and _may_hold_nan(source):
            for column in columns:
                if pa.types.is_nested(column.type):
                    raise Doubtful
                if pa.types.is_floating(column.type):
                    require_finite(_one_array(column))
        counts = zip(names, (len(column) - column.null_count for column in columns), strict=True)
        return {name: count for name, count in counts if count}


def _arrow(
    data: bytes, fields: "list[pa.Field[Any]]", *, unexpected: Literal["error", "infer"]
) -> pa.Table:
    return pj.read_json(
        cast("IO[bytes]", pa.BufferReader(data)),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema(fields), unexpected_field_behavior=unexpected
        ),
    )


def _may_hold_nan(data: bytes) -> bool:
    return (b"NaN" in data or b"Inf" in data) and _NOT_FINITE.search(data) is not None


def _pieces(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + PIECE_BYTES) + 1
        end = end or data.find(b"\n", start) + 1 or len(data)
        yield data[start:end]
        start = end


def _wide(kind: pa.DataType) -> pa.DataType:
    """Give the type that takes all values of a kind: any number, any text."""
    if pa.types.is_integer(kind):
        return pa.float64()
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_wide(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _wide(child.type)) for child in kind])
    return kind


def _one_array(column: "pa.ChunkedArray[Any]") -> "pa.Array[Any]":
    if column.num_chunks == 1:
        return cast("pa.Array[Any]", column.chunk(0))
    return pa.concat_arrays(column.chunks)
