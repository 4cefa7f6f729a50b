"""A server of the live page for tests: the real server and files, and documents of a test.

It counts who is on the stream, and can be killed and started again on the same port.
"""

import json
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, unquote

from lakebed.telemetry.http import Answer, HttpLimits, PageServer, Request
from liveview import site
from liveview.details import Batches, Days, Files, Versions
from liveview.model import Overview
from tests.support import live_details as details
from tests.support import live_samples as samples


@dataclass
class Scene:
    """What the server knows; `show` replaces it and pushes the new overview to every stream."""

    clock: samples.Clock
    overview: Overview
    token: str | None = None
    full: bool = False
    """Whether every stream is taken."""
    year: int = 366
    broken: frozenset[str] = frozenset()
    """Parts of paths that are answered with 503."""
    asked: list[str] = field(default_factory=list)
    streams: list["queue.Queue[bytes | None]"] = field(default_factory=list)

    def show(self, overview: Overview) -> None:
        self.overview = overview
        for stream in list(self.streams):
            stream.put(event(overview))


def event(overview: Overview) -> bytes:
    return f"event: overview\ndata: {json.dumps(asdict(overview))}\n\n".encode()


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
            return Days(days=whole, yesterday=summary.yesterday, note=None)
        case ["freshness"]:
            return details.freshness(clock, int(asked["points"]))
        case ["throughput"]:
            return details.series(clock, int(asked["points"]))
        case _:
            return None


class LiveServer(PageServer):
    """Serves a scene; knows its connections, so that it can die with all of them."""

    def __init__(self, scene: Scene, port: int = 0) -> None:
        limits = HttpLimits(request_secs=300.0)
        super().__init__("127.0.0.1", port, {}, limits=limits, site=self.answer)
        self.scene = scene
        self.opened: list[socket.socket] = []
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        self.opened.append(connection)
        return connection, address

    def kill(self) -> None:
        """Be gone at once, as a killed program is: every connection breaks."""
        if not self.thread.is_alive():
            return
        self.shutdown()
        self.thread.join()
        self.server_close()
        for stream in list(self.scene.streams):
            stream.put(None)
        for connection in self.opened:
            with suppress(OSError):
                connection.shutdown(2)

    def answer(self, request: Request) -> Answer | None:
        query = f"?{request.query}" if request.query else ""
        self.scene.asked.append(f"{request.path}{query}")
        answer = self._answer(request)
        return (
            None if answer is None else replace(answer, headers={**site.HEADERS, **answer.headers})
        )

    def _answer(self, request: Request) -> Answer | None:  # noqa: PLR0911 - one for each kind
        scene, path = self.scene, request.path.removeprefix("/api/v1/")
        if not request.path.startswith("/api/"):
            return site.served(
                request, request.path.removeprefix("/live").strip("/") or "index.html"
            )
        if scene.token and request.headers.get("authorization") != f"Bearer {scene.token}":
            return refused(401, "A token is needed.")
        if any(part in path for part in scene.broken):
            return refused(503, "The journal cannot be read at the moment.")
        if path == "live" and scene.full:
            return refused(503, "All streams are taken.")
        if path == "live":
            headers = {"Cache-Control": "no-store"}
            return Answer(HTTPStatus.OK, "text/event-stream", b"", headers, stream(scene))
        asked = {key: values[0] for key, values in parse_qs(request.query).items()}
        found = document(scene, path, asked)
        if found is None:
            return refused(404, "There is no such pipeline or table.", "See the overview.")
        return Answer(HTTPStatus.OK, "application/json", json.dumps(asdict(found)).encode())


def stream(scene: Scene) -> Iterator[bytes]:
    mine: queue.Queue[bytes | None] = queue.Queue()
    scene.streams.append(mine)
    try:
        yield event(scene.overview)
        while (piece := mine.get()) is not None:
            yield piece
    finally:
        scene.streams.remove(mine)


def refused(status: int, message: str, way_out: str | None = None) -> Answer:
    error = {"code": f"http_{status}", "message": message, "way_out": way_out}
    headers = {"Retry-After": "5"} if status == 503 else {}
    body = json.dumps({"error": error}).encode()
    return Answer(HTTPStatus(status), "application/json", body, headers)


@contextmanager
def served(scene: Scene, port: int = 0) -> Iterator[LiveServer]:
    """Serve a scene while the block runs."""
    server = LiveServer(scene, port)
    try:
        yield server
    finally:
        with suppress(OSError):
            server.kill()
