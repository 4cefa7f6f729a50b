"""Settings of telemetry: the metrics server, and targets of traces and lineage. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from urllib.parse import unquote

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
"""Hosts that listen on every interface."""
_HOST = re.compile(r"(?:\[(?P<bracketed>[^\]]*)\]|(?P<plain>[^:]*))(?::[0-9]*)?")
_TOKEN = re.compile(r"[!-~]{16,4096}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The configured token and TLS files.

    `lakebed.telemetry.http` reads the files when they are needed, so a command that serves
    nothing needs no access to the key.
    """

    token: str | None = field(default=None, repr=False)
    token_file: str | Path | None = None
    tls_cert_file: str | Path | None = None
    tls_key_file: str | Path | None = None


TRACES = "/v1/traces"
LINEAGE = "/api/v1/lineage"
NAMESPACE = "blizzard"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTarget:
    """The address to which documents are sent. Its headers may hold a secret."""

    what: str
    """What is sent there: traces or lineage."""
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """The configured export of traces and lineage; None for no export."""

    otlp_endpoint: str | None = None
    otlp_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    openlineage_url: str | None = None
    openlineage_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    openlineage_namespace: str = NAMESPACE

    def traces(self, environment: Mapping[str, str]) -> ExportTarget | None:
        """Return the target of traces: from the configuration, else from OpenTelemetry's variables.

        Variables that request gRPC are meant for other programs: nothing is sent then.
        """
        if self.otlp_endpoint is not None:
            url, headers = _below(self.otlp_endpoint, TRACES), self.otlp_headers
            return ExportTarget(what="traces", url=url, headers=headers)
        own = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
        shared = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
        url = own or (_below(shared, TRACES) if shared else "")
        protocol = environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")
        disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
        if disabled or protocol == "grpc" or not url.startswith(("http://", "https://")):
            return None
        headers = _headers(environment.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
        return ExportTarget(what="traces", url=url, headers=headers)

    def lineage(self) -> ExportTarget | None:
        """Return the target of lineage."""
        if self.openlineage_url is None:
            return None
        url = _below(self.openlineage_url, LINEAGE)
        return ExportTarget(what="lineage", url=url, headers=self.openlineage_headers)


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


def _below(url: str, path: str) -> str:
    """Append the path of one kind of document, unless the URL has it already."""
    base = url.rstrip("/")
    return base if base.endswith(path) else base + path


def _headers(text: str) -> dict[str, str]:
    """Parse headers of the variable: `key=value,key=value`, with encoded values."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip(): unquote(value.strip()) for name, _equals, value in pairs}
