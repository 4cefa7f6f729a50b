"""Both paths over the same lines: those that the fast path refuses are read by the exact one.

The fast path reads a block without some of its lines, the exact path those lines, and the rows are
put together in the order of the lines. So one bad line costs the reading of one line, not that of
thousands around it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.compiled.page import Refusals
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import BadLine, Block, Decoded
from blizzard.worker.ndjson.plain_text import ended

MOST_ATTEMPTS = 4
"""What is wrong with a line may hide what is wrong with another; seldom more than once."""

Lines = npt.NDArray[np.int64]
Spans = tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]]
"""Where the lines of a block start, and where they end."""

_NEWLINE = ord("\n")


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
