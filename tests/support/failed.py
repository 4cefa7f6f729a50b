"""Files that fail, and runs of a bench until what became of them can be read."""

from dataclasses import replace

from lakebed.columns.schema import Field, Schema
from lakebed.partition import Template
from lakebed.types import FieldType

BAD = b'{"id": "x", "name": "a"}\n'
NEEDS_STRING = Schema(
    (
        Field(name="id", type=FieldType.STRING, nullable=False),
        Field(name="name", type=FieldType.STRING),
    )
)
HOUR = 3600.0


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
