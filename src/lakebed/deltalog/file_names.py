"""The data files of a log by their names in the store, whichever way the log writes them.

A log names a file relative to the table, or by a whole URI, or by an absolute path; on a local disk
such a path may lead there through links. One file must have one name here: what the log knows under
another would look new.
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
    """A store, as far as it is asked where it is."""

    @property
    def uri(self) -> str:
        """Return what it was opened by."""

    @property
    def local_root(self) -> Path | None:
        """Return its folder on this machine; None for a remote one."""


Naming = Callable[[str], str]
"""Turns a name of the log, without its escapes, into one relative to the table."""


def naming(store: Located) -> Naming:
    """Return a function that names the files of a table in a store."""
    if store.local_root is not None:
        return _on_disk(store.local_root)
    return _in_bucket(store.uri)


def _on_disk(root: Path) -> Naming:
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


def _in_bucket(uri: str) -> Naming:
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
    """Where an object lies, whichever scheme says so."""

    kind: str
    bucket: str
    account: str
    """Empty where the URI does not say it."""
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
    """Whether a file lies outside of the table's directory, as one of a shallow clone does."""
    return path.startswith("/") or ":/" in path


def without_links(store: Located, path: str) -> str:
    """Return the name that a file has without links, if it is one in this table."""
    if store.local_root is None:
        return path
    root, real = os.path.realpath(store.local_root), os.path.realpath(store.local_root / path)
    return real[len(root) + 1 :] if real.startswith(f"{root}/") else path


def linked_folders(store: Located, paths: Iterable[str]) -> dict[str, set[str]]:
    """Return the folders of some files that are links, by what they are without."""
    found: dict[str, set[str]] = {}
    if store.local_root is not None:
        for folder in {path.rpartition("/")[0] for path in paths} - {""}:
            real = without_links(store, folder)
            if real != folder:
                found.setdefault(real, set()).add(folder)
    return found


def known_by_links(store: Located, paths: Iterable[str]) -> dict[str, str]:
    """Return, by their names without links, those of some files that are links themselves."""
    root = store.local_root
    if root is None:
        return {}
    links = (path for path in paths if os.path.islink(root / path))  # noqa: PTH114 - never raises
    return {real: path for path in links if (real := without_links(store, path)) != path}


def linked_name(store: Located) -> Callable[[str], str | None]:
    """Return a function that names a file without links; None for one that has none on its way.

    Folders are looked up once, so that it can be asked for a million files.
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
