"""Checkpoints of a Delta log with their sidecars, and the data files of a version. Loads Arrow.

A checkpoint of any kind is read a batch of actions at a time. The changes of later versions are
held in memory, the checkpoint is not: a table of a million files costs the memory of one batch.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.deltalog.actions import Checkpoint, LogActions, lines_of
from lakebed.deltalog.file_names import path_resolver
from lakebed.documents.reading import parse_json
from lakebed.documents.records import FIRST_ROW_ID, ROW_VERSION
from lakebed.errors import TableUnreadable
from lakebed.layout import DELTA_LOG, OUR_TRANSACTIONS
from lakebed.storage.objects import RandomAccessFile
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader

COLUMNS = (
    *(f"add.{name}" for name in ("path", "deletionVector", "size", "partitionValues")),
    *(f"add.{name}" for name in (FIRST_ROW_ID, ROW_VERSION)),
    *(f"remove.{name}" for name in ("path", "deletionVector", "deletionTimestamp")),
    *("txn.appId", "txn.version"),
)
COUNTED = (*COLUMNS, "add.stats", "add.stats_parsed.numRecords")
"""COLUMNS with the row counts."""
SIDECARS = f"{DELTA_LOG}/_sidecars"
SIDECAR = "sidecar.path"
FILES = ("add", "remove")
NAMES = ("add.path", "remove.path", "txn.appId", "txn.version")
AT_A_TIME = 8192
"""Actions of a checkpoint that are held in memory at a time."""


def read_checkpoint(
    store: Reader,
    checkpoint: Checkpoint,
    columns: tuple[str, ...],
    *,
    sidecars: bool = True,
) -> Iterator[LogActions]:
    """Read some columns of a checkpoint as actions, a batch at a time."""
    resolve, where = path_resolver(store), store.describe(checkpoint.parts[0].path)
    kinds = tuple(dict.fromkeys(name.partition(".")[0] for name in columns))
    for batch in checkpoint_batches(store, checkpoint, columns, sidecars=sidecars):
        found = LogActions(version=checkpoint.version, is_checkpoint=True)
        with lines_of(where):
            for kind in kinds:
                for row in rows_of(batch, kind):
                    found.take(kind, row if kind in FILES else _plain(kind, row), resolve)
        yield found


def checkpointed_names(
    store: Reader, checkpoint: Checkpoint
) -> Iterator[tuple[Iterable[str], Mapping[str, int]]]:
    """Yield the paths of a checkpoint's data files and tombstones, and penguin's transactions."""
    resolve = path_resolver(store)
    for batch in checkpoint_batches(store, checkpoint, NAMES):
        yield map(resolve, _paths(batch)), _transactions(batch)


def checkpoint_batches(
    store: Reader, checkpoint: Checkpoint, columns: tuple[str, ...], *, sidecars: bool = True
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a checkpoint and its sidecars, a batch at a time.

    A V2 checkpoint may have a classic name. Sidecars hold only data files.
    """
    for part in checkpoint.parts:
        read = _read_json if part.path.endswith(".json") else read_columns
        names: list[str] = []
        for batch in read(store, part, (*columns, SIDECAR)):
            names += paths_of(batch, "sidecar")
            yield batch
        for name in names if sidecars else ():
            yield from read_columns(store, sidecar_of(store, part, name), columns)


def rows_of(batch: pa.RecordBatch, kind: str) -> list[dict[str, Any]]:
    """Return the actions of a kind; Arrow may show actions of other kinds as structs of nulls."""
    if kind not in batch.schema.names:
        return []
    column = batch.column(kind)
    rows: list[dict[str, Any] | None] = column.filter(column.is_valid()).to_pylist()
    return [row for row in rows if row and any(value is not None for value in row.values())]


def _plain(kind: str, row: dict[str, Any]) -> dict[str, Any]:
    """Convert an action to the form of a version: pairs to maps, and nulls to absent keys."""
    if kind == "metaData":
        form = row.get("format") or {}
        row = {
            **row,
            "format": {**form, "options": dict(form.get("options") or ())},
            "configuration": dict(row.get("configuration") or ()),
        }
    return {name: value for name, value in row.items() if value is not None}


def _read_json(
    store: Reader, part: ObjectFacts, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a V2 checkpoint in JSON."""
    body, where = store.get(part.path), store.describe(part.path)
    if body is None:
        raise TableUnreadable("a checkpoint of the Delta log is gone", path=where)
    wanted: dict[str, set[str]] = {}
    for name in columns:
        kind, _, below = name.partition(".")
        wanted.setdefault(kind, set()).add(below.partition(".")[0])
    with lines_of(where):
        actions = [parse_json(line) for line in body.splitlines() if line.strip()]
        if not actions:
            raise ValueError("a checkpoint of the Delta log is empty")
        kinds = {
            kind: [_picked(action.get(kind), fields) for action in actions]
            for kind, fields in wanted.items()
        }
        found = {kind: rows for kind, rows in kinds.items() if any(row is not None for row in rows)}
        arrays = [pa.array(rows) for rows in found.values()]
    yield pa.RecordBatch.from_arrays(arrays, names=list(found))


def _picked(action: Any, fields: set[str]) -> dict[str, Any] | None:  # noqa: ANN401 - JSON
    if action is None or "" in fields:
        return action  # type: ignore[no-any-return]
    return {name: action.get(name) for name in fields}


def sidecar_of(store: Reader, checkpoint: ObjectFacts, name: str) -> ObjectFacts:
    """Find a sidecar of a checkpoint."""
    where = f"{SIDECARS}/{unquote(name).rpartition('/')[2]}"
    found = store.head(where)
    if found is None:
        raise TableUnreadable(
            "a checkpoint of the Delta log names a file that is gone",
            path=store.describe(checkpoint.path),
            sidecar=where,
        )
    return found


def read_columns(
    store: Reader, facts: ObjectFacts, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Read the requested columns that a checkpoint has."""
    try:
        source: Any = RandomAccessFile(store, facts)
        file = pq.ParquetFile(pa.PythonFile(source, mode="r"))
        existing = set(file.schema_arrow.names)
        wanted = [name for name in columns if name.partition(".")[0] in existing]
        yield from file.iter_batches(AT_A_TIME, columns=wanted)
    except (pa.ArrowException, KeyError, OSError) as cause:
        raise TableUnreadable(
            "a checkpoint of the Delta log cannot be read", path=store.describe(facts.path)
        ) from cause


def _paths(batch: pa.RecordBatch) -> Iterator[str]:
    for kind in FILES:
        yield from map(unquote, paths_of(batch, kind))


def paths_of(batch: pa.RecordBatch, kind: str) -> list[str]:
    """Return the path of every action of a kind."""
    if kind not in batch.schema.names:
        return []
    found: list[str] = pc.drop_null(pc.struct_field(batch.column(kind), "path")).to_pylist()
    return found


def _transactions(batch: pa.RecordBatch) -> dict[str, int]:
    if "txn" not in batch.schema.names:
        return {}
    txn = batch.column("txn").filter(batch.column("txn").is_valid())
    ours = txn.filter(pc.starts_with(pc.struct_field(txn, "appId"), OUR_TRANSACTIONS))
    columns = (pc.struct_field(ours, name).to_pylist() for name in ("appId", "version"))
    return dict(zip(*columns, strict=True))
