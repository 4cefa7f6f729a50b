"""A batch as a trace: what the driver did when, and its units, from what events say.

A look that finds nothing makes no trace. The batch ends with its step, so that the hand-off and an
inline commit are in it.
"""

import threading
from collections.abc import Callable
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
from lakebed.telemetry.export.spans import Span, TracedBatch, Value
from lakebed.telemetry.health import PartKind

MOST_UNITS = 1000
"""The units of a batch that have spans of their own; a trace of more is unreadable."""
COUNTS = ("files_read", "files_failed", "records", "bytes_read", "parquet_files", "bytes_written")
"""What the span of a unit says of it."""


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
    spans: list[Span] = field(default_factory=list)
    units: dict[str, _TracedUnit] = field(default_factory=dict)
    journaled: bool = False

    def add(self, name: str, start: float, end: float, **attributes: Value) -> None:
        told = {"pipeline": self.batch.pipeline, **attributes}
        span = self.batch.part(name, parent=self.batch.root, took=(start, end), attributes=told)
        self.spans.append(span)

    def add_units(self) -> None:
        """Turn what units have reported into spans below that of the run."""
        run = self.batch.span(BatchStep.RUN)
        for name, unit in self.units.items():
            told = {"unit": name, **{count: getattr(unit.report, count) for count in COUNTS}}
            took = (unit.began, unit.ended)
            self.spans.append(self.batch.part("unit", name, parent=run, took=took, attributes=told))
        self.units = {}

    def ended(self, at: float, error: str | None) -> list[Span]:
        """Return every span of it.

        An attempt that was not journaled comes again as the same entry, so its spans get other
        ids: those of the batch are for the attempt that counts.
        """
        root = self.batch.part(
            "batch", parent=None, took=(self.began, at), attributes=self.attributes, error=error
        )
        spans = [root, *self.spans]
        return spans if self.journaled else [_apart(span, str(self.began)) for span in spans]


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
                    batch.attributes |= {
                        "rows": event.rows,
                        "source_files": event.files,
                        "source_files_failed": event.failed,
                        "parquet_files": event.parquet_files,
                        "bytes": event.bytes,
                    }
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
            batch,
            began,
            {"pipeline": event.pipeline, "entry": event.entry, "units": event.units},
        )
        found.add(BatchStep.DISCOVER.value, began, listed)
        found.add("plan", listed, now, files=event.files, bytes=event.bytes, units=event.units)

    def _ended(self, pipeline: str, now: float, error: str | None) -> None:
        self._discovered.pop(pipeline, None)
        batch = self._open.pop(pipeline, None)
        if batch is not None:
            batch.add_units()
            for span in batch.ended(now, error):
                self._put(span)


def _apart(span: Span, salt: str) -> Span:
    """Return a span under ids of its own, in the same trace."""

    def other(own: str) -> str:
        return TracedBatch(pipeline=own, journal=salt, entry=0).span()

    parent = None if span.parent is None else other(span.parent)
    return replace(span, id=other(span.id), parent=parent)
