"""The protocol of whoever runs work units: Spark in production, the same process in tests."""

from collections.abc import Sequence
from typing import Protocol

from blizzard.flow import UnitOutcome, Work, WorkUnit


class Runner(Protocol):
    """Runs units somewhere; exactly one outcome per unit comes back, from one attempt."""

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        """Run all units and give their outcomes, in the order of the units."""

    @property
    def parallelism(self) -> int:
        """Say how many units can run at the same time."""
