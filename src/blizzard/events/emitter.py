"""Emits the events of one pipeline: some of them once, some with the time that a part took."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from blizzard.events.base import PipelineEvent
from blizzard.events.batch import (
    BatchStarted,
    FilesGather,
    NextBatchDue,
    Retried,
    StageFinished,
    Step,
    WriteRetried,
)
from lakebed.clock import Clock
from lakebed.telemetry.events import Emit, Event


@dataclass(slots=True)
class PipelineEmitter:
    """Emits the events of one pipeline."""

    pipeline: str
    emit: Emit
    clock: Clock
    _emitted: set[PipelineEvent] = field(default_factory=set)
    _gathering: bool = False
    """Whether the log says that files wait for more of them."""

    def all(self, events: Iterable[Event]) -> None:
        """Emit each of these."""
        for event in events:
            self.emit(event)

    def once(self, *events: PipelineEvent) -> None:
        """Emit those that have not been emitted yet with the same facts."""
        for event in events:
            if event not in self._emitted:
                self._emitted.add(event)
                self.emit(event)

    def gathering(self, files: int, due_in: float) -> None:
        """Emit that files wait for more of them: for the log once a batch, and for each listing."""
        facts: dict[str, Any] = {"pipeline": self.pipeline, "files": files}
        if not self._gathering:
            self.emit(FilesGather(**facts, starts_in_secs=due_in))
        self._gathering = True
        self.emit(NextBatchDue(**facts, starts_in_secs=due_in))

    def started(self, batch: BatchStarted) -> None:
        """Emit that a batch begins; the files that it leaves gather anew."""
        self._gathering = False
        self.emit(batch)

    @contextmanager
    def timed(self, stage: Step) -> Iterator[None]:
        """Emit how long a part of a batch took, if it succeeded."""
        began = self.clock.seconds()
        yield
        self.finished(stage, began)

    def finished(self, stage: Step, began: float) -> None:
        """Emit how long a part of a batch took."""
        seconds = self.clock.seconds() - began
        self.emit(StageFinished(pipeline=self.pipeline, stage=stage, seconds=seconds))

    def pausing(self, stage: Retried, pause: Callable[[float], object]) -> Callable[[float], None]:
        """Return the pause between two tries of a write, which is reported."""

        def reported(seconds: float) -> None:
            self.emit(WriteRetried(pipeline=self.pipeline, stage=stage, next_try_secs=seconds))
            pause(seconds)

        return reported
