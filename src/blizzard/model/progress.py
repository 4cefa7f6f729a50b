"""Progress reports of running units, and the driver's instructions."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from operator import add, sub
from typing import Any


class Instruction(StrEnum):
    """The driver's instruction to a unit."""

    GO_ON = "go_on"
    HAND_IN = "hand_in"
    """Finish cleanly: the batch is old enough, and the next one reads the rest."""
    STOP = "stop"
    """Finish cleanly at once, because the program stops."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """The work of a unit so far, and its current activity."""

    bytes_read: int = 0
    records: int = 0
    files_read: int = 0
    files_failed: int = 0
    parquet_files: int = 0
    bytes_written: int = 0
    bad_lines: int = 0
    active_uploads: int = 0
    active_parts: int = 0

    def __add__(self, other: "Progress") -> "Progress":
        return self._combined(add, other)

    def __sub__(self, other: "Progress") -> "Progress":
        return self._combined(sub, other)

    def _combined(self, how: Callable[[Any, Any], Any], other: "Progress") -> "Progress":
        return Progress(
            **{
                each.name: how(getattr(self, each.name), getattr(other, each.name))
                for each in fields(self)
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A cumulative report of one attempt at a unit."""

    unit: str
    """The pipeline and the unit, as `pipeline/unit`."""
    job: str = ""
    """The job of the attempt; attempts of an earlier job may still be running."""
    worker: str = ""
    """Where the attempt runs: the host and the process."""
    progress: Progress = field(default_factory=Progress)

    @property
    def pipeline(self) -> str:
        """Return the name of the pipeline."""
        return self.unit.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Address:
    """Where the driver listens, and the secret token for authentication."""

    host: str
    port: int
    token: bytes = field(repr=False)


@dataclass(slots=True)
class Supervisor:
    """Answers the reports of one job's units with instructions.

    The age counts from the first report, not from the start of the job: Spark may take longer to
    start than a batch may run, and no batch would ever read anything.
    """

    max_seconds: float | None
    """How long a batch may run; None for no limit."""
    seconds: Callable[[], float]
    _began: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self) -> Instruction:
        """Return the instruction for a unit that reports."""
        with self._lock:
            now = self.seconds()
            if self._began is None:
                self._began = now
        is_old = self.max_seconds is not None and now - self._began > self.max_seconds
        return Instruction.HAND_IN if is_old else Instruction.GO_ON
