"""How many newlines there are, as fast as memory can be read. Compiled."""

import numpy as np
import numpy.typing as npt
from numba import int64, types

from blizzard.worker.ndjson.compiled.vector import compiled

_NEWLINE = ord("\n")
_STEP = 128
"""Bytes whose newlines a byte can count, so that many are counted in one instruction."""
_BYTES = types.Array(types.uint8, 1, "C", readonly=True)


def newlines_in(data: bytes) -> int:
    """Count the newlines."""
    return int(_newlines_in(np.frombuffer(data, np.uint8)))


@compiled(int64(_BYTES))
def _newlines_in(data: npt.NDArray[np.uint8]) -> int:
    count = 0
    steps = len(data) // _STEP * _STEP
    for start in range(0, steps, _STEP):
        newlines = np.uint8(0)
        for at in range(start, start + _STEP):
            newlines = np.uint8(newlines + np.uint8(data[at] == _NEWLINE))
        count += int(newlines)
    for at in range(steps, len(data)):
        count += data[at] == _NEWLINE
    return count
