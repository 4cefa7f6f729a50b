"""Where things are: one form for all spellings of a location, so that two can be compared.

`/x/`, `file:///x` and a relative path to it are one place, and so is a link to that folder. The
schemes and the https addresses of one bucket or container are one place, too. Nothing here asks a
store: a local path is followed through its links, and that is all.
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
"""Schemes that are other names of one kind of store."""
BY_HOST = (
    # Path style first: a bucket may not be called as the service is.
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
"""The hosts of https addresses. Where one names no bucket, the path begins with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder: of a bucket or container, or of this machine's disk."""

    scheme: str
    bucket: str = ""
    account: str = ""
    """Azure's, where the URI names it."""
    folders: tuple[str, ...] = ()
    region: str = field(default="", compare=False)
    """Amazon's, where an https address names it."""

    def __str__(self) -> str:
        path = "/".join(self.folders)
        if self.scheme == "file":
            return f"/{path}"
        account = f"@{self.account}" if self.account else ""
        return f"{self.scheme}://{self.bucket}{account}/{path}".rstrip("/")

    def same(self, other: "Place") -> bool:
        """Whether both are one folder, as far as their URIs tell. Pure."""
        return self._same_bucket(other) and self.folders == other.folders

    def holds(self, other: "Place") -> bool:
        """Whether another folder is this one, or lies in it. Pure."""
        return self._same_bucket(other) and self.folders == other.folders[: len(self.folders)]

    def meets(self, other: "Place") -> bool:
        """Whether a file can lie in both folders: one of them holds the other. Pure."""
        return self.holds(other) or other.holds(self)

    def below(self, outer: "Place") -> str | None:
        """Return the path below an outer folder, empty where it is that; None if outside. Pure."""
        return "/".join(self.folders[len(outer.folders) :]) if outer.holds(self) else None

    def _same_bucket(self, other: "Place") -> bool:
        accounts = {self.account, other.account} - {""}
        return (self.scheme, self.bucket) == (other.scheme, other.bucket) and len(accounts) < 2


class ByPlace(Generic[Value]):
    """Values by place; the first one that was set for a place stays."""

    def __init__(self) -> None:
        self._held: list[tuple[Place, Value]] = []

    def setdefault(self, place: Place, value: Value) -> Value:
        """Return the value of a place, which is this one if there is none yet."""
        for there, held in self._held:
            if there.same(place):
                return held
        self._held.append((place, value))
        return value

    def get(self, place: Place) -> Value | None:
        """Return the value of a place; None if there is none."""
        return next((held for there, held in self._held if there.same(place)), None)

    def values(self) -> Iterator[Value]:
        """Yield the values, in the order in which they were set."""
        return (held for _there, held in self._held)


def place_of(uri: str, *, account: str = "") -> Place:
    """Return the place that a URI or a local path means, however it is spelled.

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
    """Return the path of a file below a root; None where it does not lie there. Pure."""
    written = f"{root.rstrip('/')}/"
    if name.startswith(written):
        return name.removeprefix(written)
    return _file(name).below(place_of(root))


def _file(name: str) -> Place:
    """Return the place of a file; a link that it is itself is not followed."""
    if "://" in name:
        return place_of(name)
    folder, slash, last = name.rpartition("/")
    at = place_of(f"{folder}{slash}" or ".")
    return replace(at, folders=(*at.folders, last))


def openable(uri: str) -> str:
    """Return the URI of a remote place as libraries of stores take it.

    They take few spellings; the one that was written is for people, and for the journal.
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
    """Return the place of an https address; None if no store that we know has that host."""
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
    """Return a URI that means the same wherever it is read: a relative path is made a full one."""
    if "://" in uri or uri.startswith(("/", "~")):
        return uri
    return os.path.abspath(uri)  # noqa: PTH100 - without `..`, and with its links as they are


def _folders(path: str) -> tuple[str, ...]:
    inner = posixpath.normpath(f"/{path}").strip("/")
    return tuple(inner.split("/")) if inner else ()
