"""An HTTP server for a few read-only pages on a trusted network.

A connection carries one request, in a thread of its own; a client that stalls for SECONDS is hung
up on, and connections beyond CONNECTIONS are closed. Anything more is for a reverse proxy.

The token and the certificate are read when the server starts, so new files take effect after a
restart. ConfigInvalid names the key and the faulty file, and quotes nothing from it.
"""

import hmac
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, ClassVar

from lakebed.errors import ConfigInvalid
from lakebed.telemetry.settings import Guard, names_server, token

SECONDS = 10.0
CONNECTIONS = 64


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
        return Path(path).read_bytes()
    except OSError as cause:
        raise ConfigInvalid(
            [f"metrics.{key}: cannot read {path}: {cause.strerror or cause}"]
        ) from cause


METHODS = ("GET", "HEAD")
MISDIRECTED = (
    "the Host header names neither the loopback nor the configured metrics address; ask by one of "
    "these, or set metrics.token, with which any Host is answered"
)
NOT_TRUSTED = "this page needs the header Authorization: Bearer, with the token"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer to a request."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


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


class PageServer(ThreadingHTTPServer):
    """Serves pages on an address; `serve_forever` is called in a thread."""

    daemon_threads = True
    request_queue_size = 128
    timeout = 10.0
    """Should the last connection fail, the server ends after this many seconds."""

    def __init__(
        self,
        host: str,
        port: int,
        pages: Mapping[str, HttpPage],
        *,
        secret: bytes | None = None,
        tls: ssl.SSLContext | None = None,
        site: Site | None = None,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.host = host
        self.pages, self.secret, self.tls, self.site = pages, secret, tls, site
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        self._is_over = False
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind the address."""
        # HTTPServer's version asks DNS for the host's name, and may block.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "", self.server_address[1]

    def serve_forever(self, poll_interval: float | None = None) -> None:  # noqa: ARG002
        """Answer until `shutdown`; idle without requests."""
        while not self._is_over:
            self.handle_request()

    def shutdown(self) -> None:
        """Make `serve_forever` return, by a last connection."""
        self._is_over = True
        with suppress(OSError):
            address = str(self.server_address[0]), self.server_port
            socket.create_connection(address, timeout=1).close()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as inherited
        """Answer in a thread of its own, unless there are too many."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # A thread that cannot start frees no place.
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Answer one connection, and free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Do the TLS handshake here, in the connection's own thread: a client may be slow."""
        request.settimeout(SECONDS)
        if self.tls is None:
            _Handler(request, client_address, self)
            return
        with self.tls.wrap_socket(request, server_side=True) as encrypted:
            _Handler(encrypted, client_address, self)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Ignore a client that disconnected, or never spoke TLS."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version: ClassVar[str] = "lake"  # type: ignore[misc]
    sys_version: ClassVar[str] = ""  # type: ignore[misc]

    def parse_request(self) -> bool:
        """Answer a request of any method; nothing is left to do then."""
        if super().parse_request():
            self._send(self._answer())
        return False

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as inherited
        """Log nothing: a scrape every few seconds is not news."""

    def _answer(self) -> HttpAnswer:  # noqa: PLR0911 - one for each kind of answer
        path, _, query = self.path.partition("?")
        page, site = self.server.pages.get(path), self.server.site
        is_directed = self._is_directed()
        trusted = may_read(self.headers.get("Authorization", ""), self.server.secret)
        if page is None and site is not None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            given = Request(
                method=self.command, path=path, query=query, headers=headers, trusted=trusted
            )
            answer = site(given) if is_directed else _refusal("MISDIRECTED_REQUEST", MISDIRECTED)
            if answer is not None:
                return answer
        if self.command not in METHODS:
            methods = " or ".join(METHODS)
            allow = {"Allow": ", ".join(METHODS)}
            return _refusal(
                "METHOD_NOT_ALLOWED", f"these pages can only be read, with {methods}", allow
            )
        if page is None:
            return _refusal("NOT_FOUND", f"not found; try {' or '.join(self.server.pages)}")
        if is_directed and trusted:
            return page.answer(self.headers.get("Accept", ""))
        if page.to_strangers is not None:
            return page.to_strangers()
        if is_directed:
            return _refusal("UNAUTHORIZED", NOT_TRUSTED, {"WWW-Authenticate": "Bearer"})
        return _refusal("MISDIRECTED_REQUEST", MISDIRECTED)

    def _is_directed(self) -> bool:
        """Whether the client addressed this server, not another site's name that resolves here.

        A browser sends the name that it looked up. With a token or a certificate, a page of another
        site whose name resolves to this address gains nothing.
        """
        if self.server.secret is not None or self.server.tls is not None:
            return True
        hosts = self.headers.get_all("Host", [])
        return all(names_server(host, self.server.host) for host in hosts)

    def _send(self, answer: HttpAnswer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


def _refusal(status: str, text: str, headers: Mapping[str, str] | None = None) -> HttpAnswer:
    plain = "text/plain; charset=utf-8"
    return HttpAnswer(HTTPStatus[status], plain, f"{text}\n".encode(), headers or {})
