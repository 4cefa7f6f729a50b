"""Open a store: its options, timeouts and retries.

The store's client retries 429, 5xx, timeouts and dropped connections, for about a minute at most. A
longer outage is an error of the batch, and the pipeline's own backoff takes over, which is logged
and which a stop can interrupt.
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from obstore.exceptions import BaseError
from obstore.store import LocalStore, S3Store, from_url

from lakebed.errors import ConfigInvalid, ObjectMissing, StoreDenied, StoreUnavailable
from lakebed.locations import openable, place_of
from lakebed.storage import disk, settings
from lakebed.storage.aws import sessions
from lakebed.storage.options import SPELLINGS, StorageOptions, bare
from lakebed.storage.settings import CLIENT_OPTIONS, split
from lakebed.storage.store_errors import explained

RETRY: Mapping[str, Any] = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=200),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}
"""At most five attempts per request, with growing random pauses."""

KNOWN = (*sorted(CLIENT_OPTIONS), *(name for each in SPELLINGS.values() for name in each))
"""The known options, for suggestions."""


def with_region(options: StorageOptions, uri: str) -> StorageOptions:
    """Return the options with the region of an https address, if they name none."""
    region = place_of(uri).region if uri.startswith("https://") else ""
    given = {bare(name.lower()) for name in options.plain()}
    if not region or given & {"region", "default_region"}:
        return options
    return StorageOptions({**options.plain(), "aws_region": region}, options.origin)


def fault_of(
    options: Mapping[str, str], text: str, opens: Callable[[Mapping[str, str]], object]
) -> str:
    """Return which option prevents opening a store, as written, and what to do.

    A library does not name an option with an invalid value: it is the one without which the store
    opens. Empty if no single option is to blame.
    """
    if unknown := _UNKNOWN.search(text):
        name = next(
            (option for option in options if option.lower() == unknown[1].lower()), unknown[1]
        )
        near = get_close_matches(name.lower(), [*KNOWN, *map(bare, KNOWN)], n=1, cutoff=0.75)
        return f"{name}: unknown option" + (f"; did you mean {near[0]}?" if near else "")
    for name in options:
        try:
            opens({other: value for other, value in options.items() if other != name})
        except Exception:  # noqa: BLE001, S112 - it is another option, or not this one alone
            continue
        return f"{name}: invalid value"
    return ""


def for_delta(
    options: Mapping[str, str], *, uri: str, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the options in deltalake's form, with the same timeouts and retries.

    They lead to the same store as `split`'s. deltalake's client has no separate read timeout, and
    its requests are small: one timeout is enough.
    """
    store, client = split(options, uri=uri, environment=environment)
    given = {bare(name.lower()) for name in options}
    if "timeout" not in given:
        client["timeout"] = client["read_timeout"]
    if "read_timeout" not in given:
        del client["read_timeout"]
    return {
        "max_retries": str(RETRY["max_retries"]),
        "retry_timeout": _duration(RETRY["retry_timeout"]),
        "backoff_config.init_backoff": _duration(RETRY["backoff"]["init_backoff"]),
        "backoff_config.max_backoff": _duration(RETRY["backoff"]["max_backoff"]),
        **client,
        **store,
    }


def _duration(time: timedelta) -> str:
    return f"{round(time / timedelta(milliseconds=1))}ms"


_UNKNOWN = re.compile(r"Configuration key: '([^']+)' is not valid")


REMOTE = ("s3", "gs", "az")
"""The kinds of remote stores."""


def local_path(uri: str) -> Path | None:
    """Return the local folder of a URI; None for a remote store."""
    if uri.startswith("file://"):
        # Not by urlsplit: in a path, `#` and `?` are characters like any other.
        return Path(unquote(uri.removeprefix("file://").removeprefix("localhost")))
    if "://" in uri:
        return None
    return Path(uri).expanduser()


def is_there(uri: str) -> bool:
    """Whether a location can be opened: a local folder must exist, a remote one need not."""
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
    """Open a local folder or a remote store."""
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
        return _open_remote(uri, options, RETRY if retry is None else retry)
    except PermissionError as cause:
        raise StoreDenied("permission denied", path=uri) from cause
    except (BaseError, OSError) as cause:
        raise StoreUnavailable(explained(str(cause), options), path=uri) from cause


def _open_remote(uri: str, options: StorageOptions, retry: Any) -> Any:  # noqa: ANN401 - obstore's stores share no public type
    """Open a store without a request: any failure is the configuration's fault."""

    def opened(given: Mapping[str, str]) -> Any:  # noqa: ANN401 - obstore's stores share no public type
        config: Any
        client: Any
        config, client = split(given, uri=uri, environment=os.environ, key=options.key)
        login = _without_token(config) or _renewed(config, given, uri, options)
        if settings.S3_ENDPOINT in config:
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
        words = explained(str(cause), options)
        fault = fault_of(options.plain(), str(cause), opened)
        message = f"{fault} ({words})" if fault else words
        raise ConfigInvalid([f"{uri}: storage_options: {message}"]) from cause


def _without_token(config: dict[str, str]) -> dict[str, Any]:
    """Return a credential provider without a token, if the settings have a key without one.

    The library reads missing settings from the environment, and sends an empty token as one.
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
    """Return a credential provider with renewed keys, if a profile leads to them."""
    found = settings.resolved(given, uri=uri, environment=os.environ, key=options.key)
    key = found.get("aws_access_key_id")
    if key is None or key.renews is None:
        return {}
    for name in sessions.KEYS:
        config.pop(name, None)
    return {"credential_provider": key.renews}


def check_readable(folder: Path) -> None:
    """Raise if a folder cannot be read: obstore lists such a one as empty."""
    try:
        with os.scandir(folder) as entries:
            next(entries, None)
    except NotADirectoryError as cause:
        raise ObjectMissing(
            "this is a file, not a folder; use its folder or, for source.path, a pattern that "
            "matches the file",
            path=folder,
        ) from cause
    except FileNotFoundError as cause:
        raise ObjectMissing("the folder does not exist", path=folder) from cause
    except PermissionError as cause:
        raise StoreDenied("the folder cannot be read: permission denied", path=folder) from cause
