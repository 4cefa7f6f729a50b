"""Pipelines on one real Spark session: a small one does not wait for a large one to end."""

import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from blizzard.execute.spark.job import POOL
from blizzard.execute.spark.runner import SparkRunner
from blizzard.model.files import Work, WorkUnit
from blizzard.model.progress import Report
from blizzard.model.settings import SparkSettings
from lakebed.units import in_words
from tests.support.builders import listed, ndjson, put, rows, unit, work
from tests.support.spark import shared_runner

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session")]

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
