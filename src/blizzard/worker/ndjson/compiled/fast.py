"""The fast path: a compiled scan of a whole block, and Arrow for what its tokens mean.

It is as strict as the exact path and has no error messages: a line that it cannot vouch for goes to
the exact path, and the rows are put together in the order of the lines. So one bad line costs the
reading of one line, not that of thousands around it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
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
from blizzard.worker.ndjson.level import is_shared, levels
from blizzard.worker.ndjson.lines import BadLine, Block, Decoded
from blizzard.worker.ndjson.plain_text import PADDING, ended
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
        # Which of them has left something out does not matter: one that has is enough to give up.
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
        except (Doubtful, ValueRefused, pa.ArrowException):
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


class MixedPath:
    """Reads blocks, and says of every line what the exact path says of it."""

    def __init__(self, fast: FastPath, exact: ExactPath) -> None:
        self._fast = fast
        self._exact = exact

    def read(self, block: Block) -> Decoded:
        """Return the block's rows; its first bad line is raised, or all of them are set aside."""
        found = self.read_together([block])
        if found is None:
            return self._exact.read(block)
        if isinstance(found[0], BadLine):
            raise found[0]
        return found[0]

    def read_as_one(self, texts: Sequence[bytes], lines_of: Sequence[int]) -> pa.RecordBatch | None:
        """Return the rows of texts where each of their lines is one, whole; else nothing."""
        return self._fast.read_as_one(texts, lines_of)

    def read_together(self, blocks: Sequence[Block]) -> list[Decoded | BadLine] | None:
        """Return the rows of each block, or its first bad line; None if they must be read alone."""
        aside: Lines = np.empty(0, np.int64)
        spans: list[Spans] = []
        rest = blocks
        for _ in range(MOST_ATTEMPTS):
            refused = Refusals()
            decoded = self._fast.read_together(rest, refused)
            if decoded is not None and not refused and not len(aside):
                return [*decoded]
            if refused:
                aside = np.union1d(aside, refused.lines)
                spans = spans or _spans(blocks, refused.line_starts)
            if decoded is not None:
                return self._mixed(blocks, spans, decoded, refused.line_of, aside)
            if not refused:
                break
            each = zip(blocks, spans, _of_each(blocks, aside), strict=True)
            rest = [_without(block, of_block, lines) for block, of_block, lines in each]
        return None

    def _mixed(
        self,
        blocks: Sequence[Block],
        spans: Sequence[Spans],
        decoded: Sequence[Decoded],
        line_of: npt.NDArray[np.integer[Any]],
        aside: Lines,
    ) -> list[Decoded | BadLine]:
        mixed: list[Decoded | BadLine] = []
        row = first = 0
        for block, of_block, each, lines in zip(
            blocks, spans, decoded, _of_each(blocks, aside), strict=True
        ):
            end = row + each.batch.num_rows
            if len(lines):
                mixed.append(self._one(block, of_block, each, lines, line_of[row:end] - first))
            else:
                mixed.append(each)
            row, first = end, first + block.lines
        return mixed

    def _one(
        self,
        block: Block,
        spans: Spans,
        fast: Decoded,
        lines: Lines,
        line_of: npt.NDArray[np.integer[Any]],
    ) -> Decoded | BadLine:
        """Put the rows of the fast path and those of the lines that it refused in their order."""
        numbers = (block.first_line + lines).tolist()
        starts, ends = spans
        some = zip(numbers, starts[lines].tolist(), ends[lines].tolist(), strict=True)
        try:
            exact = self._exact.read_some(block, some)
        except BadLine as bad:
            return bad
        is_aside = np.zeros(block.lines, np.bool_)
        is_aside[lines] = True
        kept = np.flatnonzero(~is_aside[line_of])
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


def _of_each(blocks: Sequence[Block], lines: Lines) -> list[Lines]:
    """Return which lines are in each block, counted from its own first one."""
    edges = np.cumsum([0, *(block.lines for block in blocks)])
    places = np.searchsorted(lines, edges).tolist()
    return [
        lines[start:end] - edge
        for start, end, edge in zip(places, places[1:], edges.tolist(), strict=False)
    ]


def _spans(blocks: Sequence[Block], starts: "npt.NDArray[np.integer[Any]] | None") -> list[Spans]:
    """Return where in its block each line starts and ends; `starts` are those on the page."""
    found: list[Spans] = []
    at = line = 0
    for block in blocks:
        size = block.end + (not block.text.endswith(b"\n", 0, block.end))
        if starts is None:
            newlines = np.flatnonzero(np.frombuffer(block.text, np.uint8) == _NEWLINE)
            of_block = np.concatenate([[0], newlines + 1])[: block.lines]
        else:
            of_block = starts[line : line + block.lines] - at
        found.append((of_block, np.append(of_block[1:], size) - 1))
        at, line = at + size, line + block.lines
    return found


def _without(block: Block, spans: Spans, lines: Lines) -> Block:
    """Return the block with some of its lines empty."""
    if not len(lines):
        return block
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
