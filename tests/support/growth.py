"""How the cost of a piece of work grows with its size, told apart from a noisy machine."""

import time
from collections.abc import Callable

TIMES = 8
"""How much more work the second size is. Quadratic work costs 64 times as much."""
AT_MOST = 3 * TIMES
"""The most that linear work may cost more, with room for caches and collections."""


def growth(work_of: Callable[[int], Callable[[], object]], size: int) -> float:
    """Return how many times the CPU time grows with eight times the size; least of three each."""
    small, large = (min(_seconds(work_of(n)) for _ in range(3)) for n in (size, TIMES * size))
    return large / max(small, 1e-4)


def _seconds(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before
