"""Which lines of a block are blank: only where some are is it asked which. Pure."""

import numpy as np
import numpy.typing as npt

from blizzard.worker.ndjson.lines import BLANK

_NEWLINE = ord("\n")


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
