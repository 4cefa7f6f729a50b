"""Listeners of a run: export of traces and lineage, and progress bars for a terminal."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
from rich.text import Text

from blizzard.events import (
    BatchProgress,
    BatchStarted,
    NextBatchDue,
    NothingNew,
    SourcesWatched,
    UnitsEnded,
)
from blizzard.model.settings import BlizzardSettings
from lakebed.telemetry.events import Emit, Event, LastStepTaken, StepFailed, StopRequested
from lakebed.terminal.console import picked
from lakebed.units import in_words, plural, span


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
        CourierLimits,
        delivered,
        encoder,
    )
    from penguin.telemetry import CommitTracer  # noqa: PLC0415

    spans = encoder(environment.get("OTEL_SERVICE_NAME", "blizzard"))
    batches = partial(BatchTracer, seconds=time.time)
    # Commits that blizzard makes itself are traced as penguin traces them.
    commits = partial(CommitTracer, seconds=time.time)
    runs = partial(LineageListener, seconds=time.time, pipelines=tellers_of(settings))
    alone = CourierLimits(together=1, pause_secs=0.1)
    with (
        delivered(emit, traces, spans, batches, commits) as traced,
        delivered(traced, lineage, b"".join, runs, limits=alone) as listened,
    ):
        yield listened


COUNTS = "files_read records parquet_files"


def _speed(task: Task) -> str:
    return "" if task.speed is None else f"{in_words(round(task.speed))}/s"


WAITS = "waits"
"""The field of a waiting line: a function that returns its text."""
Words = Callable[[Task], str]


class _LiveText(ProgressColumn):
    """Text that is computed at each refresh; empty on waiting lines."""

    def __init__(self, words: Words) -> None:
        super().__init__()
        self._words = words

    def render(self, task: Task) -> Text:
        """Return the words for a task."""
        is_waiting = WAITS in task.fields and self._words is not _title
        return Text("" if is_waiting else self._words(task), no_wrap=True)


class _Bar(BarColumn):
    """A bar, except on waiting lines."""

    def render(self, task: Task) -> Any:  # noqa: ANN401 - rich's own
        """Return the bar of a task."""
        return Text("") if WAITS in task.fields else super().render(task)


def _title(task: Task) -> str:
    return str(task.fields[WAITS]()) if WAITS in task.fields else task.description


class ProgressBars:
    """One line for each item in progress or waited for, by name."""

    def __init__(self, to: Console, *after_bar: Words) -> None:
        self._console = to
        # A signal handler also emits, and may interrupt us here.
        self.lock = threading.RLock()
        self._lines: dict[str, TaskID] = {}
        self._progress = Progress(
            _LiveText(_title),
            _Bar(bar_width=20),
            *map(_LiveText, after_bar),
            console=to,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def write(self, line: str) -> None:
        """Print a log line above the bars, unchanged."""
        self._console.print(Text(line), soft_wrap=True)

    def show(self, name: str, description: str, *, total: float | None, **fields: Any) -> None:  # noqa: ANN401 - rich takes any field
        """Show or update a bar; one without a total only shows activity."""
        if name in self._lines:
            line = self._lines[name]
            self._progress.update(line, description=description, total=total, **fields)
            return
        if not self._lines:
            self._progress.start()
        self._lines[name] = self._progress.add_task(description, total=total, **fields)

    def waiting(self, name: str, waits: Callable[[], str]) -> None:
        """Show a waiting line, without a bar."""
        self.show(f"{name} {WAITS}", "", total=None, waits=waits)

    def update(self, name: str, **changes: Any) -> None:  # noqa: ANN401
        """Update a bar if it is shown."""
        if name in self._lines:
            self._progress.update(self._lines[name], **changes)

    def end(self, *names: str) -> None:
        """Remove lines if they are shown."""
        for name in names:
            if (line := self._lines.pop(name, None)) is not None:
                self._progress.remove_task(line)
                if not self._lines:
                    self._progress.stop()

    def end_waiting(self, *names: str) -> None:
        """Remove the waiting lines of these names, or all without names."""
        lines = [f"{name} {WAITS}" for name in names]
        self.end(*lines or [line for line in self._lines if line.endswith(f" {WAITS}")])


class BatchDisplay:
    """One bar per running batch, and one line per pipeline that waits for the next one."""

    def __init__(self, console: Console, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._watched: dict[str, str] = {}
        """What each pipeline watches, in words."""
        self._bars = ProgressBars(
            console,
            lambda of: f"{of.fields['files_read']:,}/{plural(of.fields['files'], 'file')}",
            lambda of: plural(of.fields["records"], "record"),
            _speed,
            lambda of: plural(of.fields["parquet_files"], "Parquet file"),
        )
        self.write = self._bars.write

    def emit(self, event: Event) -> None:
        """Show what an event says about a batch."""
        with self._bars.lock:
            match event:
                case SourcesWatched():
                    self._watched[event.pipeline] = event.sentence()
                    self._wait(event.pipeline)
                case NothingNew():
                    self._wait(event.pipeline)
                case NextBatchDue():
                    self._count_down(event)
                case StopRequested():
                    self._watched.clear()
                    self._bars.end_waiting()
                case LastStepTaken(who=name) | StepFailed(who=name):
                    self._bars.end_waiting(name)
                case BatchStarted(pipeline=name):
                    self._bars.end_waiting(name)
                    counts = dict.fromkeys(COUNTS.split(), 0)
                    title = f"{name} {event.entry}"
                    self._bars.show(name, title, total=event.bytes, files=event.files, **counts)
                case BatchProgress():
                    counts = picked(event, COUNTS)
                    self._bars.update(event.pipeline, completed=event.bytes_read, **counts)
                case UnitsEnded():
                    self._bars.end(event.pipeline)
                case _:
                    pass

    def _wait(self, pipeline: str) -> None:
        """Show what a pipeline watches, if it runs on after reading everything."""
        text = self._watched.get(pipeline)
        if text is not None:
            self._bars.waiting(pipeline, lambda: text)

    def _count_down(self, event: NextBatchDue) -> None:
        """Show how many files wait, with a countdown."""
        due = self._seconds() + event.starts_in_secs
        waiting = f"{event.pipeline}: {plural(event.files, 'file')} waiting, next batch in"
        self._bars.waiting(event.pipeline, lambda: f"{waiting} {span(due - self._seconds())}")
