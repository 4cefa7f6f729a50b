"""Where things are: one form for all spellings of a location, so that two can be compared.

`/x/`, `file:///x` and a relative path to it are one place, and so is a link to that folder; `s3a://`
is `s3://`. Nothing here asks a store: a local path is followed through its links, and that is all.
"""

import os.path
from dataclasses import dataclass
from urllib.parse import unquote

SAME_SCHEME = {"s3a": "s3", "azure": "az", "adl": "az", "abfs": "az", "abfss": "az"}
"""Schemes that are other names of one kind of store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder: of a bucket or container, or of this machine's disk."""

    scheme: str
    bucket: str = ""
    account: str = ""
    """Azure's, where the URI names it."""
    folders: tuple[str, ...] = ()

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

    def _same_bucket(self, other: "Place") -> bool:
        accounts = {self.account, other.account} - {""}
        return (self.scheme, self.bucket) == (other.scheme, other.bucket) and len(accounts) < 2


def place_of(uri: str) -> Place:
    """Return the place that a URI or a local path means, however it is spelled."""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return Place(scheme="file", folders=_folders(os.path.realpath(os.path.expanduser(uri))))  # noqa: PTH111 - text, as a URI has it
    scheme = scheme.lower()
    if scheme == "file":
        # Not by urlsplit: in a path, `#` and `?` are characters like any other.
        path = unquote(rest.removeprefix("localhost"))
        return Place(scheme="file", folders=_folders(os.path.realpath(path)))
    host, _, path = rest.partition("/")
    bucket, _, account = host.partition("@")
    return Place(
        scheme=SAME_SCHEME.get(scheme, scheme),
        bucket=bucket,
        account=account.partition(".")[0],
        folders=_folders(unquote(path)),
    )


def below(root: str, name: str) -> str | None:
    """Return the path of a file below a root; None where it does not lie there. Pure."""
    written = f"{root.rstrip('/')}/"
    if name.startswith(written):
        return name.removeprefix(written)
    above, file = place_of(root), _file(name)
    if not above.holds(file):
        return None
    return "/".join(file.folders[len(above.folders) :])


def _file(name: str) -> Place:
    """Return the place of a file; a link that it is itself is not followed."""
    if "://" in name:
        return place_of(name)
    folder, slash, last = name.rpartition("/")
    at = place_of(f"{folder}{slash}" or ".")
    return Place(scheme=at.scheme, folders=(*at.folders, last))


def written_out(uri: str) -> str:
    """Return a URI that means the same wherever it is read: a relative path is made a full one."""
    if "://" in uri or uri.startswith(("/", "~")):
        return uri
    return os.path.abspath(uri)  # noqa: PTH100 - without `..`, and with its links as they are


def _folders(path: str) -> tuple[str, ...]:
    return tuple(path.strip("/").split("/")) if path.strip("/") else ()
