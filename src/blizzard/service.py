"""A run of blizzard: all pipelines of a configuration in parallel, until done or stopped.

Pipelines share one Spark session, one report channel and one stop request. Each has its own thread,
journal and lease, so a failure of one does not affect the others.
"""

import random
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial

from blizzard.discover.schedule import Pace
from blizzard.events import (
    BatchProgress,
    BatchStarted,
    DriverNotReached,
    InferenceEnded,
    SparkStarting,
    UnitReported,
    UnitsEnded,
)
from blizzard.execute.runner import MakeRunner, Runner, StartNotice
from blizzard.execute.spark.jvm import SPARK_SAID
from blizzard.handoff.publish import Publisher
from blizzard.journal.lease import Lease, renewed, this_machine
from blizzard.model.notices import Hints
from blizzard.model.progress import Progress, Report
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from blizzard.model.stores import open_reader
from blizzard.notices.listener import Subscription, open_queue
from blizzard.notices.queue import OpenQueue
from blizzard.outcomes import Statistics
from blizzard.pipeline import Pipeline
from blizzard.pipeline_log import PipelineLog
from blizzard.table_rules import TableOf, checks_schema
from lakebed.clock import Clock
from lakebed.polling import Stop, run_step, run_together
from lakebed.storage.store import Store
from lakebed.telemetry.events import Emit, Event, shared
from lakebed.types import CommitMode


@dataclass(slots=True)
class _RunningBatch:
    units: dict[str, Progress] = field(default_factory=dict)
    total: Progress = field(default_factory=Progress)


class Running:
    """Collects the reports of the units of running batches."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._batches: dict[str, _RunningBatch] = {}

    def heard(self, report: Report) -> None:
        """Record a unit's report, replacing its earlier one.

        So a retried unit counts from zero, and late reports of ended batches are ignored.
        """
        unit, progress = report.unit, report.progress
        with self._lock:
            batch = self._batches.get(report.pipeline)
            if batch is None:
                return
            batch.total = batch.total + progress - batch.units.get(unit, Progress())
            batch.units[unit] = progress
            # Emit under the lock, so that the zeros at a batch's end come last.
            self._emit_progress(report.pipeline, batch.total)
            self._emit(
                UnitReported(
                    pipeline=report.pipeline,
                    unit=unit.partition("/")[2],
                    files_read=progress.files_read,
                    files_failed=progress.files_failed,
                    bytes_read=progress.bytes_read,
                    records=progress.records,
                    parquet_files=progress.parquet_files,
                    bytes_written=progress.bytes_written,
                    bad_lines=progress.bad_lines,
                    worker=report.worker or None,
                )
            )

    def emit(self, event: Event) -> None:
        """Track the start and end of batches."""
        match event:
            case BatchStarted():
                with self._lock:
                    self._batches[event.pipeline] = _RunningBatch()
            case InferenceEnded():
                with self._lock:
                    if event.pipeline in self._batches:
                        self._batches[event.pipeline] = _RunningBatch()
                        self._emit_progress(event.pipeline, Progress())
            case UnitsEnded():
                with self._lock:
                    self._batches.pop(event.pipeline, None)
                    self._emit_progress(event.pipeline, Progress())
            case _:
                pass

    def _emit_progress(self, pipeline: str, total: Progress) -> None:
        self._emit(BatchProgress(pipeline=pipeline, **asdict(total)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a pipeline did in a run, and the error that ended it, if any."""

    settings: PipelineSettings
    statistics: Statistics
    error: BaseException | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Runs all pipelines of a configuration."""

    settings: BlizzardSettings
    emit: Emit
    stop: Stop
    once: bool
    make_runner: MakeRunner
    table_of: TableOf = lambda _pipeline: None
    clock: Clock = field(default_factory=Clock)
    chance: Callable[[], float] = random.random
    open_queue: OpenQueue = open_queue

    def run(self) -> list[Result]:
        """Run all pipelines until they are done or stopped; if one ends, the others continue."""
        running = Running(self.emit)
        emit = shared(self.emit, running.emit)
        starts = {each.name: StartNotice(units_report=True) for each in self.settings.pipelines}

        def heard(report: Report) -> None:
            running.heard(report)
            starts[report.pipeline].heard()

        spark = self.settings.spark
        runner = self.make_runner(
            spark,
            starting=lambda: emit(SparkStarting(master=spark.master)),
            stop_requested=lambda: self.stop.requested,
            heard=heard,
            unreached=lambda host, port: emit(DriverNotReached(host=host, port=port)),
            said=lambda line, severity: emit(SPARK_SAID[severity](line=line)),
        )
        results = self.run_on(runner, emit, starts)
        runner.stop()
        return results

    def run_on(
        self, runner: Runner, emit: Emit, starts: Mapping[str, StartNotice] | None = None
    ) -> list[Result]:
        """Run all pipelines on a runner that the caller starts and stops."""
        run_id = str(self.clock.fresh_id())
        subscriptions = {
            each.name: self._subscription(each, emit) for each in self.settings.pipelines
        }
        pipelines = {
            each.name: self._pipeline(
                each,
                runner,
                emit,
                run_id,
                (starts or {}).get(each.name),
                subscriptions[each.name],
            )
            for each in self.settings.pipelines
        }
        errors = run_together(
            {
                name: partial(self._poll, each, subscriptions[name], emit)
                for name, each in pipelines.items()
            },
            emit,
        )
        for each in pipelines.values():
            each.publisher.finish()
        return [
            Result(
                settings=each.settings,
                statistics=each.statistics,
                error=errors.get(name),
            )
            for name, each in pipelines.items()
        ]

    def _subscription(self, settings: PipelineSettings, emit: Emit) -> Subscription | None:
        """Return the subscription to a pipeline's queues; None when draining, which only lists."""
        if self.once or not any(source.notifications for source in settings.sources):
            return None
        return Subscription(settings, self.open_queue, stop=self.stop, clock=self.clock, emit=emit)

    def _poll(
        self, pipeline: Pipeline, subscription: Subscription | None, emit: Emit
    ) -> BaseException | None:
        """Step one pipeline, with its lease renewed, until it is done or stopped."""
        lease = pipeline.lease
        if lease is None:
            raise AssertionError("every pipeline of a service has a lease")
        with (
            renewed(lease, keep=lambda: pipeline.opened),
            subscription or nullcontext(),
        ):
            return run_step(
                pipeline.step,
                who=pipeline.settings.name,
                stop=self.stop,
                emit=emit,
                once=self.once,
                interval=pipeline.until_next_listing,
                delay=self._pace().first(),
                wait=subscription.wait if subscription else None,
            )

    def _pace(self) -> Pace:
        return Pace(drain=self.once, jitter=self.settings.poll_jitter, chance=self.chance)

    def _pipeline(
        self,
        settings: PipelineSettings,
        runner: Runner,
        emit: Emit,
        run_id: str,
        start: StartNotice | None = None,
        subscription: Subscription | None = None,
    ) -> Pipeline:
        return Pipeline(
            settings=settings,
            runner=runner,
            publisher=self._publisher(settings, emit),
            log=PipelineLog(settings),
            check_schema=checks_schema(settings, self.table_of),
            clock=self.clock,
            emit=emit,
            pace=self._pace(),
            run_id=run_id,
            open_source=open_reader,
            open_sink=lambda location: Store(location.uri, location.options, make_folder=True),
            lease=Lease(
                settings.name,
                run_id,
                machine=this_machine(),
                clock=self.clock,
                emit=emit,
                wait=self.stop.wait,
            ),
            pause=self.stop.wait,
            total_concurrency=self.settings.total_concurrency,
            start=start or StartNotice(),
            hints=subscription.hints if subscription else Hints(),
        )

    def _publisher(self, settings: PipelineSettings, emit: Emit) -> Publisher:
        is_committed = PipelineLog(settings).has_entry
        if settings.sink.commit is CommitMode.PENGUIN:
            return Publisher(is_committed=is_committed)
        from penguin.pipeline import InlineCommitter  # noqa: PLC0415 - it loads Delta

        commit = InlineCommitter.of(
            self.table_of(settings.name),
            settings.sink.table_uri,
            settings.sink.storage_options,
            emit=emit,
            clock=self.clock,
            pipeline=settings.name,
        )
        return Publisher(is_committed=is_committed, commit=commit, finish=commit.finish)
