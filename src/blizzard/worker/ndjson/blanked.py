"""Blocks in which some lines are blank: those that a rule leaves out, and those of unwritable rows.

A line that is not JSON is never left out by a rule: the decoder reports what is wrong with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from blizzard.model.source.form import SkipRule
from blizzard.worker.ndjson.exact import spans_of
from blizzard.worker.ndjson.lines import BLANK, BadLine, BadRecord, Block, Decoded, set_aside


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRow:
    """Why a row cannot be written."""

    code: str
    message: str
    field: str


RefuseRows = Callable[[pa.RecordBatch], Mapping[int, RefusedRow]]
"""Returns which rows of a batch cannot be written, by their places."""


def without_refused(block: Block, decoded: Decoded, refused: Mapping[int, RefusedRow]) -> Block:
    """Return a block in which the lines of some of its rows are blank, and set aside."""
    bad = {one.line for one in decoded.bad}
    data = bytearray(block.data)
    found: list[BadRecord] = []
    row = 0
    for number, start, end in spans_of(block):
        if number in bad or not block.text[start:end].strip(BLANK):
            continue
        why = refused.get(row)
        row += 1
        if why is not None:
            data[start:end] = b" " * (end - start)
            wrong = BadLine(why.message, code=why.code, line=number, field=why.field)
            found.append(set_aside(wrong, block.raw(start, end), offset=block.offset + start))
    if len(found) != len(refused) or row != decoded.batch.num_rows:
        raise AssertionError("the rows of a block are not its lines, one by one")
    return block.changed(
        bytes(data),
        as_written=block.data if block.as_written is None else block.as_written,
        bad=(*block.bad, *found),
    )


def without_skipped(block: Block, rule: SkipRule, max_line_bytes: int) -> Block:
    """Return a block in which the lines that a rule leaves out are blank, and counted."""
    names = [f'"{name}"'.encode() for name in (*rule.only_key, *rule.with_key)]
    data = bytearray(block.data)
    skipped = 0
    for _number, start, end in spans_of(block):
        line = block.text[start:end]
        # A name may be written with escapes.
        may_hold = rule.without_key or b"\\" in line or any(name in line for name in names)
        # A line that is too long is bad, whatever it holds.
        if may_hold and len(line) <= max_line_bytes and rule.holds(line):
            data[start:end] = b" " * len(line)
            skipped += 1
    if not skipped:
        return block
    return block.changed(bytes(data), as_written=block.raw(0, len(data)), filtered=skipped)
