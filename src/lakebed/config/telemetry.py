"""The section that says where traces and lineage are sent."""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from lakebed.config.section import Section, Text
from lakebed.telemetry.export.targets import NAMESPACE, ExportSettings


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be a URL that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not have a password in it; put credentials into the headers")
    return text


Url = Annotated[Text, AfterValidator(_url)]


class Telemetry(Section):
    """Where traces and lineage are sent."""

    otlp_endpoint: Url | None = None
    otlp_headers: dict[str, SecretStr] = {}
    openlineage_url: Url | None = None
    openlineage_headers: dict[str, SecretStr] = {}
    openlineage_namespace: Text = NAMESPACE

    def settings(self) -> ExportSettings:
        """Return where they go, as plain values."""
        return ExportSettings(
            otlp_endpoint=self.otlp_endpoint,
            otlp_headers=_plain(self.otlp_headers),
            openlineage_url=self.openlineage_url,
            openlineage_headers=_plain(self.openlineage_headers),
            openlineage_namespace=self.openlineage_namespace,
        )


def _plain(secrets: Mapping[str, SecretStr]) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in secrets.items()}
