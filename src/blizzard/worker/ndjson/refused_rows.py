"""Blocks in which the lines of rows that cannot be written are blank."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from blizzard.worker.ndjson.exact import spans_of
from blizzard.worker.ndjson.lines import BLANK, BadLine, BadRecord, Block, Decoded, set_aside
from lakebed.types import OnBadRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRow:
    """Why a row cannot be written."""

    code: str
    message: str
    field: str


RefuseRows = Callable[[pa.RecordBatch], Mapping[int, RefusedRow]]
"""Returns which rows of a batch cannot be written, by their places."""


def without_refused(
    block: Block,
    decoded: Decoded,
    refused: Mapping[int, RefusedRow],
    on_bad_record: OnBadRecord,
) -> Block:
    """Return a block in which the lines of some of its rows are blank; or raise the first one."""
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
            if on_bad_record is OnBadRecord.FAIL:
                raise wrong
            found.append(set_aside(wrong, block.raw(start, end), offset=block.offset + start))
    if len(found) != len(refused) or row != decoded.batch.num_rows:
        raise AssertionError("the rows of a block are not its lines, one by one")
    return block.changed(
        bytes(data),
        as_written=block.data if block.as_written is None else block.as_written,
        bad=(*block.bad, *found),
    )
