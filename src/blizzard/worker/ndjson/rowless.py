"""Which lines of a block gave no row: only where some did not is it asked which. Pure."""

import numpy as np
import numpy.typing as npt

from blizzard.worker.ndjson.lines import BLANK, Block, Decoded

_NEWLINE = ord("\n")


def rowless_lines(decoded: Decoded, block: Block) -> npt.NDArray[np.int64] | None:
    """Return the places of the lines without a row, from 0; None where every line gave one.

    Those that a rule passes over are blank in the block; those that are set aside are known.
    """
    if not decoded.blank and not decoded.bad:
        return None
    bad = np.array([each.line - block.first_line for each in decoded.bad], np.int64)
    return np.union1d(blank_lines(block.data), bad) if decoded.blank else bad


def blank_lines(data: bytes) -> npt.NDArray[np.int64]:
    """Return the places of the blank lines among all lines, from 0.

    A line that begins with another byte is not blank, so few lines are looked at one by one.
    """
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == _NEWLINE)
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1] + 1])
    empty = starts == ends
    heads = text[np.minimum(starts, len(data) - 1)]
    for place in np.flatnonzero(~empty & np.isin(heads, np.frombuffer(BLANK, np.uint8))).tolist():
        empty[place] = not data[starts[place] : ends[place]].strip(BLANK)
    return np.flatnonzero(empty)
