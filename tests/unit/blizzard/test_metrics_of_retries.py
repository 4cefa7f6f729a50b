"""Uploads in flight, and retries of uploads, downloads and the driver's own writes, as counted."""

from dataclasses import dataclass, field, replace

import pytest

from blizzard.pipeline import Pipeline
from blizzard.worker.stores import OpenedStores
from lakebed.errors import StoreUnavailable
from lakebed.storage.store import Reader
from tests.support.builders import ndjson, put, rows
from tests.support.runner import InProcessRunner
from tests.support.stores import Far

BAD = b'{"id": "one"}\n'


def test_retries_of_uploads_are_counted(watched, source):
    class Flaky(InProcessRunner):
        def run(self, units, work):
            return [
                replace(each, effort=replace(each.effort, upload_retries=2))
                for each in super().run(units, work)
            ]

    watched.bench = replace(watched.bench, runner=Flaky())
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    assert watched.value("blizzard_retries_total", stage="upload") == 2


class BreaksOnce(Far):
    """A source whose first download breaks half-way."""

    broken = False

    def stream(self, path: str, **how):
        for number, piece in enumerate(super().stream(path, **how)):
            yield piece[: len(piece) // 2] if not self.broken else piece
            if not self.broken and number == 0:
                self.broken = True
                raise StoreUnavailable("the connection was reset")


class BreakingSource(OpenedStores):
    """The stores of a batch, and one of its sources breaks."""

    def source(self, name: str) -> Reader:
        if name not in self._sources:
            location = self.work.sources[name]
            self._sources[name] = BreaksOnce(location.uri, location.options)
        return self._sources[name]


def test_retries_of_downloads_are_counted(watched, source):
    watched.bench = replace(watched.bench, runner=InProcessRunner(stores=BreakingSource))
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    assert watched.value("blizzard_records_total", outcome="ingested") == 3
    assert watched.value("blizzard_retries_total", stage="download") == 1
    assert watched.value("blizzard_retries_total", stage="upload") == 0


@dataclass
class Refuses:
    """A sink that does not take some writes at first."""

    match: str
    times: int
    waits: list[float] = field(default_factory=list)

    def into(self, pipeline: Pipeline) -> Pipeline:
        open_sink = pipeline.open_sink

        def opened(location):
            store = open_sink(location)
            create = store.create

            def refuse(path, body):
                if self.match in path and self.times:
                    self.times -= 1
                    raise StoreUnavailable("slow down")
                return create(path, body)

            store.create = refuse  # type: ignore[method-assign]
            return store

        pipeline.open_sink = pipeline._dead_letters.open_sink = opened
        pipeline.pause = self.waits.append
        return pipeline


@pytest.mark.parametrize(
    ("stage", "match"), [("journal", "journal/00000000000000000001.json"), ("dlq", "/dlq/")]
)
def test_retries_of_the_drivers_writes_are_counted_at_once(watched, source, stage, match):
    refuses = Refuses(match, times=2)
    put(source, "bad.ndjson", BAD)
    refuses.into(watched.pipeline()).step()
    assert watched.value("blizzard_retries_total", stage=stage) == 2
    assert len(refuses.waits) == 2
