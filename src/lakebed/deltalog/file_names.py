"""Resolve the paths of a Delta log to the names of objects in the store.

A log names a file relative to the table, by a URI, or by an absolute path, which on a local disk
may go through links. Every file must have one name here: under a second one, it would look new.
"""

import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from lakebed.locations import SAME_SCHEME, Place, openable

URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):/")
ON_DISK = re.compile(r"file:/", re.IGNORECASE)
STORES = ("file", "s3", "gs", "az")


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
        place = _place(name) if root is not None and URI.match(name) else None
        below = None if place is None or root is None else place.below(root)
        return below or name

    return named


def _place(uri: str) -> Place | None:
    """Return the place of an object, with the characters of its key as they are."""
    scheme, _, rest = openable(uri).partition("://")
    authority, _, key = rest.partition("/")
    bucket, _, host = authority.partition("@")
    kind = SAME_SCHEME.get(scheme.lower(), scheme.lower())
    if kind not in STORES:
        return None
    account, folders = host.partition(".")[0], tuple(key.split("/")) if key else ()
    return Place(scheme=kind, bucket=bucket, account=account, folders=folders)


def is_elsewhere(path: str) -> bool:
    """Whether a file is outside of the table's directory, as the files of a shallow clone are."""
    return path.startswith("/") or ":/" in path


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
        if os.path.islink(root / path):  # noqa: PTH114 - a Path for each costs more than the check
            whole = os.path.realpath(whole)
        real = whole.removeprefix(base)
        return None if real in (path, whole) else real

    return named
