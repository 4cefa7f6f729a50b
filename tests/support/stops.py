"""A runner that stops each unit after so many records, and small files that are cut."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blizzard.model.settings import DecodeLimits, Sizing
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.worker.download import OpenedStores, Stores
from blizzard.worker.progress import ProgressChannel
from blizzard.worker.unit import run_unit
from tests.support.runner import RunsOnly

NEVER = 10**9
NOT_BEGUN = 0


@dataclass
class Told(ProgressChannel):
    """A line on which the driver asks for a stop once so many records are told."""

    records: int

    @property
    def stop_soon(self) -> bool:
        return self.progress.records >= self.records


@dataclass
class Stopped(RunsOnly):
    """Runs units in this process; each is stopped after so many records, by its number."""

    stops: Callable[[int], int]
    parallelism: int = 2
    stores: Callable[[Work], Stores] = OpenedStores

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        stores = self.stores(work)
        return [
            run_unit(unit, work, stores, Told(self.stops(number)))
            for number, unit in enumerate(units)
        ]


def all_at(records: int) -> Stopped:
    return Stopped(lambda _unit: records)


FEW_LINES = DecodeLimits(block_bytes=700, short_bytes=100)
"""A few lines are decoded at a time."""
CUT = Sizing(smallest_unit=4_000, units_per_core=3, decoded_budget=1, decoding=FEW_LINES)
"""Small files are cut, and each of them is called large."""
UNCUT = Sizing(smallest_unit=10**9, decoded_budget=1, decoding=FEW_LINES)
"""One task reads a file, so that its first lines are what is read."""
