"""The fast path: a compiled scan of a whole block, and Arrow for what its tokens mean.

It is as strict as the exact path and has no error messages: a line that it cannot vouch for goes to
the exact path, and the rows are put together in the order of the lines. So one bad line costs the
reading of one line, not that of thousands around it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blizzard.worker.ndjson.compiled import leftovers
from blizzard.worker.ndjson.compiled.columns import Doubtful
from blizzard.worker.ndjson.compiled.leftovers import Leftovers, Trail
from blizzard.worker.ndjson.compiled.page import Page, Refusals
from blizzard.worker.ndjson.compiled.peel import PeelLevel
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.fields import takes_twice
from blizzard.worker.ndjson.lines import PADDING, Block, CombinedRows, Decoded, ended
from blizzard.worker.ndjson.values import ValueRefused
from lakebed.columns.schema import Schema
from lakebed.types import KEEPING, OnMismatch, UnknownFields

MOST_ATTEMPTS = 4
"""What is wrong with a line may hide what is wrong with another; seldom more than once."""

Lines = npt.NDArray[np.int64]
Spans = tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]]
"""Where the lines of a block start, and where they end."""

_NEWLINE = ord("\n")

_NO_TEXT = re.compile("[\udc80-\udcff]")
"""What Python's surrogateescape makes of bytes that are not UTF-8."""


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
        self._level = PeelLevel(schema.fields)
        self._takes_twice = takes_twice(schema.fields)
        self._keeps = unknown in KEEPING
        rescues = self._keeps or on_mismatch is OnMismatch.RESCUE
        self._schema = (schema.with_rescued() if rescues else schema).arrow()
        self._unknown = unknown
        self._max_line_bytes = max_line_bytes

    def read(self, block: Block, refused: Refusals | None = None) -> Decoded | None:
        """Return the block's rows exactly as the exact path would, or nothing."""
        read = self.read_combined([block], refused)
        return None if read is None else next(read.decoded())

    def read_combined(
        self, blocks: Sequence[Block], refused: Refusals | None = None
    ) -> CombinedRows | None:
        """Return the rows of each block, or nothing at all if one of them is not for this path.

        What a column costs beside its values is paid once: it is most of the cost of short blocks.
        In `refused` are the lines that are not for this path, if they are known: where there is
        an answer, their rows are to be left out; where there is none, there may be one without
        these lines. It has the line of every row, too.
        """
        page = page_of(blocks, self._unknown, refused)
        if page is None:
            return None
        try:
            lines_of = [block.lines for block in blocks]
            found, rows_of = self._level.members.lines(page, lines_of, self._max_line_bytes)
            left: list[Leftovers] = []
            columns = self._level.columns(page, found, Trail(), left)
            if self._takes_twice and left:
                left = [leftovers.once(left, page.ends, page.counted)]
            if len(columns) < len(self._schema):
                columns.append(leftovers.column(page.data, sum(rows_of), left))
        except (Doubtful, ValueRefused, pa.ArrowException):
            return None
        if refused and page.counted:
            return None  # Values of refused lines are counted, too; without these lines none are.
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return CombinedRows(
            blocks=blocks,
            rows=rows_of,
            batch=batch,
            size=batch.get_total_buffer_size(),
            left_out=page.counted,
            rescues=self._keeps,
        )


def page_of(
    blocks: Sequence[Block], unknown: UnknownFields, refused: Refusals | None = None
) -> Page | None:
    """Return blocks of lines, ready to be scanned; None where one is empty or no text."""
    data, sizes = _joined(blocks)
    if not all(sizes):
        return None
    if not _is_text(data):
        if refused is not None:
            refused.add(_lines_of_no_text(data))
        return None
    ends = np.cumsum(sizes, dtype=np.int64)
    return Page(np.frombuffer(data, np.uint8), ends, unknown, refused=refused)


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


class MixedPath:
    """Reads blocks, and says of every line what the exact path says of it."""

    def __init__(self, fast: FastPath, exact: ExactPath) -> None:
        self._fast = fast
        self._exact = exact

    def read(self, block: Block) -> Decoded:
        """Return the block's rows; its first bad line is raised, or all of them are set aside."""
        refused_lines: Lines = np.empty(0, np.int64)
        spans: Spans | None = None
        rest = block
        for _ in range(MOST_ATTEMPTS):
            refused = Refusals()
            decoded = self._fast.read(rest, refused)
            if refused:
                refused_lines = np.union1d(refused_lines, refused.lines)
                spans = spans or _spans(block, refused.line_starts)
            if decoded is not None and spans is None:
                return decoded
            if decoded is not None and spans is not None:
                return self._mixed(block, spans, decoded, refused_lines, refused.line_of)
            if not refused or spans is None:
                break
            rest = _without(block, spans, refused_lines)
        return self._exact.read(block)

    def read_combined(self, blocks: Sequence[Block]) -> CombinedRows | None:
        """Return the rows of each block; None where a line is for the exact path."""
        return self._fast.read_combined(blocks)

    def _mixed(
        self,
        block: Block,
        spans: Spans,
        fast: Decoded,
        lines: Lines,
        line_of: npt.NDArray[np.integer[Any]],
    ) -> Decoded:
        """Put the rows of the fast path and those of the lines that it refused in their order."""
        numbers = (block.first_line + lines).tolist()
        starts, ends = spans
        some = zip(numbers, starts[lines].tolist(), ends[lines].tolist(), strict=True)
        exact = self._exact.read_some(block, some)
        line_of = line_of[: fast.batch.num_rows]
        kept = np.flatnonzero(~np.isin(line_of, lines))
        no_rows = {bad.line for bad in exact.bad}
        rows = [line - block.first_line for line in numbers if line not in no_rows]
        new = fast.batch.num_rows + np.arange(len(rows))
        order: Any = pa.array(np.insert(kept, np.searchsorted(line_of[kept], rows), new))
        batch: pa.RecordBatch = fast.batch
        if rows:
            batch = pa.concat_batches([batch, exact.batch])  # type: ignore[attr-defined]
        return replace(
            fast,
            batch=batch.take(order),
            size=fast.size + exact.size,
            blank=block.lines - len(kept) - len(lines),
            dropped=_sum(fast.dropped, exact.dropped),
            rescued=_sum(fast.rescued, exact.rescued),
            bad=exact.bad,
        )


def _spans(block: Block, starts: "npt.NDArray[np.integer[Any]] | None") -> Spans:
    """Return where in its block each line starts and ends; the `starts` may be known."""
    if starts is None:
        newlines = np.flatnonzero(np.frombuffer(block.text, np.uint8) == _NEWLINE)
        starts = np.concatenate([[0], newlines + 1])[: block.lines]
    size = block.end + (not block.text.endswith(b"\n", 0, block.end))
    return starts, np.append(starts[1:], size) - 1


def _without(block: Block, spans: Spans, lines: Lines) -> Block:
    """Return the block with some of its lines empty."""
    data = ended(block.data)
    pieces: list[bytes] = []
    at = 0
    starts, ends = spans
    for start, end in zip(starts[lines].tolist(), ends[lines].tolist(), strict=True):
        pieces.append(data[at:start])
        at = end
    return block.changed(b"".join([*pieces, data[at:]]))


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return Counter(one) + Counter(other) if other else one
