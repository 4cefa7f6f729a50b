"""What a block must look like before the fast parser may see it.

Arrow's parser dies on a first line that is `null` and on very deep nesting; it and msgspec's join
and split records across lines, and do not mind bytes that are no text. All of that is ruled out
here, by means that cost a small part of the parsing itself.
"""

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blizzard.ndjson.lines import BLANK, Block, line_ends

# Opening brackets on one line: fewer than the exact path lets a value be deep, and far fewer than
# the ten thousand at which Arrow's parser overflows the stack.
MAX_BRACKETS = 200

_RETURN, _OPEN_BRACE, _CLOSE_BRACE = b"\r{}"
_BRACKET_BIT = ord("[") ^ ord("{")
_NULL_RECORD = re.compile(rb"\}[ \t\r]*null")

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Tame:
    """Lines that each begin with `{` and end with `}`, and are text; `rows` of them."""

    data: bytes
    rows: int


def tame(block: Block, *, max_line_bytes: int) -> Tame | None:
    """Give the block without its blank lines, or nothing if the parser must not see it."""
    data, ends = block.data, block.ends
    if not _is_text(data):
        return None
    starts = _starts(ends)
    if len(data) > max_line_bytes and (ends - starts).max() > max_line_bytes:
        return None
    if not _are_records(data, starts, ends):
        data = _without_space(data)
        ends = line_ends(data)
        starts = _starts(ends)
        if not data or not _are_records(data, starts, ends):
            return None
    if not _is_shallow(data, starts):
        return None
    return Tame(data, len(starts))


def _is_text(data: bytes) -> bool:
    if b"\0" in data:
        return False
    if data.isascii():
        return True
    whole = pa.py_buffer(np.array([0, len(data)], np.int32).tobytes())
    try:
        # Arrow looks at eight bytes at a time and, unlike Python's own decoder, copies nothing.
        pa.StringArray.from_buffers(1, whole, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _starts(ends: Places) -> Places:
    starts = np.zeros_like(ends)
    np.add(ends[:-1], 1, out=starts[1:])
    return starts


def _are_records(data: bytes, starts: Places, ends: Places) -> bool:
    array = _bytes(data)
    if not (array[starts] == _OPEN_BRACE).all():
        return False
    last = array[ends - 1]
    returns = last == _RETURN
    if returns.any():
        last = np.where(returns, array[ends - 2], last)
    return bool((last == _CLOSE_BRACE).all())


def _without_space(data: bytes) -> bytes:
    stripped = (line.strip(BLANK) for line in data.split(b"\n"))
    return b"\n".join(line for line in stripped if line)


def _is_shallow(data: bytes, starts: Places) -> bool:
    array = _bytes(data)
    # No byte from `{` on but one at each end of a line, and no list: every record is flat.
    if b"[" not in data and np.count_nonzero(array >= _OPEN_BRACE) == 2 * len(starts):
        return True
    opening = np.flatnonzero((array | _BRACKET_BIT) == _OPEN_BRACE)
    per_line = np.diff(np.searchsorted(opening, starts), append=len(opening))
    return bool(per_line.max() <= MAX_BRACKETS) and not _NULL_RECORD.search(data)


def _bytes(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)
