"""Configurations whose executors are on other machines, and what a master's address says."""

from pathlib import Path
from typing import Any

import pytest

from blizzard.config.overlaps import (
    is_loopback,
    runs_in_this_process,
    stays_on_this_machine,
    unreachable_driver,
)
from tests.support.blizzard_config import faults_of, minimal, settings_of, source


def on_cluster(master: str = "spark://h:7077", **more: Any) -> dict[str, Any]:
    return {"spark": {"master": master, **more}}


@pytest.mark.parametrize("master", ["spark://h:7077", "spark://127.0.0.1:1", "yarn", "k8s://h"])
def test_a_local_path_on_a_cluster_is_refused_by_name(tmp_path: Path, master: str) -> None:
    """Executors would look on disks of their own, and write where nobody looks."""
    faults = faults_of(tmp_path, minimal() | on_cluster(master))

    assert [fault.partition(":")[0] for fault in faults] == ["source.path", "sink.path"]
    assert all(f"executors of {master} would look on their own" in fault for fault in faults)
    assert all("spark.shared_paths" in fault for fault in faults)


@pytest.mark.parametrize("path", ["/mnt/lake/in", "/mnt/lake", "file:///mnt/lake/in/*.ndjson"])
def test_a_folder_that_all_machines_share_may_be_used_on_a_cluster(tmp_path: Path, path: str):
    document = minimal(source__path=path, sink__path="s3://b/table")
    settings = settings_of(tmp_path, document | on_cluster(shared_paths=["/x", "/mnt/lake"]))

    assert source(settings).uri in path


@pytest.mark.parametrize("path", ["/mnt/lakeside", "/mnt", "/data/mnt/lake"])
def test_a_folder_beside_the_shared_one_is_not_shared(tmp_path: Path, path: str) -> None:
    document = minimal(source__path="s3://b/in", sink__table_uri=path)
    del document["sink"]["path"]
    (fault,) = faults_of(tmp_path, document | on_cluster(shared_paths=["/mnt/lake"]))

    assert fault.startswith("sink.table_uri: is on this machine's disk")


@pytest.mark.parametrize("master", ["local", "local[2,4]", "local-cluster[2,1,1024]"])
def test_without_a_cluster_local_paths_are_what_they_are(tmp_path: Path, master: str) -> None:
    assert settings_of(tmp_path, minimal() | on_cluster(master)).spark.master == master


@pytest.mark.parametrize(
    ("master", "in_process", "on_machine"),
    [
        ("local", True, True),
        ("local[*,4]", True, True),
        ("local-cluster[2,1,1024]", True, True),
        ("spark://localhost:7077", False, True),
        ("spark://127.0.0.1:7077,127.0.0.2:7077", False, True),
        ("spark://[::1]:7077", False, True),
        ("spark://127.0.0.1:7077,h:7077", False, False),
        ("spark://localhost.example:7077", False, False),
        ("spark://h:7077", False, False),
        ("k8s://https://localhost:6443", False, False),
        ("yarn", False, False),
        ("locality", False, False),
    ],
)
def test_where_executors_run(master: str, in_process: bool, on_machine: bool) -> None:
    """A Kubernetes on this machine's loopback has pods, which have addresses of their own."""
    assert runs_in_this_process(master) == in_process
    assert stays_on_this_machine(master) == on_machine


def test_a_loopback_is_known_by_any_of_its_names() -> None:
    assert all(map(is_loopback, ("localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1")))
    others = ("", "10.127.0.0.1", "127.example", "localhosts", "10.0.0.1")
    assert not any(map(is_loopback, others))


@pytest.mark.parametrize("master", ["spark://h:7077", "yarn", "k8s://https://h"])
def test_a_driver_on_loopback_is_refused_where_executors_are_elsewhere(master: str) -> None:
    fault = unreachable_driver(master, "127.0.0.1")

    assert fault is not None
    assert "spark.driver.host is 127.0.0.1" in fault
    assert master in fault
    assert unreachable_driver(master, "driver.lan") is None
    for here in ("local[2]", "spark://127.0.0.1:7077"):
        assert unreachable_driver(here, "127.0.0.1") is None
