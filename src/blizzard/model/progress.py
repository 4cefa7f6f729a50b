"""What a running unit reports to the driver, and what the driver answers."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from operator import add, sub
from typing import Any, TypeVar


class Instruction(StrEnum):
    """What the driver wants a unit to do."""

    GO_ON = "go_on"
    HAND_IN = "hand_in"
    """To come to a good end: the batch is old enough, and the rest goes on in the next one."""
    STOP = "stop"
    """To come to a good end at once: nothing goes on after it."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """What a unit has done so far, and what it is doing now."""

    bytes_read: int = 0
    records: int = 0
    files_read: int = 0
    files_failed: int = 0
    """Those that count against `max_failures`."""
    parquet_files: int = 0
    bytes_written: int = 0
    active_uploads: int = 0
    active_parts: int = 0

    def __add__(self, other: "Progress") -> "Progress":
        return Progress(**_by_name(add, self, other))

    def __sub__(self, other: "Progress") -> "Progress":
        return Progress(**_by_name(sub, self, other))


@dataclass(slots=True, kw_only=True)
class Done:
    """Work that one attempt at a unit has finished; it never becomes less."""

    rows: int = 0
    """Rows that were handed to a data file: those of a small source file once all have parsed."""
    blank: int = 0
    filtered: int = 0
    quarantined: int = 0
    source_files: int = 0
    """Source files that were read to their end; one that several tasks share is not among them."""
    source_bytes: int = 0
    parquet_files: int = 0
    bytes_written: int = 0
    multipart_uploads: int = 0
    write_seconds: list[float] = field(default_factory=list)
    """How long each uploaded data file took to be encoded and written."""

    def __add__(self, other: "Done") -> "Done":
        return Done(**_by_name(add, self, other))

    def since(self, before: "Done") -> "Done":
        """Return what was done since an earlier report of the same attempt."""
        numbers = {
            each.name: max(0, getattr(self, each.name) - getattr(before, each.name))
            for each in fields(self)
            if each.name != "write_seconds"
        }
        return Done(**numbers, write_seconds=self.write_seconds[len(before.write_seconds) :])


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one attempt at a unit says of itself; a later report holds all of an earlier one."""

    unit: str
    """The pipeline and the unit, as `pipeline/unit`."""
    job: str = ""
    """The job that the attempt belongs to; one of an earlier job may still be running."""
    attempt: str = ""
    worker: str = ""
    """Where the attempt runs: the host and the process."""
    progress: Progress = field(default_factory=Progress)
    done: Done = field(default_factory=Done)

    @property
    def pipeline(self) -> str:
        """Return the name of the pipeline."""
        return self.unit.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Address:
    """Where the driver listens, and the token that lets a task in. Not shown: it is a secret."""

    host: str
    port: int
    token: bytes = field(repr=False)


Amounts = TypeVar("Amounts", Progress, Done)


def _by_name(how: Callable[[Any, Any], Any], one: Amounts, other: Amounts) -> dict[str, Any]:
    """Return the fields of two amounts, each put together with its like."""
    return {
        each.name: how(getattr(one, each.name), getattr(other, each.name)) for each in fields(one)
    }


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
