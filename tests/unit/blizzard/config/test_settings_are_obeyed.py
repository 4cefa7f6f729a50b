"""Settings that no executor sees: how often to look, how Spark starts, what is served."""

import socket
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pyspark.errors import PySparkRuntimeError
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.cli.surroundings import Surroundings
from blizzard.execute.spark.cds_archive import Archive, settle, unfinished
from blizzard.execute.spark.session import Jvm, start
from blizzard.model.settings import SparkSettings
from tests.support.waits import NotedStop


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
        archive=lambda: archive,
        launch=lambda *_: None,
        session=SimpleNamespace(builder=builder),
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
    archive = Archive(path=tmp_path / "key.jsa")
    part = unfinished(archive)
    part.write_bytes(b"an archive")
    settle(archive, part)
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
