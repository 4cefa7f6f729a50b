"""The in-process runner: the same protocol as Spark's, the same worker, no JVM."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from blizzard.model.progress import Instruction, Progress, Supervisor
from blizzard.model.rewriting import FileGroup, RewriteOutcome, Rewriting
from blizzard.model.settings import SparkSettings
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.worker.download import OpenedStores, Stores
from blizzard.worker.progress import ProgressChannel
from blizzard.worker.quarantine.replay import run_replay
from blizzard.worker.rewrite_group import rewrite_group
from blizzard.worker.unit import run_unit
from lakebed.storage.store import Store


@dataclass
class Near(ProgressChannel):
    """A line to a driver in the same process, which answers at once."""

    supervisor: Supervisor
    unit: str

    @property
    def stop_soon(self) -> bool:
        return self._answer() is Instruction.STOP

    @property
    def hand_in(self) -> bool:
        return self._answer() is Instruction.HAND_IN

    def _answer(self) -> Instruction:
        return self.supervisor.answer()


@dataclass
class InProcessRunner:
    """Runs units one after the other in this process."""

    stores: Callable[[Work], Stores] = OpenedStores
    parallelism: int = 2
    sink: Callable[[Rewriting], Store] = lambda of: Store(of.sink.uri, of.sink.options)

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        stores = self.stores(work)
        supervisor = Supervisor(work.max_seconds, work.clock.seconds)
        return [
            (run_unit if unit.replay is None else run_replay)(
                unit, work, stores, Near(supervisor, unit.name)
            )
            for unit in units
        ]

    def rewrite(
        self,
        groups: Sequence[FileGroup],
        work: Rewriting,
        *,
        ended: Callable[[int], None] | None = None,
    ) -> list[RewriteOutcome]:
        store = self.sink(work)
        outcomes: list[RewriteOutcome] = []
        for group in groups:
            outcomes.append(rewrite_group(group, work, store))
            if ended is not None:
                ended(len(outcomes))
        return outcomes


class RunsOnly:
    """A runner of units that is never asked to rewrite a file."""

    def rewrite(
        self,
        groups: Sequence[FileGroup],
        work: Rewriting,
        *,
        ended: Callable[[int], None] | None = None,
    ) -> list[RewriteOutcome]:
        raise AssertionError("this runner rewrites no file")


@dataclass
class RewriteRace(InProcessRunner):
    """Rewrites files, and lets another writer act before or after, at most `times` times."""

    after: Callable[[], object] = lambda: None
    before: Callable[[], object] = lambda: None
    times: int = 1_000_000

    def rewrite(
        self, groups: Sequence[FileGroup], work: Rewriting, **progress: Any
    ) -> list[RewriteOutcome]:
        acts = self.times > 0
        self.times -= 1
        if acts:
            self.before()
        outcomes = super().rewrite(groups, work, **progress)
        if acts:
            self.after()
        return outcomes


@dataclass
class FaultyRunner(InProcessRunner):
    """Runs units that come upon a fault of their own as soon as they have read some rows."""

    fault: Exception = field(default_factory=RuntimeError)

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        stores = self.stores(work)
        supervisor = Supervisor(work.max_seconds, work.clock.seconds)
        return [
            run_unit(
                unit,
                work,
                stores,
                Near(supervisor, unit.name, progress=FaultyProgress(fault=self.fault)),
            )
            for unit in units
        ]


@dataclass(kw_only=True)
class FaultyProgress(Progress):
    """Progress that cannot be counted."""

    fault: Exception

    def __setattr__(self, name: str, value: object) -> None:
        if name == "records" and value:
            raise self.fault
        super().__setattr__(name, value)


@dataclass
class InsideService(InProcessRunner):
    """The in-process runner as a service makes it, starts and stops it."""

    def stop(self) -> None:
        pass


def inside(_settings: SparkSettings, **_told: object) -> InsideService:
    """Make a runner that needs no Spark."""
    return InsideService()


@dataclass
class Meanwhile(RunsOnly):
    """A runner that lets something happen while the units of each batch run."""

    happens: Callable[[], object]
    error: Exception | None = None
    """Why the batch fails after that."""
    parallelism: int = 2

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        outcomes = InProcessRunner().run(units, work)
        self.happens()
        if self.error is not None:
            raise self.error
        return outcomes
