"""What running units report, added up while their batch runs."""

import threading
from dataclasses import asdict, dataclass, field

from blizzard.events import BatchProgress, BatchStarted, InferenceEnded, UnitReported, UnitsEnded
from blizzard.model.progress import Progress, Report
from lakebed.telemetry.events import Emit, Event


@dataclass(slots=True)
class _Batch:
    units: dict[str, Progress] = field(default_factory=dict)
    total: Progress = field(default_factory=Progress)


class Running:
    """Collects the reports of every unit of a batch; a batch that has ended is forgotten."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._batches: dict[str, _Batch] = {}

    def heard(self, report: Report) -> None:
        """Take in what a unit has done; it replaces what it said before.

        So a unit that Spark runs again starts anew, and one that speaks late is not heard.
        """
        unit, progress = report.unit, report.progress
        with self._lock:
            batch = self._batches.get(report.pipeline)
            if batch is None:
                return
            batch.total = batch.total + progress - batch.units.get(unit, Progress())
            batch.units[unit] = progress
            # Told under the lock, so that the zeros of a batch's end come last.
            self._tell(report.pipeline, batch.total)
            self._emit(
                UnitReported(
                    pipeline=report.pipeline,
                    unit=unit.partition("/")[2],
                    files_read=progress.files_read,
                    files_failed=progress.files_failed,
                    bytes_read=progress.bytes_read,
                    records=progress.records,
                    bad_lines=report.done.quarantined,
                    worker=report.worker or None,
                )
            )

    def emit(self, event: Event) -> None:
        """Learn that a batch begins or ends."""
        match event:
            case BatchStarted():
                with self._lock:
                    self._batches[event.pipeline] = _Batch()
            case InferenceEnded():
                with self._lock:
                    if event.pipeline in self._batches:
                        self._batches[event.pipeline] = _Batch()
                        self._tell(event.pipeline, Progress())
            case UnitsEnded():
                with self._lock:
                    self._batches.pop(event.pipeline, None)
                    self._tell(event.pipeline, Progress())
            case _:
                pass

    def _tell(self, pipeline: str, total: Progress) -> None:
        self._emit(BatchProgress(pipeline=pipeline, **asdict(total)))
