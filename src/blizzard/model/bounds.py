"""When a running batch is to end before all of its files are read.

It is asked to hand in what it has once it is old enough, so that no row waits for the end of a long
batch; what it leaves goes on in the next one. It is asked to stop once too many files have failed.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from blizzard.model.progress import Instruction, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long a batch may run, and how many of its files may fail; None for no bound."""

    seconds: float | None = None
    failures: int | None = None
    forgiven: frozenset[str] = frozenset()
    """Files that have failed before in this run: they do not count again."""


def instruction(bounds: Bounds, *, age: float, failed: int) -> Instruction:
    """Return what a batch is to do, given its age and how many of its files have failed."""
    if bounds.failures is not None and failed >= bounds.failures:
        return Instruction.STOP
    if bounds.seconds is not None and age > bounds.seconds:
        return Instruction.HAND_IN
    return Instruction.GO_ON


@dataclass(slots=True)
class Overseer:
    """Receives the reports of one job's units and answers each of them what to do.

    The age counts from the first word of a unit, not from the start of the job: Spark may take
    longer to begin than a batch may run, and a batch in which nothing began would never end.
    """

    bounds: Bounds
    seconds: Callable[[], float]
    _began: float | None = None
    _failed: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, unit: str, progress: Progress) -> Instruction:
        """Take in how far a unit is; it replaces what the unit said before."""
        with self._lock:
            now = self.seconds()
            if self._began is None:
                self._began = now
            self._failed[unit] = progress.files_failed
            return instruction(
                self.bounds, age=now - self._began, failed=sum(self._failed.values())
            )
