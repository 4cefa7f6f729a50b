"""Units whose records take time by a clock that a test holds, so that batches end midway."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from blizzard.model.progress import Progress, Supervisor
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.worker.download import OpenedStores
from blizzard.worker.unit import run_unit
from tests.support.builders import Hands
from tests.support.runner import Near, RunsOnly


class Slow(Progress):
    """The progress of a unit that needs so many seconds for each record."""

    hands: Hands
    pace: float
    byte_pace: float

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "records" and value:
            self.hands.at += (value - self.records) * self.pace
        if name == "bytes_read" and value:
            self.hands.at += (value - self.bytes_read) * self.byte_pace
        super().__setattr__(name, value)


def slow(hands: Hands, pace: float, byte_pace: float = 0.0) -> Progress:
    class Slower(Slow):
        pass

    Slower.hands, Slower.pace, Slower.byte_pace = hands, pace, byte_pace
    return Slower()


@dataclass
class SlowRunner(RunsOnly):
    """Runs units one after the other, each record and each byte in so many seconds."""

    hands: Hands
    pace: float = 1.0
    byte_pace: float = 0.0
    parallelism: int = 2
    backwards: bool = False
    """Whether the last unit runs first, as it may where tasks run side by side."""

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        stores, supervisor = OpenedStores(work), Supervisor(work.max_seconds, work.clock.seconds)
        outcomes = [
            run_unit(each, work, stores, Near(supervisor, each.name, progress=self._progress()))
            for each in (reversed(units) if self.backwards else units)
        ]
        return outcomes[::-1] if self.backwards else outcomes

    def _progress(self) -> Progress:
        return slow(self.hands, self.pace, self.byte_pace)
