"""How far the running batches are, as bars on a terminal; log lines pass above them.

While a pipeline has no batch, a line says what it waits for.
"""

import time
from collections.abc import Callable, Mapping

from rich.console import Console
from rich.progress import ProgressColumn, Task
from rich.text import Text

from blizzard.events import (
    BatchProgress,
    BatchStarted,
    NextBatchDue,
    NothingNew,
    SourcesWatched,
    UnitsEnded,
)
from lakebed.telemetry.events import Event, LastStepTaken, StepFailed, StopRequested
from lakebed.terminal.progress_bars import ProgressBars
from lakebed.units import in_words, plural, span


class Counted(ProgressColumn):
    """How much a batch has done of something, in words."""

    def __init__(self, words: Callable[[Mapping[str, int]], str]) -> None:
        super().__init__()
        self._words = words

    def render(self, task: Task) -> Text:
        """Return it."""
        return Text(self._words(task.fields))


class Speed(ProgressColumn):
    """How fast a batch is read; nothing before that is known."""

    def render(self, task: Task) -> Text:
        """Return it, in the units of all sizes."""
        speed = task.speed
        return Text("" if speed is None else f"{in_words(round(speed))}/s")


class Display:
    """One bar per running batch, and one line per pipeline that waits for the next one."""

    def __init__(self, console: Console, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._watched: dict[str, str] = {}
        """What each pipeline watches, in words."""
        self._bars = ProgressBars(
            console,
            Counted(lambda of: f"{of['files_read']:,}/{plural(of['files'], 'file')}"),
            Counted(lambda of: plural(of["records"], "record")),
            Speed(),
            Counted(lambda of: plural(of["parquet_files"], "Parquet file")),
        )
        self.write = self._bars.write

    def emit(self, event: Event) -> None:
        """Show what an event says of a batch."""
        with self._bars.lock:
            match event:
                case SourcesWatched():
                    self._watched[event.pipeline] = event.sentence()
                    self._idle(event.pipeline)
                case NothingNew():
                    self._idle(event.pipeline)
                case NextBatchDue():
                    self._gather(event)
                case StopRequested():
                    self._watched.clear()
                    self._bars.end_idle()
                case LastStepTaken(who=name) | StepFailed(who=name):
                    self._bars.end(_idle_line(name))
                case BatchStarted():
                    self._bars.end(_idle_line(event.pipeline))
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

    def _idle(self, pipeline: str) -> None:
        """Show what a pipeline watches, if it goes on when everything is read."""
        text = self._watched.get(pipeline)
        if text is not None:
            self._bars.idle(_idle_line(pipeline), lambda: text)

    def _gather(self, event: NextBatchDue) -> None:
        """Show how many files wait, and count the seconds down."""
        due = self._seconds() + event.starts_in_secs
        files = plural(event.files, "file")

        def waits() -> str:
            left = span(due - self._seconds())
            return f"{event.pipeline}: {files} waiting, next batch in {left}"

        self._bars.idle(_idle_line(event.pipeline), waits)


def _idle_line(pipeline: str) -> str:
    return f"{pipeline} waits"
