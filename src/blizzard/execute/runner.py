"""The protocol of a runner of work units, and the counters that its attempts report.

A batch counts as started with the first report: before that no file was open, so none can have
killed the process. Work that never reaches the journal (a repeated attempt, a file that failed at
its end, a batch that was not journaled) is counted a second time as discarded, so done minus
discarded is what was journaled.
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
    """The units could not be run, for a reason that lies in none of them."""


class RunnerDied(RunFailed):
    """What runs the units died on this machine while they ran; one of them may have caused it.

    It has the code of its kind: what to do about it is the same.
    """


class RunStopped(RunFailed):
    """A stop came before any unit began: nothing has happened, and the next run takes the files.

    It is not reported as a failure. It has the code of its kind.
    """


class ExecutorsUnfit(LakeError, code="executors_unfit", whose=Whose.EXTERNAL):
    """No executor can run a unit: it lacks this package, or has another Python than the driver."""


class Rewriter(Protocol):
    """Rewrites data files somewhere; exactly one outcome per group comes back."""

    def rewrite(
        self,
        groups: Sequence[FileGroup],
        work: Rewriting,
        *,
        ended: Callable[[int], None] | None = None,
    ) -> list[RewriteOutcome]:
        """Rewrite all groups and return the outcomes, in the order of the groups.

        `ended` gets the number of finished groups, from any thread. WorkersDied says that something
        in them kills the processes that rewrite them; RunFailed says that they could not be
        rewritten at all.
        """


class Runner(Rewriter, Protocol):
    """Also runs units; exactly one outcome per unit comes back, from one attempt."""

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        """Run all units and return their outcomes, in the order of the units.

        WorkersDied says that something in them kills the processes that run them; RunFailed says
        that they could not be run at all.
        """

    @property
    def parallelism(self) -> int:
        """Return how many units can run at the same time."""


class ServiceRunner(Runner, Protocol):
    """A runner that a command starts and stops."""

    def stop(self) -> None:
        """End what runs the units."""


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
        """Return the runner, whose news goes to these functions."""


NOTHING = Done()


def balanced(
    heard: Mapping[str, Done], winners: Sequence[tuple[str, Done]], journaled: Done
) -> tuple[Done, Done]:
    """Return what was done beyond the reports, and what was done and is not in the journal.

    `heard` is the last report of every attempt, `winners` what the attempts whose outcome counts
    have done in the end. Reports may be lost, so the journal is never behind the counters' truth.
    """
    rest = NOTHING
    for attempt, done in winners:
        rest += done.since(heard.get(attempt, NOTHING))
    everything = sum(heard.values(), rest)
    never_told = replace(journaled.since(everything), write_seconds=[])
    return rest + never_told, replace(everything.since(journaled), write_seconds=[])


class Attempts:
    """Takes in the reports of one pipeline's running units."""

    def __init__(self, pipeline: str, emit: Emit, *, units_report: bool = False) -> None:
        self._pipeline = pipeline
        self._emit = emit
        self._units_report = units_report
        # Held while a start is written down: no unit reads a byte before its call is answered.
        self._lock = threading.Lock()
        self._running = False
        self._note: Callable[[], None] | None = None
        self._heard: dict[str, Done] = {}

    @contextmanager
    def running(self, note_start: Callable[[], None]) -> Iterator[None]:
        """Take reports while a batch runs; its start is noted with the first one.

        Where units cannot report, it is noted at once.
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
        """Take in a report; one that comes after the batch has ended changes nothing."""
        with self._lock:
            if not self._running:
                return
            if self._note is not None:
                # A store that does not answer now is asked again with the next report.
                with contextlib.suppress(LakeError):
                    self._note()
                    self._note = None
            new = report.done.since(self._heard.get(report.attempt, NOTHING))
            self._heard[report.attempt] = report.done
            if new != NOTHING:
                self._emit(WorkDone(pipeline=self._pipeline, done=new))

    def settle(self, winners: Sequence[tuple[str, Done]], journaled: Done) -> None:
        """Bring the counters to what the journal says, and count what did not come into it."""
        with self._lock:
            rest, discarded = balanced(self._heard, winners, journaled)
            self._heard = {}
            self._emit(WorkDone(pipeline=self._pipeline, done=rest))
            self._emit_discarded(discarded)

    def _discard(self) -> None:
        """Count what an earlier batch has done that never came into the journal."""
        discarded = sum(self._heard.values(), NOTHING)
        self._heard = {}
        self._emit_discarded(discarded)

    def _emit_discarded(self, done: Done) -> None:
        if replace(done, write_seconds=[]) != NOTHING:
            self._emit(WorkDiscarded(pipeline=self._pipeline, done=done))
