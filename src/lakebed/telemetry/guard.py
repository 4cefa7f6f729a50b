"""Settings of the metrics server: address, access and TLS. Pure."""

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from lakebed.telemetry.export.targets import ExportSettings

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
"""Hosts that listen on every interface."""
_HOST = re.compile(r"(?:\[(?P<bracketed>[^\]]*)\]|(?P<plain>[^:]*))(?::[0-9]*)?")
_TOKEN = re.compile(r"[!-~]{16,4096}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The configured token and TLS files.

    `lakebed.telemetry.credentials` reads the files when they are needed, so a command that serves
    nothing needs no access to the key.
    """

    token: str | None = field(default=None, repr=False)
    token_file: str | Path | None = None
    tls_cert_file: str | Path | None = None
    tls_key_file: str | Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSettings:
    """The services and exports of one process."""

    metrics_address: str | None = None
    """The address of the metrics server; None for no server."""
    metrics_key: str = "metrics.address"
    """The key that sets the address, or would set it."""
    metrics_guard: Guard = field(default_factory=Guard)
    """The access control and TLS of the metrics server."""
    metrics_page: bool = True
    """Whether the live page is served with them."""
    export: ExportSettings = field(default_factory=ExportSettings)
    """The export of traces and lineage."""


def token(text: str) -> str:
    """Return a valid token; raise ValueError, without quoting it, otherwise."""
    if not _TOKEN.fullmatch(text):
        raise ValueError("must have at least 16 characters, in ASCII and without spaces")
    return text


def names_server(header: str, configured: str) -> bool:
    """Whether a `Host` header names the loopback or the host of the configured address.

    If the server listens on every interface, any IP address is accepted, too: no other site's name
    resolves in place of one.
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
