"""Access to the metrics server: its token, its certificate, and where it listens.

Both are read when the address is opened, so a restart takes new files. ConfigInvalid names the key
and the file that is wrong, and quotes nothing from it.
"""

import hmac
import re
import ssl
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from lakebed.errors import ConfigInvalid
from lakebed.telemetry.export.courier import ExportSettings

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
"""Hosts of an address at which every interface is listened on."""
_HOST = re.compile(r"(?:\[(?P<bracketed>[^\]]*)\]|(?P<plain>[^:]*))(?::[0-9]*)?")
_TOKEN = re.compile(r"[!-~]{16,4096}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What is asked for; `lakebed.telemetry.guard` reads the files, when they are needed.

    So a command that serves nothing needs no access to the key.
    """

    token: str | None = field(default=None, repr=False)
    token_file: str | Path | None = None
    tls_cert_file: str | Path | None = None
    tls_key_file: str | Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSettings:
    """What one process serves while it runs, and what it sends to others."""

    metrics_address: str | None = None
    """Where metrics are served; None where they are not."""
    metrics_key: str = "metrics.address"
    """The key that says where, or that would say otherwise."""
    metrics_guard: Guard = field(default_factory=Guard)
    """Who may read them, and how they travel."""
    metrics_page: bool = True
    """Whether the live page is served with them."""
    export: ExportSettings = field(default_factory=ExportSettings)
    """Where traces and lineage are sent."""


def token(text: str) -> str:
    """Return a token; a ValueError says why a text cannot be one, without repeating it."""
    if not _TOKEN.fullmatch(text):
        raise ValueError("must have at least 16 characters, in ASCII and without spaces")
    return text


def names_server(header: str, configured: str) -> bool:
    """Whether a `Host` header names the loopback or the host of the configured address.

    A server that listens everywhere is named by any IP address, too: no other site can have it
    looked up in place of its own name.
    """
    parts = _HOST.fullmatch(header.strip())
    if parts is None:
        return False
    host = (parts["bracketed"] or parts["plain"] or "").lower().removesuffix(".")
    if host in ("localhost", configured.lower()):
        return True
    address = _address(host)
    if address is None:
        return False
    return address.is_loopback or configured in EVERYWHERE or address == _address(configured)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


LONGEST_FILE = 1 << 20


def secret_of(guard: Guard) -> bytes | None:
    """Return the token; None if everybody may read."""
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
    """Return how to encrypt; None if nothing is encrypted."""
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
    """Whether an `Authorization` header has the token; the time taken tells nothing about it."""
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
