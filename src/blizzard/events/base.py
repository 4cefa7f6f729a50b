"""What the events of a pipeline have in common."""

from collections.abc import Iterable
from typing import ClassVar

from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.health import Part, PartKind
from lakebed.telemetry.measures import Count, Measure, Observe, Reading


class PipelineEvent(Event):
    """Something that happened to a pipeline, whose name starts the sentence and labels metrics.

    A subclass may name the counter that it moves (`counts`) and the field that says by how much
    (`amount`); without that field it counts itself.
    """

    pipeline: str
    _counts: ClassVar[str] = ""
    _amount: ClassVar[str] = ""

    def __init_subclass__(
        cls, *, level: Level | None = None, counts: str = "", amount: str = ""
    ) -> None:
        cls._counts, cls._amount = counts, amount
        super().__init_subclass__(level=level)

    def sentence(self) -> str:
        """Return the pipeline and what happened to it."""
        return f"{self.pipeline}: {self.message()}"

    def message(self) -> str:
        """Return what happened, without the pipeline."""
        return super().sentence()

    def measures(self) -> Iterable[Measure]:
        """Move the counter that the class names."""
        if self._counts:
            yield self.count(self._counts, getattr(self, self._amount) if self._amount else 1)

    @property
    def part(self) -> Part:
        """Return the pipeline as a part of the program."""
        return Part(PartKind.PIPELINE, self.pipeline)

    def count(self, metric: str, amount: float = 1, **labels: str) -> Count:
        """Return a step of a counter of this pipeline."""
        return Count(metric, amount, {"pipeline": self.pipeline, **labels})

    def observe(self, metric: str, seconds: float, **labels: str) -> Observe:
        """Return an observation of a histogram of this pipeline."""
        return Observe(metric, seconds, {"pipeline": self.pipeline, **labels})

    def reading(self, metric: str, value: float, **labels: str) -> Reading:
        """Return the value of a gauge of this pipeline."""
        return Reading(metric, value, {"pipeline": self.pipeline, **labels})
