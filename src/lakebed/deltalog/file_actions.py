"""Every file that the latest version of a log refers to, read without the library, batch by batch.

A checkpoint of any kind is read a batch of actions at a time, then the versions after it. What the
versions change is held; what the checkpoint says is not, so that a table of a million files costs
the memory of one batch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from lakebed.columns.row_tracking import FIRST_ROW_ID, ROW_VERSION, FirstRow
from lakebed.deltalog.checkpoint import checkpoint_batches, pairs_of, rows_of
from lakebed.deltalog.file import lines_of
from lakebed.deltalog.file_names import Naming, naming
from lakebed.deltalog.segment import LogSegment, find_segment
from lakebed.documents.deletion_vector import DeletionVector
from lakebed.documents.reading import parse_json
from lakebed.errors import CommitFailed, StoreUnavailable, TableUnreadable
from lakebed.layout import log_version
from lakebed.storage.ahead import ahead
from lakebed.storage.store import Reader

COLUMNS = (
    *(f"add.{name}" for name in ("path", "deletionVector", "size", "partitionValues")),
    *(f"add.{name}" for name in (FIRST_ROW_ID, ROW_VERSION)),
    *(f"remove.{name}" for name in ("path", "deletionVector", "deletionTimestamp")),
    *("txn.appId", "txn.version"),
)

Key = tuple[str, str | None]
"""What a log tells its files apart by: the path, and the deletion vector if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAction:
    """A file that is added or removed."""

    added: bool
    path: str
    """Its name in the store."""
    written: str
    """Its path as the log has it."""
    key: Key
    vector: DeletionVector | None = None
    """Its deletion vector."""
    deletion_vector: Mapping[str, Any] | None = None
    """The vector as the log writes it."""
    size: int | None = None
    partition_values: tuple[tuple[str, str | None], ...] = ()
    first_row: FirstRow | None = None
    """What an added file's rows are numbered from, where the table tracks its rows."""
    removed_at_ms: int | None = None
    version: int | None = None
    """The version that says so; None where a checkpoint does."""

    @property
    def files(self) -> tuple[str, ...]:
        """Return what it needs in the store."""
        held_in = None if self.vector is None else self.vector.file
        return (self.path,) if held_in is None else (self.path, held_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionActions:
    """What one version says of files, and the transactions that it carries."""

    version: int
    files: tuple[FileAction, ...] = ()
    changes: tuple[str, ...] = ()
    """Files of the change data feed."""
    transactions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some actions of a checkpoint."""

    files: tuple[FileAction, ...]
    transactions: Mapping[str, int]


def read_versions(store: Reader, numbers: range) -> Iterator[VersionActions]:
    """Read versions in their order, a few ahead; one that is not there is an error."""
    named = naming(store)
    for number, body in ahead(lambda each: store.get(log_version(each)), numbers):
        if body is None:
            raise StoreUnavailable(
                "versions of the Delta log vanished while they were read", path=store.uri
            )
        yield parse(number, body, store.describe(log_version(number)), named)


def parse(number: int, body: bytes, path: str, named: Naming = str) -> VersionActions:
    """Read one version; one that cannot be read is an error, never an empty one. Pure."""
    files: list[FileAction] = []
    changes: list[str] = []
    transactions: dict[str, int] = {}
    with lines_of(path):
        for line in body.splitlines():
            match parse_json(line) if line.strip() else None:
                case {"add": {"path": str()} as told}:
                    files.append(_action(told, named, added=True, version=number))
                case {"remove": {"path": str()} as told}:
                    files.append(_action(told, named, added=False, version=number))
                case {"cdc": {"path": str(written)}}:
                    changes.append(named(unquote(written)))
                case {"txn": {"appId": str(app_id), "version": int(told)}}:
                    transactions[app_id] = told
    return VersionActions(
        version=number, files=tuple(files), changes=tuple(changes), transactions=transactions
    )


def active_files(store: Reader, tail: LogSegment, last: int | None = None) -> Iterator[FileAction]:
    """Yield every file of the newest version; what the checkpoint says is not held in memory.

    With `last` it is those of an earlier version, of one that the checkpoint is not after.
    """
    state: dict[Key, FileAction] = {}
    end = tail.version if last is None else last
    for told in read_versions(store, range(tail.first, end + 1)):
        for action in sorted(told.files, key=lambda one: one.added):
            state[action.key] = action
    for batch in read_checkpoint(store, tail):
        yield from (one for one in batch.files if one.added and one.key not in state)
    yield from (one for one in state.values() if one.added)


def files_at(store: Reader, version: int) -> dict[str, FileAction]:
    """Return the actions that added the files of a version, by the files' names."""
    tail = find_segment(store)
    if tail is None or tail.missing is not None:
        raise TableUnreadable("a version of the Delta log is missing", table=store.uri)
    if tail.first > version + 1:
        # A checkpoint of a later version says nothing of what was removed before it.
        raise CommitFailed("the log has changed since it was looked at", table=store.uri)
    return {one.path: one for one in active_files(store, tail, version)}


def read_checkpoint(store: Reader, tail: LogSegment) -> Iterator[Batch]:
    """Read the checkpoint that a log is read from, with what it refers to, a batch at a time."""
    if tail.checkpoint is None:
        return
    named, where = naming(store), store.describe(tail.checkpoint.parts[0].path)
    for batch in checkpoint_batches(store, tail.checkpoint, COLUMNS):
        yield _parsed(batch, named, where)


def _parsed(batch: pa.RecordBatch, named: Naming, where: str) -> Batch:
    with lines_of(where):
        adds = [_action(row, named, added=True) for row in rows_of(batch, "add")]
        removes = [_action(row, named, added=False) for row in rows_of(batch, "remove")]
        transactions = {row["appId"]: row["version"] for row in rows_of(batch, "txn")}
    return Batch(files=(*adds, *removes), transactions=transactions)


def _action(
    told: Mapping[str, Any], named: Naming, *, added: bool, version: int | None = None
) -> FileAction:
    vector = DeletionVector.of(told.get("deletionVector"), named)
    written = unquote(told["path"])
    path = named(written)
    pairs = pairs_of(told.get("partitionValues"))
    at = told.get("deletionTimestamp")
    first, since = told.get(FIRST_ROW_ID), told.get(ROW_VERSION)
    numbered = None
    if added and first is not None and since is not None:
        numbered = FirstRow(id=int(first), version=int(since))
    return FileAction(
        added=added,
        path=path,
        written=told["path"],
        key=(path, None if vector is None else vector.key),
        vector=vector,
        deletion_vector=None if vector is None else told["deletionVector"],
        size=told.get("size") if added else None,
        # Delta takes an empty string for null.
        partition_values=tuple((name, value or None) for name, value in pairs),
        first_row=numbered,
        removed_at_ms=at if isinstance(at, int) else None,
        version=version,
    )
