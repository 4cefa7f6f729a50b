"""A proxy on loopback in front of a store: it keeps a record of requests and makes trouble."""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Request:
    """One request as the store saw it."""

    method: str
    path: str
    query: dict[str, list[str]]
    length: int
    in_flight: int
    """How many requests of its kind were under way when it came, itself included."""
    port: int = 0
    """The port that it came from, which tells whose it is."""
    session: str = ""
    """The token of the session that it is signed in, on S3; elsewhere the bearer's."""

    @property
    def kind(self) -> str:
        """Return what the call is; those of a multipart upload have kinds of their own."""
        if "partNumber" in self.query or self.query.get("comp") == ["block"]:
            return "part"
        if self.query.get("comp") == ["blocklist"]:
            return "complete"
        if "uploads" in self.query:
            return "begin"
        if "uploadId" in self.query:
            return "complete" if self.method == "POST" else "abort"
        if "list-type" in self.query:
            return "list"
        return self.method.lower()


@dataclass(frozen=True)
class Refuse:
    """Answer with a status; the store never hears of the request."""

    status: int
    body: bytes = b"<Error/>"


@dataclass(frozen=True)
class LoseAnswer:
    """Let the store do it, and answer 500, or not at all."""

    status: int | None = 500


@dataclass(frozen=True)
class Cut:
    """Send so many bytes of the answer's body, then close the connection."""

    after: int


@dataclass(frozen=True)
class Drop:
    """Close the connection without an answer."""


@dataclass(frozen=True)
class Stall:
    """Send nothing until the proxy ends."""


Fault = Refuse | LoseAnswer | Cut | Drop | Stall
Rule = Callable[[Request], Fault | None]


@dataclass
class Proxy:
    """What passed, and what is to go wrong."""

    address: str = ""
    rule: Rule = lambda _request: None
    hold: Callable[[Request], None] = lambda _request: None
    """Called with each request while it counts as in flight; it may wait."""
    signature: str = ""
    """What lets the proxy in at the store; whoever asks then proves nothing but to the proxy."""
    record: list[Request] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)
    under_way: dict[str, int] = field(default_factory=dict)

    def kinds(self, *wanted: str) -> list[Request]:
        """Return the requests of some kinds, in their order."""
        return [request for request in self.record if request.kind in wanted]

    def most(self, kind: str) -> int:
        """Return how many requests of a kind were under way at the same time."""
        return max((request.in_flight for request in self.kinds(kind)), default=0)


@dataclass
class Gate:
    """Holds the first requests that fit until it is opened, and says who came."""

    fits: Callable[[Request], bool]
    first: int = 1
    came: Queue[Request] = field(default_factory=Queue)
    opened: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> None:
        with self.lock:
            if not self.fits(request) or self.first <= 0:
                return
            self.first -= 1
        self.came.put(request)
        self.opened.wait(600)

    def caught(self) -> Request:
        """Wait for the next request that is held."""
        return self.came.get(timeout=300)

    def open(self) -> None:
        """Let everybody through, those that wait included."""
        self.opened.set()


def times(
    count: int, fault: Fault, when: Callable[[Request], bool] = lambda _request: True
) -> Rule:
    """Let something go wrong the first times that a request fits."""
    left = [count]
    lock = threading.Lock()

    def rule(request: Request) -> Fault | None:
        with lock:
            if left[0] > 0 and when(request):
                left[0] -= 1
                return fault
        return None

    return rule


@contextmanager
def in_front_of(store_address: str) -> Iterator[Proxy]:
    """Run a proxy until the end of the block."""
    proxy = Proxy()
    host = urlsplit(store_address).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 120
        disable_nagle_algorithm = True  # Else each answer waits 40 ms between its head and body.

        def log_message(self, *_given: object) -> None:
            pass

        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return lambda: serve(self, proxy, host)
            raise AttributeError(name)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_given: object) -> None:
            pass  # Clients that hang up are part of the game.

    server = Server(("127.0.0.1", 0), Handler)
    proxy.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def serve(handler: BaseHTTPRequestHandler, proxy: Proxy, host: str) -> None:
    """Pass one request on, or do to it what the rule says."""
    parts = urlsplit(handler.path)
    body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    query = parse_qs(parts.query, keep_blank_values=True)
    request = Request(handler.command, parts.path, query, len(body), 0)
    with proxy.lock:
        now = proxy.under_way.get(request.kind, 0) + 1
        proxy.under_way[request.kind] = now
        port = int(handler.client_address[1])
        session = _session(handler)
        request = Request(request.method, request.path, query, request.length, now, port, session)
        proxy.record.append(request)
    asked: tuple[int, list[tuple[str, str]], bytes] = (0, [], b"")
    try:
        proxy.hold(request)
        rule = proxy.rule(request)
        if rule is None or isinstance(rule, LoseAnswer | Cut):
            asked = _ask(handler, host, body, proxy.signature)
        elif isinstance(rule, Stall):
            proxy.ended.wait(300)
    finally:
        # Before a word of the answer goes out: whoever has it may send the next request at once.
        with proxy.lock:
            proxy.under_way[request.kind] -= 1
    match rule:
        case None:
            _answer(handler, *asked)
        case Refuse(status, text):
            _answer(handler, status, [], text)
        case LoseAnswer(int(status)):
            _answer(handler, status, [], b"<Error/>")
        case Cut(after):
            _answer(handler, *asked, cut=after)
            _hang_up(handler)
        case LoseAnswer(None) | Drop() | Stall():
            _hang_up(handler)


def _session(handler: BaseHTTPRequestHandler) -> str:
    """Return the token that a request came with; empty without one."""
    _, bearer, token = handler.headers.get("Authorization", "").partition("Bearer ")
    return handler.headers.get("x-amz-security-token", token if bearer else "")


def _ask(
    handler: BaseHTTPRequestHandler, host: str, body: bytes, signature: str
) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = http.client.HTTPConnection(host, timeout=300)
    dropped = {"connection", "authorization"} if signature else {"connection"}
    path = handler.path
    if signature:
        path += f"{'&' if '?' in path else '?'}{signature}"
    try:
        headers = {
            name: value for name, value in handler.headers.items() if name.lower() not in dropped
        }
        connection.request(handler.command, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


def _answer(
    handler: BaseHTTPRequestHandler,
    status: int,
    headers: list[tuple[str, str]],
    body: bytes,
    *,
    cut: int | None = None,
) -> None:
    dropped = {"connection", "transfer-encoding", "date", "server"}
    given = {name.lower() for name, _value in headers}
    handler.send_response(status)
    for name, value in headers:
        if name.lower() not in dropped:
            handler.send_header(name, value)
    if "content-length" not in given:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body if cut is None else body[:cut])
    handler.wfile.flush()


def _hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)
