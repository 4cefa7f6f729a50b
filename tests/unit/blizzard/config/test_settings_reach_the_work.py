"""Settings reach the executors, the looks at sources, Spark and what is served."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pyspark.errors import PySparkRuntimeError
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.cli.surroundings import Surroundings
from blizzard.execute.spark.jvm import Archive
from blizzard.execute.spark.session import Jvm, capped_master, local_cores, start
from blizzard.model.settings import PipelineSettings, RollingPolicy, SparkSettings, UploadSettings
from blizzard.model.work import TaskLimits, UnitOutcome, Work, WorkUnit
from lakebed.types import ParquetCodec
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows, source_settings
from tests.support.runner import InProcessRunner, RunsOnly
from tests.support.spark import archived
from tests.support.waits import NotedStop

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


def written(root: Path, **sections: Any) -> str:
    (root / "in").mkdir()
    file = root / "pipeline.yaml"
    usual = {
        "source": {"path": str(root / "in")},
        "sink": {"path": str(root / "table")},
        "schema": {"fields": [{"name": "id", "type": "int64"}]},
    }
    file.write_text(yaml.safe_dump(usual | sections))
    return str(file)


def run_until_it_waits(*arguments: str) -> list[float]:
    """Run the program; give how long it wanted to sleep. The first sleep is its last."""
    stop = NotedStop()
    around = Surroundings(stop=stop, listen=lambda *_: None)
    answer = CliRunner().invoke(app, arguments, obj=around)
    assert answer.exit_code == 0, answer.stderr
    return [seconds for waits in stop.waits.values() for seconds in waits]


def test_the_sources_are_looked_at_as_often_as_set(tmp_path):
    source = {"path": str(tmp_path / "in"), "poll_interval_secs": 86_400}
    (wait,) = run_until_it_waits("-c", written(tmp_path, source=source))
    assert 3_600 < wait <= 86_400, "what is left of a day, not of the usual ten seconds"


def test_without_metrics_nothing_listens(tmp_path):
    """An address that is taken would end the program with 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        metrics = {"enabled": False, "address": address}
        assert run_until_it_waits("-c", written(tmp_path, metrics=metrics))


@dataclass
class Builder:
    """Stands for the builder of a Spark session, and remembers."""

    conf: dict[str, str] = field(default_factory=dict)

    def master(self, where: str) -> "Builder":
        self.conf["master"] = where
        return self

    def config(self, key: str, value: str) -> "Builder":
        self.conf[key] = value
        return self

    def getOrCreate(self) -> "Builder":  # noqa: N802 - Spark's name for it
        return self


def launched(builder: Builder, archive: Archive | None = None) -> Jvm:
    """Return a Java that is never started."""
    return Jvm(
        archive=lambda: archive, launch=lambda *_: None, session=SimpleNamespace(builder=builder)
    )


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "SPARK_LAUNCHER_OPTS"):
        # What is set while the test runs is unset after it.
        monkeypatch.setenv(name, "as it was")
    return Builder()


def test_spark_starts_where_and_how_the_user_says(builder):
    conf = {"spark.ui.enabled": "true", "spark.cores.max": "4"}
    start(SparkSettings(master="spark://h:7077", conf=conf), jvm=launched(builder))
    assert builder.conf["master"] == "spark://h:7077"
    assert builder.conf["spark.ui.enabled"] == "true", "the user's word, not our default"
    assert builder.conf["spark.cores.max"] == "4"
    assert "spark.driver.host" not in builder.conf, "a cluster must reach the driver"


def test_the_users_java_options_are_added_to_ours(builder):
    conf = {"spark.driver.extraJavaOptions": "-Dmine=1"}
    start(SparkSettings(conf=conf), jvm=launched(builder))
    options = builder.conf["spark.driver.extraJavaOptions"].split()
    assert options[-1] == "-Dmine=1"
    assert "-XX:+UseSerialGC" in options


def test_workers_do_not_search_the_folder_they_are_started_in(builder):
    """HOLES W27: on this machine and on a cluster; who knows better may say so."""
    key = "spark.executorEnv.PYTHONSAFEPATH"
    start(SparkSettings(master="spark://h:7077"), jvm=launched(builder))
    assert builder.conf[key] == "1"
    start(SparkSettings(conf={key: ""}), jvm=launched(builder))
    assert builder.conf[key] == ""


def test_a_jvm_that_does_not_start_with_the_archive_is_started_without(tmp_path, builder):
    archive = archived(tmp_path / "key.jsa")
    tried: list[str] = []

    class Dies(Builder):
        def getOrCreate(self) -> Builder:  # noqa: N802 - Spark's name for it
            tried.append(self.conf["spark.driver.extraJavaOptions"])
            if "SharedArchiveFile" in tried[-1]:
                raise PySparkRuntimeError("[JAVA_GATEWAY_EXITED]")
            return self

    start(SparkSettings(), jvm=launched(Dies(), archive))
    assert ["SharedArchiveFile" in options for options in tried] == [True, False]
    assert not archive.there, "nor is it tried again"
