"""List around names that the store's library cannot handle, with Arrow's S3 client."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakebed.errors import StoreUnavailable
from lakebed.listing.sort import CONTROL, end_of, is_usable, readable
from lakebed.locations import place_of
from lakebed.storage.options import ANY_REGION, ObjectFacts, StorageOptions, bare
from lakebed.storage.settings import split

_ODD_PARTS = ("", ".", "..")
Names = Callable[[str], tuple[Sequence[str], Sequence[str]]]
"""Returns the paths of the direct folders and files of a folder with usable names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableName:
    """An unusable name, its readable form, and how to skip it."""

    path: str
    shown: str
    """Its readable form; for an odd folder, only the path of that folder."""
    next: str
    """The first usable name after it and after all names with the same odd part."""


def unusable_name(path: str) -> UnusableName:
    """Find the first odd part of a name."""
    parts = path.split("/")
    at = 0
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        control = CONTROL.search(part)
        if control is not None:
            # No usable name has a control character here; the next character is a space.
            after = " " if control[0] < " " else "\x80"
            start = path[: at + control.start()]
            return UnusableName(path=path, shown=readable(path), next=f"{start}{after}")
        if part in _ODD_PARTS:
            here = path[: at + len(part)]
            if is_last:
                return UnusableName(path=path, shown=path, next=f"{here} ")
            # Everything in the folder sorts before a `0` in place of the slash.
            return UnusableName(path=path, shown=f"{here}/", next=f"{here}0")
        at += len(part) + 1
    raise ValueError(f"there is nothing odd about {path!r}")


@dataclass(slots=True, kw_only=True)
class Detour:
    """Lists objects before an odd name; each folder is listed once."""

    head: Callable[[str], ObjectFacts | None]
    """Returns the facts of one object."""
    objects: Callable[[str, str | None], Iterable[ObjectFacts]]
    """Lists the objects below a folder, after a name."""
    names: Names
    _levels: dict[str, list[str]] = field(default_factory=dict)

    def before(self, folder: str, *, low: str, high: str) -> Iterator[ObjectFacts]:
        """Yield the objects below a folder with names between `low` and `high`, in order.

        There must be no odd name between them; `high` is one.
        """
        for name in self._level(folder):
            if name >= high:
                return
            if name.endswith("/"):
                yield from self._folder(name[:-1], low, high)
            elif low < name < high:
                found = self.head(name)
                if found is not None:
                    yield found

    def _folder(self, folder: str, low: str, high: str) -> Iterator[ObjectFacts]:
        if end_of(folder) <= low:
            return
        if high.startswith(f"{folder}/"):
            yield from self.before(folder, low=low, high=high)
            return
        after = low if low.startswith(f"{folder}/") else None
        yield from self.objects(folder, after)

    def _level(self, folder: str) -> list[str]:
        """Return the direct content of a folder, in order; folders end with a slash."""
        if folder not in self._levels:
            folders, files = self.names(folder)
            # The folder's own marker does not count.
            inside = {path for path in files if path != folder}
            self._levels[folder] = sorted(inside.union(f"{path}/" for path in folders))
        return self._levels[folder]


_KEYS = {
    "access_key_id": "access_key",
    "secret_access_key": "secret_key",
    "session_token": "session_token",
    "token": "session_token",
    "default_region": "region",
    "region": "region",
    "proxy_url": "proxy_options",
}


def can_name(uri: str) -> bool:
    """Whether a store's names can be read in this way."""
    return place_of(uri).scheme == "s3"


def names(uri: str, folder: str, options: StorageOptions) -> tuple[list[str], list[str]]:
    """Return the paths of the direct folders and files of a folder of a bucket, below the URI.

    Unusable names are left out. A failure raises, and never returns fewer names.
    """
    from pyarrow import fs  # noqa: PLC0415 - it brings a whole SDK, which is hardly ever needed

    place = place_of(uri)
    base = "/".join(part for part in (place.bucket, *place.folders, folder) if part)
    store_options, http = split(options.plain(), uri=uri, environment=os.environ)
    try:
        store = fs.S3FileSystem(**client({**http, **store_options}, os.environ))
        found = store.get_file_info(fs.FileSelector(base, recursive=False))
    except (OSError, ValueError) as cause:
        raise StoreUnavailable(
            "the names in this folder cannot be read", path=f"{uri.rstrip('/')}/{folder}"
        ) from cause
    above = f"{folder}/" if folder else ""
    folders: list[str] = []
    files: list[str] = []
    for each in found:
        name = each.path.removeprefix(f"{base}/")
        if "/" in name or not is_usable(name, remote=True):
            continue
        is_folder = each.type == fs.FileType.Directory
        (folders if is_folder else files).append(f"{above}{name}")
    return folders, files


def client(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Convert a store's options to settings of Arrow's client. Pure.

    Settings that are not given it finds by itself: in the environment, or from the machine's role.
    The region is always set, since it would find another than the store's library.
    """
    given = {
        name.lower().removeprefix("aws_"): value
        for source in (environment, options)
        for name, value in source.items()
        if source is options or name.startswith("AWS_")
    }
    if any(bare(name.lower()) == "session_token" for name in options):
        given.pop("token", None)  # The environment's token belongs to another key.
    settings: dict[str, Any] = {
        ours: given[theirs] for theirs, ours in _KEYS.items() if given.get(theirs)
    }
    settings.setdefault("region", ANY_REGION)
    if not {"access_key", "secret_key"} <= settings.keys():
        for key in ("access_key", "secret_key", "session_token"):
            settings.pop(key, None)
    endpoint = given.get("endpoint") or given.get("endpoint_url")
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        settings |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
    if given.get("skip_signature", "").lower() == "true":
        settings["anonymous"] = True
    if given.get("virtual_hosted_style_request", "").lower() == "true":
        settings["force_virtual_addressing"] = True
    return settings
