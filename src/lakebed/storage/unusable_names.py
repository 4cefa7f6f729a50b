"""List around names that the store's library cannot handle, with Arrow's S3 client."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakebed.errors import StoreUnavailable
from lakebed.listing.sort import CONTROL, is_usable, readable
from lakebed.locations import place_of
from lakebed.storage.options import ANY_REGION, StorageOptions
from lakebed.storage.settings import split

_ODD_PARTS = ("", ".", "..")


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


_KEYS = {
    "access_key_id": "access_key",
    "secret_access_key": "secret_key",
    "session_token": "session_token",
    "region": "region",
    "proxy_url": "proxy_options",
}


def can_name(uri: str) -> bool:
    """Whether a store's names can be read in this way."""
    return place_of(uri).scheme == "s3"


def names(uri: str, folder: str, options: StorageOptions) -> list[str]:
    """Return the usable names of all objects below a folder of a bucket, sorted.

    They are relative to the URI. A failure raises, and never returns fewer names.
    """
    from pyarrow import fs  # noqa: PLC0415 - it brings a whole SDK, which is hardly ever needed

    place = place_of(uri)
    root = "/".join((place.bucket, *place.folders))
    store_options, http = split(options.plain(), uri=uri, environment=os.environ)
    try:
        store = fs.S3FileSystem(**client({**http, **store_options}, os.environ))
        found = store.get_file_info(
            fs.FileSelector(f"{root}/{folder}".rstrip("/"), recursive=True, allow_not_found=True)
        )
    except (OSError, ValueError) as cause:
        raise StoreUnavailable(
            "the names in this folder cannot be read", path=f"{uri.rstrip('/')}/{folder}"
        ) from cause
    paths = (each.path.removeprefix(f"{root}/") for each in found if each.is_file)
    return sorted(path for path in paths if is_usable(path, remote=True))


def client(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Convert a store's options to settings of Arrow's client. Pure.

    The options are complete; without keys it finds the machine's role by itself.
    The region is always set, since it would find another than the store's library.
    """
    given = {
        name.lower().removeprefix("aws_"): value
        for source in (environment, options)
        for name, value in source.items()
        if source is options or name.startswith("AWS_")
    }
    settings: dict[str, Any] = {
        ours: given[theirs] for theirs, ours in _KEYS.items() if given.get(theirs)
    }
    settings.setdefault("region", ANY_REGION)
    if endpoint := given.get("endpoint"):
        scheme, _, host = endpoint.rpartition("://")
        settings |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
    if given.get("skip_signature", "").lower() == "true":
        settings["anonymous"] = True
    if given.get("virtual_hosted_style_request", "").lower() == "true":
        settings["force_virtual_addressing"] = True
    return settings
