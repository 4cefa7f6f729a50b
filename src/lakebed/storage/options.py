"""Options of a store (region, endpoint, credentials, never shown), and facts of an object."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

SHORTEST_SECRET = 4
"""Shorter values are switches such as `true`, and blanking them would garble every message."""
ANY_REGION = "us-east-1"
"""The region that S3 libraries sign with if none is set."""
PREFIXES = ("aws_", "azure_storage_", "azure_", "google_")
SPELLINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "s3": {
        "aws_endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AWS_ENDPOINT_URL"),
        "aws_region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
        "aws_access_key_id": ("AWS_ACCESS_KEY_ID",),
        "aws_secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
        "aws_session_token": ("AWS_SESSION_TOKEN", "AWS_TOKEN"),
        "aws_conditional_put": ("AWS_CONDITIONAL_PUT",),
        "aws_profile": ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"),
    },
    "az": {
        "azure_storage_endpoint": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
        "azure_storage_account_name": ("AZURE_STORAGE_ACCOUNT_NAME",),
        "azure_storage_account_key": (
            "AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_ACCESS_KEY",
            "AZURE_STORAGE_MASTER_KEY",
        ),
        "azure_storage_client_id": ("AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID"),
        "azure_storage_client_secret": ("AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET"),
        "azure_storage_tenant_id": (
            "AZURE_STORAGE_TENANT_ID",
            "AZURE_TENANT_ID",
            "AZURE_STORAGE_AUTHORITY_ID",
            "AZURE_AUTHORITY_ID",
        ),
        "azure_storage_sas_key": ("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN"),
        "azure_storage_token": ("AZURE_STORAGE_TOKEN",),
    },
    "gs": {
        "google_base_url": ("GOOGLE_BASE_URL",),
        "google_service_account": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"),
        "google_service_account_key": ("GOOGLE_SERVICE_ACCOUNT_KEY",),
        "google_application_credentials": ("GOOGLE_APPLICATION_CREDENTIALS",),
    },
}
"""The environment variables of each setting, by kind of store and by the libraries' name. Sections
may omit the prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionOrigin:
    """The keys of the configuration that set a store's URI and options, for messages."""

    place: str = ""
    """The key of its URI, as in `source.path`."""
    section: str = "storage_options"
    """The key of its own options, as in `source.storage_options`."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The keys of options set elsewhere, as in `storage[0].options.AWS_REGION`."""


class StorageOptions:
    """Options of a store, whose values appear only where `plain` is called.

    It is not a Mapping on purpose: passing it to a logger, a message or `dict` reveals nothing. It
    pickles with its values, since executors open the store themselves. Equality ignores the origin.
    """

    __slots__ = ("_options", "origin")

    def __init__(
        self, options: Mapping[str, str] | None = None, origin: OptionOrigin | None = None
    ) -> None:
        self._options = tuple(sorted((options or {}).items()))
        self.origin = origin or OptionOrigin()

    def plain(self) -> dict[str, str]:
        """Return the options with their values, for the store alone."""
        return dict(self._options)

    def redact(self, text: str) -> str:
        """Mask the values in a library's text, which may quote them."""
        # The longest first: a short value may be part of a long one and would hide its beginning.
        for value in sorted((value for _name, value in self._options), key=len, reverse=True):
            if len(value) >= SHORTEST_SECRET:
                text = text.replace(value, "***")
        return text

    def key_of(self, *names: str, environment: Mapping[str, str]) -> str:
        """Return the key that sets an option, by any of its names; else the key to set.

        Names are in capitals with their prefix, as in the environment and in the documentation; the
        first one is the one to set.
        """
        meant = [bare(name.lower()) for name in names]
        for name, _value in self._options:
            if bare(name.lower()) in meant:
                return self.key(name)
        for name in names:
            if environment.get(name):
                return f"the environment variable {name}"
        return self.key(names[0])

    def key(self, name: str) -> str:
        """Return the key of an option in the configuration."""
        return self.origin.keys.get(name, f"{self.origin.section}.{name}")

    def __reduce__(self) -> tuple[type["StorageOptions"], tuple[dict[str, str], OptionOrigin]]:
        return StorageOptions, (self.plain(), self.origin)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageOptions) and self._options == other._options

    def __hash__(self) -> int:
        return hash(self._options)

    def __repr__(self) -> str:
        return f"StorageOptions({', '.join(f'{name}=***' for name, _ in self._options)})"


def bare(key: str) -> str:
    """Return the name of an option without the prefix of its store."""
    for prefix in PREFIXES:
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    return key


def is_endpoint(name: str) -> bool:
    """Whether an option is the address of a store."""
    return "endpoint" in name.lower() or bare(name.lower()) == "base_url"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """The location and options of a store; executors open stores themselves."""

    uri: str
    options: StorageOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """The facts of an object from a listing or a HEAD."""

    path: str
    size: int
    etag: str | None
    modified: datetime
