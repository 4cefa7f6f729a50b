"""`blizzard top` beside programs that run, and one program asking the other for its part."""

import http.server
import json
import os
import pty
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from blizzard.cli.app import app
from lakebed.clock import Clock
from lakebed.telemetry.settings import Guard
from liveview.lake import Unreachable, fetched, lake_of
from liveview.model import Process
from liveview.terminal.command import NOBODY, Feed
from tests.support.certificates import certificate
from tests.support.live_lake import CANARY, PATIENT, LiveLake
from tests.support.ports import reserved_pair

TOKEN = "a-token-of-twenty-four"


@pytest.fixture(scope="module")
def ports():
    with reserved_pair() as pair:
        yield pair


@pytest.fixture(scope="module")
def lake(tmp_path_factory, ports):
    more = f'metrics: {{enabled: true, address: "127.0.0.1:{ports[1]}"}}\n'
    lake = LiveLake(tmp_path_factory.mktemp("lake"), more=more)
    lake.fill()
    return lake


def top(lake: LiveLake, *arguments: str):
    return CliRunner().invoke(app, ["top", "-c", str(lake.file), *arguments])


def feed_of(lake: LiveLake, **named) -> Feed:
    found = lake_of(lake.blizzard, [lake.file], [], os.environ)
    return Feed(found, Clock(), patience=PATIENT, timeout=PATIENT.answer, **named)


def test_without_a_program_one_look_is_printed_from_journals_and_tables(lake):
    found = top(lake)
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert NOBODY in lines
    assert any(line.split()[:1] == ["orders"] for line in lines)
    assert "orders-t" in found.stdout
    assert all(len(line) <= 80 for line in lines)
    assert CANARY not in found.stdout


def test_as_json_it_is_the_document_of_the_api_with_what_takes_longer(lake):
    document = json.loads(top(lake, "--output", "json", "-p", "orders").stdout)
    (pipeline,), (table,) = document["pipelines"], document["tables"]
    assert pipeline["waiting_files"] == 1
    assert pipeline["failed_files"] == 1
    assert table["rows"] == 33
    assert [each["reachable"] for each in document["programs"]] == [False, False]
    assert [each["pipelines"] for each in document["problems"]] == [["orders"]] * 2


def test_an_unknown_pipeline_and_a_wrong_interval_are_refused(lake):
    unknown = top(lake, "-p", "nothing")
    assert unknown.exit_code == 2
    assert "there is no pipeline 'nothing'; there are: orders, clicks" in unknown.stderr
    assert top(lake, "--interval", "0").exit_code == 2


@pytest.mark.parametrize(("program", "which"), [("blizzard", 0), ("penguin", 1)])
def test_whichever_program_answers_is_asked(lake, ports, program, which):
    feed = feed_of(lake)
    with lake.served(program, port=ports[which]):
        seen = feed()
    feed.close()
    assert seen.note == ""
    assert {each.name: each.reachable for each in seen.overview.programs}[program]
    assert [each.name for each in seen.overview.pipelines] == ["orders", "clicks"]


def test_a_program_with_another_configuration_at_the_address_is_not_taken_for_ours(tmp_path):
    with reserved_pair() as (blizzard, penguin):
        metrics = (
            f"metrics: {{enabled: true, blizzard_address: '127.0.0.1:{blizzard}', "
            f"penguin_address: '127.0.0.1:{penguin}'}}\n"
        )
        folders = [tmp_path / name for name in ("ours", "theirs")]
        for folder in folders:
            folder.mkdir()
        ours, theirs = (LiveLake(folder, more=metrics) for folder in folders)
        feed = feed_of(ours)
        with theirs.served("penguin", port=penguin):
            seen = feed()
            with ours.served("blizzard", port=blizzard) as (pages, _site, _emit):
                found = json.loads(pages.get("/api/v1/overview")[2])
        feed.close()
    assert seen.note == NOBODY
    other = f"a program with another configuration answers at 127.0.0.1:{penguin}"
    assert {one["name"]: one["note"] for one in found["programs"]}["penguin"] == other
    assert {one.name: one.note for one in seen.overview.programs}["penguin"] == other


def test_when_the_program_is_gone_the_watch_goes_on_without_it(lake, ports):
    feed = feed_of(lake)
    with lake.served(port=ports[0]):
        assert feed().note == ""
    seen = feed.settled()
    feed.close()
    assert seen.note == NOBODY
    assert [each.note for each in seen.overview.programs] == [
        f"no answer at 127.0.0.1:{ports[0]}",
        f"no answer at 127.0.0.1:{ports[1]}",
    ]


def test_the_token_of_the_configuration_is_shown_to_the_program(lake, ports, tmp_path):
    guarded = LiveLake(tmp_path, more=f"{lake.more.rstrip().rstrip('}')}, token: {TOKEN}}}\n")
    with guarded.served(guard=Guard(token=TOKEN), port=ports[0]):
        feed = feed_of(guarded)
        assert feed().note == ""
        feed.close()
        stranger = feed_of(lake)
        seen = stranger()
        stranger.close()
    assert seen.overview.programs[0].note == f"it answers 401 at 127.0.0.1:{ports[0]}"


@pytest.mark.parametrize("end", ["q", "\x03"], ids=["q", "ctrl-c"])
def test_in_a_terminal_it_watches_until_it_is_told_to_end_and_leaves_the_screen_as_it_was(
    lake, end
):
    parent, child = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "blizzard", "top", "-c", str(lake.file), "--interval", "0.2"],
        stdin=child,
        stdout=child,
        stderr=child,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"},
        preexec_fn=lambda: os.login_tty(child),  # noqa: PLW1509 - it is the child's own terminal
    ) as process:
        os.close(child)
        seen = b""
        deadline = time.monotonic() + 300
        while b"PIPELINE" not in seen and time.monotonic() < deadline:
            seen += os.read(parent, 65536)
        assert "orders" in seen.decode(errors="replace")
        os.write(parent, end.encode())
        while True:
            try:
                more = os.read(parent, 65536)
            except OSError:
                break  # The other end is closed.
            if not more:
                break
            seen += more
        assert process.wait(300) == 0
    os.close(parent)
    assert b"Traceback" not in seen
    assert seen.count(b"\x1b[?1049h") == seen.count(b"\x1b[?1049l") == 1
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l"), "the cursor is shown again"


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
