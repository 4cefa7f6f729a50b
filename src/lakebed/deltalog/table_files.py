"""The data files of a version of a log, read without the library, batch by batch.

A checkpoint of any kind is read a batch of actions at a time, then the versions after it. What the
versions change is held; what the checkpoint says is not, so that a table of a million files costs
the memory of one batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.columns.row_tracking import FIRST_ROW_ID, ROW_VERSION
from lakebed.deltalog.actions import FileAction, FileKey, LogActions
from lakebed.deltalog.checkpoint import checkpoint_batches, read_checkpoint
from lakebed.deltalog.segment import (
    Checkpoint,
    LogSegment,
    fetch_actions,
    read_versions,
    versions_in,
)
from lakebed.layout import DELTA_LOG
from lakebed.storage.store import Reader

COLUMNS = (
    *(f"add.{name}" for name in ("path", "deletionVector", "size", "partitionValues")),
    *(f"add.{name}" for name in (FIRST_ROW_ID, ROW_VERSION)),
    *(f"remove.{name}" for name in ("path", "deletionVector", "deletionTimestamp")),
    *("txn.appId", "txn.version"),
)
COUNTED = (*COLUMNS, "add.stats", "add.stats_parsed.numRecords")
"""With the row counts."""
SUMS = ("add.size", "add.stats")
ROWS = r'"numRecords"\s*:\s*(?P<rows>[0-9]+)'
CHANGES = b'"cdc"'


def active_files(
    store: Reader, segment: LogSegment, columns: tuple[str, ...] = COLUMNS
) -> Iterator[FileAction]:
    """Yield every file of a version; what the checkpoint says is not held in memory."""
    state: dict[FileKey, FileAction] = {}
    for told in read_versions(store, range(segment.first, segment.version + 1)):
        for action in sorted(told.files, key=lambda one: one.added):
            state[action.key] = action
    for batch in checkpointed_files(store, segment, columns):
        yield from (one for one in batch.files if one.added and one.key not in state)
    yield from (one for one in state.values() if one.added)


def checkpointed_files(
    store: Reader, segment: LogSegment, columns: tuple[str, ...] = COLUMNS
) -> Iterator[LogActions]:
    """Read the files and transactions of the checkpoint that a log is read from, in batches."""
    if segment.checkpoint is not None:
        yield from read_checkpoint(store, segment.checkpoint, columns)


def change_files(store: Reader, wanted: frozenset[str]) -> dict[str, datetime]:
    """Return the store's time of the version that names each of some files as one of changes.

    Only the versions that wrote the files of a change data feed name them: no checkpoint does, and
    their own names say nothing. Versions are read from the newest on until all are found.
    """
    versions = versions_in(store.level(DELTA_LOG)[1]) if wanted else {}
    found: dict[str, datetime] = {}
    newest_first = sorted(versions, reverse=True)
    for actions in fetch_actions(store, newest_first, only=lambda line: CHANGES in line):
        if actions is not None:  # It may have been cleaned up meanwhile.
            for path in wanted.intersection(actions.changes):
                found.setdefault(path, versions[actions.version].modified)
        if len(found) == len(wanted):
            break
    return found


@dataclass(slots=True)
class FileTotals:
    """Files, their bytes and their rows, added up."""

    files: int = 0
    bytes: int = 0
    rows: int | None = 0
    """None where a file has no count of its rows."""

    def add(self, sizes: "pa.Array[Any]", stats: "pa.Array[Any] | None") -> None:
        """Add some files."""
        self.files += len(sizes)
        self.bytes += pc.sum(sizes).as_py() or 0
        counted = None if stats is None else pc.extract_regex(stats, ROWS)
        if self.rows is None or counted is None or counted.null_count:
            self.rows = None if len(sizes) else self.rows
        elif len(counted):
            found = pc.struct_field(counted, "rows")
            self.rows += pc.sum(pc.cast(found, pa.int64())).as_py() or 0


def checkpoint_totals(store: Reader, checkpoint: Checkpoint) -> FileTotals:
    """Return how large the table was at a checkpoint."""
    totals = FileTotals()
    for batch in checkpoint_batches(store, checkpoint, SUMS):
        _add(totals, batch)
    return totals


def _add(totals: FileTotals, batch: pa.RecordBatch) -> None:
    if "add" not in batch.schema.names:
        return
    column = batch.column("add")
    # A reader may show the actions of other kinds as adds of nulls.
    sizes = pc.struct_field(column, "size")
    is_file = pc.is_valid(sizes)
    names = {column.type.field(at).name for at in range(column.type.num_fields)}
    stats = pc.struct_field(column, "stats").filter(is_file) if "stats" in names else None
    totals.add(sizes.filter(is_file), stats)
