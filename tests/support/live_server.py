"""A server of the live page for tests: its files as they are, and documents that a test hands in.

It sends the headers that the real one sends, and can be killed and started again on the same port.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from liveview.details import Batches, Days, Files, Versions
from liveview.model import Overview
from liveview.routes import encoded
from tests.support import live_details as details
from tests.support import live_samples as samples

PAGE = Path(__file__).parents[2] / "src/liveview/page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


@dataclass
class Scene:
    """What the server knows; `show` replaces it."""

    clock: samples.Clock
    overview: Overview
    token: str | None = None
    year: int = 366
    broken: frozenset[str] = frozenset()
    """Parts of paths that are answered with 503."""
    asked: list[str] = field(default_factory=list)

    def show(self, overview: Overview) -> None:
        self.overview = overview


def document(scene: Scene, path: str, asked: dict[str, str]) -> Any:
    """Return the document of a path below `/api/v1/`; None where there is none."""
    clock, parts = scene.clock, [unquote(part) for part in path.split("/")]
    pipelines = {each.name: each for each in scene.overview.pipelines}
    tables = {each.name: each for each in scene.overview.tables}
    before = int(asked.get("before", "0"))
    match parts:
        case ["overview"]:
            return scene.overview
        case ["pipelines", name, *rest] if name in pipelines:
            return of_pipeline(scene, pipelines[name], rest, asked)
        case ["tables", name] if name in tables:
            return details.table_detail(clock, tables[name])
        case ["tables", name, "versions"] if name in tables:
            low = max(0, before - 50)
            made = [
                details.version(clock, at, 4_806 - at, name)
                for at in range(before - 1, low - 1, -1)
            ]
            return Versions(versions=made, next_before=low or None)
        case _:
            return None


def of_pipeline(  # noqa: PLR0911 - one for each document
    scene: Scene, summary: Any, rest: list[str], asked: dict[str, str]
) -> Any:
    clock = scene.clock
    match rest:
        case []:
            return details.detail(clock, summary)
        case ["batches"]:
            before = int(asked["before"])
            low = max(1, before - 50)
            made = [details.batch(clock, at, 4_812 - at) for at in range(before - 1, low - 1, -1)]
            return Batches(batches=made, next_before=low if low > 1 else None)
        case ["files"]:
            found = details.files(clock, summary.name, asked["search"])
            found = [] if asked["search"].startswith("none") else found
            return Files(files=found, searched=asked["search"], more=False, note=None)
        case ["file"]:
            return details.journey(clock, asked["path"])
        case ["days"]:
            whole = details.days(clock, min(int(asked["limit"]), scene.year))
            return Days(days=whole, note=None)
        case ["freshness"]:
            return details.freshness(clock, int(asked["points"]))
        case ["throughput"]:
            return details.series(clock, int(asked["points"]))
        case _:
            return None


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: "LiveServer"
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with suppress(ConnectionError):
            self.answer()

    def answer(self) -> None:  # noqa: PLR0911 - one for each kind of request
        url, scene = urlsplit(self.path), self.server.scene
        scene.asked.append(self.path)
        if url.path == "/":
            return self.send(200, (PAGE / "index.html").read_bytes(), TYPES[".html"])
        if url.path.startswith("/live/"):
            file = PAGE / Path(url.path).name
            if file.is_file():
                return self.send(200, file.read_bytes(), TYPES[file.suffix])
            return self.refuse(404, "no such file")
        if scene.token and self.headers["Authorization"] != f"Bearer {scene.token}":
            return self.refuse(401, "A token is needed.")
        path = url.path.removeprefix("/api/v1/")
        if any(part in path for part in scene.broken):
            return self.refuse(503, "The journal cannot be read at the moment.")
        asked = {key: values[0] for key, values in parse_qs(url.query).items()}
        found = document(scene, path, asked)
        if found is None:
            return self.refuse(404, "There is no such pipeline or table.", "See the overview.")
        return self.send(200, encoded(found), "application/json")

    def refuse(self, status: int, message: str, way_out: str | None = None) -> None:
        error = {"code": f"http_{status}", "message": message, "way_out": way_out}
        self.send(status, json.dumps({"error": error}).encode(), "application/json")

    def send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if status == 503:
            self.send_header("Retry-After", "5")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class LiveServer(ThreadingHTTPServer):
    """Serves a scene; knows its connections, so that it can die with all of them."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, scene: Scene, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.scene = scene
        self.connections: list[Any] = []
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        self.connections.append(connection)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: connections break when a test wants them to."""

    def kill(self) -> None:
        """Be gone at once, as a killed program is: every connection breaks."""
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(2)
        self.thread.join()


@contextmanager
def served(scene: Scene, port: int = 0) -> Iterator[LiveServer]:
    """Serve a scene while the block runs."""
    server = LiveServer(scene, port)
    try:
        yield server
    finally:
        with suppress(OSError):
            server.kill()
