"""What commands take from the process around them, handed in through the context of the command."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from blizzard.execute.runner import MakeRunner, ServiceRunner
from blizzard.model.settings import SparkSettings
from lakebed.clock import Clock
from lakebed.polling import Stop, stop_on_signals
from lakebed.telemetry.events import Emit


def spark_runner(settings: SparkSettings, **told: Any) -> ServiceRunner:  # noqa: ANN401 - MakeRunner says what
    """Return a runner that starts Spark with the first batch."""
    from blizzard.execute.spark.runner import SparkRunner  # noqa: PLC0415 - few commands start it

    return SparkRunner(settings, **told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Who runs the units, what time it is, and how the run learns that it is to stop."""

    make_runner: MakeRunner = spark_runner
    clock: Clock = field(default_factory=Clock)
    stop: Stop = field(default_factory=Stop)
    listen: Callable[[Stop, Emit], None] = stop_on_signals
    """Lets signals ask for the stop."""
    also: Emit = lambda _event: None
    """Receives every event that is logged."""
