"""The line between tasks and the driver."""

import errno
import os
import socket
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Client, Connection, answer_challenge

import pytest

from blizzard.model.progress import Address, Progress, Report
from blizzard.worker import progress as line_module
from blizzard.worker.progress import ProgressClient as PatientClient
from blizzard.worker.progress import ProgressServer as PatientServer
from tests.support.ports import reserved_port

# A busy machine may take its time: these tests are about what is said, not when.
ProgressClient = partial(PatientClient, patience=60.0)
ProgressServer = partial(PatientServer, patience=60.0)


def test_the_driver_hears_progress_and_the_task_hears_the_stop() -> None:
    heard: dict[str, Progress] = {}
    told = threading.Event()
    stop = threading.Event()

    def hear(report: Report) -> None:
        heard[report.unit] = report.progress
        assert report.worker == f"{socket.gethostname()}, process {os.getpid()}"
        told.set()

    server = ProgressServer("127.0.0.1", stop_requested=stop.is_set, heard=hear)
    with ProgressClient(server.address, "p/1") as client:
        assert told.wait(300)
        assert not client.stop_soon
        client.progress.records = 7
        stop.set()
    server.close()

    assert heard["p/1"].records == 7, "the last word comes when the unit ends"
    assert client.stop_soon


def test_no_word_waits_for_the_acknowledgement_of_the_one_before(monkeypatch: pytest.MonkeyPatch):
    """It would cost every task 40 ms before it begins."""
    at_once: list[int] = []
    answer = answer_challenge

    def spy(connection: Connection, token: bytes) -> None:
        with socket.socket(fileno=os.dup(connection.fileno())) as same:
            at_once.append(same.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        answer(connection, token)

    monkeypatch.setattr(line_module, "answer_challenge", spy)
    server = ProgressServer("127.0.0.1", stop_requested=lambda: False, heard=lambda *_: None)
    with ProgressClient(server.address, "p/1") as client:
        assert client._answered.is_set()
    server.close()

    assert at_once == [1, 1], "at both ends"


@pytest.mark.parametrize("token", [b"wrong", b""])
def test_a_caller_without_the_word_is_not_let_in_and_harms_nobody(token: bytes) -> None:
    heard: list[str] = []
    server = ProgressServer(
        "127.0.0.1", stop_requested=lambda: True, heard=lambda report: heard.append(report.unit)
    )
    stranger = Address(server.address.host, server.address.port, token)
    with ProgressClient(stranger, "stranger") as client:
        assert not client.stop_soon
    with ProgressClient(server.address, "friend") as client:
        assert client.stop_soon
    server.close()

    assert set(heard) == {"friend"}


def test_a_caller_that_says_nothing_keeps_nobody_out() -> None:
    """A port scanner, say. It must not hold up the end of the driver either."""
    server = ProgressServer("127.0.0.1", stop_requested=lambda: True, heard=lambda *_: None)
    with socket.create_connection((server.address.host, server.address.port)):
        with ProgressClient(server.address, "friend") as client:
            assert client.stop_soon
        assert _ends(server.close)


def test_the_end_does_not_wait_for_a_listener_that_has_gone() -> None:
    """One that is awake just then sees the end by itself, and the last call finds nobody."""

    def call_late(address: tuple[str, int]) -> Connection:
        socket.create_connection(address).close()
        listener.join(300)
        return Client(address)

    server = ProgressServer(
        "127.0.0.1", stop_requested=lambda: True, heard=lambda *_: None, call=call_late
    )
    listener = next(each for each in threading.enumerate() if each.name == "progress-server")

    assert _ends(server.close)


def test_the_end_comes_also_where_no_last_call_can_be_made() -> None:
    """A process that has no file handle left can call nobody, not even itself."""

    def no_handle(*_given: object) -> Connection:
        raise OSError(errno.EMFILE, "Too many open files")

    server = ProgressServer(
        "127.0.0.1",
        stop_requested=lambda: True,
        heard=lambda *_: None,
        call=no_handle,
        patience=0.1,
    )

    assert _ends(server.close)
    with socket.create_connection((server.address.host, server.address.port)):
        server._thread.join(300)  # not the product's: it would end with its process


def _ends(work: Callable[[], None]) -> bool:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(300)
    return not thread.is_alive()


def test_a_driver_that_is_gone_is_no_trouble_of_the_task() -> None:
    with (
        reserved_port() as port,
        ProgressClient(Address("127.0.0.1", port, b"word"), "p/1") as client,
    ):
        client.progress.records = 1

    assert not client.stop_soon


def test_the_driver_is_called_at_its_host_and_listens_where_it_is_told() -> None:
    """The two differ in a container, and behind a name that only others know."""
    server = ProgressServer(
        "localhost", bind="127.0.0.1", stop_requested=lambda: True, heard=lambda *_: None
    )
    assert server.address.host == "localhost"
    with ProgressClient(server.address, "p/1") as client:
        assert client.stop_soon
    server.close()


def test_the_word_is_not_shown() -> None:
    assert "secret" not in repr(Address("h", 1, b"secret"))
