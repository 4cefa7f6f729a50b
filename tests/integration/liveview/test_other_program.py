"""One program asks the other for its part: with the token, at its own address, and briefly."""

import http.server
import socket
import threading
from contextlib import contextmanager

from lakebed.telemetry.guard import Guard
from liveview.looks.other import Unreachable, fetched
from liveview.model import Process
from tests.support.certificates import certificate
from tests.support.live_lake import PATIENT, LiveLake

TOKEN = "a-token-of-twenty-four"
PATH = "/api/v1/process"


@contextmanager
def answering(status, headers, body=b""):
    """Serve one answer to everything, and keep what was asked."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_token_goes_nowhere_else(monkeypatch):
    with answering(200, {}) as (elsewhere, heard):
        monkeypatch.setenv("http_proxy", f"http://{elsewhere}")
        with answering(302, {"Location": f"http://{elsewhere}/"}) as (address, asked):
            found = fetched(address, Guard(token=TOKEN), PATH, Process, timeout=PATIENT.other)
        assert isinstance(found, Unreachable)
        assert asked == [(PATH, f"Bearer {TOKEN}")]
        assert heard == []


def test_what_answers_and_is_no_program_of_ours_is_said_to_be():
    with answering(200, {}, b'{"hello": "world"}') as (address, _asked):
        found = fetched(address, Guard(), PATH, Process, timeout=PATIENT.other)
    assert isinstance(found, Unreachable)
    assert "another program" in str(found.note)


def test_who_does_not_answer_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = fetched(
            f"127.0.0.1:{silent.getsockname()[1]}", Guard(), PATH, Process, timeout=0.05
        )
    assert isinstance(found, Unreachable)
    found = fetched("127.0.0.1:0", Guard(), PATH, Process, timeout=PATIENT.other)
    assert isinstance(found, Unreachable)


def test_with_tls_only_the_configured_certificate_is_spoken_to(tmp_path):
    ours, theirs = certificate(tmp_path / "ours"), certificate(tmp_path / "theirs")
    lake = LiveLake(tmp_path)
    with lake.served("penguin", guard=ours) as (pages, _site, _emit):
        address = pages.url.removeprefix("https://")
        for guard, kind in ((ours, Process), (theirs, Unreachable), (Guard(), Unreachable)):
            assert isinstance(fetched(address, guard, PATH, Process, timeout=PATIENT.other), kind)
