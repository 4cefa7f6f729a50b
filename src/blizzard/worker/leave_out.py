"""Rows left out of one data file: by their places, or because a condition holds for them."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.model.rewriting import ActiveFile, RowRanges, RowsWhere
from blizzard.worker.deleted_rows import NONE, Places, marked
from blizzard.worker.matching import Columns, matches
from blizzard.worker.output.origins import runs_without
from lakebed.columns.schema import Schema
from lakebed.documents.data_file import Run
from lakebed.types import Provenance

FILE = Provenance.FILE.column


class LeavingOut:
    """Leaves rows out of one file, table by table in their order, and counts.

    `deleted` are the places of rows that are deleted already: they are left out, and not counted.
    """

    def __init__(self, file: ActiveFile, columns: Schema, deleted: Places = NONE) -> None:
        self._file = file
        self._kinds = {one.name: one.arrow_type() for one in columns.fields}
        self._deleted = deleted
        self._at = 0
        self._gone: list[tuple[int, int]] = []
        self.removed = 0
        self.removed_from: Counter[str] = Counter()
        """The rows that were left out, by their source files where their column says it."""

    def leave_out(self, table: pa.Table) -> pa.Table:
        """Return the next rows of the file without those that are to go."""
        deleted = marked(self._deleted, self._at, table.num_rows)
        meant = self._is_meant(table) & ~deleted
        gone = meant | deleted
        self._count(table, meant)
        self._note(gone)
        self._at += table.num_rows
        return table.filter(pa.array(~gone)) if gone.any() else table

    def origins(self) -> tuple[tuple[str, ...], tuple[Run, ...]]:
        """Return the source files of the rows that are left, and which rows came from which."""
        return runs_without(self._file.source_files, self._file.runs, self._gone)

    def _is_meant(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        meant = np.zeros(table.num_rows, np.bool_)
        match self._file.without:
            case RowRanges(ranges=ranges):
                for start, end in ranges:
                    meant[max(0, start - self._at) : max(0, end - self._at)] = True
            case RowsWhere(predicate=predicate):
                partition = self._file.partition_values
                columns = Columns(table, table.num_rows, partition, self._kinds)
                # As in SQL, a row whose value is not known is not meant.
                found: Any = pc.fill_null(matches(predicate, columns), pa.scalar(value=False))
                meant |= np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
            case None:
                pass
        return meant

    def _note(self, gone: npt.NDArray[np.bool_]) -> None:
        """Keep the places of the rows that are left out, as ranges."""
        edges = np.flatnonzero(np.diff(np.concatenate(([False], gone, [False]))))
        for start, end in (edges.reshape(-1, 2) + self._at).tolist():
            goes_on = self._gone and self._gone[-1][1] == start
            self._gone.append((self._gone.pop()[0] if goes_on else start, end))

    def _count(self, table: pa.Table, meant: npt.NDArray[np.bool_]) -> None:
        self.removed += int(meant.sum())
        if FILE in table.column_names and meant.any():
            names: Any = table[FILE].filter(pa.array(meant))
            for one in pc.value_counts(names).to_pylist():
                if one["values"] is not None:
                    self.removed_from[one["values"]] += one["counts"]
