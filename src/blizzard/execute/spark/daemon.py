"""The process from which Spark forks its Python workers, with our modules already imported.

Spark runs it by name (`spark.python.daemon.module`). Without it, all workers would import Arrow and
the rest at the same time, in the first batch. It is also the first of our code that an
executor runs, so it checks the Python version before an import fails obscurely.
"""
# ruff: noqa: E402 - no compiled module may be imported before the version check

import ctypes
import gc
import os

from blizzard.execute.spark.executor_check import own_python, require_drivers_python

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
_LARGEST = 32 << 20
"""The largest block to keep; glibc allows no more."""
_MOST = 2 * _LARGEST


def keep_freed_memory() -> None:
    """Let the C library reuse freed blocks of some megabytes.

    A worker needs arrays of the same sizes for every batch of lines. Memory that is returned to the
    system must be mapped and cleared again, page by page.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it, other systems do without
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, _MOST)


require_drivers_python(os.environ, own_python())

import pandas as pd  # noqa: F401 - Spark's worker imports it for Arrow
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import blizzard.worker.ndjson.compiled.fast  # compiled here, if necessary, for all workers
import blizzard.worker.ndjson.forms.framer
import blizzard.worker.progress
import blizzard.worker.unit  # noqa: F401

NEW_OBJECTS = 10_000
"""The garbage collection threshold within a task; Python's default is 700."""

if __name__ == "__main__":
    keep_freed_memory()
    # A worker collects garbage after every task. Scanning the imported modules each time would
    # dominate the end of a task and unshare the pages of the fork.
    gc.collect()
    gc.freeze()
    # The many objects of a task with many small files are not garbage either.
    gc.set_threshold(NEW_OBJECTS)
    manager()
