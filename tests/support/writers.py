"""Runs that take turns at a pipeline, on machines that a test makes up."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from blizzard.journal.lease import Lease, Machine
from lakebed.telemetry.events import Emit, Event
from tests.support.builders import Hands

LATER = (f"tick {number}" for number in count(8))
"""Another beginning each time: a process id that was given again."""


def machine(host: str = "here", *, alive: bool = True, boot: str | None = "boot-1") -> Machine:
    """Make up a machine on which every other process is alive, or none."""
    return Machine(host=host, id=boot, born=lambda _process: "tick 7" if alive else next(LATER))


def lease(
    run: str = "run-1",
    *,
    pipeline: str = "default",
    on: Machine | None = None,
    wait: Callable[[float], bool] = lambda _seconds: False,
    emit: Emit = lambda _event: None,
) -> Lease:
    """Return a lease whose waits are over at once."""
    return Lease(pipeline, run, machine=on or machine(), clock=Hands().clock, emit=emit, wait=wait)


@dataclass
class Waits:
    """Remembers how long was waited, and lets something happen meanwhile."""

    meanwhile: Callable[[], object] = lambda: None
    stop_after: int | None = None
    seconds: list[float] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def __call__(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        self.meanwhile()
        return self.stop_after is not None and len(self.seconds) >= self.stop_after
