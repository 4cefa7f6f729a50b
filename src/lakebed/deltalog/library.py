"""The door to deltalake: its errors, including panics of its core, become ours.

deltalake is imported only where it is used: a commit that only adds files does not need it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from lakebed.errors import (
    CommitUnconfirmed,
    StoreDenied,
    StoreFull,
    TableUnsupported,
)
from lakebed.locations import openable
from lakebed.storage import remote, trouble
from lakebed.storage.remote import local_path
from lakebed.storage.store import Reader

if TYPE_CHECKING:
    from deltalake import DeltaTable

REFUSALS = ("Permission denied", "lacked the necessary privileges", "403 Forbidden")
"""Texts in the library's errors when a disk or a store denies access."""


@contextmanager
def translated(store: Reader) -> Iterator[None]:
    """Turn any error of the library into ours, without secrets."""
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        yield
    except (DeltaError, OSError, ValueError, RuntimeError) as cause:
        _raise_ours(store, cause)
    except BaseException as cause:
        # A panic of the library's core derives from BaseException and has no importable name.
        if type(cause).__name__ != "PanicException":
            raise
        _raise_ours(store, cause)


def _raise_ours(store: Reader, cause: BaseException) -> NoReturn:
    text = trouble.explained(str(cause) or type(cause).__name__, store.options)
    answer = trouble.told_by_store(str(cause), uri=store.uri, options=store.options)
    if answer is not None:
        answer.facts = {"table": store.uri}
        raise answer from cause
    if isinstance(cause, PermissionError) or any(sign in str(cause) for sign in REFUSALS):
        raise StoreDenied("the Delta log: permission denied", table=store.uri) from cause
    if "No space left" in str(cause):
        raise StoreFull("the Delta log: no space is left", table=store.uri) from cause
    if "Unsupported table features" in text:
        raise TableUnsupported(text, table=store.uri) from cause
    raise CommitUnconfirmed(text, table=store.uri) from cause


def options_for(store: Reader) -> dict[str, str]:
    """Return a store's options under the library's names."""
    plain = store.options.plain()
    if store.local_root is not None:
        return plain
    return remote.for_delta(plain, uri=store.uri, environment=os.environ)


def location(uri: str) -> str:
    """Return the location of a table in the library's form."""
    folder = local_path(uri)
    return openable(uri) if folder is None else str(folder.absolute())


def load_table(store: Reader, version: int | None = None) -> "DeltaTable":
    """Open a version of a table, or its newest."""
    from deltalake import DeltaTable  # noqa: PLC0415

    return DeltaTable(location(store.uri), version=version, storage_options=options_for(store))
