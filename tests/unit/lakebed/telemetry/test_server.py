"""The pages over HTTP, on a real socket of the loopback."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from blizzard.metrics import METRICS
from lakebed.errors import ConfigInvalid
from lakebed.telemetry.events import Emit, Event, StepFinished, shared
from lakebed.telemetry.health import Health, HealthPart, PartKind
from lakebed.telemetry.metrics_server import MetricsRegistry, observed, pages_of
from tests.support.ports import reserved_port
from tests.support.scrape import Pages

ADDRESS = "127.0.0.1:0"
PARTS = {HealthPart(PartKind.PIPELINE, "events"): 10.0}


def watch(pages: Pages, address: str | None = ADDRESS):
    return observed(
        pages.log, address=address, specs=METRICS, parts=PARTS, seconds=lambda: 1_704_110_400.0
    )


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
def emit(pages: Pages) -> Iterator[Emit]:
    with watch(pages) as emit:
        yield emit


def test_metrics_come_in_the_text_format_and_in_openmetrics_when_asked_for(pages, emit):
    status, headers, body = pages.get("/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'blizzard_bytes_written_total{pipeline="events"} 0.0' in body
    accept = "application/openmetrics-text; version=1.0.0"
    status, headers, body = pages.get("/metrics", accept=accept)
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert list(text_string_to_metric_families(body.decode()))


@pytest.mark.parametrize("path", ["/metrics", "/health"])
def test_head_gives_the_headers_alone(pages: Pages, emit: Emit, path: str):
    status, headers, body = pages.get(path, method="HEAD")
    assert (status, body) == (200, b"")
    # The CPU time of the process has another digit now and then.
    assert abs(int(headers["Content-Length"]) - len(pages.get(path)[2])) < 16


@pytest.mark.parametrize("path", ["/", "/metric", "/metrics/x", "/health/../metrics"])
def test_another_path_is_not_found(pages: Pages, emit: Emit, path: str):
    assert pages.get(path)[0] == 404
    assert pages.get(path, method="HEAD")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["/metrics", "/health", "/", "/quit"])
def test_nothing_can_be_sent(pages: Pages, emit: Emit, path: str, method: str):
    """Whatever the page and the method, there is no way to change anything."""
    status, headers, _body = pages.get(path, method=method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_these_are_all_the_pages():
    """A page that changes something would have to be added here, and must not be."""
    assert list(pages_of(MetricsRegistry([], seconds=float), Health(float))) == [
        "/metrics",
        "/health",
    ]


def test_the_answer_does_not_say_what_it_runs_on(pages: Pages, emit: Emit):
    assert "Python" not in str(pages.get("/metrics")[1])


def test_a_client_that_goes_away_disturbs_nobody(pages: Pages, emit: Emit, capfd):
    host, _, port = pages.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"GET /metr")
    assert pages.get("/metrics")[0] == 200
    assert capfd.readouterr().err == ""


def test_an_address_in_use_is_a_fault_of_the_configuration(pages: Pages):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigInvalid) as invalid, watch(Pages(), address):
            pass
    (fault,) = invalid.value.faults
    assert fault == (
        f"metrics.address: cannot listen on {address}: Address already in use; another process "
        "is listening there, perhaps a run of this configuration that has not ended; if it is "
        "another program, set this key to a different address"
    )


def test_it_listens_on_ipv6_too(pages: Pages):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with watch(pages, "[::1]:0"):
        assert pages.get("/health")[0] == 200


def test_after_the_end_nobody_answers_and_no_thread_is_left(pages: Pages):
    before = set(threading.enumerate())
    with reserved_port() as port:
        with watch(pages, f"127.0.0.1:{port}"):
            assert pages.get("/metrics")[0] == 200
        for thread in set(threading.enumerate()) - before:
            thread.join(300)
        assert set(threading.enumerate()) <= before
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with watch(Pages(), f"127.0.0.1:{port}"):
            pass


def test_the_trouble_of_one_listener_reaches_neither_the_others_nor_the_work():
    heard: list[Event] = []

    def broken(event: Event) -> None:
        raise KeyError("undeclared")

    shared(broken, heard.append)(StepFinished(who="events", found=True))
    assert len(heard) == 1


def test_while_nobody_asks_the_thread_that_serves_never_wakes(emit):
    (serving,) = (one for one in threading.enumerate() if one.name == "metrics")
    status = Path(f"/proc/self/task/{serving.native_id}/status")

    def wakes() -> str:
        return next(line for line in status.read_text().splitlines() if "voluntary" in line)

    settled = False
    before = wakes()
    for _ in range(20):
        time.sleep(0.5)
        settled = before == (before := wakes())
        if settled:
            break
    assert settled
