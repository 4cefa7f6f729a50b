"""Batches that end early on a real Spark: the driver hears its tasks and they hear the driver."""

from dataclasses import replace
from pathlib import Path

import pytest

from blizzard.config import load as blizzard_config
from blizzard.events import BatchHandedIn
from blizzard.pipeline import Pipeline
from blizzard.run_totals import TooManyFailures
from lakebed.telemetry.events import Event
from tests.support.builders import entries
from tests.support.landing import Landing, config
from tests.support.pipelines import pipeline_of
from tests.support.spark import shared_runner

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session")]


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
    assert [event for event in events if isinstance(event, BatchHandedIn)]


def test_tasks_hear_that_no_more_files_may_fail(tmp_path: Path) -> None:
    """HOLES W30: two tasks, three failures allowed, forty bad files.

    One more in each other task, unless a driver on a busy machine takes seconds to answer.
    """
    landing = Landing(tmp_path / "landing")
    for day in ("2024-01-01", "2024-01-02"):
        for number in range(20):
            landing.write(f"date={day}/{number:02}.ndjson", b"{oops\n")
    file = config(tmp_path, partitioned=True)

    with pytest.raises(TooManyFailures):
        pipeline_in(file, [], max_failures=3).step()
    failed = entries(tmp_path / "table")[-1].sources
    assert 3 <= len(failed) < 20
