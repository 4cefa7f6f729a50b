"""The protocol of a runner of work units, and the counters of its attempts.

A batch counts as started with the first report: before that no file was open that could have killed
the process. Work that never reaches the journal (a repeated attempt, a file that failed at its end,
a batch that was not journaled) is also counted as discarded, so done minus discarded is what was
journaled.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from blizzard.events import WorkDiscarded, WorkDone
from blizzard.execute.spark.jvm import Said
from blizzard.model.progress import Done, Report
from blizzard.model.rewriting import FileGroup, RewriteOutcome, Rewriting
from blizzard.model.settings import SparkSettings
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from lakebed.errors import LakeError, Whose
from lakebed.telemetry.events import Emit


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


NOTHING = Done()


def balanced(
    heard: Mapping[str, Done], winners: Sequence[tuple[str, Done]], journaled: Done
) -> tuple[Done, Done]:
    """Return the work missing from the reports, and the work that was not journaled.

    `heard` is the last report of every attempt, `winners` the final work of the attempts whose
    outcome counts. Reports may be lost, so the journaled work is counted as done in any case.
    """
    rest = NOTHING
    for attempt, done in winners:
        rest += done.since(heard.get(attempt, NOTHING))
    everything = sum(heard.values(), rest)
    never_told = replace(journaled.since(everything), write_seconds=[])
    return rest + never_told, replace(everything.since(journaled), write_seconds=[])


class Attempts:
    """Collects the reports of one pipeline's running units."""

    def __init__(self, pipeline: str, emit: Emit, *, units_report: bool = False) -> None:
        self._pipeline = pipeline
        self._emit = emit
        self._units_report = units_report
        # Held while a start is recorded: no unit reads a byte before its report is answered.
        self._lock = threading.Lock()
        self._running = False
        self._note: Callable[[], None] | None = None
        self._heard: dict[str, Done] = {}

    @contextmanager
    def running(self, note_start: Callable[[], None]) -> Iterator[None]:
        """Accept reports while a batch runs; record its start with the first one.

        If units cannot report, the start is recorded at once.
        """
        with self._lock:
            self._discard()
            self._running = True
            if self._units_report:
                self._note = note_start
            else:
                note_start()
        try:
            yield
        finally:
            with self._lock:
                self._running, self._note = False, None

    def heard(self, report: Report) -> None:
        """Process a report; ignore it after the batch has ended."""
        with self._lock:
            if not self._running:
                return
            if self._note is not None:
                # If the store does not answer, the next report tries again.
                with contextlib.suppress(LakeError):
                    self._note()
                    self._note = None
            new = report.done.since(self._heard.get(report.attempt, NOTHING))
            self._heard[report.attempt] = report.done
            if new != NOTHING:
                self._emit(WorkDone(pipeline=self._pipeline, done=new))

    def settle(self, winners: Sequence[tuple[str, Done]], journaled: Done) -> None:
        """Reconcile the counters with the journal, and count discarded work."""
        with self._lock:
            rest, discarded = balanced(self._heard, winners, journaled)
            self._heard = {}
            self._emit(WorkDone(pipeline=self._pipeline, done=rest))
            self._emit_discarded(discarded)

    def _discard(self) -> None:
        """Count the unjournaled work of an earlier batch as discarded."""
        discarded = sum(self._heard.values(), NOTHING)
        self._heard = {}
        self._emit_discarded(discarded)

    def _emit_discarded(self, done: Done) -> None:
        if replace(done, write_seconds=[]) != NOTHING:
            self._emit(WorkDiscarded(pipeline=self._pipeline, done=done))
