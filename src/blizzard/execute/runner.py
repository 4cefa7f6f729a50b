"""The protocol of what runs work units: Spark in production, the same process in tests."""

from collections.abc import Callable, Sequence
from typing import Protocol

from blizzard.execute.spark.jvm_output import Said
from blizzard.model.files import UnitOutcome, Work, WorkUnit
from blizzard.model.progress import Report
from blizzard.model.rewriting import FileGroup, RewriteOutcome, Rewriting
from blizzard.model.settings import SparkSettings
from lakebed.errors import LakeError, Whose


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
