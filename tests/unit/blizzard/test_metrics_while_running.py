"""What blizzard's metrics say while units run, and of work that was done twice or for nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from blizzard.events import BatchProgress
from blizzard.execute.runner import RunFailed
from blizzard.model.progress import Done, Progress, Report
from blizzard.model.settings import RollingPolicy, Sizing
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.worker.download import Stores
from blizzard.worker.progress import ProgressChannel
from blizzard.worker.unit import run_unit
from lakebed.columns.schema import Schema
from lakebed.errors import StoreDenied
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Store
from lakebed.telemetry.events import Event, shared
from tests.support.builders import ndjson, put, rows
from tests.support.runner import InProcessRunner
from tests.support.units import With
from tests.support.watched import Watched


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
            line = ProgressChannel(attempt=f"won {unit.name}")
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


def test_rows_of_a_file_whose_upload_fails_are_discarded(watched, source):
    """HOLES W33: of two files of a unit one was uploaded, and then the other could not be."""
    tries: list[str] = []

    class TakesOne(Store):
        def upload(self, path: str, file: Path, **how) -> ObjectFacts:
            tries.append(path)
            if len(tries) > 1:
                raise StoreDenied("access was refused", path=path)
            return super().upload(path, file, **how)

    def stores(work: Work) -> Stores:
        return With(work, TakesOne(work.sink.uri, work.sink.options, make_folder=True))

    settings = replace(
        watched.bench.settings,
        sources=(replace(watched.bench.settings.sources[0], batch_size=1),),
        sink=replace(watched.bench.settings.sink, rolling=RollingPolicy(file_size=1)),
        sizing=Sizing(decoded_budget=0),
    )
    watched.bench = replace(watched.bench, settings=settings, runner=InProcessRunner(stores=stores))
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


def test_the_conversion_is_reported_after_its_columns_were_inferred(watched, source):
    """The job that infers columns reads every file first; the one that counts comes after it."""
    seen: list[tuple[float | None, list[int]]] = []
    told: list[Event] = []
    watched.running._emit = shared(watched.running._emit, told.append)

    def look() -> None:
        records = [event.records for event in told if isinstance(event, BatchProgress)]
        seen.append((watched.value("blizzard_active_uploads"), records))
        told.clear()

    settings = replace(watched.bench.settings, schema=Schema(()), infer=True)
    runner = Calls(look=look, heard=watched.running.heard)
    watched.bench = replace(watched.bench, settings=settings, runner=runner)
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    look()
    assert seen == [(2, [10, 20, 30]), (2, [0, 10, 20, 30]), (0, [0])]


def test_a_batch_that_runs_for_long_is_not_stuck(watched, source):
    seen: list[int] = []

    def look() -> None:
        watched.bench.hands.at += 1e6
        seen.append(watched.pages.health()[0])

    watched.bench = replace(watched.bench, runner=Calls(look=look))
    put(source, "a.ndjson", ndjson(rows(3)))
    watched.step()
    assert seen == [200]
