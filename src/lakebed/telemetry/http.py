"""An HTTP server for a few pages that can only be read, which no client can hold up.

A connection carries one request. It has a deadline for all of it, handshake and answer included,
and so many bytes for the request. There are only so many connections at a time: one more takes the
place of the client that the server has waited for longest. Requests to the site have fewer places,
so that slow answers leave room for the pages. Of an answer that comes in pieces, each piece has a
deadline of its own. The work of the program runs in other threads and never waits for a client.
"""

import io
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, ClassVar

from lakebed.telemetry.credentials import may_read
from lakebed.telemetry.guard import names_server

METHODS = ("GET", "HEAD")
TEXT = "text/plain; charset=utf-8"
MISDIRECTED = (
    b"the Host header names neither the loopback nor the configured metrics address; ask by one of "
    b"these, or set metrics.token, with which any Host is answered\n"
)
BUSY = b"as many requests as may be are being answered; ask again in a moment\n"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a page answers."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Iterable[bytes] | None = None
    """What is sent after the body, as it comes; None where the body is all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for below a path that is no page."""

    method: str
    path: str
    """As it was sent, percent-encoded, without the query."""
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = True
    """Whether it has the token, where one is needed."""


Site = Callable[[Request], HttpAnswer | None]
"""Answers what is no page, to every method; None where there is nothing."""


@dataclass(frozen=True, slots=True)
class HttpPage:
    """One page: what it answers to an `Accept` header, and to those who have not the token."""

    answer: Callable[[str], HttpAnswer]
    to_strangers: Callable[[], HttpAnswer] | None = None
    """None where nothing is for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """How much of the server a client may have."""

    request_secs: float = 10.0
    request_bytes: int = 16 * 1024
    connections: int = 32
    site_requests: int = 24


class _Connections:
    """The open connections, each with the time since when the server waits for its client."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._since: dict[socket.socket, float | None] = {}
        self._encrypted: dict[socket.socket, socket.socket] = {}

    def admit(self, plain: socket.socket) -> bool:
        """Register a connection; hang up on the slowest client if all places are taken."""
        with self._lock:
            if len(self._since) >= self._most:
                waits = {each: since for each, since in self._since.items() if since is not None}
                if not waits:
                    return False
                self._hang_up(min(waits, key=waits.__getitem__))
            self._since[plain] = time.monotonic()
            return True

    def encrypt(self, plain: socket.socket, encrypted: socket.socket) -> None:
        """Record the socket that replaces a plain one."""
        with self._lock:
            if plain in self._since:
                self._encrypted[plain] = encrypted

    def wait(self, plain: socket.socket, *, for_client: bool) -> None:
        """Record whether the next step is the client's or the server's."""
        with self._lock:
            if plain in self._since:
                self._since[plain] = time.monotonic() if for_client else None

    def end(self, plain: socket.socket) -> None:
        """Free the place of a connection."""
        with self._lock:
            self._since.pop(plain, None)
            self._encrypted.pop(plain, None)

    def _hang_up(self, plain: socket.socket) -> None:
        del self._since[plain]
        with suppress(OSError):
            # Not SSLSocket.shutdown: its thread could then send the rest unencrypted.
            socket.socket.shutdown(self._encrypted.pop(plain, plain), socket.SHUT_RDWR)


class _TooLarge(Exception):
    """A request has more bytes than any that is meant for these pages."""


class PageServer(ThreadingHTTPServer):
    """Serves pages on an address; `serve_forever` is called in a thread."""

    daemon_threads = True
    request_queue_size = 128
    timeout = 0.0
    """A connection that is gone when it is taken is not waited for."""

    def __init__(
        self,
        host: str,
        port: int,
        pages: Mapping[str, HttpPage],
        *,
        secret: bytes | None = None,
        tls: ssl.SSLContext | None = None,
        limits: HttpLimits | None = None,
        site: Site | None = None,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.host = host
        self.pages, self.secret, self.tls, self.site = pages, secret, tls, site
        self.limits = limits or HttpLimits()
        self.connections = _Connections(self.limits.connections)
        self.site_places = threading.BoundedSemaphore(self.limits.site_requests)
        self._ends, self._end = socket.socketpair()
        super().__init__((host, port), BaseHTTPRequestHandler)  # see finish_request

    def server_bind(self) -> None:
        """Take the address."""
        # HTTPServer's asks DNS for the host's name here, and may wait for it.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "", self.server_address[1]

    def serve_forever(self, poll_interval: float | None = None) -> None:
        """Answer until `shutdown`; without requests, nothing happens here at all."""
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            selector.register(self._ends, selectors.EVENT_READ)
            while self._ends not in [key.fileobj for key, _mask in selector.select(poll_interval)]:
                self.handle_request()

    def shutdown(self) -> None:
        """Have `serve_forever` end."""
        self._end.send(b".")

    def server_close(self) -> None:
        """Let the address go."""
        super().server_close()
        self._ends.close()
        self._end.close()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as inherited
        """Answer in a thread of its own, unless every place is taken by work of the server."""
        if not self.connections.admit(request):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # a thread that cannot start frees no place
            self.connections.end(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Answer one connection, and free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.end(request)

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Shake hands here, in the connection's own thread: a client may take its time."""
        end = time.monotonic() + self.limits.request_secs
        if self.tls is None:
            _Handler(request, client_address, self, end, request)
            return
        request.settimeout(self.limits.request_secs)
        with self.tls.wrap_socket(
            request, server_side=True, do_handshake_on_connect=False
        ) as encrypted:
            self.connections.encrypt(request, encrypted)
            encrypted.do_handshake()
            _Handler(encrypted, client_address, self, end, request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Let a client that went away, or never spoke TLS, go."""


class _Request(io.RawIOBase):
    """The bytes of one request, up to a deadline and a size."""

    def __init__(self, connection: socket.socket, end: float, most: int) -> None:
        self._connection, self._end, self._left = connection, end, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - as inherited
        if self._left <= 0:
            raise _TooLarge
        self._connection.settimeout(max(0.001, self._end - time.monotonic()))
        count = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= count
        return count


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version: ClassVar[str] = "lake"  # type: ignore[misc]
    sys_version: ClassVar[str] = ""  # type: ignore[misc]
    # What an answer needs to know when the request never got that far.
    command, requestline, request_version = "", "", "HTTP/1.0"

    def __init__(
        self,
        request: Any,  # noqa: ANN401 - as inherited
        client_address: Any,  # noqa: ANN401
        server: PageServer,
        end: float,
        plain: socket.socket,
    ) -> None:
        self._end, self._plain = end, plain
        super().__init__(request, client_address, server)

    def setup(self) -> None:
        super().setup()
        most = self.server.limits.request_bytes
        self.rfile = io.BufferedReader(_Request(self.connection, self._end, most))

    def handle(self) -> None:
        try:
            self.handle_one_request()
        except _TooLarge:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, b"request too large\n")

    def parse_request(self) -> bool:
        parsed = super().parse_request()
        self.server.connections.wait(self._plain, for_client=False)
        if not parsed or self.command in METHODS:
            return parsed
        if not self._ask_site():
            body = f"these pages can only be read, with {' or '.join(METHODS)}\n".encode()
            allow = {"Allow": ", ".join(METHODS)}
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, body, allow)
        return False

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as inherited
        """Log nothing: a scrape every few seconds is not news."""

    def _answer(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None and self._ask_site():
            return
        directed = self._is_directed()
        if page is None:
            body = f"not found; try {' or '.join(self.server.pages)}\n".encode()
            self._refuse(HTTPStatus.NOT_FOUND, body)
        elif directed and may_read(self.headers.get("Authorization", ""), self.server.secret):
            self._send(page.answer(self.headers.get("Accept", "")))
        elif page.to_strangers is not None:
            self._send(page.to_strangers())
        elif not directed:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, MISDIRECTED)
        else:
            body = b"this page needs the header Authorization: Bearer, with the token\n"
            self._refuse(HTTPStatus.UNAUTHORIZED, body, {"WWW-Authenticate": "Bearer"})

    def _is_directed(self) -> bool:
        """Whether the client meant this server, and no other site's name that leads here.

        A browser sends the name that it looked up. With a token or a certificate, another site's
        page that has its own name resolved to this address gets nowhere.
        """
        if self.server.secret is not None or self.server.tls is not None:
            return True
        hosts = self.headers.get_all("Host", [])
        return all(names_server(host, self.server.host) for host in hosts)

    def _ask_site(self) -> bool:
        """Answer what is no page, if there is something to answer."""
        path, _, query = self.path.partition("?")
        if self.server.site is None or path in self.server.pages:
            return False
        if not self._is_directed():
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, MISDIRECTED)
            return True
        if not self.server.site_places.acquire(blocking=False):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, BUSY, {"Retry-After": "2"})
            return True
        try:
            answer = self.server.site(
                Request(
                    method=self.command,
                    path=path,
                    query=query,
                    headers={name.lower(): value for name, value in self.headers.items()},
                    trusted=may_read(self.headers.get("Authorization", ""), self.server.secret),
                )
            )
            if answer is not None:
                self._send(answer)
        finally:
            self.server.site_places.release()
        return answer is not None

    def _refuse(
        self, status: HTTPStatus, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self._send(HttpAnswer(status, TEXT, body, headers or {}))

    def _send(self, answer: HttpAnswer) -> None:
        # The time for sending is one limit for all of it, not one for each piece.
        self.connection.settimeout(max(0.001, self._end - time.monotonic()))
        self.server.connections.wait(self._plain, for_client=True)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.content_type)
        if answer.pieces is None:
            self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(answer.body)
        self.server.connections.wait(self._plain, for_client=False)
        for piece in answer.pieces or ():
            self.connection.settimeout(self.server.limits.request_secs)
            self.server.connections.wait(self._plain, for_client=True)
            self.wfile.write(piece)
            self.server.connections.wait(self._plain, for_client=False)
