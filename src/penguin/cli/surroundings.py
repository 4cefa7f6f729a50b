"""What a run takes from the process around it, handed in through the context of the command."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lakebed.polling import Stop, stop_on_signals
from lakebed.telemetry.events import Emit


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """How the run waits, and how it learns that it is to stop."""

    stop: Stop = field(default_factory=Stop)
    listen: Callable[[Stop, Emit], None] = stop_on_signals
    """Lets signals ask for the stop."""
