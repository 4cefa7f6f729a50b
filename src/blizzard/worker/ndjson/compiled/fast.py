"""The fast path: a compiled scan of a whole block, and Arrow for what its tokens mean.

It is as strict as the exact path and knows no error messages: wherever there is doubt the answer is
"not here", and the exact path decides.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blizzard.worker.ndjson.compiled import leftovers
from blizzard.worker.ndjson.compiled.convert import Doubtful
from blizzard.worker.ndjson.compiled.leftovers import Leftovers, Trail
from blizzard.worker.ndjson.compiled.page import Page, Refusals
from blizzard.worker.ndjson.compiled.peel import Level
from blizzard.worker.ndjson.level import is_shared, levels
from blizzard.worker.ndjson.lines import Block, Decoded
from blizzard.worker.ndjson.plain_text import PADDING, ended
from blizzard.worker.ndjson.values import Refused
from lakebed.columns.schema import Schema
from lakebed.types import KEEPING, OnMismatch, UnknownFields

_NO_TEXT = re.compile("[\udc80-\udcff]")
"""What Python makes of bytes that are not UTF-8, where it is told to."""


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
        self._level = Level(schema.fields)
        self._is_shared = any(map(is_shared, levels(schema.fields)))
        self._keeps = unknown in KEEPING
        rescues = self._keeps or on_mismatch is OnMismatch.RESCUE
        self._schema = (schema.with_rescued() if rescues else schema).arrow()
        self._unknown = unknown
        self._max_line_bytes = max_line_bytes

    def read(self, block: Block) -> Decoded | None:
        """Return the block's rows exactly as the exact path would, or nothing."""
        decoded = self.read_together([block])
        return decoded[0] if decoded else None

    def read_together(
        self, blocks: Sequence[Block], refused: Refusals | None = None
    ) -> list[Decoded] | None:
        """Return the rows of each block, or nothing at all if one of them is not for this path.

        What a column costs beside its values is paid once: it is most of the cost of short blocks.
        In `refused` are the lines that are not for this path, if they are known: where there is
        an answer, their rows are to be left out; where there is none, there may be one without
        these lines. It has the line of every row, too.
        """
        page = page_of(blocks, self._unknown, refused)
        if page is None:
            return None
        found = self._rows(page, [block.lines for block in blocks], refused)
        if found is None:
            return None
        batch, rows_of = found
        size_of_row = batch.get_total_buffer_size() / max(1, batch.num_rows)
        return [
            Decoded(
                batch=batch.slice(end - rows, rows),
                size=round(rows * size_of_row),
                lines=block.lines,
                blank=block.lines - rows,
                dropped={} if self._keeps else left_out,
                rescued=left_out if self._keeps else {},
            )
            for block, rows, end, left_out in zip(
                blocks, rows_of, accumulate(rows_of), page.counted, strict=True
            )
        ]

    def read_as_one(self, texts: Sequence[bytes], lines_of: Sequence[int]) -> pa.RecordBatch | None:
        """Return the rows of texts of so many lines, where each line is one and all of it is taken.

        Nothing wherever a line is anything else, as a blank one or one with an undeclared field.
        """
        data = b"".join([*texts, PADDING])
        if not _is_text(data):
            return None
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        # Nobody asks which of them has left something out: one that has is enough to give up.
        left_out: Counter[str] = Counter()
        counted = [left_out] * len(texts)
        page = Page(np.frombuffer(data, np.uint8), ends, self._unknown, counted)
        found = self._rows(page, lines_of, None)
        if found is None or left_out or found[1] != lines_of:
            return None
        return found[0]

    def _rows(
        self, page: Page, lines_of: Sequence[int], refused: Refusals | None
    ) -> tuple[pa.RecordBatch, list[int]] | None:
        """Return the rows of a page, and how many each block has; None if not for this path."""
        try:
            found, rows_of = self._level.members.lines(page, lines_of, self._max_line_bytes)
            left: list[Leftovers] = []
            columns = self._level.columns(page, found, Trail(), left)
        except (Doubtful, Refused, pa.ArrowException):
            return None
        if self._is_shared and left:
            left = [leftovers.once(left, page.ends, page.counted)]
        if refused and any(page.counted):
            return None  # Values of refused lines are counted, too; without these lines none are.
        if len(columns) < len(self._schema):
            columns.append(leftovers.column(page.data, sum(rows_of), left))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema), rows_of


def page_of(
    blocks: Sequence[Block], unknown: UnknownFields, refused: Refusals | None = None
) -> Page | None:
    """Return blocks of lines, ready to be scanned; None where one is empty or no text."""
    if not all(block.end for block in blocks):
        return None
    data, sizes = _joined(blocks)
    if not all(block.is_ascii for block in blocks) and not _is_text(data):
        if refused is not None:
            refused.add(_lines_of_no_text(data))
        return None
    ends = np.cumsum(sizes, dtype=np.int64)
    counted = [Counter[str]() for _ in blocks]
    return Page(np.frombuffer(data, np.uint8), ends, unknown, counted, refused=refused)


def _joined(blocks: Sequence[Block]) -> tuple[bytes, list[int]]:
    """Return the lines of blocks, and behind them what the scan may read, and their sizes."""
    if len(blocks) == 1 and blocks[0].behind == len(PADDING):
        return blocks[0].text, [blocks[0].end]
    lines = [ended(block.data) for block in blocks]
    return b"".join([*lines, PADDING]), [len(each) for each in lines]


def _lines_of_no_text(data: bytes) -> npt.NDArray[np.int64]:
    """Return the lines that are not UTF-8."""
    text = data.decode(errors="surrogateescape")
    lines, line, start = [], 0, 0
    for match in _NO_TEXT.finditer(text):
        line += text.count("\n", start, match.start())
        start = match.start()
        lines.append(line)
    return np.array(lines, np.int64)


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
