"""The in-process runner: the same protocol as Spark's, the same worker, no JVM."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blizzard.flow import UnitOutcome, Work, WorkUnit
from blizzard.worker import OpenedStores, Stores, run_unit


@dataclass
class InProcessRunner:
    """Runs units one after the other in this process."""

    stores: Callable[[Work], Stores] = OpenedStores
    parallelism: int = 2

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        stores = self.stores(work)
        return [run_unit(unit, work, stores) for unit in units]
