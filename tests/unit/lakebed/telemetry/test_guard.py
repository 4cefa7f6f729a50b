"""Who may read the pages, how they travel, and that no client can hold them up."""

import logging
import socket
import ssl
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
import yaml

import blizzard.config.load
import penguin.config.load
from blizzard.metrics import METRICS
from lakebed.errors import ConfigInvalid
from lakebed.telemetry.credentials import may_read
from lakebed.telemetry.events import StepFailed
from lakebed.telemetry.guard import Guard
from lakebed.telemetry.health import Part, PartKind
from lakebed.telemetry.http import HttpLimits
from lakebed.telemetry.observed import observed
from tests.support.certificates import certificate
from tests.support.scrape import Pages

TOKEN = "Tk-0123456789abcdef"
PARTS = {Part(PartKind.PIPELINE, "events"): 10.0}


def watch(pages: Pages, guard: Guard | None = None, limits: HttpLimits | None = None):
    return observed(
        pages.log,
        address="127.0.0.1:0",
        specs=METRICS,
        parts=PARTS,
        seconds=lambda: 1.0,
        guard=guard,
        limits=limits,
    )


def connect(pages: Pages) -> socket.socket:
    host, _, port = pages.url.partition("://")[2].partition(":")
    return socket.create_connection((host, int(port)), timeout=300)


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
        (
            b"",
            "the token in {file} must have at least 16 characters, in ASCII and without spaces",
        ),
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


REQUEST = b"GET /metrics HTTP/1.0\r\nX: " + b"x" * 99
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 99
"""How a TLS client begins to speak."""


def hung_up(connection: socket.socket, words: bytes) -> bool:
    """Whether a server hangs up while it is sent some bytes, one at a time; then the last again."""
    end = time.monotonic() + 300
    try:
        for position in count():
            connection.sendall(words[position : position + 1] or words[-1:])
            time.sleep(0.05)
            if time.monotonic() > end:
                return False
    except OSError:
        return True
    raise AssertionError


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_client_that_dawdles_is_hung_up_on(tmp_path: Path, encrypted: bool):
    """A byte now and then does not prolong it: the deadline is one for the whole request."""
    guard = certificate(tmp_path) if encrypted else Guard()
    pages = Pages()
    with watch(pages, guard, HttpLimits(request_secs=0.4)):
        began = time.monotonic()
        with connect(pages) as slow:
            assert hung_up(slow, HELLO if encrypted else REQUEST)
        assert time.monotonic() - began > 0.3


def test_a_request_of_megabytes_is_refused(tmp_path: Path):
    pages = Pages()
    with watch(pages):
        for start in (b"GET /", b"GET /metrics HTTP/1.0\r\nX: ", b""):
            with connect(pages) as client:
                try:
                    client.sendall(start + b"x" * 4_000_000)
                except OSError:
                    continue  # hung up on while sending
                answer = _rest(client)
                assert answer == b"" or b"431" in answer[:20]
        with connect(pages) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n" + b"X: y\r\n" * 150 + b"\r\n")
            assert b"431" in _rest(client)[:20]
        assert pages.get("/metrics")[0] == 200


def test_idle_connections_do_not_pile_up():
    """Beyond the limit they are closed unanswered; as soon as one is free, the next is served."""
    pages = Pages()
    with watch(pages, limits=HttpLimits(connections=2, request_secs=30)), ExitStack() as stack:
        first, second = (stack.enter_context(connect(pages)) for _ in range(2))
        third = stack.enter_context(connect(pages))
        third.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert _rest(third) == b""
        for connection in (first, second):
            connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            assert b"200" in _rest(connection)
        while True:
            with connect(pages) as again:
                again.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                if b"200" in _rest(again):
                    break


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
    expected = Guard(token=TOKEN, tls_cert_file=Path("c"), tls_key_file=Path("k"))
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
