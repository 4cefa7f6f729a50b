"""The fast path: a compiled scan of a whole block, and Arrow for what its tokens mean.

It is as strict as the exact path and knows no error messages: wherever there is doubt the answer is
"not here", and the exact path decides.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blizzard.worker.ndjson import scan
from blizzard.worker.ndjson.columns import TAKES, Doubtful, Tokens, column
from blizzard.worker.ndjson.level import member_path
from blizzard.worker.ndjson.lines import Block, Decoded
from blizzard.worker.ndjson.values import Refused
from blizzard.worker.ndjson.vector import WIDTH
from lakebed.schema import AS_WRITTEN, Schema
from lakebed.types import KEEPING, OnMismatch, UnknownFields

MAX_LEARNED = 100
"""New names in one block; with more of them it is the names that cost time, in any path."""
MAX_REMEMBERED = 1000
MAX_PLACES = 4096
"""Members of a line whose names are guessed from the line before."""

_PADDING = bytes(WIDTH)
"""What the scan may read past the end, in one step."""


class FastPath:
    """Reads blocks, and says so when it cannot vouch for the answer.

    It remembers the names of fields that are not declared and the order in which fields come, from
    block to block and from file to file: that makes it faster, never other.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        max_line_bytes: int,
        unknown: UnknownFields = UnknownFields.DROP,
        on_mismatch: OnMismatch = OnMismatch.FAIL,
    ) -> None:
        if len({field.name for field in schema.fields}) < len(schema.fields):
            raise ValueError("two fields of one name would share one slot")
        self._fields = schema.fields
        rescues = unknown in KEEPING or on_mismatch is OnMismatch.RESCUE
        self._schema = (schema.with_rescued() if rescues else schema).arrow()
        self._unknown = unknown
        self._max_line_bytes = max_line_bytes
        self._names = _Names([field.name for field in schema.fields])

    def read(self, block: Block) -> Decoded | None:
        """Return the block's rows exactly as the exact path would, or nothing."""
        decoded = self.read_together([block])
        return decoded[0] if decoded else None

    def read_together(self, blocks: Sequence[Block]) -> list[Decoded] | None:
        """Return the rows of each block, or nothing at all if one of them is not for this path.

        What a column costs beside its values is paid once: it is most of the cost of short blocks.
        """
        lines = [_ended(block.data) for block in blocks]
        data = b"".join([*lines, _PADDING])
        if not all(lines) or not _is_text(data):
            return None
        if any(field.type not in TAKES or field.reading != AS_WRITTEN for field in self._fields):
            return None
        found = self._scan(data, np.cumsum([len(each) for each in lines], dtype=np.int64), blocks)
        if found is None:
            return None
        tokens, counts_of, rows_of = found
        left_out = list(self._names.dropped(counts_of))
        if self._unknown is not UnknownFields.DROP and any(left_out):
            return None
        try:
            columns = [column(tokens, place, field) for place, field in enumerate(self._fields)]
        except (Doubtful, Refused, pa.ArrowException):
            return None
        if len(columns) < len(self._schema):
            columns.append(pa.nulls(tokens.rows, pa.string()))
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        size_of_row = batch.nbytes / max(1, batch.num_rows)
        return [
            Decoded(
                batch=batch.slice(end - rows, rows),
                size=round(rows * size_of_row),
                lines=block.lines,
                blank=block.lines - rows,
                dropped=dropped,
            )
            for block, rows, end, dropped in zip(
                blocks, rows_of, accumulate(rows_of), left_out, strict=True
            )
        ]

    def _scan(
        self, padded: bytes, ends: npt.NDArray[np.int64], blocks: Sequence[Block]
    ) -> tuple[Tokens, npt.NDArray[np.int64], list[int]] | None:
        """Find the tokens, and count in each block; begin anew after each name not known."""
        names = self._names
        names.forget_some()
        data = np.frombuffer(padded, np.uint8)
        lines = [block.lines for block in blocks]
        shape = (len(self._fields), sum(lines))
        starts, lengths = np.empty(shape, np.int32), np.empty(shape, np.int32)
        room = np.empty(scan.MAX_DEPTH, np.uint8)
        for _ in range(MAX_LEARNED):
            kinds = np.zeros(shape, np.uint8)
            counts = np.zeros((len(blocks), names.slot_count, scan.SIZE + 1), np.int64)
            seen = np.zeros(names.slot_count, np.int64)
            found = np.zeros((len(blocks), 2), np.int64)
            ended = scan.scan(
                data, ends, self._max_line_bytes,
                names.written, names.starts, names.slots, names.buckets, names.order, room,
                starts, lengths, kinds, counts, seen, found,
            )  # fmt: skip
            if ended == scan.DONE and found[:, 0].tolist() == lines:
                rows = found[:, 1].tolist()
                tokens = Tokens(data, starts, lengths, kinds, counts.sum(axis=0), sum(rows))
                return tokens, counts, rows
            if ended != scan.NEW_NAME or not names.learn(padded[found[0, 0] : found[0, 1]]):
                return None
        return None


class _Names:
    r"""The names of fields as they are written, in the arrays that the scan reads.

    One field can be written in several ways, as `"id"` and `"\u0069d"`; each has the same slot.
    The first slots are those of the declared fields.
    """

    def __init__(self, declared: list[str]) -> None:
        self._declared = declared
        self.order = np.full(MAX_PLACES, -1, np.int64)
        self._begin()

    @property
    def slot_count(self) -> int:
        """How many different fields are known."""
        return len(self._slot_of)

    def learn(self, written: bytes) -> bool:
        """Take in a new way to write a name, in its quotes; say whether it is a name at all."""
        name = json.loads(written)
        try:
            name.encode()
        except UnicodeEncodeError:  # half a surrogate pair
            return False
        slot = self._slot_of.setdefault(name, len(self._slot_of))
        self._add(written, slot)
        self._arrange()
        return True

    def forget_some(self) -> None:
        """Keep only the declared fields if other files had very many others."""
        if len(self._written) > len(self._declared) + MAX_REMEMBERED:
            self.order.fill(-1)
            self._begin()

    def dropped(self, counts_of: npt.NDArray[np.int64]) -> Iterator[Mapping[str, int]]:
        """Give for each block how many values other than null each undeclared field has."""
        names = [member_path("", name) for name in list(self._slot_of)[len(self._declared) :]]
        values = counts_of[:, len(self._declared) :, scan.ABSENT + 1 : scan.SIZE].sum(axis=2)
        for of_block in values.tolist():
            yield {name: count for name, count in zip(names, of_block, strict=True) if count}

    def _begin(self) -> None:
        self._slot_of = {name: slot for slot, name in enumerate(self._declared)}
        self._written: list[bytes] = []
        self._slots: list[int] = []
        for name, slot in self._slot_of.items():
            self._add(json.dumps(name, ensure_ascii=False).encode(), slot)
        self._arrange()

    def _add(self, written: bytes, slot: int) -> None:
        self._written.append(written)
        self._slots.append(slot)

    def _arrange(self) -> None:
        self.written = np.frombuffer(b"".join([*self._written, _PADDING]), np.uint8)
        self.starts = np.cumsum([0, *map(len, self._written)], dtype=np.int64)
        self.slots = np.array(self._slots, np.int64)
        self.buckets = np.empty(2 << len(self._written).bit_length(), np.int32)
        scan.fill_buckets(self.written, self.starts, self.buckets)


def _ended(data: bytes) -> bytes:
    """Add a newline to a last line that has none."""
    return data if not data or data.endswith(b"\n") else data + b"\n"


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    whole = pa.py_buffer(np.array([0, len(data)], np.int32).tobytes())
    try:
        # Arrow looks at eight bytes at a time and, unlike Python's own decoder, copies nothing.
        pa.StringArray.from_buffers(1, whole, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
