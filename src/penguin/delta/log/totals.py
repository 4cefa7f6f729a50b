"""How large a table was at its last checkpoint: sums of two columns, a batch at a time. Read-only.

However many files the table has, no more than a batch of them is in memory.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.dataclass import dataclass
from lakebed.documents.reading import parse_json
from lakebed.storage.store import ObjectFacts, Reader
from penguin.delta.log.checkpoint import read_columns, sidecar_of
from penguin.delta.log.file import lines_of
from penguin.delta.log.latest import Tail
from penguin.model.errors import TableUnreadable

COLUMNS = ("add.size", "add.stats", "sidecar.path")
ROWS = r'"numRecords"\s*:\s*(?P<rows>[0-9]+)'


@dataclass(slots=True)
class Totals:
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


def checkpoint_totals(store: Reader, tail: Tail) -> Totals | None:
    """Return how large the table was at its checkpoint; None where there is none."""
    if tail.checkpoint is None:
        return None
    totals = Totals()
    for part in tail.checkpoint.parts:
        sidecars: list[str] = []
        if part.path.endswith(".json"):
            sidecars = _in_json(store, part, totals)
        else:
            for batch in read_columns(store, part, COLUMNS):
                sidecars += _sidecars(batch)
                _add(totals, batch)
        for name in sidecars:
            for batch in read_columns(store, sidecar_of(store, part, name), COLUMNS):
                _add(totals, batch)
    return totals


def _add(totals: Totals, batch: pa.RecordBatch) -> None:
    if "add" not in batch.schema.names:
        return
    column = batch.column("add")
    # A reader may show the actions of other kinds as adds of nulls.
    sizes = pc.struct_field(column, "size")
    is_file = pc.is_valid(sizes)
    names = {column.type.field(at).name for at in range(column.type.num_fields)}
    stats = pc.struct_field(column, "stats").filter(is_file) if "stats" in names else None
    totals.add(sizes.filter(is_file), stats)


def _sidecars(batch: pa.RecordBatch) -> Iterator[str]:
    if "sidecar" in batch.schema.names:
        yield from pc.drop_null(pc.struct_field(batch.column("sidecar"), "path")).to_pylist()


def _in_json(store: Reader, part: ObjectFacts, totals: Totals) -> list[str]:
    """Add the files of a checkpoint that is JSON; return the names of its sidecars."""
    body, where = store.get(part.path), store.describe(part.path)
    if body is None:
        raise TableUnreadable("a checkpoint of the Delta log is gone", path=where)
    sidecars: list[str] = []
    sizes: list[int] = []
    stats: list[str | None] = []
    with lines_of(where):
        for line in body.splitlines():
            match parse_json(line) if line.strip() else None:
                case {"add": {"size": int(size)} as told}:
                    sizes.append(size)
                    stats.append(told.get("stats"))
                case {"sidecar": {"path": str(path)}}:
                    sidecars.append(path)
    totals.add(pa.array(sizes, pa.int64()), pa.array(stats, pa.string()))
    return sidecars
