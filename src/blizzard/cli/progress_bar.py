"""How far the running batches are, as bars on a terminal; log lines pass above them."""

import threading

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TransferSpeedColumn
from rich.text import Text

from blizzard.events import BatchProgress, BatchStarted, UnitsEnded
from lakebed.telemetry.events import Event


class Display:
    """One bar per running batch; none at all while no batch runs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        # A signal handler emits, too, and may interrupt us here.
        self._lock = threading.RLock()
        self._bars: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[files_read]}/{task.fields[files]} files"),
            TextColumn("{task.fields[records]:,} records"),
            TransferSpeedColumn(),
            TextColumn("{task.fields[parquet_files]} Parquet files"),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def write(self, line: str) -> None:
        """Print a log line above the bars, just as it is."""
        self._console.print(Text(line), soft_wrap=True)

    def emit(self, event: Event) -> None:
        """Show what an event says of a batch."""
        with self._lock:
            match event:
                case BatchStarted():
                    self._begin(event)
                case BatchProgress() if event.pipeline in self._bars:
                    self._progress.update(
                        self._bars[event.pipeline],
                        completed=event.bytes_read,
                        files_read=event.files_read,
                        records=event.records,
                        parquet_files=event.parquet_files,
                    )
                case UnitsEnded():
                    self._end(event.pipeline)
                case _:
                    pass

    def _begin(self, event: BatchStarted) -> None:
        if not self._bars:
            self._progress.start()
        self._bars[event.pipeline] = self._progress.add_task(
            f"{event.pipeline} {event.entry}",
            total=event.bytes,
            files=event.files,
            files_read=0,
            records=0,
            parquet_files=0,
        )

    def _end(self, pipeline: str) -> None:
        bar = self._bars.pop(pipeline, None)
        if bar is not None:
            self._progress.remove_task(bar)
        if not self._bars:
            self._progress.stop()
