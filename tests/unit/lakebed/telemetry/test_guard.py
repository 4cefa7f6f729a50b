"""Who may read the pages, how they travel, and that no client can hold them up."""

import logging
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest
import yaml

import blizzard.config.load
import penguin.config.load
from blizzard.metrics import METRICS
from lakebed.errors import ConfigInvalid
from lakebed.telemetry.events import StepFailed
from lakebed.telemetry.health import HealthPart, PartKind
from lakebed.telemetry.http import CONNECTIONS, PageServer, may_read
from lakebed.telemetry.metrics_server import observed
from lakebed.telemetry.settings import Guard, names_server
from tests.support.certificates import certificate
from tests.support.scrape import Pages
from tests.support.waits import until

TOKEN = "Tk-0123456789abcdef"
ANYWHERE = "0.0.0.0"  # noqa: S104 - compared, not bound
PARTS = {HealthPart(PartKind.PIPELINE, "events"): 10.0}


def watch(pages: Pages, guard: Guard | None = None):
    return observed(
        pages.log,
        address="127.0.0.1:0",
        specs=METRICS,
        parts=PARTS,
        seconds=lambda: 1.0,
        guard=guard,
    )


def connect(pages: Pages) -> socket.socket:
    host, _, port = pages.url.partition("://")[2].partition(":")
    return socket.create_connection((host, int(port)), timeout=300)


@contextmanager
def serving(server: PageServer) -> Iterator[Pages]:
    with server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Pages(url=f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
            thread.join()


# ------------------------------------------------------------------------------- the token


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer {TOKEN}", True),
        (f"Basic {TOKEN}", False),
        (TOKEN, False),
        ("", False),
        ("Bearer", False),
        (f"Bearer {TOKEN[:-1]}", False),
        (f"Bearer {TOKEN}x", False),
        (f"Bearer {TOKEN[:-1]}\xe9", False),
    ],
)
def test_only_the_whole_token_of_the_right_scheme_counts(header: str, allowed: bool):
    assert may_read(header, TOKEN.encode()) is allowed
    assert may_read(header, None)


def test_metrics_need_the_token_and_a_probe_gets_one_word(tmp_path: Path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    for guard in (Guard(token=TOKEN), Guard(token_file=file)):
        pages = Pages()
        with watch(pages, guard) as emit:
            emit(StepFailed(who="events", code="store_full", error="no space", next_try_secs=1.0))
            status, headers, body = pages.get("/metrics")
            assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
            assert b"blizzard_" not in body
            assert pages.health() == (503, {"status": "failing"})
            pages.token = TOKEN
            assert pages.get("/metrics")[0] == 200
            assert pages.health()[1]["pipelines"]["events"]["reason"] == "no space"
        assert TOKEN not in repr(guard)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "cannot read {file}: No such file or directory"),
        (b"", "the token in {file} must have at least 16 characters, in ASCII and without spaces"),
        (
            b"canary words that have spaces",
            "the token in {file} must have at least 16 characters, in ASCII and without spaces",
        ),
        (b"\xff" * 20, "the token in {file} is not text"),
    ],
)
def test_a_file_without_a_token_is_named_and_not_quoted(
    tmp_path: Path, content: bytes | None, fault: str
):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigInvalid) as invalid, watch(Pages(), Guard(token_file=file)):
        pass
    assert invalid.value.faults == [f"metrics.token_file: {fault.format(file=file)}"]


# ------------------------------------------------------------------------------- TLS


def test_with_a_certificate_the_pages_are_encrypted(tmp_path: Path):
    guard = certificate(tmp_path)
    pages = Pages(trusted=ssl.create_default_context(cafile=guard.tls_cert_file))
    with watch(pages, guard):
        assert pages.url.startswith("https://127.0.0.1:")
        pages.url = pages.url.replace("127.0.0.1", "localhost")
        assert pages.get("/health")[0] == 200
        with connect(pages) as plain:
            plain.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert b"blizzard" not in _rest(plain)
        assert pages.get("/metrics")[0] == 200


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path):
    """No program asks for a password on a terminal that nobody sees."""
    whole, other = certificate(tmp_path / "a"), certificate(tmp_path / "b")
    locked = certificate(tmp_path / "c", password=b"canary")
    garbage = tmp_path / "garbage.pem"
    garbage.write_bytes(b"garbage")
    missing = tmp_path / "none.pem"
    cases = [
        (whole.tls_cert_file, other.tls_key_file, "cannot be used"),
        (garbage, whole.tls_key_file, "cannot be used"),
        (locked.tls_cert_file, locked.tls_key_file, "cannot be used"),
        (missing, whole.tls_key_file, f"metrics.tls_cert_file: cannot read {missing}: No such"),
        (whole.tls_cert_file, missing, f"metrics.tls_key_file: cannot read {missing}: No such"),
    ]
    for cert, key, fault in cases:
        guard = Guard(tls_cert_file=cert, tls_key_file=key)
        with pytest.raises(ConfigInvalid, match=fault), watch(Pages(), guard):
            pass


# ------------------------------------------------------------------------------- bad clients


def _rest(connection: socket.socket) -> bytes:
    """Return what a server still sends before it hangs up."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
"""How a TLS client begins to speak."""


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_client_that_stalls_is_hung_up_on(
    tmp_path: Path, encrypted: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("lakebed.telemetry.http.SECONDS", 0.4)
    guard = certificate(tmp_path) if encrypted else Guard()
    pages = Pages()
    with watch(pages, guard), connect(pages) as slow:
        began = time.monotonic()
        slow.sendall(HELLO if encrypted else b"GET /metr")
        assert _rest(slow) == b""
        assert time.monotonic() - began > 0.3


def test_a_request_of_megabytes_is_refused():
    pages = Pages()
    with watch(pages):
        for start in (b"GET /", b"GET /metrics HTTP/1.0\r\nX: ", b""):
            with connect(pages) as client:
                try:
                    client.sendall(start + b"x" * 4_000_000)
                except OSError:
                    continue  # hung up on while sending
                answer = _rest(client)
                assert answer == b"" or b" 4" in answer[:20]
        assert pages.get("/metrics")[0] == 200


def test_connections_beyond_the_limit_are_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lakebed.telemetry.http.CONNECTIONS", 2)
    pages = Pages()
    with watch(pages), ExitStack() as stack:
        held = [stack.enter_context(connect(pages)) for _ in range(2)]
        with connect(pages) as third:
            assert _rest(third) == b""
        held[0].sendall(b"GET /health HTTP/1.0\r\n\r\n")
        assert b"200" in _rest(held[0])
        until(lambda: answers(pages))


def answers(pages: Pages) -> bool:
    """Whether a place is free again."""
    with suppress(OSError):
        return pages.get("/health")[0] == 200
    return False


def test_a_thread_that_cannot_start_costs_one_connection_and_no_place(
    monkeypatch: pytest.MonkeyPatch,
):
    def refused(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    server = PageServer("127.0.0.1", 0, {})
    with serving(server) as pages:
        with monkeypatch.context() as patched:
            patched.setattr(Thread, "start", refused)
            with connect(pages) as client:
                assert _rest(client) == b""
        assert server._places._value == CONNECTIONS
        assert pages.get("/health")[0] == 404


def test_connections_that_come_at_once_are_queued():
    with PageServer("127.0.0.1", 0, {}) as server, ExitStack() as stack:
        for _ in range(64):  # nobody takes them yet
            stack.enter_context(
                socket.create_connection(("127.0.0.1", server.server_port), timeout=60)
            )


# ------------------------------------------------------------------------------- Host


@pytest.mark.parametrize(
    ("header", "configured", "named"),
    [
        ("127.0.0.1:9090", "127.0.0.1", True),
        ("localhost:9090", "127.0.0.1", True),
        ("LOCALHOST.", "10.1.2.3", True),
        ("[::1]:9090", "127.0.0.1", True),
        ("127.9.9.9", ANYWHERE, True),
        ("10.1.2.3:80", "10.1.2.3", True),
        ("10.1.2.3", "127.0.0.1", False),
        ("10.1.2.3", ANYWHERE, True),
        ("[fd00::1]:9090", "::", True),
        ("[FD00:0::1]", "fd00::1", True),
        ("Lake.Example:9090", "lake.example", True),
        ("lake.example", ANYWHERE, False),
        ("localhost.evil.example", ANYWHERE, False),
        ("127.0.0.1.evil.example", "127.0.0.1", False),
        ("evil.example:9090", "127.0.0.1", False),
        ("evil@localhost", "127.0.0.1", False),
        ("localhost:80:80", "127.0.0.1", False),
        ("", "127.0.0.1", False),
    ],
)
def test_a_host_is_the_loopback_or_the_configured_one(header: str, configured: str, named: bool):
    assert names_server(header, configured) is named


def by_host(pages: Pages, path: str, *hosts: str) -> bytes:
    with connect(pages) as client:
        lines = "".join(f"Host: {host}\r\n" for host in hosts)
        client.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        return _rest(client)


def test_a_site_whose_name_leads_here_reads_nothing():
    """DNS rebinding: a browser takes our answers for that site's own, and lets it read them."""
    pages = Pages()
    with watch(pages) as emit:
        emit(StepFailed(who="events", code="store_full", error="no space", next_try_secs=1.0))
        for hosts in (["evil.example"], ["localhost", "evil.example"], [""]):
            refused = by_host(pages, "/metrics", *hosts)
            assert refused.startswith(b"HTTP/1.0 421 ")
            assert b"metrics.token" in refused
            assert b"blizzard_" not in refused
            probed = by_host(pages, "/health", *hosts)
            assert probed.startswith(b"HTTP/1.0 503 ")
            assert b"no space" not in probed
        assert by_host(pages, "/metrics", "localhost:9").startswith(b"HTTP/1.0 200 ")
        assert b"no space" in by_host(pages, "/health")


def test_a_token_or_a_certificate_protects_under_any_name(tmp_path: Path):
    guard = Guard(token=TOKEN)
    pages = Pages(token=TOKEN)
    with watch(pages, guard):
        assert by_host(pages, "/metrics", "lake.example").startswith(b"HTTP/1.0 401 ")
        assert pages.get("/metrics", host="lake.example")[0] == 200
    guard = certificate(tmp_path)
    pages = Pages(trusted=ssl.create_default_context(cafile=guard.tls_cert_file))
    with watch(pages, guard):
        pages.url = pages.url.replace("127.0.0.1", "localhost")
        assert pages.get("/metrics", host="lake.example")[0] == 200


# ------------------------------------------------------------------------------- configuration


def written(tmp_path: Path, **metrics: object) -> Path:
    document = {
        "source": {"path": "/in"},
        "sink": {"path": "/table"},
        "schema": {"fields": [{"name": "id", "type": "string"}]},
        "tables": {"events": {"table_uri": "/table"}},
        "metrics": {"enabled": True, **metrics},
    }
    file = tmp_path / "both.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def test_both_programs_take_the_token_from_the_environment(tmp_path: Path):
    file = written(tmp_path, token="${METRICS_TOKEN}", tls_cert_file="c", tls_key_file="k")
    expected = Guard(token=TOKEN, tls_cert_file="c", tls_key_file="k")
    for load in (blizzard.config.load.load, penguin.config.load.load):
        settings = load([file], [], {"METRICS_TOKEN": TOKEN})
        assert settings.metrics_guard == expected
        assert TOKEN not in repr(settings)


@pytest.mark.parametrize(
    ("metrics", "fault"),
    [
        ({"token": "short"}, "metrics.token: must have at least 16 characters"),
        ({"token": TOKEN, "token_file": "t"}, "metrics.token_file: means the same as token"),
        ({"tls_cert_file": "c"}, "metrics.tls_cert_file: needs tls_key_file too"),
        ({"tls_key_file": "k"}, "metrics.tls_key_file: needs tls_cert_file too"),
    ],
)
def test_half_a_protection_is_a_fault(tmp_path: Path, metrics: dict[str, str], fault: str):
    for load in (blizzard.config.load.load, penguin.config.load.load):
        with pytest.raises(ConfigInvalid) as invalid:
            load([written(tmp_path, **metrics)], [], {})
        (found,) = invalid.value.faults
        assert found.startswith(fault)
        assert "short" not in found.partition("(")[0]


def test_by_default_both_listen_on_the_loopback_alone(tmp_path: Path):
    for load in (blizzard.config.load.load, penguin.config.load.load):
        assert str(load([written(tmp_path)], [], {}).metrics_address).startswith("127.0.0.1:")


def test_a_request_is_not_logged(caplog: pytest.LogCaptureFixture, capfd):
    """A token that somebody put into a query by mistake goes nowhere."""
    caplog.set_level(logging.DEBUG)
    pages = Pages(token=TOKEN)
    with watch(pages, Guard(token=TOKEN)):
        assert pages.get(f"/metrics?token={TOKEN}")[0] == 200
        status, headers, body = pages.get(f"/{TOKEN}")
    assert status == 404
    out, err = capfd.readouterr()
    assert TOKEN not in f"{out}{err}{caplog.text}{headers}{body!r}"
