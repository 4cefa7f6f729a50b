"""The process that Spark forks its Python workers from, with our imports done once, before.

Spark runs it by name (`spark.python.daemon.module`). Without it every worker would import Arrow and
the rest by itself, at the same time as the others, in the first batch. It is also the first of our
code that an executor runs: what does not suit is said here, before Arrow's own words about it.
"""
# ruff: noqa: E402 - nothing that is compiled may be imported before the look at Python itself

import ctypes
import gc
import os

from blizzard.execute.spark.executor_check import own_python, require_drivers_python

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


require_drivers_python(os.environ, own_python())

import pandas as pd  # noqa: F401 - Spark's worker imports it for Arrow
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import blizzard.worker.ndjson.compiled.fast  # compiled here, if it has to be, for all workers
import blizzard.worker.ndjson.forms.framer
import blizzard.worker.progress
import blizzard.worker.unit  # noqa: F401

NEW_OBJECTS = 10_000
"""New objects after which unused ones are looked for within a task; Python's own number is 700."""

if __name__ == "__main__":
    keep_freed_memory()
    # A worker collects garbage after every task. What was imported is none: to look through it each
    # time would take longer than all the rest of a task's end, and unshare the pages of the fork.
    gc.collect()
    gc.freeze()
    # Nor is what a task makes of many small files, which is counted in objects.
    gc.set_threshold(NEW_OBJECTS)
    manager()
