"""How far the running batches are, as bars on a terminal; log lines pass above them."""

from rich.console import Console
from rich.progress import TextColumn, TransferSpeedColumn

from blizzard.events import BatchProgress, BatchStarted, UnitsEnded
from lakebed.progress_bars import ProgressBars
from lakebed.telemetry.events import Event


class Display:
    """One bar per running batch; none at all while no batch runs."""

    def __init__(self, console: Console) -> None:
        self._bars = ProgressBars(
            console,
            TextColumn("{task.fields[files_read]}/{task.fields[files]} files"),
            TextColumn("{task.fields[records]:,} records"),
            TransferSpeedColumn(),
            TextColumn("{task.fields[parquet_files]} Parquet files"),
        )
        self.write = self._bars.write

    def emit(self, event: Event) -> None:
        """Show what an event says of a batch."""
        with self._bars.lock:
            match event:
                case BatchStarted():
                    self._bars.begin(
                        event.pipeline,
                        f"{event.pipeline} {event.entry}",
                        event.bytes,
                        files=event.files,
                        files_read=0,
                        records=0,
                        parquet_files=0,
                    )
                case BatchProgress():
                    self._bars.update(
                        event.pipeline,
                        completed=event.bytes_read,
                        files_read=event.files_read,
                        records=event.records,
                        parquet_files=event.parquet_files,
                    )
                case UnitsEnded():
                    self._bars.end(event.pipeline)
                case _:
                    pass
