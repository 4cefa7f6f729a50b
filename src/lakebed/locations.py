"""Locations: one form for all spellings, so that two can be compared.

`/x/`, `file:///x` and a relative path to it are one place, and so is a link to that folder. So are
the schemes and https addresses of one bucket or container. No store is asked; local links are
resolved.
"""

import os.path
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar
from urllib.parse import unquote

Value = TypeVar("Value")

SAME_SCHEME = {
    "s3a": "s3",
    "s3n": "s3",
    "gcs": "gs",
    "azure": "az",
    "adl": "az",
    "abfs": "az",
    "abfss": "az",
    "wasb": "az",
    "wasbs": "az",
}
"""Aliases of schemes."""
BY_HOST = (
    # Path style first: no bucket may have the name of the service.
    ("s3", re.compile(r"s3[.-](?:dualstack\.)?(?P<region>[a-z0-9-]+)\.amazonaws\.com")),
    ("s3", re.compile(r"s3\.amazonaws\.com")),
    (
        "s3",
        re.compile(
            r"(?P<bucket>[a-z0-9][a-z0-9.-]*)\.s3(?:[.-](?:dualstack\.)?(?P<region>[a-z0-9-]+))?"
            r"\.amazonaws\.com"
        ),
    ),
    ("gs", re.compile(r"storage\.(?:googleapis|cloud\.google)\.com")),
    ("gs", re.compile(r"(?P<bucket>[a-z0-9][a-z0-9._-]*)\.storage\.googleapis\.com")),
    ("az", re.compile(r"(?P<account>[a-z0-9]{3,24})\.(?:blob|dfs)\.core\.windows\.net")),
)
"""The hosts of https addresses. If one names no bucket, the path begins with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder of a bucket or container, or of the local disk."""

    scheme: str
    bucket: str = ""
    account: str = ""
    """The Azure account, if the URI names it."""
    folders: tuple[str, ...] = ()
    region: str = field(default="", compare=False)
    """The AWS region, if an https address names it."""

    def __str__(self) -> str:
        path = "/".join(self.folders)
        if self.scheme == "file":
            return f"/{path}"
        account = f"@{self.account}" if self.account else ""
        return f"{self.scheme}://{self.bucket}{account}/{path}".rstrip("/")

    def same(self, other: "Place") -> bool:
        """Whether both are one folder, as far as their URIs show. Pure."""
        return self._same_bucket(other) and self.folders == other.folders

    def holds(self, other: "Place") -> bool:
        """Whether another folder is this one or inside it. Pure."""
        return self._same_bucket(other) and self.folders == other.folders[: len(self.folders)]

    def meets(self, other: "Place") -> bool:
        """Whether one of two folders contains the other. Pure."""
        return self.holds(other) or other.holds(self)

    def below(self, outer: "Place") -> str | None:
        """Return the path below an outer folder, empty if equal; None if outside. Pure."""
        return "/".join(self.folders[len(outer.folders) :]) if outer.holds(self) else None

    def _same_bucket(self, other: "Place") -> bool:
        accounts = {self.account, other.account} - {""}
        return (self.scheme, self.bucket) == (other.scheme, other.bucket) and len(accounts) < 2


class ByPlace(Generic[Value]):
    """Values by place; the first value of a place stays."""

    def __init__(self) -> None:
        self._held: list[tuple[Place, Value]] = []

    def setdefault(self, place: Place, value: Value) -> Value:
        """Return the value of a place; set it if there is none."""
        for there, held in self._held:
            if there.same(place):
                return held
        self._held.append((place, value))
        return value

    def get(self, place: Place) -> Value | None:
        """Return the value of a place; None without one."""
        return next((held for there, held in self._held if there.same(place)), None)

    def values(self) -> Iterator[Value]:
        """Yield the values in insertion order."""
        return (held for _there, held in self._held)


def place_of(uri: str, *, account: str = "") -> Place:
    """Return the place of a URI or a local path, however it is spelled.

    `account` is that of an Azure container whose URI names none.
    """
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return Place(scheme="file", folders=_folders(os.path.realpath(os.path.expanduser(uri))))  # noqa: PTH111 - text, as a URI has it
    scheme = scheme.lower()
    if scheme == "file":
        # Not by urlsplit: in a path, `#` and `?` are characters like any other.
        path = unquote(rest.removeprefix("localhost"))
        return Place(scheme="file", folders=_folders(os.path.realpath(path)))
    host, _, path = rest.partition("/")
    if scheme == "https":
        found = _by_host(host.lower(), _folders(unquote(path)))
        if found is not None:
            return found
    bucket, _, server = host.partition("@")
    kind = SAME_SCHEME.get(scheme, scheme)
    return Place(
        scheme=kind,
        bucket=bucket,
        account=(server.partition(".")[0] or account) if kind == "az" else server,
        folders=_folders(unquote(path)),
    )


def below(root: str, name: str) -> str | None:
    """Return the path of a file below a root; None if it is outside. Pure."""
    written = f"{root.rstrip('/')}/"
    if name.startswith(written):
        return name.removeprefix(written)
    return _file(name).below(place_of(root))


def _file(name: str) -> Place:
    """Return the place of a file; links are resolved in its folder only."""
    if "://" in name:
        return place_of(name)
    folder, slash, last = name.rpartition("/")
    at = place_of(f"{folder}{slash}" or ".")
    return replace(at, folders=(*at.folders, last))


def openable(uri: str) -> str:
    """Return the URI of a remote place in a form that store libraries accept.

    They accept few spellings; the original one is for people and for the journal.
    """
    scheme, _, rest = uri.partition("://")
    server = rest.partition("/")[0].partition("@")[2]
    known = scheme.lower() in ("s3", "s3a", "gs", "az", "abfs", "abfss")
    place = place_of(uri)
    if place.scheme not in ("s3", "gs", "az") or (known and (not server or "." in server)):
        return uri
    if "." in server and not server.endswith(".core.windows.net"):
        return uri
    path = "/".join(place.folders)
    if place.account:
        return f"abfss://{place.bucket}@{place.account}.dfs.core.windows.net/{path}".rstrip("/")
    return f"{place.scheme}://{place.bucket}/{path}".rstrip("/")


def _by_host(host: str, parts: tuple[str, ...]) -> Place | None:
    """Return the place of an https address; None for an unknown host."""
    for scheme, pattern in BY_HOST:
        found = pattern.fullmatch(host)
        if found is None:
            continue
        named = found.groupdict(default="")
        bucket = named.get("bucket", "")
        if not bucket and not parts:
            return None
        return Place(
            scheme=scheme,
            bucket=bucket or parts[0],
            account=named.get("account", ""),
            folders=parts if bucket else parts[1:],
            region=named.get("region", ""),
        )
    return None


def written_out(uri: str) -> str:
    """Return a URI that is valid from any working directory: relative paths become absolute."""
    if "://" in uri or uri.startswith(("/", "~")):
        return uri
    return os.path.abspath(uri)  # noqa: PTH100 - without `..`, and with its links as they are


def _folders(path: str) -> tuple[str, ...]:
    inner = posixpath.normpath(f"/{path}").strip("/")
    return tuple(inner.split("/")) if inner else ()
