"""Both programs as they run for long: what time may mend is tried again, and counted."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from lakebed.clock import Clock
from lakebed.errors import LakeError
from lakebed.retry import may_mend
from tests.support.s3 import QUICK
from tests.support.servers_lake import Lake

MOST_STEPS = 40


@dataclass
class Steady:
    """A blizzard and a penguin that go on; between tries of a request there are milliseconds."""

    lake: Lake
    clock: Clock | None = None
    on_failure: Callable[[], None] = lambda: None
    failures: list[LakeError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.blizzard = self.lake.blizzard(retry=QUICK, clock=self.clock)
        self.penguin = self.lake.penguin(retry=QUICK, clock=self.clock)

    def settle(self) -> None:
        """Step until neither has anything to do."""
        for _step in range(MOST_STEPS):
            works = [self._tried(step) for step in (self.blizzard.step, self.penguin.step)]
            if not any(works):
                return
        pytest.fail(f"still at work after {MOST_STEPS} steps; {self.failures[-1:]}")

    def _tried(self, step: Callable[[], bool]) -> bool:
        try:
            return step()
        except LakeError as error:
            if not may_mend(error):
                raise
            self.failures.append(error)
            self.on_failure()
            return True
