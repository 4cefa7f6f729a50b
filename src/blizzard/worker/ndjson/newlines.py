"""What kinds of bytes there are, and how many newlines, at what memory can be read. Compiled."""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import int64, types

from blizzard.worker.ndjson.compiled.vector import compiled

_NEWLINE, _SEPARATOR = b"\n\x1e"
_ASCII = 128
_STEP = 128
"""Bytes whose newlines a byte can count, so that many are counted in one instruction."""
_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_THREE: Any = types.Tuple((int64, int64, int64))  # type: ignore[no-untyped-call]  # numba has no types


def newlines_in(data: bytes) -> int:
    """Count the newlines, and nothing else."""
    return int(_newlines_in(np.frombuffer(data, np.uint8)))


def looked_at(data: bytes) -> tuple[int, bool, bool]:
    """Count the newlines, and say whether all is ASCII and whether there are record separators."""
    newlines_found, any_bits, separators = _looked_at(np.frombuffer(data, np.uint8))
    return newlines_found, any_bits < _ASCII, separators != 0


@compiled(_THREE(_BYTES))
def _looked_at(data: npt.NDArray[np.uint8]) -> tuple[int, int, int]:
    count = 0
    any_bits = separators = np.uint8(0)
    steps = len(data) // _STEP * _STEP
    for start in range(0, steps, _STEP):
        newlines = np.uint8(0)
        for at in range(start, start + _STEP):
            newlines = np.uint8(newlines + np.uint8(data[at] == _NEWLINE))
            any_bits = np.uint8(any_bits | data[at])
            separators = np.uint8(separators | np.uint8(data[at] == _SEPARATOR))
        count += int(newlines)
    for at in range(steps, len(data)):
        count += data[at] == _NEWLINE
        any_bits = np.uint8(any_bits | data[at])
        separators = np.uint8(separators | np.uint8(data[at] == _SEPARATOR))
    return count, int(any_bits), int(separators)


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
