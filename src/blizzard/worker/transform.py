"""Transform the rows of one data file: fill a column from `_rescued`, or drop rows.

`_rescued` holds values as written. Each is wrapped in a record again and decoded like a batch in
which only this field is declared. Values that fit move into the column, others stay. Rows keep
their order.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blizzard.model.bad_lines import steps
from blizzard.model.columns import kept_exact
from blizzard.model.rewriting import (
    ActiveFile,
    FileGroup,
    FillColumn,
    FillTarget,
    Rewriting,
    Rewritten,
    RowRanges,
    RowsWhere,
)
from blizzard.worker.find_rows import NONE, Places, marked, ranges_of
from blizzard.worker.ndjson import grammar
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.output.origins import runs_without
from blizzard.worker.table_file import Columns, TableFile, matches
from lakebed.columns.schema import Schema
from lakebed.documents.records import FinishedFile
from lakebed.types import RESCUED, OnMismatch, Provenance, UnknownFields

MOST_ROWS = 65_536
"""Rows whose texts are converted to Python objects at once."""

Array = Any
"""An Arrow array of any type."""


class Filling:
    """Fills one field of a file's rows from `_rescued`, and counts the values."""

    def __init__(self, target: FillTarget, *, versions: str | None = None) -> None:
        self._target = target
        self._versions = versions
        """The column with the version that wrote a row; None without row tracking."""
        # An integer that was rescued as written must not be rounded, whether declared or not.
        policy = OnMismatch.RESCUE
        schema = kept_exact(target.alone(), declared=Schema(()), on_mismatch=policy)
        self._decoder = Decoder(schema, unknown=UnknownFields.RESCUE, on_mismatch=policy)
        self.taken = 0
        self.left = 0

    def fill(self, table: pa.Table) -> pa.Table:
        """Fill the field wherever it is null and `_rescued` has a value."""
        plain = table.replace_schema_metadata(None)
        starts = range(0, max(1, plain.num_rows), MOST_ROWS)
        return pa.concat_tables([self._filled(plain.slice(at, MOST_ROWS)) for at in starts])

    def _filled(self, table: pa.Table) -> pa.Table:
        table = table.combine_chunks()
        texts: list[str | None] = table[RESCUED].to_pylist()
        free = self._free(table)
        rows: list[int] = []
        parts: list[dict[str, str]] = []
        lines: list[str] = []
        for row, text in enumerate(texts):
            members = _rescued(text)
            path = next((one for one in members if self._target.holds(one)), None)
            if path is None:
                continue
            if not free[row]:
                self.left += 1
                continue
            rows.append(row)
            parts.append(members)
            lines.append(_record(path, members.pop(path), self._target))
        cells, leftovers = self._decoded(lines)
        filled: list[int | None] = [None] * table.num_rows
        for index, row in enumerate(rows):
            left = leftovers[index]
            # A value that reads as null, such as "-", counts as taken: nothing of it is left.
            if cells[index].is_valid or left is None:
                filled[row] = index
                self.taken += 1
                texts[row] = _text({**parts[index], **_rescued(left)})
            else:
                self.left += 1
        new = cells.take(pa.array(filled, pa.int64()))
        name = self._target.name
        if name in table.column_names:
            old: Array = table[name].combine_chunks()
            new = pc.if_else(pc.is_null(old), new, old.cast(new.type))
        table = _with_column(table, name, new)
        if self._versions is not None:
            # A changed row belongs to the version of this commit, which the log supplies.
            same = pa.array([place is None for place in filled])
            versions: Array = table[self._versions].combine_chunks()
            table = _with_column(table, self._versions, pc.if_else(same, versions, None))
        return _with_column(table, RESCUED, pa.array(texts, pa.string()))

    def _free(self, table: pa.Table) -> Sequence[bool]:
        """Return for each row whether the column is null."""
        if self._target.name not in table.column_names:
            return [True] * table.num_rows
        free: Array = pc.is_null(table[self._target.name])
        return list(free.to_pylist())

    def _decoded(self, lines: Sequence[str]) -> tuple[Array, list[str | None]]:
        """Decode records; return the column, and the leftovers of each."""
        kind = self._target.alone().fields[0].arrow_type()
        if not lines:
            return pa.array([], kind), []
        body = "".join(f"{line}\n" for line in lines).encode()
        batches = [one.batch for one in self._decoder.decode([body], from_start=False)]
        table = pa.Table.from_batches(batches)
        if table.num_rows != len(lines):
            raise AssertionError("the number of decoded records differs from the rescued ones")
        return table[self._target.name].combine_chunks(), table[RESCUED].to_pylist()


def _rescued(text: str | None) -> dict[str, str]:
    """Return the rescued values of a row by path; empty if another program wrote the text."""
    if text is None or not grammar.opens_object(text):
        return {}
    try:
        return {path: source for path, (_value, source) in grammar.members(text).items()}
    except (grammar.NotJson, grammar.BadMember):
        return {}


def _record(path: str, source: str, target: FillTarget) -> str:
    """Wrap a value in a record; line breaks between JSON tokens become spaces."""
    text = source.replace("\r", " ").replace("\n", " ")
    for name in reversed(target.source[: len(steps(path))]):
        text = f"{{{json.dumps(name, ensure_ascii=False)}:{text}}}"
    return text


def _text(members: Mapping[str, str]) -> str | None:
    """Return the new `_rescued` text of a row; None if nothing is left."""
    if not members:
        return None
    found = (f"{json.dumps(path, ensure_ascii=False)}:{text}" for path, text in members.items())
    return "{" + ",".join(found) + "}"


def _with_column(table: pa.Table, name: str, column: Array) -> pa.Table:
    place = table.schema.get_field_index(name)
    if place < 0:
        return table.append_column(pa.field(name, column.type), column)
    known = table.schema.field(place)
    return table.set_column(place, known.with_type(column.type), column)


FILE = Provenance.FILE.column


class RowChange:
    """Transforms the rows of one file, table by table in order, and counts the changes.

    `deleted` holds the positions of rows that are deleted already: they are dropped and not
    counted.
    """

    def __init__(self, old: ActiveFile, work: Rewriting, deleted: Places = NONE) -> None:
        self._old = old
        self._filling: Filling | None = None
        if isinstance(work.transform, FillColumn):
            versions = None if work.row_columns is None else work.row_columns.versions
            self._filling = Filling(work.transform.target, versions=versions)
        self._kinds = {one.name: one.arrow_type() for one in work.columns.fields}
        self._deleted = deleted
        self._at = 0
        self._gone: list[tuple[int, int]] = []
        self._removed = 0
        self._removed_from: Counter[str] = Counter()
        """Dropped rows by the source file in their provenance column."""

    def may_change(self, file: TableFile) -> bool:
        """Whether the file may have a row that changes."""
        return self._filling is None or RESCUED in file.names

    def change(self, table: pa.Table) -> pa.Table:
        """Return the next rows, transformed."""
        left = self._leave_out(table)
        return left if self._filling is None else self._filling.fill(left)

    def outcome(self, new: FinishedFile | None) -> Rewritten:
        """Return the outcome, after all rows were transformed."""
        old, filling = self._old, self._filling
        if new is not None:
            names, runs = runs_without(old.source_files, old.runs, self._gone)
            new = replace(new, source_files=names, runs=runs)
        return Rewritten(
            group=FileGroup(files=(old,)),
            new=() if new is None else (new,),
            removed=self._removed,
            removed_from=dict(self._removed_from),
            taken=0 if filling is None else filling.taken,
            left=0 if filling is None else filling.left,
        )

    def rows_left(self, rows: int) -> int:
        """Return the expected rows of the new file; 0 if no new file is needed."""
        deleted = self._old.deleted
        if self._filling is not None:
            return rows - deleted if self._filling.taken else 0
        recorded = sum(run.rows for run in self._old.runs)
        if recorded not in (0, rows):
            # The positions in the file would refer to other rows.
            raise AssertionError("the row count of a file differs from the journal")
        return rows - deleted - self._removed if self._removed or deleted else 0

    def _leave_out(self, table: pa.Table) -> pa.Table:
        """Return the next rows of the file without the dropped ones."""
        deleted = marked(self._deleted, self._at, table.num_rows)
        selected = self._selected(table) & ~deleted
        gone = selected | deleted
        self._count(table, selected)
        self._note(gone)
        self._at += table.num_rows
        return table.filter(pa.array(~gone)) if gone.any() else table

    def _selected(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        selected = np.zeros(table.num_rows, np.bool_)
        match self._old.without:
            case RowRanges(ranges=ranges):
                for start, end in ranges:
                    selected[max(0, start - self._at) : max(0, end - self._at)] = True
            case RowsWhere(predicate=predicate):
                partition = self._old.partition_values
                columns = Columns(table, table.num_rows, partition, self._kinds)
                # As in SQL, a condition that is null does not match.
                found: Any = pc.fill_null(matches(predicate, columns), pa.scalar(value=False))
                selected |= np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
            case None:
                pass
        return selected

    def _note(self, gone: npt.NDArray[np.bool_]) -> None:
        """Record the positions of the dropped rows as ranges."""
        for start, end in ranges_of(np.flatnonzero(gone) + self._at):
            goes_on = self._gone and self._gone[-1][1] == start
            self._gone.append((self._gone.pop()[0] if goes_on else start, end))

    def _count(self, table: pa.Table, selected: npt.NDArray[np.bool_]) -> None:
        self._removed += int(selected.sum())
        if FILE in table.column_names and selected.any():
            names: Any = table[FILE].filter(pa.array(selected))
            for one in pc.value_counts(names).to_pylist():
                if one["values"] is not None:
                    self._removed_from[one["values"]] += one["counts"]
