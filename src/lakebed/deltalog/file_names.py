"""Resolve the paths of a Delta log to the names of objects in the store.

A log names a file relative to the table, by a URI, or by an absolute path, which on a local disk
may go through links. Every file must have one name here: under a second one, it would look new.
"""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from lakebed.locations import openable

URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):/")
ON_DISK = re.compile(r"file:/", re.IGNORECASE)
KINDS = {
    "file": "file",
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "azure", "adl", "abfs", "abfss", "wasb", "wasbs"), "az"),
}
"""Schemes that mean the same store."""


class Located(Protocol):
    """The location of a store."""

    @property
    def uri(self) -> str:
        """Return the URI that opened it."""

    @property
    def local_root(self) -> Path | None:
        """Return its folder on this machine; None for a remote store."""


PathResolver = Callable[[str], str]
"""Resolves an unescaped path of the log relative to the table."""


def path_resolver(store: Located) -> PathResolver:
    """Return the resolver for the paths of a table's log."""
    if store.local_root is not None:
        return _on_disk(store.local_root)
    return _in_bucket(store.uri)


def _on_disk(root: Path) -> PathResolver:
    given, real = str(root.absolute()), os.path.realpath(root)
    folder_of = lru_cache(maxsize=10_000)(os.path.realpath)

    def named(name: str) -> str:
        if not name.startswith("/") and not ON_DISK.match(name):
            return name
        path = re.sub(r"^file:(//localhost(?=/)|//(?=/))?", "", name, flags=re.IGNORECASE)
        above, _, last = path.rpartition("/")
        for whole in (path, f"{folder_of(above)}/{last}"):
            for prefix in (given, real):
                if whole.startswith(f"{prefix}/"):
                    return whole[len(prefix) + 1 :]
        return name

    return named


def _in_bucket(uri: str) -> PathResolver:
    root = _place(uri.rstrip("/"))

    def named(name: str) -> str:
        found = _place(name) if root is not None and URI.match(name) else None
        if found is None or root is None or not found.may_be_in(root):
            return name
        above = f"{root.key}/" if root.key else ""
        return found.key.removeprefix(above) if found.key.startswith(above) else name

    return named


@dataclass(frozen=True, slots=True)
class _Place:
    """The location of an object, independent of the scheme's spelling."""

    kind: str
    bucket: str
    account: str
    """Empty if the URI does not name it."""
    key: str

    def may_be_in(self, root: "_Place") -> bool:
        accounts = {self.account, root.account} - {""}
        return (self.kind, self.bucket) == (root.kind, root.bucket) and len(accounts) < 2


def _place(uri: str) -> _Place | None:
    scheme, _, rest = openable(uri).partition("://")
    authority, _, key = rest.partition("/")
    bucket, _, host = authority.partition("@")
    kind = KINDS.get(scheme.lower())
    return None if kind is None else _Place(kind, bucket, host.partition(".")[0], key)


def is_elsewhere(path: str) -> bool:
    """Whether a file is outside of the table's directory, as the files of a shallow clone are."""
    return path.startswith("/") or ":/" in path


def without_links(store: Located, path: str) -> str:
    """Return a file's path with all links resolved, if that is inside the table."""
    if store.local_root is None:
        return path
    root, real = os.path.realpath(store.local_root), os.path.realpath(store.local_root / path)
    return real[len(root) + 1 :] if real.startswith(f"{root}/") else path


def linked_folders(store: Located, paths: Iterable[str]) -> dict[str, set[str]]:
    """Return the folders of some files that are links, by the folders that they lead to."""
    found: dict[str, set[str]] = {}
    if store.local_root is not None:
        for folder in {path.rpartition("/")[0] for path in paths} - {""}:
            real = without_links(store, folder)
            if real != folder:
                found.setdefault(real, set()).add(folder)
    return found


def known_by_links(store: Located, paths: Iterable[str]) -> dict[str, str]:
    """Return the files that are links themselves, by the files that they lead to."""
    root = store.local_root
    if root is None:
        return {}
    links = (path for path in paths if os.path.islink(root / path))  # noqa: PTH114 - never raises
    return {real: path for path in links if (real := without_links(store, path)) != path}


def linked_name(store: Located) -> Callable[[str], str | None]:
    """Return a function that resolves the links in a path; it returns None for a path without any.

    Folders are resolved once, so that it is fast for a million files.
    """
    root = store.local_root
    if root is None:
        return lambda _path: None
    base = f"{os.path.realpath(root)}/"
    folder_of = lru_cache(maxsize=10_000)(lambda folder: os.path.realpath(root / folder))

    def named(path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        whole = f"{folder_of(folder)}/{name}"
        if os.path.islink(root / path):  # noqa: PTH114 - a Path for each costs more than the look
            whole = os.path.realpath(whole)
        real = whole.removeprefix(base)
        return None if real in (path, whole) else real

    return named
