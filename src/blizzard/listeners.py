"""Listeners of a run: export of traces and lineage, and progress bars for a terminal."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from blizzard.events import BatchProgress, BatchStarted, UnitsEnded
from blizzard.model.settings import BlizzardSettings
from lakebed.telemetry.events import Emit, Event
from lakebed.units import plural


@contextmanager
def exporting(
    settings: BlizzardSettings, emit: Emit, environment: Mapping[str, str]
) -> Iterator[Emit]:
    """Export traces and lineage while the block runs; without configuration, load nothing."""
    traces, lineage = settings.export.traces(environment), settings.export.lineage()
    if traces is None and lineage is None:
        yield emit
        return
    from blizzard.exports import (  # noqa: PLC0415
        BatchTracer,
        LineageListener,
        tellers_of,
    )
    from lakebed.telemetry.export import (  # noqa: PLC0415
        delivered,
        encoder,
    )
    from penguin.telemetry import CommitTracer  # noqa: PLC0415

    spans = encoder(environment.get("OTEL_SERVICE_NAME", "blizzard"))
    batches = partial(BatchTracer, seconds=time.time)
    # Commits that blizzard makes itself are traced as penguin traces them.
    commits = partial(CommitTracer, seconds=time.time)
    runs = partial(LineageListener, seconds=time.time, pipelines=tellers_of(settings))
    with (
        delivered(emit, traces, spans, batches, commits) as traced,
        delivered(traced, lineage, b"".join, runs, together=1) as listened,
    ):
        yield listened


class BatchDisplay:
    """One progress bar per running batch."""

    def __init__(self, console: Console) -> None:
        self._console = console
        # A signal handler also emits, and may interrupt us here.
        self._lock = threading.RLock()
        self._lines: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.fields[counts]}"),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def write(self, line: str) -> None:
        """Print a log line above the bars, unchanged."""
        self._console.print(Text(line), soft_wrap=True)

    def emit(self, event: Event) -> None:
        """Show what an event says about a batch."""
        with self._lock:
            match event:
                case BatchStarted():
                    self._end(event.pipeline)
                    if not self._lines:
                        self._progress.start()
                    self._lines[event.pipeline] = self._progress.add_task(
                        f"{event.pipeline} {event.entry}",
                        total=event.bytes,
                        counts=plural(event.files, "file"),
                    )
                case BatchProgress() if event.pipeline in self._lines:
                    counts = (
                        plural(event.files_read, "file"),
                        plural(event.records, "record"),
                        plural(event.parquet_files, "Parquet file"),
                    )
                    self._progress.update(
                        self._lines[event.pipeline],
                        completed=event.bytes_read,
                        counts=", ".join(counts),
                    )
                case UnitsEnded():
                    self._end(event.pipeline)
                case _:
                    pass

    def _end(self, pipeline: str) -> None:
        line = self._lines.pop(pipeline, None)
        if line is not None:
            self._progress.remove_task(line)
            if not self._lines:
                self._progress.stop()
