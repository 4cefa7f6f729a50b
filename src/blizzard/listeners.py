"""Listeners of a run: export of traces and lineage, and progress bars for a terminal."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import Task

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
from lakebed.terminal.progress import ProgressBars
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
