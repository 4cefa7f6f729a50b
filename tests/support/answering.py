"""A store on loopback that gives each request the answer that it is told to give."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from tempfile import NamedTemporaryFile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Given:
    """An answer."""

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Answering:
    """Where it listens, what it was asked, and what it answers."""

    address: str
    answer: Callable[[Asked], Given] = lambda _asked: Given(404)
    asked: list[Asked] = field(default_factory=list)


def error(status: int, code: str, inside: str = "") -> Given:
    """Return a store's refusal, as S3, Azure and Google write it."""
    return Given(status, f"<Error><Code>{code}</Code><Message>no</Message>{inside}</Error>")


def self_signed(*, password: bytes | None = None) -> tuple[bytes, bytes]:
    """Return a key and its certificate for the loopback, which nobody else has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption(),
    )
    return secret, signed.public_bytes(serialization.Encoding.PEM)


def _certificate() -> ssl.SSLContext:
    """Return the means to answer over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with NamedTemporaryFile() as file:
        file.write(b"".join(self_signed()))
        file.flush()
        context.load_cert_chain(file.name)
    return context


@contextmanager
def answering(*, secure: bool = False) -> Iterator[Answering]:
    """Answer requests until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # Else each answer waits 40 ms between its head and body.

        def handle_one(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length") or 0))
            asked = Asked(self.command, self.path, dict(self.headers.items()), sent)
            here.asked.append(asked)
            given = here.answer(asked)
            body = b"" if self.command == "HEAD" else given.body.encode()
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_one  # noqa: N815

        def log_message(self, *_given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if secure:
        server.socket = _certificate().wrap_socket(server.socket, server_side=True)
    scheme = "https" if secure else "http"
    here = Answering(address=f"{scheme}://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
