"""Queries on the newest version of a table, by its URI.

A caller with several queries opens the table once, so that all answers are of one
version. Arrow and deltalake are loaded only by the queries that need them. Errors of deltalake,
including panics of its core, become ours.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn

from lakebed.deltalog.actions import Checkpoint, LogActions, LogHistory
from lakebed.deltalog.log_contents import retention
from lakebed.deltalog.segment import checkpoints, read_versions, unbroken, versions_in
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.errors import (
    CommitUnconfirmed,
    ObjectMissing,
    StoreDenied,
    StoreFull,
    TableUnsupported,
)
from lakebed.layout import DELTA_LOG
from lakebed.locations import openable
from lakebed.storage import remote, store_errors
from lakebed.storage.options import StorageOptions
from lakebed.storage.remote import is_there, local_path
from lakebed.storage.store import Reader

if TYPE_CHECKING:
    from deltalake import DeltaTable


def newest_snapshot(uri: str, options: StorageOptions) -> Snapshot | None:
    """Return the newest version of a table; None without a table."""
    return LogReader(Reader(uri, options)).newest() if is_there(uri) else None


def require_writable(uri: str, options: StorageOptions) -> None:
    """Raise if penguin cannot write the table safely; a table that does not exist yet is fine."""
    if is_there(uri):
        LogReader(Reader(uri, options)).open()


def replaceable(uri: str, options: StorageOptions) -> Snapshot | None:
    """Return a table whose files can be replaced; None without a table.

    Raise TableUnsupported if penguin could not commit the replacement of any file.
    """
    table = newest_snapshot(uri, options)
    if table is None:
        return None
    table.check_writable()
    why = table.why_no_removal()
    if why is None and table.row_columns is not None:
        unknown = [file.path for file in table.files.values() if file.first_row is None]
        if unknown:
            why = (
                f"it tracks its rows, but {min(unknown)} has no ids for them yet; set "
                "delta.enableRowTracking with Spark again"
            )
    if why is not None:
        raise TableUnsupported(f"no file of this table can be replaced: {why}", table=uri)
    return table


def last_committed(uri: str, options: StorageOptions, pipeline: str, journal: str) -> int | None:
    """Return the last committed entry of a journal; None if none is committed."""
    table = newest_snapshot(uri, options)
    return None if table is None else table.committed(pipeline, journal)


def file_retention(uri: str, options: StorageOptions) -> timedelta:
    """Return the retention of files that a table's log does not name; the default without one."""
    table = newest_snapshot(uri, options)
    return retention({} if table is None else table.facts.configuration)


HISTORY_COLUMNS = (
    "add.path",
    "add.size",
    "add.partitionValues",
    "add.stats",
    "add.stats_parsed.numRecords",
    "add.deletionVector",
    "remove.path",
    "txn.appId",
    "txn.version",
    "metaData.schemaString",
    "metaData.partitionColumns",
    "metaData.configuration",
)


def whole_log(uri: str, options: StorageOptions) -> LogHistory | None:
    """Return the readable history of a table's log, as a stream; None without a log.

    It begins with version 0 or, if that is gone, with the oldest checkpoint after which no version
    is missing. Only a few versions are in memory at once.
    """
    if not is_there(uri):
        return None
    store = Reader(uri, options)
    listed = store.level(DELTA_LOG)[1]
    known, bases = versions_in(listed), {each.version: each for each in checkpoints(listed)}
    if not known and not bases:
        return None
    last = max((*known, *bases))
    first = unbroken(known, last)
    start = min((version for version in bases if version >= first - 1), default=None)
    base = None if first == 0 or start is None else bases[start]
    if first > 0 and base is None:
        after = max((version for version in bases if version < first), default=-1)
        gone = tuple(number for number in range(after + 1, last) if number not in known)
        return LogHistory(first=first, last=last, gone=gone, versions=iter(()))
    begins = 0 if base is None else base.version + 1
    versions = _history(store, base, range(begins, last + 1))
    return LogHistory(first=begins, last=last, gone=(), versions=versions)


def _history(
    store: Reader, base: Checkpoint | None, numbers: Iterable[int]
) -> Iterator[LogActions]:
    if base is not None:
        from lakebed.deltalog.checkpoint import read_checkpoint  # noqa: PLC0415 - it loads Arrow

        yield from read_checkpoint(store, base, HISTORY_COLUMNS)
    yield from read_versions(store, numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePreview:
    """The counts and first rows of a table, as readers see them."""

    version: int
    files: int
    rows: int
    columns: tuple[str, ...]
    first_rows: tuple[tuple[object, ...], ...]


def preview(uri: str, *, rows: int, options: StorageOptions | None = None) -> TablePreview:
    """Return the counts and first rows of a table's newest version."""
    snapshot = newest_snapshot(uri, options or StorageOptions())
    if snapshot is None:
        raise ObjectMissing("there is no Delta table here", path=uri)
    columns = tuple(field["name"] for field in snapshot.facts.schema["fields"])
    files, _bytes, count = snapshot.totals()
    return TablePreview(
        version=snapshot.version,
        files=files,
        rows=count or 0,
        columns=columns,
        first_rows=first_rows(snapshot, columns, rows),
    )


def first_rows(
    table: Snapshot, columns: tuple[str, ...], count: int
) -> tuple[tuple[object, ...], ...]:
    """Read a few rows of a version with deltalake, in any order."""
    import pyarrow as pa  # noqa: PLC0415

    rows: list[tuple[object, ...]] = []
    with translated(table.store):
        # Not to_pyarrow_table: it can abort a short-lived process at its end.
        for batch in load_table(table.store, table.version).scan(columns=list(columns)):
            part = pa.record_batch(batch).slice(0, count - len(rows))
            rows += [tuple(row[name] for name in columns) for row in part.to_pylist()]
            if len(rows) >= count:
                break
    return tuple(rows)


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
    text = store_errors.explained(str(cause) or type(cause).__name__, store.options)
    answer = store_errors.store_refusal(str(cause), uri=store.uri, options=store.options)
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
