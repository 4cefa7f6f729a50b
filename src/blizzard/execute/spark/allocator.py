"""What becomes of memory that a worker frees."""

import ctypes

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
_LARGEST = 32 << 20
"""The largest block that is kept; glibc allows no more."""
_MOST = 2 * _LARGEST


def keep_freed_memory() -> None:
    """Let the C library keep blocks of some megabytes that are freed, for the next of that size.

    A worker needs arrays of the same sizes for every batch of lines. Memory that goes back to the
    system each time has to be mapped and cleared again, page by page.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it, other systems do without
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, _MOST)
