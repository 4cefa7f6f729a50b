"""What blizzard's metrics and health say of real batches, scraped over the loopback."""

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.events import BatchProgress, BatchStarted
from blizzard.execute.attempts import Attempts
from blizzard.execute.runner import RunFailed, WorkersDied
from blizzard.live import Running
from blizzard.metrics import METRICS
from blizzard.model.files import UnitOutcome, Work, WorkUnit
from blizzard.model.progress import Done, Progress, Report
from blizzard.model.settings import RollingPolicy, SinkSettings, UploadSettings
from blizzard.pipeline import Pipeline
from blizzard.worker.progress import NoProgressChannel
from blizzard.worker.unit import run_unit
from blizzard.worker.upload import Uploads
from lakebed.errors import StoreDenied, StoreUnavailable
from lakebed.polling import Stop, run_step
from lakebed.retry import Backoff
from lakebed.storage.store import ObjectFacts, Reader, Store
from lakebed.telemetry.events import Emit, Event, StepFailed, StepFinished, shared
from lakebed.telemetry.health import Part, PartKind
from lakebed.telemetry.server import observed
from tests.support.builders import (
    BEGUN,
    Bench,
    closed_file,
    ndjson,
    no_options,
    pipeline_settings,
    put,
    rows,
)
from tests.support.runner import InProcessRunner
from tests.support.scrape import Pages

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


@dataclass
class Watched:
    """A pipeline whose events are served as metrics and health."""

    bench: Bench
    pages: Pages
    emit: Emit
    running: Running

    def pipeline(self) -> Pipeline:
        pipeline = self.bench.pipeline()
        pipeline.emit = pipeline._report.emit = self.emit
        pipeline._attempts = Attempts("default", self.emit)
        return pipeline

    def step(self) -> bool:
        return self.pipeline().step()

    def report(self, report: Report) -> None:
        """Hear a unit as the service does."""
        self.running.heard(report)
        BEGUN[-1]._attempts.heard(report)

    def value(self, name: str, **labels: str) -> float | None:
        return self.pages.value(name, pipeline="default", **labels)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def watched(tmp_path: Path, source: Path) -> Iterator[Watched]:
    settings = pipeline_settings(source, tmp_path / "table")
    bench = Bench(settings)
    pages = Pages()
    with observed(
        pages.log,
        address="127.0.0.1:0",
        specs=METRICS,
        parts={Part(PartKind.PIPELINE, "default"): 10.0},
        seconds=bench.hands.seconds,
    ) as told:
        running = Running(told)
        yield Watched(bench, pages, shared(told, running.emit), running)


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
                upload=UploadSettings(min_multipart_size=1),
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


def test_a_second_batch_adds_to_the_first_and_a_look_that_finds_nothing_adds_nothing(
    watched, source
):
    pipeline = watched.pipeline()
    put(source, "a.ndjson", ndjson(rows(3)))
    pipeline.step()
    put(source, "b.ndjson", ndjson(rows(2, 3)))
    pipeline.step()
    assert pipeline.step() is False
    assert watched.value("blizzard_records_total", outcome="ingested") == 5
    assert watched.value("blizzard_staging_file_written_total") == 2
    assert watched.value("blizzard_journal_entry") == 2


def test_a_small_file_is_no_multipart_upload(watched, source):
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    assert watched.value("blizzard_multipart_uploads_total") == 0


@dataclass
class RunsTwice(InProcessRunner):
    """Spark's retry: the first attempt of each unit does all its work, and nobody asks for it."""

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        super().run(units, work)
        return super().run(units, work)


def test_a_unit_that_was_run_again_counts_once(watched, source):
    watched.bench = replace(watched.bench, runner=RunsTwice())
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    assert len(list(watched.bench.table.rglob("*.parquet"))) == 2
    assert watched.value("blizzard_parquet_files_written_total") == 1
    assert watched.value("blizzard_staging_file_written_total") == 1
    assert watched.value("blizzard_parquet_write_duration_seconds_count") == 1
    assert watched.value("blizzard_records_total", outcome="ingested") == 3


@dataclass
class DiesWithMany(InProcessRunner):
    """Workers die of a job of more than one file."""

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        if sum(len(unit.files) for unit in units) > 1:
            super().run(units, work)
            raise WorkersDied("the workers died")
        return super().run(units, work)


def test_the_work_of_a_job_that_was_split_counts_once(watched, source):
    watched.bench = replace(watched.bench, runner=DiesWithMany())
    put(source, "a.ndjson", ndjson(rows(3)))
    put(source, "b.ndjson", ndjson(rows(2, 3)))
    watched.step()
    assert watched.value("blizzard_jobs_split_total") == 1
    assert watched.value("blizzard_records_total", outcome="ingested") == 5
    assert watched.value("blizzard_parquet_files_written_total") == 2


@dataclass
class Calls(InProcessRunner):
    """Units that tell how far they are while a test looks."""

    look: Callable[[], None] = lambda: None
    heard: Callable[[Report], None] = lambda _report: None
    error: Exception | None = None

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        self.heard(
            Report(
                unit="default/0", progress=Progress(active_uploads=2, active_parts=5, records=10)
            )
        )
        self.heard(Report(unit="default/1", progress=Progress(active_uploads=1, records=10)))
        self.heard(
            Report(
                unit="default/0", progress=Progress(active_uploads=1, active_parts=3, records=20)
            )
        )
        self.look()
        if self.error is not None:
            raise self.error
        return super().run(units, work)


@dataclass
class Reports(InProcessRunner):
    """Units that report what they have done, as Spark's do; a test looks before the job ends."""

    watched: Watched | None = None
    look: Callable[[], None] = lambda: None
    extra: Done | None = None
    """What an attempt that loses has done."""
    error: Exception | None = None

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        assert self.watched is not None
        outcomes = []
        for unit in units:
            line = NoProgressChannel(attempt=f"won {unit.name}")
            outcomes.append(run_unit(unit, work, self.stores(work), line))
            self.watched.report(Report(unit="default/0", attempt=line.attempt, done=line.done))
            self.watched.report(Report(unit="default/0", attempt=line.attempt, done=line.done))
        if self.extra is not None:
            self.watched.report(Report(unit="default/0", attempt="lost", done=self.extra))
        self.look()
        if self.error is not None:
            raise self.error
        return outcomes


COUNTED = {
    "blizzard_source_files": {"outcome": "ingested"},
    "blizzard_source_bytes": {"outcome": "ingested"},
    "blizzard_records": {"outcome": "ingested"},
    "blizzard_bytes_written": {},
    "blizzard_parquet_files_written": {},
    "blizzard_parquet_write_duration_seconds": {},
}


def counted(watched: Watched) -> dict[str, float]:
    return {
        name: watched.value(f"{name}_{'count' if 'seconds' in name else 'total'}", **labels) or 0
        for name, labels in COUNTED.items()
    }


def discarded(watched: Watched) -> dict[str, float | None]:
    return {
        "files": watched.value("blizzard_source_files_discarded_total"),
        "rows": watched.value("blizzard_records_discarded_total", outcome="ingested"),
        "parquet": watched.value("blizzard_parquet_files_discarded_total"),
        "bytes": watched.value("blizzard_bytes_discarded_total"),
    }


def test_counters_move_while_a_batch_runs_and_end_as_the_journal_says(watched, source):
    """HOLES W33: a rate over them is no flight of stairs."""
    seen: list[dict[str, float]] = []
    runner = Reports(watched=watched, look=lambda: seen.append(counted(watched)))
    watched.bench = replace(watched.bench, runner=runner)
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    (entry,) = watched.bench.entries()[1:]

    assert seen == [counted(watched)], "all of it was counted before the entry"
    assert counted(watched) == {
        "blizzard_source_files": 1,
        "blizzard_source_bytes": len(ndjson(rows(3))),
        "blizzard_records": 3,
        "blizzard_bytes_written": entry.files[0].size,
        "blizzard_parquet_files_written": 1,
        "blizzard_parquet_write_duration_seconds": 1,
    }
    assert discarded(watched) == {"files": 0, "rows": 0, "parquet": 0, "bytes": 0}


def test_work_of_an_attempt_that_lost_is_counted_as_discarded(watched, source):
    """HOLES W33: done less discarded is what the journal says."""
    lost = Done(rows=7, source_files=2, parquet_files=1, bytes_written=90, write_seconds=[0.5])
    watched.bench = replace(watched.bench, runner=Reports(watched=watched, extra=lost))
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()

    assert watched.value("blizzard_records_total", outcome="ingested") == 10
    assert watched.value("blizzard_parquet_write_duration_seconds_count") == 2
    assert discarded(watched) == {"files": 2, "rows": 7, "parquet": 1, "bytes": 90}


def test_work_of_a_batch_that_was_never_journaled_is_discarded_once(watched, source):
    """HOLES W33: when the next batch begins, it is known."""
    put(source, "a.ndjson", ndjson(rows(3)))
    failing = Reports(watched=watched, error=RunFailed("Spark is gone"))
    watched.bench = replace(watched.bench, runner=failing)
    pipeline = watched.pipeline()
    with pytest.raises(RunFailed):
        pipeline.step()
    assert watched.value("blizzard_records_total", outcome="ingested") == 3
    pipeline.runner = Reports(watched=watched)
    pipeline.step()

    assert watched.value("blizzard_records_total", outcome="ingested") == 6
    assert discarded(watched)["rows"] == 3
    assert pipeline.statistics.records_processed == 3, "statistics are the journal's"


def test_a_report_after_the_batch_has_ended_counts_nothing(watched, source):
    """HOLES W33: nobody would ever say what became of it."""
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    watched.report(Report(unit="default/0", attempt="late", done=Done(rows=9)))

    assert watched.value("blizzard_records_total", outcome="ingested") == 3


def test_rows_of_a_file_whose_upload_fails_are_discarded(watched, source, monkeypatch):
    """HOLES W33: of two files of a unit one was uploaded, and then the other could not be."""
    tries: list[str] = []

    class TakesOne(Store):
        def upload(self, path: str, file: Path, **how) -> ObjectFacts:
            tries.append(path)
            if len(tries) > 1:
                raise StoreDenied("access was refused", path=path)
            return super().upload(path, file, **how)

    monkeypatch.setattr("blizzard.worker.stores.Store", TakesOne)
    monkeypatch.setattr("blizzard.worker.unit.DECODED_BUDGET", 0)
    settings = replace(
        watched.bench.settings,
        sources=(replace(watched.bench.settings.sources[0], batch_size=1),),
        sink=replace(watched.bench.settings.sink, rolling=RollingPolicy(file_size=1)),
    )
    watched.bench = replace(watched.bench, settings=settings)
    put(source, "a.ndjson", ndjson(rows(2)))
    watched.step()

    assert len(tries) > 1
    assert watched.value("blizzard_source_files_total", outcome="failed") == 1
    done = watched.value("blizzard_records_total", outcome="ingested") or 0
    assert done == discarded(watched)["rows"] == 2
    assert watched.value("blizzard_parquet_files_written_total") == 1
    assert discarded(watched)["parquet"] == 1


@pytest.mark.parametrize("error", [None, RunFailed("Spark is gone")])
def test_gauges_follow_the_running_units_and_are_zero_after_the_batch(watched, source, error):
    seen: list[float | None] = []

    def look() -> None:
        seen.append(watched.value("blizzard_active_uploads"))
        seen.append(watched.value("blizzard_active_multipart_parts"))

    runner = Calls(look=look, heard=watched.running.heard, error=error)
    watched.bench = replace(watched.bench, runner=runner)
    put(source, "a.ndjson", ndjson(rows(3)))
    if error is None:
        watched.step()
    else:
        with pytest.raises(RunFailed):
            watched.step()
    watched.running.heard(Report(unit="default/0", progress=Progress(active_uploads=9)))
    look()
    assert seen == [2, 3, 0, 0]
    assert watched.value("blizzard_records_total", outcome="ingested") == (3 if not error else 0)


def test_a_batch_that_runs_for_long_is_not_stuck(watched, source):
    seen: list[int] = []

    def look() -> None:
        watched.bench.hands.at += 1e6
        seen.append(watched.pages.health()[0])

    watched.bench = replace(watched.bench, runner=Calls(look=look))
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    assert seen == [200]


def test_progress_adds_the_latest_word_of_each_unit():
    told: list[Event] = []
    running = Running(told.append)
    running.emit(BatchStarted(pipeline="p", entry=1, files=1, bytes=1, units=2))
    running.heard(Report(unit="p/0", progress=Progress(records=10)))
    running.heard(Report(unit="p/1", progress=Progress(records=5)))
    running.heard(Report(unit="p/0", progress=Progress(records=3)))
    assert [event.records for event in told if isinstance(event, BatchProgress)] == [10, 15, 8]


class CountsParts(Store):
    """Notes how many parts are said to be in flight whenever one is taken."""

    def __init__(self, root: Path, progress: Progress) -> None:
        super().__init__(str(root), no_options(), make_folder=True)
        self.progress = progress
        self.seen: list[int] = []
        self.failures = 0

    def upload(self, path: str, file: Path, **how) -> ObjectFacts:
        def taken() -> None:
            how["part_taken"]()
            self.seen.append(self.progress.active_parts)

        found = super().upload(path, file, **(how | {"part_taken": taken}))
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("no answer")
        return found


def test_parts_in_flight_are_bounded_and_end_with_their_upload(tmp_path):
    progress = Progress()
    store = CountsParts(tmp_path / "table", progress)
    store.failures = 1
    settings = UploadSettings(part_size=3, min_multipart_size=1, max_concurrent_parts=2)
    body = b"0123456789"
    with Uploads(store, settings, progress, pause=lambda _seconds: None) as uploads:
        file = closed_file(tmp_path, body=body)
        done = uploads.hand_in(file, partition_values={}, unit="0", source_file=None).result()
        assert uploads.retries == 1
    assert store.seen == [1, 2, 2, 2] * 2
    assert (progress.active_parts, progress.active_uploads) == (0, 0)
    assert (tmp_path / "table" / done.filename).read_bytes() == body


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


class BreaksOnce(Reader):
    """A source whose first download breaks half-way."""

    broken = False

    def stream(self, path: str, **how):
        for number, piece in enumerate(super().stream(path, **how)):
            yield piece[: len(piece) // 2] if not self.broken else piece
            if not self.broken and number == 0:
                type(self).broken = True
                raise StoreUnavailable("the connection was reset")


def test_retries_of_downloads_are_counted(watched, source, monkeypatch):
    monkeypatch.setattr("blizzard.worker.download.BACKOFF", Backoff(first_secs=0))
    monkeypatch.setattr(BreaksOnce, "broken", False)
    monkeypatch.setattr("blizzard.worker.stores.Reader", BreaksOnce)
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

        pipeline.open_sink = opened
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


def test_retries_count_even_if_the_batch_is_never_journaled(watched, source):
    refuses = Refuses("journal/00000000000000000001.json", times=99)
    put(source, "a.ndjson", ndjson(rows(3)))
    with pytest.raises(StoreUnavailable):
        refuses.into(watched.pipeline()).step()
    assert watched.value("blizzard_retries_total", stage="journal") == len(refuses.waits) > 0


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
    assert watched.value("blizzard_pending_files") == 0
    assert watched.value("blizzard_oldest_pending_file_age_seconds") == 0


def test_what_is_left_out_is_counted(watched, source):
    pipeline = watched.pipeline()
    put(source, "a.ndjson", b'{"id": 1, "surprise": 2}\n{"id": 2, "surprise": 3}\n')
    put(source, "b.ndjson", BAD)
    pipeline.step()
    pipeline.step()
    assert watched.value("blizzard_values_dropped_total") == 2
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


def test_an_address_in_use_ends_the_program_with_2(tmp_path, source):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        file = tmp_path / "pipeline.yaml"
        file.write_text(
            yaml.safe_dump(
                {
                    "source": {"path": str(source)},
                    "sink": {"path": str(tmp_path / "table")},
                    "schema": {"fields": [{"name": "id", "type": "string"}]},
                    "metrics": {"enabled": True, "address": address},
                }
            )
        )
        answer = CliRunner().invoke(app, ["-c", str(file), "--once"])
    assert answer.exit_code == 2
    assert f"error: metrics.address: cannot listen on {address}" in answer.stderr


def test_the_page_lists_every_metric_with_its_type_and_labels():
    found = re.findall(r"^\| `(blizzard_\w+)` \| (\w+) \| ([^|]*) \|", PAGE, flags=re.MULTILINE)
    assert [(name, kind, labels.replace("`", "").strip()) for name, kind, labels in found] == [
        (spec.name, spec.kind.value, ", ".join(spec.labels)) for spec in METRICS
    ]
