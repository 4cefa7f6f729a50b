"""Files that fail, and runs of a bench until what became of them can be read."""

from dataclasses import replace

from blizzard.repair.retry import FailedSearch, FailedSources, PresentSources
from lakebed.clock import Clock
from lakebed.columns.schema import Field, Schema
from lakebed.partition import Template
from lakebed.storage.store import Reader, Store
from lakebed.types import FieldType

BAD = b'{"id": "x", "name": "a"}\n'
NEEDS_STRING = Schema(
    (
        Field(name="id", type=FieldType.STRING, nullable=False),
        Field(name="name", type=FieldType.STRING),
    )
)
HOUR = 3600.0
Wanted = frozenset[str] | None


def drain(bench):
    """Run once, and return the statistics of the run."""
    pipeline = bench.pipeline()
    while pipeline.step():
        pass
    return pipeline.statistics


def polls(running, bench):
    """Let a blizzard that runs for ever take some steps, with time enough for a batch."""
    for _ in range(3):
        running.step()
        bench.hands.at += 400


def declared(bench, schema=NEEDS_STRING):
    return bench.again(settings=replace(bench.settings, schema=schema), run_id="run-2")


def last_sources(bench):
    return {each.path: each for each in bench.entries()[-1].sources}


def change(settings, *, compression=None, template=None, schema=None, timestamp_field=None):
    (source,) = settings.sources
    sink = settings.sink
    return replace(
        settings,
        sources=(replace(source, compression=compression or source.compression),),
        sink=replace(
            sink,
            template=Template.parse(template) if template else sink.template,
            timestamp_field=timestamp_field or sink.timestamp_field,
        ),
        schema=schema or settings.schema,
    )


def find_failed(store: Reader, pipeline: str, wanted: Wanted) -> FailedSources:
    return FailedSearch(store=store, pipeline=pipeline, wanted=wanted).failed()


def retry(
    store: Store,
    pipeline: str,
    wanted: Wanted,
    *,
    clock: Clock,
    present: PresentSources | None = None,
) -> tuple[FailedSources, int | None]:
    search = FailedSearch(store=store, pipeline=pipeline, wanted=wanted, present=present)
    return search.retry(store, clock)


def give_up(
    store: Store, pipeline: str, wanted: Wanted, *, clock: Clock
) -> tuple[FailedSources, int | None]:
    return FailedSearch(store=store, pipeline=pipeline, wanted=wanted).give_up(store, clock)
