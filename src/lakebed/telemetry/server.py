"""Metrics and health over HTTP: `GET /metrics` and `GET /health`, while a program runs."""

import errno
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, ClassVar

from lakebed.errors import ConfigInvalid
from lakebed.telemetry.events import Emit, Event, MetricsServed, shared
from lakebed.telemetry.health import Health, Part
from lakebed.telemetry.measures import Spec
from lakebed.telemetry.prometheus import Metrics

CLIENT_PATIENCE_SECS = 10.0
SHUTDOWN_SECS = 0.2


@contextmanager
def observed(
    log: Emit,
    *,
    address: str | None,
    key: str = "metrics.address",
    specs: Iterable[Spec],
    parts: Mapping[Part, float],
    beside: Iterable[Part] = (),
    seconds: Callable[[], float],
) -> Iterator[Emit]:
    """Serve metrics and health while the block runs; yield the emitter that feeds them and the log.

    `parts` are watched, each with the seconds between two looks for work. Those `beside` them have
    metrics and no health of their own. Without an address
    nothing is served. An address that cannot be listened on is a fault of the configuration, at the
    key that it came from.
    """
    if address is None:
        yield log
        return
    metrics, health = Metrics(specs, seconds=seconds), Health(seconds)
    for part, interval in parts.items():
        health.expect(part, interval=interval)
    for part in (*parts, *beside):
        metrics.begin(**{part.kind: part.name})

    def measured(event: Event) -> None:
        for measure in event.measures():
            metrics.record(measure)

    def heeded(event: Event) -> None:
        for sign in event.signs():
            health.note(sign)

    with serve(address, metrics, health, key=key) as url:
        emit = shared(log, measured, heeded)
        emit(MetricsServed(url=url))
        yield emit


@contextmanager
def serve(
    address: str, metrics: Metrics, health: Health, *, key: str = "metrics.address"
) -> Iterator[str]:
    """Serve on an address until the block ends, and yield the URL; port 0 takes a free one."""
    host, _colon, port = address.rpartition(":")
    pages: Pages = {
        "/metrics": lambda accept: (HTTPStatus.OK, *metrics.page(accept)),
        "/health": lambda _accept: _health_page(health),
    }
    try:
        server = _Server(host.strip("[]"), int(port), pages)
    except OSError as cause:
        raise ConfigInvalid([_cannot_listen(key, address, cause)]) from cause
    thread = threading.Thread(
        target=server.serve_forever, args=(SHUTDOWN_SECS,), name="metrics", daemon=True
    )
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _cannot_listen(key: str, address: str, cause: OSError) -> str:
    way_out = ""
    if cause.errno == errno.EADDRINUSE:
        way_out = "; another process is listening there, so set this key to a different address"
    return f"{key}: cannot listen on {address}: {cause.strerror or cause}{way_out}"


def _health_page(health: Health) -> tuple[HTTPStatus, str, bytes]:
    report = health.report()
    status = HTTPStatus.OK if report.well else HTTPStatus.SERVICE_UNAVAILABLE
    body = json.dumps(report.document, ensure_ascii=False, indent=2) + "\n"
    return status, "application/json; charset=utf-8", body.encode()


Pages = dict[str, Callable[[str], tuple[HTTPStatus, str, bytes]]]
"""By path: what to answer to an Accept header, as status, content type and body."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, pages: Pages) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.pages = pages
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer's asks DNS for the host's name here, and may wait for it.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as inherited
        """Let a client that went away go."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version: ClassVar[str] = "lake"  # type: ignore[misc]
    sys_version: ClassVar[str] = ""  # type: ignore[misc]
    timeout = CLIENT_PATIENCE_SECS

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as inherited
        """Log nothing: a scrape every few seconds is not news."""

    def _answer(self, *, with_body: bool) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            status, content_type = HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8"
            body = f"not found; try {' or '.join(self.server.pages)}\n".encode()
        else:
            status, content_type, body = page(self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)
