"""An HTTP server for a few read-only pages, which no client can block.

A connection carries one request. It has one deadline, including handshake and answer, and a limit
of bytes for the request. The number of connections is limited: one more replaces the connection
whose client has kept the server waiting longest. Requests to the site have fewer places, so that
slow answers leave room for the pages. In a streamed answer each piece has a deadline of its own.
The program works in other threads and never waits for a client.

The token and the certificate are read when the server starts, so new files take effect after a
restart. ConfigInvalid names the key and the faulty file, and quotes nothing from it.
"""

import hmac
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
from pathlib import Path
from socketserver import TCPServer
from typing import Any, ClassVar

from lakebed.errors import ConfigInvalid
from lakebed.telemetry.settings import Guard, names_server, token

LONGEST_FILE = 1 << 20


def secret_of(guard: Guard) -> bytes | None:
    """Return the token; None without one."""
    if guard.token_file is None:
        return guard.token.encode() if guard.token is not None else None
    try:
        found = token(_read("token_file", guard.token_file).decode().strip())
    except ValueError as wrong:
        kind = "is not text" if isinstance(wrong, UnicodeDecodeError) else str(wrong)
        raise ConfigInvalid(
            [f"metrics.token_file: the token in {guard.token_file} {kind}"]
        ) from None
    return found.encode()


def tls_of(guard: Guard) -> ssl.SSLContext | None:
    """Return the TLS context; None without TLS."""
    cert, key = guard.tls_cert_file, guard.tls_key_file
    if cert is None or key is None:
        return None
    _read("tls_cert_file", cert)
    _read("tls_key_file", key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password given, OpenSSL would ask for one on the terminal and wait.
        context.load_cert_chain(cert, key, password=lambda: "")
    except (ssl.SSLError, ValueError) as cause:
        fault = (
            f"metrics.tls_cert_file: {cert} and {key} cannot be used: both must be in PEM format, "
            "the key without a password, and the certificate must be the one of that key"
        )
        raise ConfigInvalid([fault]) from cause
    return context


def may_read(header: str, secret: bytes | None) -> bool:
    """Whether an `Authorization` header has the token; compared in constant time."""
    if secret is None:
        return True
    scheme, _space, given = header.partition(" ")
    same = hmac.compare_digest(given.strip().encode(errors="replace"), secret)
    return same and scheme.lower() == "bearer"


def _read(key: str, path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(LONGEST_FILE)
    except OSError as cause:
        raise ConfigInvalid(
            [f"metrics.{key}: cannot read {path}: {cause.strerror or cause}"]
        ) from cause


METHODS = ("GET", "HEAD")
TEXT = "text/plain; charset=utf-8"
MISDIRECTED = (
    b"the Host header names neither the loopback nor the configured metrics address; ask by one of "
    b"these, or set metrics.token, with which any Host is answered\n"
)
BUSY = b"as many requests as may be are being answered; ask again in a moment\n"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer to a request."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Iterable[bytes] | None = None
    """The pieces streamed after the body; None without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to the site, for a path that is not a page."""

    method: str
    path: str
    """The raw path, percent-encoded, without the query."""
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = True
    """Whether it has the token, if one is required."""


Site = Callable[[Request], HttpAnswer | None]
"""Answers requests other than pages, of any method; None if not found."""


@dataclass(frozen=True, slots=True)
class HttpPage:
    """One page: its answers to an `Accept` header, and to requests without the token."""

    answer: Callable[[str], HttpAnswer]
    to_strangers: Callable[[], HttpAnswer] | None = None
    """None if it is not for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of the server."""

    request_secs: float = 10.0
    request_bytes: int = 16 * 1024
    connections: int = 32
    site_requests: int = 24


class _Connections:
    """The open connections, each with the time since when it waits for the client."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._since: dict[socket.socket, float | None] = {}
        self._encrypted: dict[socket.socket, socket.socket] = {}

    def admit(self, plain: socket.socket) -> bool:
        """Register a connection; if all places are taken, close that of the slowest client."""
        with self._lock:
            if len(self._since) >= self._most:
                waits = {each: since for each, since in self._since.items() if since is not None}
                if not waits:
                    return False
                self._hang_up(min(waits, key=waits.__getitem__))
            self._since[plain] = time.monotonic()
            return True

    def encrypt(self, plain: socket.socket, encrypted: socket.socket) -> None:
        """Record the socket that replaces a plain one, or close it if its place is taken."""
        with self._lock:
            if plain in self._since:
                self._encrypted[plain] = encrypted
                return
        with suppress(OSError):
            socket.socket.shutdown(encrypted, socket.SHUT_RDWR)

    def wait(self, plain: socket.socket, *, for_client: bool) -> None:
        """Record whether the server or the client is to act next."""
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
    """A request has too many bytes."""


class PageServer(ThreadingHTTPServer):
    """Serves pages on an address; `serve_forever` is called in a thread."""

    daemon_threads = True
    request_queue_size = 128
    timeout = 0.0
    """Do not wait for a connection that is already closed."""

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
        """Bind the address."""
        # HTTPServer's version asks DNS for the host's name, and may block.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "", self.server_address[1]

    def serve_forever(self, poll_interval: float | None = None) -> None:
        """Answer until `shutdown`; idle without requests."""
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            selector.register(self._ends, selectors.EVENT_READ)
            while self._ends not in [key.fileobj for key, _mask in selector.select(poll_interval)]:
                self.handle_request()

    def shutdown(self) -> None:
        """Make `serve_forever` return."""
        self._end.send(b".")

    def server_close(self) -> None:
        """Close the address."""
        super().server_close()
        self._ends.close()
        self._end.close()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as inherited
        """Answer in a thread of its own, unless the server is busy in every place."""
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
        """Do the TLS handshake here, in the connection's own thread: a client may be slow."""
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
        """Ignore a client that disconnected, or never spoke TLS."""


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
    # Defaults for an answer to an incomplete request.
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
        """Whether the client addressed this server, not another site's name that resolves here.

        A browser sends the name that it looked up. With a token or a certificate, a page of another
        site whose name resolves to this address gains nothing.
        """
        if self.server.secret is not None or self.server.tls is not None:
            return True
        hosts = self.headers.get_all("Host", [])
        return all(names_server(host, self.server.host) for host in hosts)

    def _ask_site(self) -> bool:
        """Have the site answer a request for no page; return whether it did."""
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
        # One limit for the whole answer, not for each write.
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
