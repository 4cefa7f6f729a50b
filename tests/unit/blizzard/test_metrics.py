"""What blizzard's metrics, health and log say of batches, retries and waits."""

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from blizzard import events
from blizzard.metrics import METRICS
from blizzard.model.settings import RollingPolicy, SinkSettings, UploadSettings
from blizzard.pipeline import Pipeline
from blizzard.worker.download import OpenedStores
from lakebed.errors import StoreUnavailable
from lakebed.polling import Stop, run_step
from lakebed.retry import Backoff
from lakebed.storage.store import Reader
from lakebed.telemetry.events import Event, StepFailed, StepFinished
from tests.support.builders import Bench, ndjson, put, rows
from tests.support.runner import InProcessRunner
from tests.support.stores import Far
from tests.support.watched import Watched

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
SEEDS = {
    "blizzard_bytes_written_total": "counter",
    "blizzard_parquet_files_written_total": "counter",
    "blizzard_staging_file_written_total": "counter",
    "blizzard_multipart_uploads_total": "counter",
    "blizzard_active_uploads": "gauge",
    "blizzard_active_multipart_parts": "gauge",
    "blizzard_parquet_write_duration_seconds": "histogram",
}
BAD = b'{"id": "one"}\n'


def test_the_seeds_metrics_have_just_these_names_and_types(watched, source):
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    types = watched.pages.types()
    assert {name: types[name] for name in SEEDS} == SEEDS
    assert types == {spec.name: spec.kind.value for spec in METRICS}


def test_what_is_journaled_is_counted_by_outcome(watched, source):
    watched.bench = replace(
        watched.bench,
        settings=replace(
            watched.bench.settings,
            sink=SinkSettings(
                table_uri=watched.bench.settings.sink.table_uri,
                upload=UploadSettings(min_multipart_size=1, part_size=500),
            ),
        ),
    )
    good = ndjson(rows(3)) + b"\n\n"
    put(source, "a.ndjson", good)
    put(source, "b.ndjson", ndjson(rows(2, 3)))
    put(source, "c.ndjson", BAD)
    watched.step()
    (entry,) = watched.bench.entries()[1:]
    assert watched.value("blizzard_source_files_total", outcome="ingested") == 2
    assert watched.value("blizzard_source_files_total", outcome="failed") == 1
    assert watched.value("blizzard_records_total", outcome="ingested") == 5
    assert watched.value("blizzard_records_total", outcome="blank") == 2
    size = len(good) + len(ndjson(rows(2, 3)))
    assert watched.value("blizzard_source_bytes_total", outcome="ingested") == size
    assert watched.value("blizzard_source_bytes_total", outcome="failed") == len(BAD)
    written = sum(file.size for file in entry.files)
    assert watched.value("blizzard_bytes_written_total") == written
    assert watched.value("blizzard_parquet_files_written_total") == len(entry.files)
    assert watched.value("blizzard_staging_file_written_total") == len(entry.files)
    assert watched.value("blizzard_multipart_uploads_total") == len(entry.files)
    assert watched.value("blizzard_parquet_write_duration_seconds_count") == len(entry.files)
    assert watched.value("blizzard_batch_duration_seconds_count") == 1
    assert watched.value("blizzard_journal_entry") == 1
    for stage in ("discover", "run", "journal", "publish"):
        assert watched.value("blizzard_stage_duration_seconds_count", stage=stage)
    failures = watched.pages.get("/metrics")[2].decode()
    assert re.search(
        r'source_file_failures_total\{code="\w+",pipeline="default",stage="parse"\} 1', failures
    )


def test_what_waits_and_how_long_is_shown(watched, source):
    watched.bench = replace(watched.bench, once=False)
    put(source, "a.ndjson", ndjson(rows(3)))
    put(source, "b.ndjson", ndjson(rows(3)))
    pipeline = watched.pipeline()
    written = (source / "a.ndjson").stat().st_mtime
    watched.bench.hands.at = written + 1
    assert pipeline.step() is False
    assert watched.value("blizzard_pending_files") == 2
    watched.bench.hands.at = written + 31
    age = watched.value("blizzard_oldest_pending_file_age_seconds")
    assert age == pytest.approx(31, abs=0.1)
    watched.bench.hands.at = written + 3600
    assert pipeline.step() is True
    pipeline.step()
    assert watched.value("blizzard_ingest_delay_seconds_count") == 2
    delays = watched.value("blizzard_ingest_delay_seconds_sum")
    assert delays == pytest.approx(2 * 3600, abs=0.5)
    assert watched.value("blizzard_pending_files") == 0
    assert watched.value("blizzard_oldest_pending_file_age_seconds") == 0


def test_what_no_column_takes_is_counted(watched, source):
    pipeline = watched.pipeline()
    put(source, "a.ndjson", b'{"id": 1, "surprise": 2}\n{"id": 2, "surprise": 3}\n')
    put(source, "b.ndjson", BAD)
    pipeline.step()
    pipeline.step()
    assert watched.value("blizzard_values_rescued_total") == 2
    assert watched.value("blizzard_values_dropped_total") == 0
    assert watched.value("blizzard_resting_files") == 1
    put(source, "a.ndjson", ndjson(rows(9)))
    pipeline.step()
    assert watched.value("blizzard_source_files_overwritten_total") == 1


@dataclass
class Mends:
    """Looks at the health after every step, and mends the source after the first failure."""

    watched: Watched
    source: Path
    stop: Stop = field(default_factory=Stop)
    seen: list[tuple[int, str]] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        self.watched.emit(event)
        if isinstance(event, StepFailed | StepFinished):
            status, document = self.watched.pages.health()
            self.seen.append((status, document["pipelines"]["default"]["status"]))
        if isinstance(event, StepFailed):
            self.source.mkdir()
        if isinstance(event, StepFinished):
            self.stop.request()


def test_health_is_503_while_the_source_is_gone_and_200_once_it_is_back(watched, source):
    """L10: a source that is gone is an error, and no empty one."""
    source.rmdir()
    mends = Mends(watched, source)
    pipeline = watched.pipeline()
    pipeline.emit = mends.emit
    error = run_step(
        pipeline.step,
        who="default",
        stop=mends.stop,
        emit=mends.emit,
        once=False,
        interval=lambda: 0.0,
        backoff=Backoff(first_secs=0.0),
    )
    assert error is None
    assert mends.seen == [(503, "failing"), (200, "ok")]
    assert watched.value("blizzard_step_failures_total", code="object_missing") == 1


def test_the_page_lists_every_metric_with_its_type_and_labels():
    found = re.findall(r"^\| `(blizzard_\w+)` \| (\w+) \| ([^|]*) \|", PAGE, flags=re.MULTILINE)
    assert [(name, kind, labels.replace("`", "").strip()) for name, kind, labels in found] == [
        (spec.name, spec.kind.value, ", ".join(spec.labels)) for spec in METRICS
    ]


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


@pytest.mark.parametrize("match", ["journal/00000000000000000001.json", "/dlq/"])
def test_the_driver_tries_its_writes_again(watched, source, match):
    refuses = Refuses(match, times=2)
    put(source, "bad.ndjson", BAD)
    refuses.into(watched.pipeline()).step()
    assert len(refuses.waits) == 2


@pytest.fixture
def watching(bench: Bench) -> Bench:
    sink = replace(bench.settings.sink, rolling=RollingPolicy(rollover=300.0, inactivity=60.0))
    return replace(bench, once=False, settings=replace(bench.settings, sink=sink))


def test_watched_sources_are_named_once(watching: Bench):
    pipeline = watching.pipeline()
    assert [pipeline.step() for _ in range(3)] == [False] * 3

    (told,) = watching.said(events.SourcesWatched)
    root = watching.settings.sources[0].uri
    assert told.sentence() == f"default: watching {root} every 10 s"
    assert len(watching.said(events.NothingNew)) == 3


def test_files_that_gather_are_told_once_for_each_batch(watching: Bench, source):
    def lands(name: str) -> None:
        put(source, name, ndjson(rows(2)))
        at = watching.hands.clock.seconds()
        os.utime(source / name, (at, at))

    pipeline = watching.pipeline()
    lands("a.ndjson")
    for expected in (1, 2):
        assert not pipeline.step()
        watching.hands.at += 20
        assert not pipeline.step()
        assert len(watching.said(events.BatchDelayed)) == expected
        watching.hands.at += 60
        assert pipeline.step()
        lands(f"b{expected}.ndjson")
        watching.hands.at += 20

    told = watching.said(events.BatchDelayed)[0]
    assert told.sentence().startswith("default: 1 file waiting, next batch in ")
