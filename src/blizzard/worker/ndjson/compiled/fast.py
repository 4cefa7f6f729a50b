"""The fast path: a compiled scan of a whole block, with Arrow converting the tokens.

It is as strict as the exact path and has no error messages: a line whose result it cannot
guarantee goes to the exact path, and the rows are merged in line order. One bad line costs one slow
line, not thousands.
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
"""Scans per block: a bad line may hide another, seldom more than once."""

Lines = npt.NDArray[np.int64]
Spans = tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]]
"""The starts and the ends of a block's lines."""

_NEWLINE = ord("\n")

_INVALID_UTF8 = re.compile("[\udc80-\udcff]")
"""The characters that surrogateescape produces for invalid UTF-8."""


class FastPath:
    """Decodes blocks, or returns None if it cannot guarantee the result.

    It remembers undeclared field names and the field order across blocks and files. That affects
    speed, never results.
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
        """Return the block's rows exactly as the exact path would, or None."""
        read = self.read_combined([block], refused)
        return None if read is None else next(read.decoded())

    def read_combined(
        self, blocks: Sequence[Block], refused: Refusals | None = None
    ) -> CombinedRows | None:
        """Return the rows of all blocks, or None if one of them needs the exact path.

        The fixed cost of a column is paid once; it dominates short blocks. `refused` collects the
        lines that need the exact path and the line of every row. With a result, drop the rows of
        those lines; without one, a scan that omits them may succeed.
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
    """Join blocks into a page to scan; None if one is empty or not UTF-8."""
    data, sizes = _joined(blocks)
    if not all(sizes):
        return None
    if not _is_text(data):
        if refused is not None:
            refused.add(_invalid_lines(data))
        return None
    ends = np.cumsum(sizes, dtype=np.int64)
    return Page(np.frombuffer(data, np.uint8), ends, unknown, refused=refused)


def _joined(blocks: Sequence[Block]) -> tuple[bytes, list[int]]:
    """Return the lines of all blocks, followed by padding for the scan, and their sizes."""
    if len(blocks) == 1 and blocks[0].behind == len(PADDING):
        return blocks[0].text, [blocks[0].end]
    lines = [ended(block.data) for block in blocks]
    return b"".join([*lines, PADDING]), [len(each) for each in lines]


def _invalid_lines(data: bytes) -> npt.NDArray[np.int64]:
    """Return the lines that are not UTF-8."""
    text = data.decode(errors="surrogateescape")
    lines, line, start = [], 0, 0
    for match in _INVALID_UTF8.finditer(text):
        line += text.count("\n", start, match.start())
        start = match.start()
        lines.append(line)
    return np.array(lines, np.int64)


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    whole = pa.py_buffer(np.array([0, len(data)], np.int32).tobytes())
    try:
        # Arrow checks eight bytes at a time and, unlike Python's decoder, copies nothing.
        pa.StringArray.from_buffers(1, whole, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


class MixedPath:
    """Decodes blocks with the fast path, and refused lines with the exact path."""

    def __init__(self, fast: FastPath, exact: ExactPath) -> None:
        self._fast = fast
        self._exact = exact

    def read(self, block: Block) -> Decoded:
        """Return the block's rows; raise the first bad line, or quarantine all bad lines."""
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
        """Return the rows of each block; None if a line needs the exact path."""
        return self._fast.read_combined(blocks)

    def _mixed(
        self,
        block: Block,
        spans: Spans,
        fast: Decoded,
        lines: Lines,
        line_of: npt.NDArray[np.integer[Any]],
    ) -> Decoded:
        """Merge the fast path's rows with those of the refused lines, in line order."""
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
    """Return the start and end of each line in its block; pass `starts` if known."""
    if starts is None:
        newlines = np.flatnonzero(np.frombuffer(block.text, np.uint8) == _NEWLINE)
        starts = np.concatenate([[0], newlines + 1])[: block.lines]
    size = block.end + (not block.text.endswith(b"\n", 0, block.end))
    return starts, np.append(starts[1:], size) - 1


def _without(block: Block, spans: Spans, lines: Lines) -> Block:
    """Return the block with some of its lines blanked."""
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
