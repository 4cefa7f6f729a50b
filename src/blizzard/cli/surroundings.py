"""The environment of commands, passed in through the command's context."""

from collections.abc import Callable
from dataclasses import dataclass, field

from blizzard.execute.runner import MakeRunner
from lakebed.clock import Clock
from lakebed.polling import Stop, stop_on_signals
from lakebed.telemetry.events import Emit


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The runner, clock and stop signal of a command, replaceable in tests."""

    make_runner: MakeRunner | None = None
    """None for Spark, which starts with the first batch."""
    clock: Clock = field(default_factory=Clock)
    stop: Stop = field(default_factory=Stop)
    listen: Callable[[Stop, Emit], None] = stop_on_signals
    """Lets signals ask for the stop."""
    also: Emit = lambda _event: None
    """Receives every event that is logged."""
