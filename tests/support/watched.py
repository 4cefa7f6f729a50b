"""A pipeline of blizzard whose metrics and health are scraped over the loopback."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from blizzard.metrics import METRICS
from blizzard.pipeline import Pipeline
from blizzard.service import Running
from lakebed.telemetry.events import Emit, shared
from lakebed.telemetry.health import HealthPart, PartKind
from lakebed.telemetry.metrics_server import observed
from tests.support.builders import Bench, pipeline_settings
from tests.support.scrape import Pages


@dataclass
class Watched:
    """A pipeline whose events are served as metrics and health."""

    bench: Bench
    pages: Pages
    emit: Emit
    running: Running

    def pipeline(self) -> Pipeline:
        pipeline = self.bench.stepping()
        pipeline.emit = pipeline._events.emit = self.emit
        return pipeline

    def step(self) -> bool:
        return self.pipeline().step()

    def value(self, name: str, **labels: str) -> float | None:
        return self.pages.value(name, pipeline="default", **labels)


@contextmanager
def watching(tmp_path: Path, source: Path) -> Iterator[Watched]:
    """Serve the metrics of a pipeline on the loopback, as long as a test takes."""
    settings = pipeline_settings(source, tmp_path / "table")
    bench = Bench(settings)
    pages = Pages()
    with observed(
        pages.log,
        address="127.0.0.1:0",
        specs=METRICS,
        parts={HealthPart(PartKind.PIPELINE, "default"): 10.0},
        seconds=bench.hands.seconds,
    ) as told:
        running = Running(told)
        yield Watched(bench, pages, shared(told, running.emit), running)
