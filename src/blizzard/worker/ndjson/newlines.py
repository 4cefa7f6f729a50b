"""What kinds of bytes there are, and how many newlines, at what memory can be read. Compiled."""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import int64, types

from blizzard.worker.ndjson.compiled.vector import (
    WIDTH,
    beyond_ascii,
    compiled,
    newlines_in,
    pointer,
    separators_in,
)

_NEWLINE, _SEPARATOR = b"\n\x1e"
_ASCII = 128
_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_THREE: Any = types.Tuple((int64, int64, int64))  # type: ignore[no-untyped-call]  # numba has no types


def looked_at(data: bytes) -> tuple[int, bool, bool]:
    """Count the newlines, and say whether all is ASCII and whether there are record separators."""
    newlines_found, high, separators = _looked_at(np.frombuffer(data, np.uint8))
    return newlines_found, not high, separators != 0


@compiled(_THREE(_BYTES))
def _looked_at(data: npt.NDArray[np.uint8]) -> tuple[int, int, int]:
    here = pointer(data)
    count = high = separators = at = 0
    while at + 2 * WIDTH <= len(data):
        count += newlines_in(here, at) + newlines_in(here, at + WIDTH)
        high |= beyond_ascii(here, at) | beyond_ascii(here, at + WIDTH)
        separators |= separators_in(here, at) | separators_in(here, at + WIDTH)
        at += 2 * WIDTH
    while at < len(data):
        count += data[at] == _NEWLINE
        high |= data[at] >= _ASCII
        separators |= data[at] == _SEPARATOR
        at += 1
    return count, high, separators
