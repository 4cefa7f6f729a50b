"""Where metrics are served, who may read them, and how they travel, as configured. Pure."""

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from lakebed.telemetry.export.targets import ExportSettings

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
"""Hosts of an address at which every interface is listened on."""
_HOST = re.compile(r"(?:\[(?P<bracketed>[^\]]*)\]|(?P<plain>[^:]*))(?::[0-9]*)?")
_TOKEN = re.compile(r"[!-~]{16,4096}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What is asked for; `lakebed.telemetry.credentials` reads the files, when they are needed.

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
