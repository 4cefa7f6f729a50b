"""How a measure is taken: CPU seconds and memory of this process."""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.figures import Figures


@contextmanager
def measured(into: Figures) -> Iterator[None]:
    """Take the CPU seconds of what is done inside, without tracing memory, which would slow it."""
    began = time.process_time()
    yield
    into["cpu_seconds"] = round(time.process_time() - began, 3)


def peak_of(act: Callable[[], object]) -> int:
    """Return the most memory that an act has allocated at a time, in bytes."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
