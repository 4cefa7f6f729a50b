"""Reading one checkpoint of a Delta log, with what it refers to."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.layout import DELTA_LOG, OUR_TRANSACTIONS
from lakebed.storage.store import ObjectFacts, Reader
from penguin.delta.file_names import naming
from penguin.delta.log.file import Actions
from penguin.model.errors import TableUnreadable

SIDECARS = f"{DELTA_LOG}/_sidecars"
COLUMNS = ("add.path", "remove.path", "txn.appId", "txn.version", "sidecar.path")
AT_A_TIME = 8192
"""Actions of a checkpoint that are in memory at once."""


def read_checkpoint(store: Reader, facts: ObjectFacts) -> Actions:
    """Read a checkpoint of one file: data files, tombstones and our transactions.

    A V2 checkpoint may have the classic name, too; it keeps its data files in sidecars.
    """
    paths: set[str] = set()
    transactions: dict[str, int] = {}
    sidecars: list[str] = []
    named = naming(store)
    for batch in read_columns(store, facts):
        paths.update(map(named, _paths(batch)))
        transactions |= _transactions(batch)
        sidecars += paths_of(batch, "sidecar")
    for name in sidecars:
        for batch in read_columns(store, sidecar_of(store, facts, name)):
            paths.update(map(named, _paths(batch)))
    return Actions(paths=frozenset(paths), transactions=transactions)


def sidecar_of(store: Reader, checkpoint: ObjectFacts, name: str) -> ObjectFacts:
    """Find a file that a checkpoint keeps data files in."""
    where = f"{SIDECARS}/{unquote(name).rpartition('/')[2]}"
    found = store.head(where)
    if found is None:
        raise TableUnreadable(
            "a checkpoint of the Delta log names a file that is gone",
            path=store.describe(checkpoint.path),
            sidecar=where,
        )
    return found


def is_whole(store: Reader, facts: ObjectFacts) -> bool:
    """Whether a checkpoint can be read and holds all that it stands for, in itself."""
    try:
        return not any(
            paths_of(batch, "sidecar") for batch in read_columns(store, facts, ("sidecar.path",))
        )
    except TableUnreadable:
        return False


def read_columns(
    store: Reader, facts: ObjectFacts, columns: tuple[str, ...] = COLUMNS
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a checkpoint, those of them that it has."""
    try:
        source: Any = _Ranges(store, facts)
        file = pq.ParquetFile(pa.PythonFile(source, mode="r"))
        there = set(file.schema_arrow.names)
        wanted = [name for name in columns if name.partition(".")[0] in there]
        yield from file.iter_batches(AT_A_TIME, columns=wanted)
    except (pa.ArrowException, KeyError, OSError) as cause:
        raise TableUnreadable(
            "a checkpoint of the Delta log cannot be read", path=store.describe(facts.path)
        ) from cause


def _paths(batch: pa.RecordBatch) -> Iterator[str]:
    for kind in ("add", "remove"):
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
    told = (pc.struct_field(ours, name).to_pylist() for name in ("appId", "version"))
    return dict(zip(*told, strict=True))


class _Ranges:
    """An object of a store as a file that Arrow reads some columns of, not the whole."""

    closed = False

    def __init__(self, store: Reader, facts: ObjectFacts) -> None:
        self._store = store
        self._facts = facts
        self._at = 0

    def size(self) -> int:
        return self._facts.size

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._facts.size)[whence]
        return self._at

    def read(self, count: int = -1) -> bytes:
        left = self._facts.size - self._at
        end = self._at + (left if count < 0 else min(count, left))
        body = (
            self._store.part(self._facts.path, self._at, end, etag=self._facts.etag)
            if end > self._at
            else b""
        )
        self._at = end
        return body

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        pass
