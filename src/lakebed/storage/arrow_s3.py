"""The only door to Arrow's S3 client: it reads names that the store's library cannot handle.

It gives no e-tags, so it is asked for the names in one folder, and only where a listing meets a
name that cannot be used.
"""

from collections.abc import Mapping
from typing import Any

from lakebed.errors import StoreUnavailable
from lakebed.listing.sort import CONTROL
from lakebed.locations import place_of
from lakebed.storage.options import bare

ANY_REGION = "us-east-1"
"""What the store's library signs with where nobody has named a region."""
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
    """Whether the names of a store can be read in this way."""
    return place_of(uri).scheme == "s3"


def names(
    uri: str, folder: str, *, options: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Return the folders and the files right in a folder of a bucket, by their paths below the URI.

    Names that cannot be used are left out. Trouble is an error, never fewer names.
    """
    from pyarrow import fs  # noqa: PLC0415 - it brings a whole SDK, which is hardly ever needed

    place = place_of(uri)
    base = "/".join(part for part in (place.bucket, *place.folders, folder) if part)
    try:
        store = fs.S3FileSystem(**client(options, environment))
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
        if not is_usable(name) or each.path == base:
            continue
        is_folder = each.type == fs.FileType.Directory
        (folders if is_folder else files).append(f"{above}{name}")
    return folders, files


def is_usable(name: str) -> bool:
    """Whether the store's library can handle one part of a path."""
    return name not in ("", ".", "..") and "/" not in name and CONTROL.search(name) is None


def client(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of Arrow's client that mean what the options of a store mean. Pure.

    What is not given it finds by itself: in the environment, or from the machine's role. A region
    it would find elsewhere than the store's library.
    """
    given = {
        name.lower().removeprefix("aws_"): value
        for source in (environment, options)
        for name, value in source.items()
        if source is options or name.startswith("AWS_")
    }
    if any(bare(name.lower()) == "session_token" for name in options):
        given.pop("token", None)  # The environment's, which is of another key.
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
