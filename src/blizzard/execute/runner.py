"""The protocol of a runner of work units, and the note that a batch has started.

A batch counts as started with the first report: before that no file was open that could have killed
the process.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from blizzard.execute.spark.jvm import Said
from blizzard.model.progress import Report
from blizzard.model.rewriting import FileGroup, RewriteOutcome, Rewriting
from blizzard.model.settings import SparkSettings
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from lakebed.errors import LakeError, Whose


class WorkersDied(LakeError, code="workers_died", whose=Whose.EXTERNAL, retryable=True):
    """The processes that ran the units died on every attempt."""


class RunFailed(LakeError, code="run_failed", whose=Whose.EXTERNAL, retryable=True):
    """The units could not be run, for a reason unrelated to any of them."""


class RunnerDied(RunFailed):
    """The runner on this machine died while units ran, one of which may have caused it.

    It keeps the code of `RunFailed`, since the remedy is the same.
    """


class RunStopped(RunFailed):
    """A stop came before any unit began; the next run takes the files.

    It is not reported as a failure.
    """


class ExecutorsUnfit(LakeError, code="executors_unfit", whose=Whose.EXTERNAL):
    """No executor can run a unit: it lacks this package, or has another Python than the driver."""


class Rewriter(Protocol):
    """Rewrites data files; returns exactly one outcome per group."""

    def rewrite(
        self,
        groups: Sequence[FileGroup],
        work: Rewriting,
        *,
        ended: Callable[[int], None] | None = None,
    ) -> list[RewriteOutcome]:
        """Rewrite all groups and return the outcomes, in the order of the groups.

        `ended` receives the number of finished groups, from any thread. Raise `WorkersDied` if a
        group kills its processes, `RunFailed` if the groups could not be run at all.
        """


class Runner(Rewriter, Protocol):
    """Also runs units; returns exactly one outcome per unit, from one attempt."""

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        """Run all units and return their outcomes, in the order of the units.

        Raise `WorkersDied` if a unit kills its processes, `RunFailed` if they could not be run.
        """

    @property
    def parallelism(self) -> int:
        """Return the number of units that can run concurrently."""


class ServiceRunner(Runner, Protocol):
    """A runner that a command starts and stops."""

    def stop(self) -> None:
        """Stop the runner."""


class MakeRunner(Protocol):
    """Makes the runner of a run."""

    def __call__(
        self,
        settings: SparkSettings,
        /,
        *,
        starting: Callable[[], None],
        stop_requested: Callable[[], bool],
        heard: Callable[[Report], None],
        unreached: Callable[[str, int], None],
        said: Said,
    ) -> ServiceRunner:
        """Return a runner that reports to these functions."""


class StartNotice:
    """Records the start of one pipeline's batch with the first report of a unit."""

    def __init__(self, *, units_report: bool = False) -> None:
        self._units_report = units_report
        # Held while a start is recorded: no unit reads a byte before its report is answered.
        self._lock = threading.Lock()
        self._note: Callable[[], None] | None = None

    @contextmanager
    def running(self, note_start: Callable[[], None]) -> Iterator[None]:
        """Record the start of a batch that runs; if units cannot report, do so at once."""
        if self._units_report:
            self._note = note_start
        else:
            note_start()
        try:
            yield
        finally:
            with self._lock:
                self._note = None

    def heard(self) -> None:
        """Process a report; if the store does not answer, the next report tries again."""
        with self._lock, contextlib.suppress(LakeError):
            if self._note is not None:
                self._note()
                self._note = None
