"""What is set in the configuration is what the executors are told."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from blizzard.execute.spark.session import capped_master, local_cores
from blizzard.model.files import TaskLimits, UnitOutcome, Work, WorkUnit
from blizzard.model.settings import (
    PipelineSettings,
    RollingPolicy,
    SparkSettings,
    UploadSettings,
)
from lakebed.types import ParquetCodec
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows, source_settings
from tests.support.runner import InProcessRunner, RunsOnly

ROLLING = RollingPolicy(
    file_size=7, row_group_size=6, rollover=5, inactivity=4, codec=ParquetCodec.ZSTD
)
UPLOAD = UploadSettings(
    part_size=9, min_multipart_size=10**9, max_concurrent_parts=3, max_concurrent_uploads=2
)


@dataclass
class Listening(RunsOnly):
    """A runner that remembers what it was told, and runs it."""

    told: list[Work] = field(default_factory=list)
    parallelism: int = 2

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        self.told.append(work)
        return InProcessRunner().run(units, work)


def told(root: Path, settings: PipelineSettings) -> Work:
    put(root / "in", "a.ndjson", ndjson(rows(3)))
    runner = Listening()
    assert Bench(settings, runner=runner).pipeline().step()
    return runner.told[0]


def test_the_settings_of_a_source_reach_the_executors(tmp_path: Path) -> None:
    """HOLES W32: each source has its own."""
    (tmp_path / "other").mkdir()
    one = source_settings(tmp_path / "in", max_concurrent_files=3, batch_size=2)
    two = source_settings(tmp_path / "other", name="two", max_concurrent_files=9, batch_size=7)
    settings = replace(pipeline_settings(tmp_path / "in", tmp_path / "table"), sources=(one, two))
    work = told(tmp_path, settings)

    assert work.limits == {
        "default": TaskLimits(max_concurrent_files=3, batch_size=2),
        "two": TaskLimits(max_concurrent_files=9, batch_size=7),
    }


def test_the_settings_of_the_sink_reach_the_executors(tmp_path: Path) -> None:
    settings = pipeline_settings(tmp_path / "in", tmp_path / "table")
    sink = replace(settings.sink, rolling=ROLLING, upload=UPLOAD)
    work = told(tmp_path, replace(settings, sink=sink))

    assert (work.rolling, work.upload) == (ROLLING, UPLOAD)
    assert work.marks["pipeline"] == settings.name


def test_the_total_concurrency_is_shared_out_among_the_tasks(tmp_path: Path) -> None:
    """Downloads of all tasks together, and uploads, stay at or below it; own limits hold, too."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    settings = pipeline_settings(tmp_path / "in", tmp_path / "table")
    settings = replace(settings, sink=replace(settings.sink, upload=UPLOAD))
    runner = Listening(parallelism=3)
    pipeline = Bench(settings, runner=runner).pipeline()
    pipeline.total_concurrency = 10
    assert pipeline.step()
    (work,) = runner.told

    limit = work.limits["default"].max_concurrent_files
    assert limit == 3
    assert work.upload == UPLOAD, "two uploads a task are fewer than its share"
    assert 3 * max(limit, work.upload.max_concurrent_uploads) <= 10


@pytest.mark.parametrize(
    ("master", "most", "capped", "cores"),
    [
        ("local[4,4]", 2, "local[2,4]", 2),
        ("local[2,4]", 8, "local[2,4]", 2),
        ("local[8]", 3, "local[3]", 3),
        ("local[4]", None, "local[4]", 4),
        ("local", 3, "local[1]", 1),
        ("spark://host:7077", 3, "spark://host:7077", None),
    ],
)
def test_no_more_tasks_run_than_may_transfer(
    master: str, most: int | None, capped: str, cores: int | None
) -> None:
    """A task has at least one transfer, so the total also bounds the tasks on this machine."""
    settings = SparkSettings(master=master, most_tasks=most)

    assert capped_master(settings) == capped
    assert local_cores(settings) == cores
