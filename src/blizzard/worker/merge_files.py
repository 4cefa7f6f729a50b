"""Many small data files of one partition, made into fewer under fresh names; no row changes.

Without columns to sort by, the rows of the files follow each other in the order of the files, and
one row group at a time is in memory. To sort, the columns in question are read first; the rows of
one new file at a time are then picked out of all the old ones, which are on the local disk.
"""

import math
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blizzard.model.rewriting import (
    ActiveFile,
    FileGroup,
    Merged,
    MergeFailed,
    MergeOutcome,
    Merging,
)
from blizzard.worker.deleted_rows import Places, deleted_rows, marked
from blizzard.worker.output.row_ids import row_ids_of
from blizzard.worker.output.upload import Uploads
from blizzard.worker.plain_types import TableFile, plain_schema
from blizzard.worker.record import failure_of
from blizzard.worker.rewrite import closed_file, downloaded, write_groups
from lakebed.columns.field_ids import with_field_ids
from lakebed.documents.data_file import FinishedFile
from lakebed.storage.store import Store


class Fetched(NamedTuple):
    """A data file of the table on the local disk."""

    old: ActiveFile
    path: Path
    deleted: Places
    """The places of its deleted rows: these are in no new file."""


CONCURRENT = 16
"""Files that are fetched at a time: small ones cost the way, not the bytes."""
SORTED_GROUPS = 8
"""Row groups of sorted rows are so much smaller: whoever looks for few of them reads one."""


def merge_files(group: FileGroup, work: Merging, store: Store) -> MergeOutcome:
    """Make fewer files of a group under fresh names; trouble of whatever kind is its outcome."""
    try:
        with tempfile.TemporaryDirectory(prefix="blizzard-", ignore_cleanup_errors=True) as folder:
            return Merged(group=group, new=_merged(group, work, store, Path(folder)))
    except Exception as error:  # noqa: BLE001 - an exception would reach the driver without its type
        failure = failure_of(error)
        return MergeFailed(
            group=group, code=failure.code, message=failure.message, retryable=failure.retryable
        )


def _merged(
    group: FileGroup, work: Merging, store: Store, folder: Path
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
    if group.sorted_by:
        parts = _sorted(files, schema, group, work)
    else:
        parts = iter([(sum(counts), _in_order(files, schema, work))])
    found: list[FinishedFile] = []
    values = group.files[0].partition_values
    with Uploads(store, work.upload, pause=work.clock.sleep) as uploads:
        for rows, tables in parts:
            name = work.clock.fresh_id()
            path = folder / f"{name}.parquet"
            names = write_groups(path, tables, work)
            closed = closed_file(name, path, rows, names, work.row_columns)
            handed_in = uploads.hand_in(
                closed, partition_values=values, unit="compact", source_file=None
            )
            found.append(replace(handed_in.result(), row_columns=work.row_columns))
    if sum(file.record_count for file in found) != sum(counts):
        raise AssertionError("files were merged into ones with another number of rows")
    return tuple(found)


def _rows(one: Fetched) -> int:
    rows = int(pq.read_metadata(one.path).num_rows)
    if rows != one.old.rows:
        # Where its rows came from would be said of others.
        raise AssertionError("a file has another number of rows than the journal says")
    return rows - len(one.deleted)


def _schema(one: Fetched, work: Merging) -> pa.Schema:
    with pq.ParquetFile(one.path) as file:
        return TableFile(file, work.mapping, row_ids_of(one.old, work)).schema


def common_schema(schemas: Sequence[pa.Schema], work: Merging) -> pa.Schema:
    """Return every column that one of the files has, in the types and the order of the table."""
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
    # Where the table maps its columns, they get its ids with the names that it has in files.
    return with_field_ids(found) if work.mapping is None else found


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with all columns of a schema; a value that its type cannot hold is an error."""
    columns: list[Any] = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            columns.append(table[field.name].cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _in_order(files: Sequence[Fetched], schema: pa.Schema, work: Merging) -> Iterator[pa.Table]:
    """Yield the rows of files one after the other, as row groups of a usual size."""
    waiting: list[pa.Table] = []
    size = 0
    for _first, table in _tables(files, schema, work):
        waiting.append(table)
        size += table.nbytes
        if size >= work.row_group_size:
            yield pa.concat_tables(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def _tables(
    files: Sequence[Fetched], schema: pa.Schema, work: Merging
) -> Iterator[tuple[int, pa.Table]]:
    """Yield row group after row group of all files, each with the place of its first row.

    Deleted rows are left out, and have no place.
    """
    first = 0
    for old, path, deleted in files:
        start = 0
        with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            opened = TableFile(file, work.mapping, row_ids_of(old, work))
            there = opened.names
            here = [name for name in schema.names if name in there]
            for index in range(file.num_row_groups):
                table = opened.read(index, here) if here else None
                rows = file.metadata.row_group(index).num_rows
                if table is None:
                    table = pa.table({name: pa.nulls(rows) for name in schema.names})
                gone = marked(deleted, start, rows)
                start += rows
                if gone.any():
                    table = table.filter(pa.array(~gone))
                yield first, _fitted(table, schema)
                first += table.num_rows


def _sorted(
    files: Sequence[Fetched], schema: pa.Schema, group: FileGroup, work: Merging
) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Yield how many rows each new file gets, and these; nulls come last."""
    absent = [name for name in group.sorted_by if name not in schema.names]
    names = [name for name in group.sorted_by if name not in absent]
    keys = pa.schema([schema.field(name) for name in names])
    rows = sum(old.live_rows or 0 for old in group.files)
    order = np.arange(rows)
    if names:
        whole = pa.concat_tables([table for _first, table in _tables(files, keys, work)])
        by: Any = [(name, "ascending") for name in names]
        order = np.asarray(pc.sort_indices(whole, sort_keys=by).to_numpy())
    each = math.ceil(rows / group.outputs)
    limit = max(1, work.row_group_size // SORTED_GROUPS)
    for start in range(0, rows, each):
        chosen = order[start : start + each]
        yield len(chosen), _picked(_tables(files, schema, work), chosen, limit)


def _picked(
    tables: Iterator[tuple[int, pa.Table]], chosen: npt.NDArray[Any], limit: int
) -> Iterator[pa.Table]:
    """Yield the rows at some places of all files, in the order of these places."""
    places = np.sort(chosen)
    parts = []
    for first, table in tables:
        begin, end = np.searchsorted(places, [first, first + table.num_rows])
        if begin < end:
            parts.append(table.take(places[begin:end] - first))
    table = pa.concat_tables(parts).take(np.searchsorted(places, chosen))
    step = max(1, int(limit / max(1.0, table.nbytes / table.num_rows)))
    for start in range(0, table.num_rows, step):
        yield table.slice(start, step)
