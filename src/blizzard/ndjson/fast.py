"""The fast path: a compiled scan of a whole block, and Arrow for what its tokens mean.

It is as strict as the exact path and knows no error messages: wherever there is doubt the answer is
"not here", and the exact path decides.
"""

import json
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blizzard.ndjson import scan
from blizzard.ndjson.columns import Doubtful, Tokens, column
from blizzard.ndjson.lines import Block, Decoded
from blizzard.ndjson.values import Refused
from blizzard.ndjson.vector import WIDTH
from lake.schema import Schema

MAX_LEARNED = 100
"""New names in one block; with more of them it is the names that cost time, in any path."""
MAX_REMEMBERED = 1000
MAX_PLACES = 4096
"""Members of a line whose names are guessed from the line before."""


class FastPath:
    """Reads blocks, and says so when it cannot vouch for the answer.

    It remembers the names of fields that are not declared and the order in which fields come, from
    block to block and from file to file: that makes it faster, never other.
    """

    def __init__(self, schema: Schema, *, max_line_bytes: int) -> None:
        if len({field.name for field in schema.fields}) < len(schema.fields):
            raise ValueError("two fields of one name would share one slot")
        self._fields = schema.fields
        self._schema = schema.arrow()
        self._max_line_bytes = max_line_bytes
        self._names = _Names([field.name for field in schema.fields])

    def read(self, block: Block) -> Decoded | None:
        """Give the block's rows exactly as the exact path would, or nothing."""
        if not _is_text(block.data):
            return None
        tokens = self._scan(block)
        if tokens is None:
            return None
        try:
            columns = [column(tokens, place, field) for place, field in enumerate(self._fields)]
        except (Doubtful, Refused, pa.ArrowException):
            return None
        return Decoded(
            batch=pa.RecordBatch.from_arrays(columns, schema=self._schema),
            lines=block.lines,
            blank=block.lines - tokens.rows,
            dropped=dict(self._names.dropped(tokens.counts)),
        )

    def _scan(self, block: Block) -> Tokens | None:
        """Find the tokens; begin anew after each name that was not known."""
        names = self._names
        names.forget_some()
        data = _padded(block.data)
        size = len(block.data) + (not block.data.endswith(b"\n"))
        shape = (len(self._fields), block.lines)
        starts, lengths = np.empty(shape, np.int32), np.empty(shape, np.int32)
        room = np.empty(scan.MAX_DEPTH, np.uint8)
        found = np.zeros(2, np.int64)
        for _ in range(MAX_LEARNED):
            kinds = np.zeros(shape, np.uint8)
            counts = np.zeros((names.slot_count, scan.SIZE + 1), np.int64)
            seen = np.zeros(names.slot_count, np.int64)
            ended = scan.scan(
                data, size, self._max_line_bytes,
                names.written, names.starts, names.slots, names.buckets, names.order, room,
                starts, lengths, kinds, counts, seen, found,
            )  # fmt: skip
            if ended == scan.DONE and found[0] == block.lines:
                rows = block.lines - int(found[1])
                return Tokens(data, starts, lengths, kinds, counts, rows)
            if ended != scan.NEW_NAME or not names.learn(bytes(data[found[0] : found[1]])):
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

    def dropped(self, counts: npt.NDArray[np.int64]) -> Iterator[tuple[str, int]]:
        """Give how many values other than null there are of each field that is not declared."""
        for name, slot in self._slot_of.items():
            count = int(counts[slot, scan.ABSENT + 1 : scan.SIZE].sum())
            if slot >= len(self._declared) and count:
                yield name, count

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
        self.written = _padded(b"".join(self._written))
        self.starts = np.cumsum([0, *map(len, self._written)], dtype=np.int64)
        self.slots = np.array(self._slots, np.int64)
        self.buckets = np.empty(2 << len(self._written).bit_length(), np.int32)
        scan.fill_buckets(self.written, self.starts, self.buckets)


def _padded(data: bytes) -> npt.NDArray[np.uint8]:
    """Add a newline, for a last line that has none, and what the scan may read in one step."""
    return np.frombuffer(data + b"\n" + bytes(WIDTH), np.uint8)


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
