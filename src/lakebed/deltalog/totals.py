"""How large a table was at its last checkpoint: sums of two columns, a batch at a time. Read-only.

However many files the table has, no more than a batch of them is in memory.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.deltalog.checkpoint import checkpoint_batches
from lakebed.deltalog.segment import Checkpoint
from lakebed.storage.store import Reader

COLUMNS = ("add.size", "add.stats")
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


def checkpoint_totals(store: Reader, checkpoint: Checkpoint) -> Totals:
    """Return how large the table was at a checkpoint."""
    totals = Totals()
    for batch in checkpoint_batches(store, checkpoint, COLUMNS):
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
