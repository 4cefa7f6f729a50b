"""Search a long sequence of documents with increasing values with few reads."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

AT_ONCE = 8
"""Documents read concurrently."""
MOST = 1000
"""The most documents that a search reads."""

Read = Callable[[Sequence[int]], Sequence[int | None]]
"""Reads documents and returns the value of each; None without one."""


def seek(
    target: int,
    first: int,
    last: int,
    read: Read,
    *,
    known: Mapping[int, int] | None = None,
    at_once: int = AT_ONCE,
    most: int = MOST,
) -> int | None:
    """Return the lowest number whose value is not below a target; None without one.

    A search that reaches its limit returns the lowest that it found.

    Values never fall along the sequence; documents without a value are skipped. `known` are values
    of some numbers, even before `first`: if values grow evenly, one step is enough.
    """
    values = dict(known or {})
    silent: set[int] = set()
    found: int | None = None
    reads = 0
    while first <= last:
        left = [number for number in range(first, last + 1) if number not in silent]
        if not left or reads >= most:
            break
        probes = _probes(target, left, values, at_once, sparing=not reads)
        reads += len(probes)
        for number, value in zip(probes, read(probes), strict=True):
            if value is None:
                silent.add(number)
                continue
            values[number] = value
            if value < target:
                first = max(first, number + 1)
            elif number <= last:
                found, last = number, number - 1
    return found


def _probes(
    target: int, left: list[int], values: Mapping[int, int], count: int, *, sparing: bool
) -> list[int]:
    """Choose the numbers to read next: around the target's likely place, and spread evenly.

    `sparing` omits the latter: the first guess is right if values grow evenly.
    """
    if len(left) <= count:
        return left
    below = max((n for n, value in values.items() if value < target), default=None)
    above = min((n for n, value in values.items() if value >= target), default=None)
    likely: set[int] = set()
    if below is not None and above is not None and below < above:
        share = (target - values[below]) / max(values[above] - values[below], 1)
        guess = below + round(share * (above - below))
        near = bisect_left(left, guess)
        likely = set(left[max(0, near - 1) : near + 2])
        if sparing:
            return sorted(likely)
    even = max(1, count - len(likely))
    step = len(left) / (even + 1)
    spread = {left[int(step * place)] for place in range(1, even + 1)}
    return sorted(likely | spread)
