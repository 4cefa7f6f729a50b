"""Targets of traces and lineage, from the configuration and standard variables. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

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


def _below(url: str, path: str) -> str:
    """Append the path of one kind of document, unless the URL has it already."""
    base = url.rstrip("/")
    return base if base.endswith(path) else base + path


def _headers(text: str) -> dict[str, str]:
    """Parse headers of the variable: `key=value,key=value`, with encoded values."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip(): unquote(value.strip()) for name, _equals, value in pairs}
