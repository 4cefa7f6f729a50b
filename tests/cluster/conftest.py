"""One cluster, and one S3, for all tests that ask for them."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from blizzard.execute.spark.runner import SparkRunner
from blizzard.model.settings import SparkSettings
from tests.support.cluster import ARCHIVE, Cluster, running_cluster
from tests.support.faulty import in_front_of
from tests.support.s3 import make_bucket, moto
from tests.support.wide import Wide


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(started: Cluster) -> Cluster:
    """Return the cluster with all of its workers, whatever an earlier test did to them."""
    return started.whole()


@dataclass
class Sessions:
    """A process has one Spark session at a time; tests with the same settings share it."""

    cluster: Cluster
    image: Path
    conf: dict[str, str] = field(default_factory=dict)
    runner: SparkRunner | None = None
    unreached: list[tuple[str, int]] = field(default_factory=list)

    def with_package(self, **more: str) -> SparkRunner:
        """Return a runner whose executors have the package on their disks, as an image gives it."""
        conf = self.cluster.conf(**{"spark.executorEnv.PYTHONPATH": str(self.image), **more})
        del conf["spark.archives"]
        return self._with(conf)

    def without_package(self) -> SparkRunner:
        """Return a runner for which nobody brings the package to the executors."""
        # Not deleted: what the first session of a JVM was given is the default of later ones.
        conf = self.cluster.conf(**{"spark.executorEnv.PYTHONPATH": ""})
        del conf["spark.archives"]
        return self._with(conf)

    def stop(self) -> None:
        if self.runner is not None:
            self.runner.stop()

    def _with(self, conf: dict[str, str]) -> SparkRunner:
        if self.runner is None or self.conf != conf:
            self.stop()
            self.conf = conf
            self.runner = SparkRunner(
                SparkSettings(master=self.cluster.master, conf=conf),
                unreached=lambda host, port: self.unreached.append((host, port)),
            )
        return self.runner


@pytest.fixture(scope="session")
def all_sessions(started: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    image = tmp_path_factory.mktemp("image")
    subprocess.run(["tar", "-xzf", ARCHIVE, "-C", image], check=True)
    sessions = Sessions(started, image)
    yield sessions
    sessions.stop()


@pytest.fixture
def sessions(all_sessions: Sessions, cluster: Cluster) -> Sessions:
    """Return sessions on a cluster that is whole."""
    return all_sessions


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    with moto() as address:
        yield address


@pytest.fixture
def wide(s3: str, tmp_path: Path) -> Iterator[Wide]:
    """Yield an empty source and an empty table, behind a proxy of their own."""
    with in_front_of(s3) as proxy:
        yield Wide(make_bucket(s3), s3, proxy, tmp_path)
