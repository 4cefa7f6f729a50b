"""How many newlines some bytes have, at what memory can be read. Compiled."""

import numpy as np
import numpy.typing as npt
from numba import int64, types

from blizzard.worker.ndjson.compiled.vector import WIDTH, compiled, newlines_in, pointer

_NEWLINE = ord("\n")


def newlines(data: bytes) -> int:
    """Count the newlines."""
    return _counted(np.frombuffer(data, np.uint8))


@compiled(int64(types.Array(types.uint8, 1, "C", readonly=True)))
def _counted(data: npt.NDArray[np.uint8]) -> int:
    here = pointer(data)
    count = at = 0
    while at + WIDTH <= len(data):
        count += newlines_in(here, at)
        at += WIDTH
    while at < len(data):
        count += data[at] == _NEWLINE
        at += 1
    return count
