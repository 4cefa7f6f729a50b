"""From a URI and its options to a store of obstore: a local folder, or a remote one."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from obstore.exceptions import BaseError
from obstore.store import LocalStore, S3Store, from_url

from lakebed.errors import ConfigInvalid, ObjectMissing, StoreDenied, StoreUnavailable
from lakebed.locations import openable, place_of
from lakebed.storage import disk, remote
from lakebed.storage.aws import profiles
from lakebed.storage.options import StorageOptions
from lakebed.storage.settings import S3_ENDPOINT, resolved

REMOTE = ("s3", "gs", "az")
"""The kinds of remote stores, whichever scheme or address names them."""


def local_path(uri: str) -> Path | None:
    """Return the folder that a URI means on this machine, or None for a remote store."""
    if uri.startswith("file://"):
        # Not by urlsplit: in a path, `#` and `?` are characters like any other.
        return Path(unquote(uri.removeprefix("file://").removeprefix("localhost")))
    if "://" in uri:
        return None
    return Path(uri).expanduser()


def is_there(uri: str) -> bool:
    """Whether a place can be opened: a local folder has to exist, a remote one need not."""
    folder = local_path(uri)
    return folder is None or folder.exists()


def open_uri(
    uri: str,
    root: Path | None,
    options: StorageOptions,
    *,
    make_folder: bool,
    retry: Mapping[str, Any] | None = None,
) -> Any:  # noqa: ANN401 - obstore's stores share no public type
    """Open what a URI means: a local folder, or a remote store."""
    try:
        if root is not None:
            if make_folder:
                disk.make_folder(root)
            else:
                check_readable(root)
            return LocalStore(root.absolute())
        if place_of(uri).scheme not in REMOTE:
            raise ConfigInvalid(
                [f"{uri}: cannot be opened; use a path, file://, s3://, gs:// or az://"]
            )
        return _open_remote(uri, options, remote.RETRY if retry is None else retry)
    except PermissionError as cause:
        raise StoreDenied("permission denied", path=uri) from cause
    except (BaseError, OSError) as cause:
        raise StoreUnavailable(remote.explained(str(cause), options), path=uri) from cause


def _open_remote(uri: str, options: StorageOptions, retry: Any) -> Any:  # noqa: ANN401 - obstore's stores share no public type
    """Open a store without asking it anything: what fails here is the configuration's fault."""

    def opened(given: Mapping[str, str]) -> Any:  # noqa: ANN401 - obstore's stores share no public type
        config: Any
        client: Any
        config, client = remote.split(given, uri=uri, environment=os.environ, key=options.key)
        login = _without_token(config) or _renewed(config, given, uri, options)
        if S3_ENDPOINT in config:
            # The library takes this name in no call but this one.
            place = place_of(uri)
            return S3Store(
                place.bucket,
                prefix="/".join(place.folders) or None,
                config=config,
                client_options=client,
                retry_config=retry,
                **login,
            )
        return from_url(
            openable(uri),
            config=config or None,
            client_options=client,
            retry_config=retry,
            **login,
        )

    try:
        return opened(options.plain())
    except (BaseError, ValueError) as cause:
        words = remote.explained(str(cause), options)
        fault = remote.fault_of(options.plain(), str(cause), opened)
        told = f"{fault} ({words})" if fault else words
        raise ConfigInvalid([f"{uri}: storage_options: {told}"]) from cause


def _without_token(config: dict[str, str]) -> dict[str, Any]:
    """Return what signs without a token, if the settings say so: a key that has none of its own.

    The library takes what it is not given from the environment, and sends an empty token as one.
    """
    if config.get("aws_session_token", "unset"):
        return {}
    del config["aws_session_token"]
    signs = {
        "access_key_id": config.pop("aws_access_key_id"),
        "secret_access_key": config.pop("aws_secret_access_key"),
        "token": None,
        "expires_at": None,
    }
    return {"credential_provider": lambda: signs}


def _renewed(
    config: dict[str, str], given: Mapping[str, str], uri: str, options: StorageOptions
) -> dict[str, Any]:
    """Return what signs with the keys of today, if it is a profile that leads to them."""
    found = resolved(given, uri=uri, environment=os.environ, key=options.key)
    key = found.get("aws_access_key_id")
    if key is None or key.renews is None:
        return {}
    for name in profiles.KEYS:
        config.pop(name, None)
    return {"credential_provider": key.renews}


def check_readable(folder: Path) -> None:
    """Raise if a folder cannot be read: obstore lists it as empty."""
    try:
        with os.scandir(folder) as entries:
            next(entries, None)
    except NotADirectoryError as cause:
        raise ObjectMissing(
            "this is a file, not a folder; use its folder or, for source.path, a pattern that "
            f"matches the file, such as {folder.parent / f'[{folder.name[:1]}]{folder.name[1:]}'}",
            path=folder,
        ) from cause
    except FileNotFoundError as cause:
        raise ObjectMissing("the folder does not exist", path=folder) from cause
    except PermissionError as cause:
        raise StoreDenied("the folder cannot be read: permission denied", path=folder) from cause
