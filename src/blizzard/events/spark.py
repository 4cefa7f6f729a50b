"""Spark and the connection to its executors, as events."""

from dataclasses import dataclass
from typing import ClassVar

from lakebed.telemetry.events import Event, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStarting(Event):
    """The Spark session is being started; this takes some seconds."""

    master: str

    def sentence(self) -> str:
        """Return where Spark runs."""
        return f"starting Spark on {self.master}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSaid(Event):
    """Spark, or the Java that it runs in, has printed a line that may matter."""

    level: ClassVar[Level] = Level.WARN
    line: str

    def sentence(self) -> str:
        """Return the line, and whose words they are."""
        return f"spark: {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkComplained(SparkSaid):
    """Spark has printed an error."""

    level: ClassVar[Level] = Level.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkMurmured(SparkSaid):
    """Spark has printed what it prints at every start."""

    level: ClassVar[Level] = Level.DEBUG


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverNotReached(Event):
    """No unit of a job could call the driver; the work was done anyway."""

    level: ClassVar[Level] = Level.WARN
    host: str
    port: int

    def sentence(self) -> str:
        """Return what is missing and what to look at."""
        return (
            f"executors cannot reach the driver at {self.host}:{self.port}: work continues, but "
            "progress is not shown and a stop waits for running units; set spark.driver.host to "
            "an address that they can reach and open spark.line_port, see docs/cluster.md"
        )
