"""What a master's address says of where executors run."""

import pytest

from blizzard.config.spark_master import (
    is_loopback,
    runs_in_this_process,
    stays_on_this_machine,
    unreachable_driver,
)


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
        ("spark://[::1:7077", False, False),
    ],
)
def test_where_executors_run(master: str, in_process: bool, on_machine: bool) -> None:
    """A Kubernetes on this machine's loopback has pods, which have addresses of their own."""
    assert runs_in_this_process(master) == in_process
    assert stays_on_this_machine(master) == on_machine


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1"])
def test_a_loopback_is_known_by_any_of_its_names(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "10.127.0.0.1", "127.example", "localhosts", "10.0.0.1"])
def test_other_addresses_are_no_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("master", ["spark://h:7077", "yarn", "k8s://https://h"])
def test_a_driver_on_loopback_is_refused_where_executors_are_elsewhere(master: str) -> None:
    fault = unreachable_driver(master, "127.0.0.1")

    assert fault is not None
    assert "spark.driver.host is 127.0.0.1" in fault
    assert master in fault
    assert unreachable_driver(master, "driver.lan") is None


@pytest.mark.parametrize("master", ["local[2]", "spark://127.0.0.1:7077"])
def test_on_one_machine_its_loopback_will_do(master: str) -> None:
    assert unreachable_driver(master, "127.0.0.1") is None
