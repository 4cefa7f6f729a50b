"""A batch as a trace: what the driver did when, and its units, from what events say.

A look that finds nothing makes no trace. The batch ends with its step, so that the hand-off and an
inline commit are in it.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from blizzard.events import (
    BatchJournaled,
    BatchStarted,
    BatchStep,
    InferenceEnded,
    StageFinished,
    UnitReported,
    UnitsEnded,
)
from lakebed.telemetry.events import Event, StepFailed, StepFinished
from lakebed.telemetry.export.spans import BATCH, Span, TracedBatch, Value
from lakebed.telemetry.health import PartKind
from lakebed.terminal.console import picked

MOST_UNITS = 1000
"""The units of a batch that have spans of their own; a trace of more is unreadable."""
COUNTS = "files_read files_failed records bytes_read parquet_files bytes_written"
"""What the span of a unit says of it."""
ROWS = "rows source_files=files source_files_failed=failed parquet_files bytes"
"""What the span of a journaled batch says of it."""
_Part = tuple[tuple[str, ...], str, tuple[float, float], Mapping[str, Value]]
"""The names of a span, the one that it is below, when it was, and what it says."""


@dataclass(slots=True)
class _TracedUnit:
    began: float
    ended: float
    report: UnitReported


@dataclass(slots=True)
class _OpenBatch:
    """A batch that has not ended."""

    batch: TracedBatch
    began: float
    attributes: dict[str, Value]
    parts: list[_Part] = field(default_factory=list)
    units: dict[str, _TracedUnit] = field(default_factory=dict)
    journaled: bool = False

    def add(self, name: str, start: float, end: float, **attributes: Value) -> None:
        attributes["pipeline"] = self.batch.pipeline
        self.parts.append(((name,), BATCH, (start, end), attributes))

    def add_units(self) -> None:
        """Turn what units have reported into spans below that of the run."""
        for name, unit in self.units.items():
            attributes = {"unit": name, **picked(unit.report, COUNTS)}
            self.parts.append((("unit", name), BatchStep.RUN, (unit.began, unit.ended), attributes))
        self.units = {}

    def ended(self, at: float, error: str | None) -> Iterator[Span]:
        """Yield every span of it.

        An attempt that was not journaled comes again as the same entry, so its spans get other
        ids: those of the batch are for the attempt that counts.
        """
        attempt = "" if self.journaled else str(self.began)
        batch = replace(self.batch, attempt=attempt)
        took = self.began, at
        yield batch.part(BATCH, below=None, took=took, attributes=self.attributes, error=error)
        for name, below, took, attributes in self.parts:
            yield batch.part(*name, below=below, took=took, attributes=attributes)


class BatchTracer:
    """Listens to the events of every pipeline."""

    def __init__(self, put: Callable[[Span], None], seconds: Callable[[], float]) -> None:
        self._put, self._seconds = put, seconds
        self._lock = threading.Lock()
        self._discovered: dict[str, tuple[float, float]] = {}
        self._open: dict[str, _OpenBatch] = {}

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        now = self._seconds()
        with self._lock:
            match event:
                case StageFinished(stage=BatchStep.DISCOVER):
                    self._discovered[event.pipeline] = (now - event.seconds, now)
                case BatchStarted():
                    self._started(event, now)
                case StageFinished() if event.pipeline in self._open:
                    self._open[event.pipeline].add(event.stage.value, now - event.seconds, now)
                case UnitReported() if event.pipeline in self._open:
                    self._reported(event, now)
                case InferenceEnded() if event.pipeline in self._open:
                    self._open[event.pipeline].units = {}
                case UnitsEnded() if event.pipeline in self._open:
                    self._open[event.pipeline].add_units()
                case BatchJournaled() if event.pipeline in self._open:
                    batch = self._open[event.pipeline]
                    batch.journaled = True
                    batch.attributes |= picked(event, ROWS)
                case StepFinished(kind=PartKind.PIPELINE):
                    self._ended(event.who, now, None)
                case StepFailed(kind=PartKind.PIPELINE):
                    self._ended(event.who, now, event.shown)
                case _:
                    pass

    def _reported(self, event: UnitReported, now: float) -> None:
        """Note what a unit reports while it runs, from its first report to its last."""
        units = self._open[event.pipeline].units
        began = units[event.unit].began if event.unit in units else now
        if event.unit in units or len(units) < MOST_UNITS:
            units[event.unit] = _TracedUnit(began, now, event)

    def _started(self, event: BatchStarted, now: float) -> None:
        began, listed = self._discovered.pop(event.pipeline, (now, now))
        batch = TracedBatch(pipeline=event.pipeline, journal=event.journal, entry=event.entry)
        found = self._open[event.pipeline] = _OpenBatch(
            batch, began, picked(event, "pipeline entry units")
        )
        found.add(BatchStep.DISCOVER.value, began, listed)
        found.add("plan", listed, now, **picked(event, "files bytes units"))

    def _ended(self, pipeline: str, now: float, error: str | None) -> None:
        self._discovered.pop(pipeline, None)
        batch = self._open.pop(pipeline, None)
        if batch is not None:
            batch.add_units()
            for span in batch.ended(now, error):
                self._put(span)
