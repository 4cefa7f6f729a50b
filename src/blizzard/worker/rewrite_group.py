"""Rewrite a group of data files under fresh names: transform one file, or concatenate several.

Rows keep the order of the files, and one row group at a time is in memory.
"""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from blizzard.model.rewriting import (
    ActiveFile,
    Concatenate,
    FileGroup,
    RewriteFailed,
    RewriteOutcome,
    Rewriting,
    Rewritten,
)
from blizzard.model.work import ClosedFile
from blizzard.worker.find_rows import DAMAGED, Places, deleted_rows, marked
from blizzard.worker.output.parquet import write_one_file
from blizzard.worker.output.upload import Uploads
from blizzard.worker.record import failure_of
from blizzard.worker.table_file import TableFile, plain_schema, row_ids_of
from blizzard.worker.transform import RowChange
from lakebed.columns.column_mapping import with_field_ids
from lakebed.documents.records import FinishedFile
from lakebed.errors import DocumentUnreadable, ObjectMissing
from lakebed.storage.store import Store


class Fetched(NamedTuple):
    """A data file of the table on the local disk."""

    old: ActiveFile
    path: Path
    deleted: Places
    """The positions of its deleted rows, which are dropped."""


CONCURRENT = 16
"""Concurrent downloads: small files cost latency, not bandwidth."""


def rewrite_group(group: FileGroup, work: Rewriting, store: Store) -> RewriteOutcome:
    """Rewrite a group under fresh names; any error becomes its outcome."""
    try:
        with tempfile.TemporaryDirectory(prefix="blizzard-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            if isinstance(work.transform, Concatenate):
                size = work.transform.row_group_size
                return Rewritten(group=group, new=_merged(group, work, store, folder, size))
            return _rewritten(group.file, work, store, folder)
    except Exception as error:  # noqa: BLE001 - an exception would reach the driver without its type
        failure = failure_of(error)
        return RewriteFailed(
            group=group, code=failure.code, message=failure.message, retryable=failure.retryable
        )


def _rewritten(old: ActiveFile, work: Rewriting, store: Store, folder: Path) -> Rewritten:
    deleted = deleted_rows(store, old.vector)
    change = RowChange(old, work, deleted)
    local = downloaded(old, store, folder / "old.parquet")
    with pq.ParquetFile(local, coerce_int96_timestamp_unit="us") as opened:
        file = TableFile(opened, work.mapping, row_ids_of(old, work))
        if not change.may_change(file):
            return change.outcome(None)
        changed = (change.change(group.read()) for group in file.row_groups())
        closed = _written(changed, old, work, folder)
        rows = change.rows_left(opened.metadata.num_rows)
    if not rows:
        return change.outcome(None)
    with Uploads(store, work.upload, pause=work.clock.sleep) as uploads:
        return change.outcome(_uploaded(closed, rows, work, uploads))


def _merged(
    group: FileGroup, work: Rewriting, store: Store, folder: Path, row_group_size: int
) -> tuple[FinishedFile, ...]:
    paths = [folder / f"old-{place}.parquet" for place in range(len(group.files))]
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="fetch") as pool:
        list(pool.map(lambda old, path: downloaded(old, store, path), group.files, paths))
    files = [
        Fetched(old, path, deleted_rows(store, old.vector))
        for old, path in zip(group.files, paths, strict=True)
    ]
    counts = [_rows(one) for one in files]
    schema = common_schema([_schema(one, work) for one in files], work)
    tables = _in_order(files, schema, work, row_group_size)
    closed = _written(tables, group.files[0], work, folder)
    if closed is None and not sum(counts):
        return ()
    with Uploads(store, work.upload, pause=work.clock.sleep) as uploads:
        return (_uploaded(closed, sum(counts), work, uploads),)


def _rows(one: Fetched) -> int:
    rows = int(pq.read_metadata(one.path).num_rows)
    if rows != one.old.rows:
        # The origins in the journal would belong to other rows.
        raise AssertionError("the row count of a file differs from the journal")
    return rows - len(one.deleted)


def _schema(one: Fetched, work: Rewriting) -> pa.Schema:
    with pq.ParquetFile(one.path) as file:
        return TableFile(file, work.mapping, row_ids_of(one.old, work)).schema


def common_schema(schemas: Sequence[pa.Schema], work: Rewriting) -> pa.Schema:
    """Return all columns of the files, in the types and the order of the table."""
    there: dict[str, pa.Field[Any]] = {}
    required: set[str] = set()
    for place, schema in enumerate(schemas):
        fields = {field.name: field for field in plain_schema(schema)}
        there |= {name: field for name, field in fields.items() if name not in there}
        never_null = {name for name, field in fields.items() if not field.nullable}
        required = never_null if place == 0 else required & never_null
    kinds = {one.name: one.arrow_type() for one in work.columns.fields}
    names = [name for name in kinds if name in there]
    names += [name for name in there if name not in kinds]
    found = pa.schema(
        [
            pa.field(name, kinds.get(name, there[name].type), nullable=name not in required)
            for name in names
        ]
    )
    # With column mapping, the ids are added together with the physical names.
    return with_field_ids(found) if work.mapping is None else found


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast rows to a schema and add missing columns as nulls; raise if a value does not fit."""
    columns: list[Any] = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            columns.append(table[field.name].cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _in_order(
    files: Sequence[Fetched], schema: pa.Schema, work: Rewriting, row_group_size: int
) -> Iterator[pa.Table]:
    """Yield the rows of files in order, as row groups of about `row_group_size`."""
    waiting: list[pa.Table] = []
    size = 0
    for table in _tables(files, schema, work):
        waiting.append(table)
        size += table.nbytes
        if size >= row_group_size:
            yield pa.concat_tables(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def _tables(files: Sequence[Fetched], schema: pa.Schema, work: Rewriting) -> Iterator[pa.Table]:
    """Yield all row groups of all files, without deleted rows."""
    for old, path, deleted in files:
        with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            opened = TableFile(file, work.mapping, row_ids_of(old, work))
            here = [name for name in schema.names if name in opened.names]
            for group in opened.row_groups():
                if here:
                    table = group.read(here)
                else:
                    table = pa.table({name: pa.nulls(group.rows) for name in schema.names})
                gone = marked(deleted, group.start, group.rows)
                if gone.any():
                    table = table.filter(pa.array(~gone))
                yield _fitted(table, schema)


def _uploaded(
    closed: ClosedFile | None, rows: int, work: Rewriting, uploads: Uploads
) -> FinishedFile:
    """Upload a written file; raise if its row count is wrong."""
    if closed is None or closed.rows != rows:
        raise AssertionError("the row count of a rewritten file differs from the expected one")
    names = () if work.row_columns is None else work.row_columns.names
    known = {column: one for column, one in closed.statistics.items() if column not in names}
    unit = "compact" if isinstance(work.transform, Concatenate) else "rewrite"
    new = uploads.hand_in(replace(closed, statistics=known), unit=unit, source_file=None).result()
    return replace(new, row_columns=work.row_columns)


def downloaded(old: ActiveFile, store: Store, target: Path) -> Path:
    """Download a file of the table; raise if its size differs from the log."""
    facts = store.head(old.path)
    if facts is None:
        raise ObjectMissing("a data file of the table is gone", path=store.describe(old.path))
    if facts.size != old.size:
        raise DocumentUnreadable(
            f"the file has {facts.size} bytes, but {old.size} according to the log; {DAMAGED}",
            path=store.describe(old.path),
        )
    with target.open("wb") as file:
        for piece in store.stream(old.path, size=facts.size, etag=facts.etag):
            file.write(piece)
    return target


def _written(
    row_groups: Iterator[pa.Table], old: ActiveFile, work: Rewriting, folder: Path
) -> ClosedFile | None:
    """Write tables as the row groups of one file in the partition of an old one."""
    return write_one_file(
        row_groups,
        work.codec,
        marks=work.marks,
        folder=folder,
        clock=work.clock,
        partition_values=old.partition_values,
        mapping=work.mapping,
    )
