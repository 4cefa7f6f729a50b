"""Arrays that end, or begin, where memory does: one byte too far kills the process."""

import ctypes
import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt

_MAKERS = {"arange", "array", "concatenate", "cumsum", "empty", "frombuffer", "full", "zeros"}
_NO_ACCESS = 0
_libc = ctypes.CDLL(None, use_errno=True)


class EdgeNumpy:
    """numpy, as far as a module uses it, with every array it makes moved to an edge."""

    def __init__(self, *, at_end: bool) -> None:
        self._at_end = at_end

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name not in _MAKERS:
            return found
        return lambda *given, **named: _moved(found(*given, **named), self._at_end)


def _moved(array: npt.NDArray[Any], at_end: bool) -> npt.NDArray[Any]:
    whole = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, whole + mmap.PAGESIZE), np.uint8)
    edge = ctypes.c_void_p(memory.ctypes.data + (whole if at_end else 0))
    if _libc.mprotect(edge, ctypes.c_size_t(mmap.PAGESIZE), _NO_ACCESS):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    start = whole - array.nbytes if at_end else mmap.PAGESIZE
    moved = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved
