"""One data file of the table, written anew beside it under a fresh name.

A promotion fills a column in it, a removal leaves rows out. Rows stay in their order and in their
row groups, of which one at a time is in memory.
"""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blizzard.model.files import ClosedFile
from blizzard.model.rewriting import (
    ActiveFile,
    Promotion,
    Removal,
    RewriteFailed,
    RewriteOutcome,
    Rewriting,
    Rewritten,
)
from blizzard.worker.deleted_rows import Places, deleted_rows
from blizzard.worker.fill import Filling
from blizzard.worker.leave_out import LeavingOut
from blizzard.worker.output.encoding import encoding_of
from blizzard.worker.output.leaves import Values, leaves
from blizzard.worker.output.mapped import as_in_files, logical_paths
from blizzard.worker.output.row_ids import row_ids_of
from blizzard.worker.output.upload import Uploads
from blizzard.worker.plain_types import TableFile
from blizzard.worker.record import failure_of
from lakebed.columns.row_tracking import RowColumns
from lakebed.columns.schema import Schema
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.parquet_footer import statistics
from lakebed.errors import ObjectMissing, StoreUnavailable
from lakebed.storage.store import Store
from lakebed.types import RESCUED


def rewrite_file(old: ActiveFile, work: Rewriting, store: Store) -> RewriteOutcome:
    """Write a file anew under a fresh name; trouble of whatever kind is its outcome."""
    try:
        with tempfile.TemporaryDirectory(prefix="blizzard-", ignore_cleanup_errors=True) as folder:
            return _rewritten(old, work, store, Path(folder))
    except Exception as error:  # noqa: BLE001 - an exception would reach the driver without its type
        failure = failure_of(error)
        return RewriteFailed(
            old=old, code=failure.code, message=failure.message, retryable=failure.retryable
        )


class _Change(Protocol):
    """What is done to the rows of one file."""

    def may_change(self, file: TableFile) -> bool:
        """Whether the file can have a row that changes."""

    def change(self, table: pa.Table) -> pa.Table:
        """Return the next rows, changed."""

    def outcome(self, new: FinishedFile | None) -> Rewritten:
        """Return what came of the file, once all of its rows were changed."""

    def rows_left(self, rows: int) -> int:
        """Count the rows that the new file must have; 0 where there is to be none."""


def _rewritten(old: ActiveFile, work: Rewriting, store: Store, folder: Path) -> Rewritten:
    deleted = deleted_rows(store, old.vector)
    change = _change_of(old, work, deleted)
    local = downloaded(old, store, folder / "old.parquet")
    name = work.clock.fresh_id()
    path = folder / f"{name}.parquet"
    with pq.ParquetFile(local, coerce_int96_timestamp_unit="us") as opened:
        file = TableFile(opened, work.mapping, row_ids_of(old, work))
        if not change.may_change(file):
            return change.outcome(None)
        groups = map(file.read, range(opened.num_row_groups))
        names = write_groups(path, map(change.change, groups), work)
        rows = change.rows_left(opened.metadata.num_rows)
    if not rows:
        return change.outcome(None)
    closed = closed_file(name, path, rows, names, work.row_columns)
    with Uploads(store, work.upload, pause=work.clock.sleep) as uploads:
        new = uploads.hand_in(
            closed, partition_values=old.partition_values, unit="rewrite", source_file=None
        ).result()
    return change.outcome(replace(new, row_columns=work.row_columns))


def _change_of(old: ActiveFile, work: Rewriting, deleted: Places) -> _Change:
    match work:
        case Promotion(target=target, row_columns=kept):
            filling = Filling(target, versions=None if kept is None else kept.versions)
            return _Filled(old, filling, LeavingOut(old, Schema(()), deleted))
        case Removal(columns=columns):
            return _Without(old, LeavingOut(old, columns, deleted))
        case _:
            raise AssertionError("no such change of a file")


@dataclass(frozen=True, slots=True)
class _Filled:
    """A column is filled."""

    old: ActiveFile
    filling: Filling
    leaving: LeavingOut
    """Leaves out deleted rows."""

    def may_change(self, file: TableFile) -> bool:
        return RESCUED in file.names

    def change(self, table: pa.Table) -> pa.Table:
        return self.filling.fill(self.leaving.leave_out(table))

    def outcome(self, new: FinishedFile | None) -> Rewritten:
        if new is not None and self.old.deleted:
            names, runs = self.leaving.origins()
            new = replace(new, source_files=names, runs=runs)
        return Rewritten(old=self.old, new=new, taken=self.filling.taken, left=self.filling.left)

    def rows_left(self, rows: int) -> int:
        return rows - self.old.deleted if self.filling.taken else 0


@dataclass(frozen=True, slots=True)
class _Without:
    """Rows are left out."""

    old: ActiveFile
    leaving: LeavingOut

    def may_change(self, _file: TableFile) -> bool:
        return True

    def change(self, table: pa.Table) -> pa.Table:
        return self.leaving.leave_out(table)

    def outcome(self, new: FinishedFile | None) -> Rewritten:
        leaving = self.leaving
        if new is not None:
            names, runs = leaving.origins()
            new = replace(new, source_files=names, runs=runs)
        return Rewritten(
            old=self.old, new=new, removed=leaving.removed, removed_from=dict(leaving.removed_from)
        )

    def rows_left(self, rows: int) -> int:
        told = sum(run.rows for run in self.old.runs)
        if told not in (0, rows):
            # Its places in the file would be those of other rows.
            raise AssertionError("a file has another number of rows than the journal says")
        removed = self.leaving.removed
        return rows - self.old.deleted - removed if removed or self.old.deleted else 0


def closed_file(
    name: UUID, path: Path, rows: int, names: Mapping[str, str], kept: RowColumns | None
) -> ClosedFile:
    """Return a file that was written, as it is on the disk; raise if it has other rows.

    `names` has what people call its columns, by what the file calls them, where that differs.
    """
    no_columns = () if kept is None else kept.names
    # The footer is read back from the disk: what counts is what is there, not what was meant.
    metadata = pq.read_metadata(path)
    if metadata.num_rows != rows:
        raise AssertionError("a file was written anew with another number of rows")
    return ClosedFile(
        name=name,
        path=path,
        size=path.stat().st_size,
        rows=rows,
        sources=(),
        statistics={
            names.get(column, column): known
            for column, known in statistics(metadata, without_nan=not _has_nan(path)).items()
            if column not in no_columns
        },
    )


def _has_nan(path: Path) -> bool:
    """Whether a float in a file is NaN: another engine may have put one into rows of the table."""
    file = pq.ParquetFile(path)
    columns = [one.name for one in file.schema_arrow if _floats(pa.schema([one]).empty_table())]
    batches = file.iter_batches(columns=columns) if columns else ()
    return any(
        pc.any(pc.is_nan(leaf)).as_py()
        for batch in batches
        for leaf in _floats(pa.Table.from_batches([batch]))
    )


def _floats(rows: pa.Table) -> list[Values]:
    return [leaf for _, leaf in leaves(rows) if pa.types.is_floating(leaf.type)]


def downloaded(old: ActiveFile, store: Store, target: Path) -> Path:
    """Fetch a file of the table; raise if it is not the one that the log means."""
    facts = store.head(old.path)
    if facts is None:
        raise ObjectMissing("a file of the table is gone", path=store.describe(old.path))
    if facts.size != old.size:
        raise StoreUnavailable(
            f"a file has {facts.size} bytes, but the log says {old.size}",
            path=store.describe(old.path),
        )
    with target.open("wb") as file:
        for piece in store.stream(old.path, size=facts.size, etag=facts.etag):
            file.write(piece)
    return target


def write_groups(path: Path, groups: Iterator[pa.Table], work: Rewriting) -> dict[str, str]:
    """Write rows to the local disk, each table as a row group, under the names that files have.

    Return what people call the columns, by what the file calls them, where that differs.
    """
    writer: pq.ParquetWriter | None = None
    names: dict[str, str] = {}
    try:
        for group in groups:
            table = group if work.mapping is None else as_in_files(group, work.mapping)
            if writer is None:
                names = {} if work.mapping is None else logical_paths(group.schema, work.mapping)
                writer = pq.ParquetWriter(
                    path,
                    table.schema,
                    store_schema=False,
                    write_statistics=True,
                    **encoding_of(table, work.codec).options(table.schema, work.codec),
                )
                writer.add_key_value_metadata(
                    {f"blizzard.{key}": value for key, value in work.marks.items()}
                )
            if table.num_rows:
                writer.write_table(table, row_group_size=table.num_rows)
    finally:
        if writer is not None:
            writer.close()
    return names
