"""Pipelines put together for tests, as the command line puts them together."""

from collections.abc import Callable

from blizzard.discover.schedule import Pace
from blizzard.execute.runner import Runner
from blizzard.handoff.publish import IsCommitted, Publisher
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import OpenReader, OpenStore
from blizzard.pipeline import Pipeline
from lakebed.clock import Clock
from lakebed.polling import Stop, run_step
from lakebed.storage.store import Reader, Store
from lakebed.telemetry.events import Emit
from tests.support.builders import PatientLog
from tests.support.waits import at_once
from tests.support.writers import lease, machine


def pipeline_of(
    settings: PipelineSettings,
    runner: Runner,
    *,
    publisher: Publisher | None = None,
    emit: Emit = lambda _event: None,
    open_source: OpenReader = lambda place: Reader(place.uri, place.options),
    open_sink: OpenStore = lambda place: Store(place.uri, place.options, make_folder=True),
    is_committed: IsCommitted = lambda _entry: False,
    clock: Clock | None = None,
    pause: Callable[[float], object] = at_once,
) -> Pipeline:
    """Return a pipeline that drains what is there."""
    clock = clock or Clock()
    run_id = str(clock.fresh_id())
    return Pipeline(
        settings=settings,
        runner=runner,
        publisher=publisher or Publisher(is_committed=is_committed),
        log=PatientLog(settings),
        clock=clock,
        emit=emit,
        pace=Pace(drain=True),
        run_id=run_id,
        open_source=open_source,
        open_sink=open_sink,
        # Whoever had the pipeline before is dead: a test has one life after the other.
        lease=lease(run_id, pipeline=settings.name, on=machine(alive=False)),
        pause=pause,
    )


def run_once(pipeline: Pipeline, emit: Emit) -> None:
    """Run a step as a service does; one that fails is told and not tried again."""
    run_step(
        pipeline.step,
        who="default",
        stop=Stop(),
        emit=emit,
        once=True,
        interval=lambda: 0.0,
        max_tries=1,
    )
