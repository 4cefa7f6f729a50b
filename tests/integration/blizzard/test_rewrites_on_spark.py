"""Rewrites, replays, early ends and pools of batches on a real Spark session."""

import threading
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from blizzard.config import load as blizzard_config
from blizzard.events import BatchCutShort
from blizzard.execute.spark.job import POOL
from blizzard.execute.spark.runner import SparkRunner
from blizzard.model.progress import Report
from blizzard.model.settings import SparkSettings
from blizzard.model.work import Work, WorkUnit
from blizzard.pipeline import Pipeline
from blizzard.rewrite.replay import NotReplayed, _units, replay
from blizzard.rewrite.transaction import NotRewritten
from lakebed.clock import Clock
from lakebed.telemetry.events import Event
from lakebed.types import Handoff
from lakebed.units import in_words
from tests.support.builders import entries, listed, ndjson, put, rows, unit, work
from tests.support.compactions import DAYS, crowded_by_day
from tests.support.dying import Fate
from tests.support.landing import Landing, config
from tests.support.pipelines import pipeline_of
from tests.support.promotions import ID, PRICE, Rescued
from tests.support.real_data.kind import Kind
from tests.support.real_data.kinds import KINDS
from tests.support.real_data.oracle import differences, records_in
from tests.support.real_data.whole_way import arrived, configured
from tests.support.replays import Replayed
from tests.support.retractions import Taken
from tests.support.spark import shared_runner

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session")]


def test_files_are_rewritten_by_tasks(tmp_path):
    desk = Rescued(tmp_path)
    for number in range(1, 4):
        desk.land(f"{number}.ndjson", f'{{"id":{number},"price":{number}.25}}')
        desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    done = desk.promote("price", runner=shared_runner())
    assert [one.old.path for one in done.rewritten] == [one.path for one in done.found.files]
    desk.penguin()
    assert desk.column("price") == [(Decimal(f"{number}.25"), None) for number in range(1, 4)]


@pytest.mark.unbalanced("file_gone")
def test_a_file_that_is_gone_is_named_and_nothing_is_changed(tmp_path):
    desk = Rescued(tmp_path)
    desk.land("a.ndjson", '{"id":1,"price":1.25}')
    desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    (path,) = desk.active
    (desk.table / path).unlink()
    with pytest.raises(NotRewritten) as trouble:
        desk.promote("price", runner=shared_runner())
    assert path in str(trouble.value)
    assert "object_missing" in str(trouble.value)
    assert [one.kind for one in entries(desk.table)][-1] == "batch"


def test_tasks_write_files_without_the_rows(tmp_path):
    desk = Taken(tmp_path, {"fields": [ID], "provenance": ["file"]})
    for batch in range(2):
        desk.land(f"{batch}/a.ndjson", {"id": batch})
        desk.land(f"{batch}/b.ndjson", {"id": batch + 10})
        desk.ingest()
    before = desk.version
    done = desk.retract("0/a.ndjson", "1/b.ndjson", runner=shared_runner())
    assert [one.removed for one in done.rewritten] == [1, 1]
    desk.penguin()
    assert desk.ids() == [1, 10]
    assert desk.ids(before) == [0, 1, 10, 11]
    desk.optimize()
    desk.retract("0/b.ndjson", runner=shared_runner())
    desk.penguin()
    assert desk.ids() == [1]


def test_tasks_read_the_new_content_and_write_the_rows_that_stay(tmp_path):
    desk = Taken(tmp_path, {"fields": [ID]}, source={"on_change": "replace"})
    desk.land("a.ndjson", {"id": 1})
    desk.land("b.ndjson", {"id": 2})
    desk.ingest()
    desk.land("b.ndjson", {"id": 20}, {"id": 21})
    desk.blizzard(runner=shared_runner())
    assert desk.ids() == [1, 2]
    desk.penguin()
    assert sorted(desk.ids()) == [1, 20, 21]


def test_tasks_put_the_files_of_each_partition_together_and_sort_their_rows(tmp_path):
    desk = crowded_by_day(tmp_path)
    before, version = desk.rows(), desk.version
    assert len(desk.active) == 8
    told: list[tuple[int, int]] = []
    done = desk.tidy(runner=shared_runner(), progress=lambda *counts: told.append(counts))
    assert (told[0], told[-1]) == ((0, 2), (2, 2))
    assert (done.failed, done.conflict) == ((), None)
    assert sorted(path.partition("/")[0] for path in desk.active) == [f"date={day}" for day in DAYS]
    assert desk.rows() == before
    assert desk.rows(version) == before
    audit = desk.audited()
    assert audit.is_balanced, audit.differences
    amounts = {one.value: found.rows for one, found in audit.places.amounts.items() if found.rows}
    assert amounts == {"in_table": 16, "replaced": 16}
    desk.retract(f"date={DAYS[1]}/2.ndjson", runner=shared_runner())
    desk.penguin()
    assert desk.ids() == [row["id"] for row in before if row["id"] not in (104, 105)]


def replayed(desk: Replayed) -> int:
    done = replay(desk.store, desk.settings, None, shared_runner(), clock=Clock())
    return done.lines


@pytest.fixture
def quarantined(tmp_path):
    desk = Replayed(tmp_path / "desk", handoff=Handoff.JOURNAL, inlined=False)
    desk.begin()
    return desk


def test_lines_are_read_again_by_tasks(quarantined):
    assert replayed(quarantined) == 2
    quarantined.live(Fate.none())

    assert (quarantined.ids(), quarantined.waiting()) == ([1, 2, 3], [b'{"id":'])
    assert replayed(quarantined) == 0


@pytest.mark.unbalanced("quarantine_gone")
def test_a_quarantine_file_that_goes_meanwhile_is_named_and_nothing_is_changed(
    quarantined, monkeypatch
):
    def units(*given):
        for path in (quarantined.table / "_blizzard/default/quarantine").iterdir():
            path.unlink()
        return _units(*given)

    monkeypatch.setattr("blizzard.rewrite.replay._units", units)
    with pytest.raises(NotReplayed, match="object_missing"):
        replayed(quarantined)
    assert [one.kind for one in entries(quarantined.table)][-1] == "batch"


def pipeline_in(file: Path, events: list[Event], max_failures: int | None = None) -> Pipeline:
    (settings,) = blizzard_config.load([file], [], {}).pipelines
    settings = replace(settings, max_failures=max_failures)
    return pipeline_of(settings, shared_runner(), emit=events.append)


def test_a_batch_is_handed_in_when_it_is_old_and_every_file_comes_in_once(tmp_path: Path) -> None:
    """HOLES W29: with a time that is over as soon as a task has read its first file."""
    landing = Landing(tmp_path / "landing")
    for number in range(4):
        # Beyond what is decoded together, so that each is a file by itself.
        landing.land(f"{number}.ndjson", 5_000)
    events: list[Event] = []
    pipeline = pipeline_in(config(tmp_path, sink="rollover_timeout_secs: 0.001"), events)
    while pipeline.step():
        assert len(entries(tmp_path / "table")) < 10
    found = [record for entry in entries(tmp_path / "table") for record in entry.sources]

    assert sorted(record.path for record in found) == [f"{number}.ndjson" for number in range(4)]
    assert sum(record.rows for record in found) == len(landing.rows)
    assert [event for event in events if isinstance(event, BatchCutShort)]


SEED = 15
SIZE = 300


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_value_of_the_files_is_in_the_table(kind: Kind, tmp_path: Path) -> None:
    """HOLES W34: nothing changed, lost, doubled, or in another row; and nothing else."""
    file, _told = configured(kind, tmp_path, SEED, SIZE)
    found = arrived(file, shared_runner())
    records = list(records_in(kind, kind.files(SEED, SIZE)))
    assert len(records) == SIZE
    assert not differences(records, found.rows, found.way)


CORES = 2
LARGE = 48
"""Units of the large job: two at a time wait two seconds, which is as long as the small one has."""


def job(root: Path, name: str, files: int) -> tuple[list[WorkUnit], Work]:
    """Make a job of so many units, a file each."""
    for number in range(files):
        put(root / name, f"{number:02}.ndjson", ndjson(rows(200)))
    units = [unit([file], name=str(at)) for at, file in enumerate(listed(root / name))]
    marks = {"pipeline": name, "journal": "j"}
    return units, work(root / name, root / f"{name}-table", marks=marks)


def descriptions(session: SparkSession) -> list[str]:
    """Return how Spark's UI shows the jobs that are running."""
    jobs = session.sparkContext._jsc.sc().statusStore().jobsList(None)
    shown = [jobs.apply(at) for at in range(jobs.size())]
    return [job.description().get() for job in shown if str(job.status()) == "RUNNING"]


def test_a_small_job_ends_before_the_tasks_of_a_large_one_have_all_begun(tmp_path: Path) -> None:
    """Without fair scheduling the large job's tasks would all go first."""
    begun: set[str] = set()
    two_begun, small_is_done = threading.Event(), threading.Event()
    running: set[str] = set()

    def heard(report: Report) -> None:
        if report.pipeline != "large":
            return
        if not running:
            running.update(descriptions(session))
        begun.add(report.unit)
        if len(begun) >= CORES:
            two_begun.set()
        # A unit waits some seconds for its answer before it begins: so large units are slow.
        small_is_done.wait(300)

    # The session of the process; this runner only listens for itself.
    runner = SparkRunner(SparkSettings(master="local[2,4]"), heard=heard)
    runner._session = session = shared_runner()._started()[0]
    large_job, small_job = job(tmp_path, "large", LARGE), job(tmp_path, "small", 1)
    large = threading.Thread(target=runner.run, args=large_job)
    large.start()
    assert two_begun.wait(300)
    (outcome,) = runner.run(*small_job)
    begun_by_then = len(begun)
    small_is_done.set()
    large.join(500)
    # A unit that was not answered in time goes on without; its word may come after the job's end.
    deadline = time.monotonic() + 300
    while len(begun) < LARGE and time.monotonic() < deadline:
        time.sleep(0.05)
    runner._started()[1].close()

    assert not large.is_alive()
    assert [record.rows for record in outcome.sources] == [200]
    assert begun_by_then < LARGE - CORES, "the small job went ahead of large tasks that waited"
    assert len(begun) == LARGE
    assert running == {f"large: {LARGE} files, {in_words(LARGE * len(ndjson(rows(200))))}"}


def test_the_pool_belongs_to_the_thread_that_submits(tmp_path: Path) -> None:
    """Python threads are JVM threads of their own, so that no pipeline changes another's pool."""
    runner = shared_runner()
    seen: dict[str, str | None] = {}
    together = threading.Barrier(2)

    def run(name: str) -> None:
        runner.run(*job(tmp_path, name, 1))
        together.wait(300)
        seen[name] = runner._started()[0].sparkContext.getLocalProperty(POOL)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert seen == {"a": "a", "b": "b"}
