"""The ids of rows that are moved to another file, where the table tracks its rows.

A row has the id that its file says of it, or else the one that follows from its place in the file
and the id of the first row, which is in the log. The same holds for the version that wrote it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blizzard.model.rewriting import ActiveFile, Rewriting
from lakebed.columns.row_tracking import FirstRow, RowColumns


@dataclass(frozen=True, slots=True)
class RowIds:
    """The ids of the rows of one file, and the columns in which other files keep them."""

    columns: RowColumns
    first: FirstRow

    @property
    def fields(self) -> "tuple[pa.Field[Any], ...]":
        """Return both columns."""
        return tuple(pa.field(name, pa.int64()) for name in self.columns.names)

    def read(self, file: pq.ParquetFile, group: int) -> pa.Table:
        """Return both for the rows of one row group."""
        metadata = file.metadata
        rows = metadata.row_group(group).num_rows
        start = sum(metadata.row_group(before).num_rows for before in range(group))
        at = self.first.id + start
        versions = pa.array(np.full(rows, self.first.version, np.int64))
        told = (pa.array(np.arange(at, at + rows, dtype=np.int64)), versions)
        there = [name for name in self.columns.names if name in file.schema_arrow.names]
        said = file.read_row_group(group, columns=there) if there else None
        found: list[Any] = [
            told[place]
            if said is None or name not in there
            else pc.coalesce(said[name].combine_chunks().cast(pa.int64()), told[place])
            for place, name in enumerate(self.columns.names)
        ]
        return pa.Table.from_arrays(found, schema=pa.schema(self.fields))


def row_ids_of(old: ActiveFile, work: Rewriting) -> RowIds | None:
    """Return the ids of the rows of a file; None where the table tracks none."""
    if work.row_columns is None:
        return None
    if old.first_row is None:
        raise AssertionError("the log does not say what the rows of a file are numbered from")
    return RowIds(work.row_columns, old.first_row)
