"""The current activity of this process, from its events.

Pipeline threads call `emit`, which only assigns fields and never blocks. Documents are built on
request, and may show a batch between two events.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from blizzard import events as blizzard
from blizzard.answers.answer import Problem
from lakebed.telemetry.events import (
    Event,
    LastStepTaken,
    NextStepDue,
    StepFailed,
    StepFinished,
)
from lakebed.telemetry.health import PartKind
from liveview.model import (
    CurrentBatch,
    PartReport,
    Process,
    Stage,
    State,
    Unit,
    of_seconds,
)
from penguin.events.backlog import BacklogSeen, PipelineResumed, PipelineStopped
from penguin.events.commits import CommittedByOther, EntriesCommitted, FilesHeld

MOST_UNITS = 200
"""The most units of a batch in a document."""
MOST_KEPT = 10_000
"""The most units of a batch in memory."""

ORDER: dict[str, int] = {"running": 0, "failed": 1, "waiting": 2, "done": 3}

STEPS = (StepFailed, StepFinished, NextStepDue, LastStepTaken)
StageName = Literal["discover", "plan", "run", "journal", "publish", "commit"]
STAGES: tuple[StageName, ...] = ("discover", "plan", "run", "journal", "publish", "commit")


@dataclass(slots=True)
class _LiveBatch:
    entry: int
    files: int
    bytes: int
    began: float
    units: dict[str, Unit]
    more: int
    """Units beyond those in memory."""
    starts: dict[str, float] = field(default_factory=dict)
    """When each unit first reported."""
    total: blizzard.BatchProgress | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    """The duration of each finished stage."""
    since: float = 0.0
    """When the current stage began."""


@dataclass(slots=True)
class LivePart:
    """The current activity of one pipeline or table."""

    batch: _LiveBatch | None = None
    discovered: float | None = None
    problem: Problem | None = None
    halted: dict[str, Problem] = field(default_factory=dict)
    due: float | None = None
    over: bool = False
    waiting: int | None = None
    oldest: float | None = None
    changed: dict[str, int] = field(default_factory=dict)
    """Files that changed after ingestion, by source, as of its last full listing."""
    changes: int = 0

    def report(self, now: float) -> PartReport:
        """Return it as a document."""
        return PartReport(
            state=_state(self),
            problems=[*([] if self.problem is None else [self.problem]), *self.halted.values()],
            current_batch=None if self.batch is None else _batch(self.batch, now),
            next_listing_at=None if self.due is None else of_seconds(self.due),
            waiting=self.waiting,
            oldest_waiting_at=None if self.oldest is None else of_seconds(self.oldest),
            changed_files=dict(self.changed),
            changes=self.changes,
        )


class Live:
    """Listens to the events of one process."""

    def __init__(
        self,
        program: Literal["blizzard", "penguin"],
        *,
        version: str,
        seconds: Callable[[], float],
    ) -> None:
        self.program: Literal["blizzard", "penguin"] = program
        self.version = version
        self.started_at = of_seconds(seconds())
        self.pipelines: dict[str, LivePart] = {}
        self.tables: dict[str, LivePart] = {}
        self._seconds = seconds
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            blizzard.BatchStarted: self._started,
            blizzard.UnitReported: self._reported,
            blizzard.BatchProgress: self._progressed,
            blizzard.InferenceEnded: self._inferred,
            blizzard.StageFinished: self._stage,
            blizzard.BatchJournaled: self._changed,
            blizzard.SourcesListed: self._listed,
            blizzard.FilesCompacted: self._changed,
            blizzard.ContentReplaced: self._changed,
            StepFailed: self._failed,
            StepFinished: self._finished,
            NextStepDue: self._due,
            LastStepTaken: self._last,
            EntriesCommitted: self._changed,
            BacklogSeen: self._backlog,
            PipelineStopped: self._stopped,
            PipelineResumed: self._mended,
            FilesHeld: self._changed,
            CommittedByOther: self._changed,
        }

    def emit(self, event: Event) -> None:
        """Record an event."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def expect(self, kind: PartKind, name: str) -> None:
        """Register a pipeline or table before its first event."""
        (self.pipelines if kind is PartKind.PIPELINE else self.tables)[name] = LivePart()

    def process(self) -> Process:
        """Return the report of this process."""
        now = self._seconds()
        return Process(
            program=self.program,
            version=self.version,
            started_at=self.started_at,
            pipelines={name: part.report(now) for name, part in list(self.pipelines.items())},
            tables={name: part.report(now) for name, part in list(self.tables.items())},
        )

    def part(self, kind: PartKind, name: str) -> PartReport | None:
        """Return the report on a pipeline or table; None if this process does not run it."""
        part = (self.pipelines if kind is PartKind.PIPELINE else self.tables).get(name)
        return None if part is None else part.report(self._seconds())

    def _of(self, event: Any) -> LivePart:  # noqa: ANN401 - an event of a step, table or pipeline
        if isinstance(event, STEPS):
            parts = self.pipelines if event.kind is PartKind.PIPELINE else self.tables
            return parts.setdefault(event.who, LivePart())
        if hasattr(event, "table"):
            return self.tables.setdefault(event.table, LivePart())
        return self.pipelines.setdefault(event.pipeline, LivePart())

    def _started(self, event: blizzard.BatchStarted) -> None:
        part, now = self._of(event), self._seconds()
        kept = event.planned[:MOST_KEPT]
        batch = _LiveBatch(
            entry=event.entry,
            files=event.files,
            bytes=event.bytes,
            began=now,
            units={name: _waiting(name, files, size) for name, files, size in kept},
            more=len(event.planned) - len(kept),
            since=now,
        )
        if part.discovered is not None:
            batch.seconds["discover"] = part.discovered
        left = None if part.waiting is None else max(0, part.waiting - event.files)
        part.batch, part.due, part.waiting, part.oldest = batch, None, left, None

    def _reported(self, event: blizzard.UnitReported) -> None:
        batch = self._of(event).batch
        unit = None if batch is None else batch.units.get(event.unit)
        if batch is not None and unit is not None:
            now = self._seconds()
            done = event.files_read + event.files_failed >= unit.files
            ended: Literal["done", "failed"] = "failed" if event.files_failed else "done"
            batch.units[event.unit] = replace(
                unit,
                state=ended if done else "running",
                worker=event.worker,
                read_bytes=event.bytes_read,
                rows=event.records,
                bad_lines=event.bad_lines,
                seconds=now - batch.starts.setdefault(event.unit, now),
            )

    def _progressed(self, event: blizzard.BatchProgress) -> None:
        batch = self._of(event).batch
        # The last report is all zeros, as no unit is running any more.
        if batch is not None and event.bytes_read:
            batch.total = event

    def _inferred(self, event: blizzard.InferenceEnded) -> None:
        batch = self._of(event).batch
        if batch is not None:
            batch.total, batch.starts = None, {}
            batch.units = {
                name: _waiting(name, one.files, one.total_bytes)
                for name, one in batch.units.items()
            }

    def _stage(self, event: blizzard.StageFinished) -> None:
        part = self._of(event)
        if event.stage is blizzard.BatchStep.DISCOVER:
            part.discovered = event.seconds
        elif part.batch is not None:
            part.batch.seconds[event.stage.value] = event.seconds
            part.batch.since = self._seconds()
            if event.stage is blizzard.BatchStep.PUBLISH and "journal" in part.batch.seconds:
                part.batch = None

    def _listed(self, event: blizzard.SourcesListed) -> None:
        part = self._of(event)
        part.waiting, part.oldest = event.pending, event.oldest
        part.changed = {**part.changed, **event.changed}

    def _changed(self, event: Event) -> None:
        self._of(event).changes += 1

    def _failed(self, event: StepFailed) -> None:
        part, now = self._of(event), self._seconds()
        since = part.problem.since if part.problem is not None else of_seconds(now)
        part.problem = _problem(event, since)
        part.batch, part.over = None, event.next_try_secs is None
        part.due = None if event.next_try_secs is None else now + event.next_try_secs

    def _finished(self, event: StepFinished) -> None:
        part = self._of(event)
        part.batch, part.problem = None, None

    def _due(self, event: NextStepDue) -> None:
        self._of(event).due = self._seconds() + event.seconds

    def _last(self, event: LastStepTaken) -> None:
        part = self._of(event)
        part.over, part.due, part.batch = True, None, None

    def _backlog(self, event: BacklogSeen) -> None:
        self._of(event).waiting = event.entries

    def _stopped(self, event: PipelineStopped) -> None:
        part = self._of(event)
        part.changes += 1
        since = of_seconds(self._seconds())
        part.halted[event.pipeline] = _problem(event, since, subject=event.pipeline)

    def _mended(self, event: PipelineResumed) -> None:
        part = self._of(event)
        part.changes += 1
        part.halted.pop(event.pipeline, None)


def _problem(
    event: StepFailed | PipelineStopped, since: str | None, subject: str | None = None
) -> Problem:
    """Return a failure as a problem; the text of an unforeseen error may hold values."""
    message = event.error
    if event.code == "internal_error":
        message = "an internal error; the log has the details"
    return Problem(severity="error", code=event.code, message=message, since=since, subject=subject)


def _state(part: LivePart) -> State:
    if part.problem is not None or part.halted:
        return "failing"
    if part.batch is not None:
        return "running"
    if part.over:
        return "stopped"
    return "idle"


def _waiting(name: str, files: int, size: int) -> Unit:
    return Unit(id=name, files=files, state="waiting", total_bytes=size)


def _batch(batch: _LiveBatch, now: float) -> CurrentBatch:
    over = "run" in batch.seconds
    units = [_unit(unit, now, batch, over=over) for unit in list(batch.units.values())]
    units.sort(key=lambda unit: ORDER[unit.state])
    total = batch.total
    return CurrentBatch(
        entry=batch.entry,
        started_at=of_seconds(batch.began),
        files=batch.files,
        bytes=batch.bytes,
        read_bytes=0 if total is None else total.bytes_read,
        rows=0 if total is None else total.records,
        stages=_stages(batch, now),
        units=units[:MOST_UNITS],
        units_left_out=max(0, len(units) - MOST_UNITS) + batch.more,
    )


def _stages(batch: _LiveBatch, now: float) -> list[Stage]:
    """Return every stage of a batch with its state."""
    found: list[Stage] = []
    running = False
    for name in STAGES:
        if name in ("discover", "plan") or name in batch.seconds:
            found.append(Stage(name=name, state="done", seconds=batch.seconds.get(name)))
        elif running:
            found.append(Stage(name=name, state="waiting"))
        else:
            running, secs = True, round(max(0.0, now - batch.since), 3)
            found.append(Stage(name=name, state="running", seconds=secs))
    return found


def _unit(unit: Unit, now: float, batch: _LiveBatch, *, over: bool) -> Unit:
    """Return a unit with its current duration; once the run is over, every unit is done."""
    if over and unit.state in ("waiting", "running"):
        return replace(unit, state="done")
    if unit.state != "running":
        return unit
    return replace(unit, seconds=round(max(0.0, now - batch.starts[unit.id]), 3))
