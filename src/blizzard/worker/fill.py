"""A column filled from `_rescued`, in the rows of one data file.

A value is taken by the very rules by which a batch reads it: what stands in `_rescued` is made a
record again, and the decoder reads that with the one field declared. What fits goes into the
column, what does not stays. Rows stay in their order.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from blizzard.model.columns import kept_exact
from blizzard.model.json_path import steps
from blizzard.model.rewriting import Target
from blizzard.worker.ndjson import grammar
from blizzard.worker.ndjson.decoder import Decoder
from lakebed.columns.schema import Schema
from lakebed.types import RESCUED, OnMismatch, UnknownFields

MOST_ROWS = 65_536
"""Rows whose texts are held as Python objects at once."""

Array = Any
"""An Arrow array of any type, which pyarrow's stubs cannot say."""


class Filling:
    """Fills one field of the rows of one file, and counts."""

    def __init__(
        self, target: Target, *, most_rows: int = MOST_ROWS, versions: str | None = None
    ) -> None:
        self._target = target
        self._versions = versions
        """The column that says which version wrote a row; None where there is none."""
        self._most_rows = most_rows
        # An integer that was kept as it is written is not rounded now, declared or not.
        policy = OnMismatch.RESCUE
        schema = kept_exact(target.alone(), declared=Schema(()), on_mismatch=policy)
        self._decoder = Decoder(schema, unknown=UnknownFields.RESCUE, on_mismatch=policy)
        self.taken = 0
        self.left = 0

    def fill(self, table: pa.Table) -> pa.Table:
        """Return the rows with the field filled wherever it is null and `_rescued` has a value."""
        plain = table.replace_schema_metadata(None)
        starts = range(0, max(1, plain.num_rows), self._most_rows)
        return pa.concat_tables([self._filled(plain.slice(at, self._most_rows)) for at in starts])

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
        values = _leaf(cells, self._target.names[1:])
        for index, row in enumerate(rows):
            left = leftovers[index]
            # One that is read as null, such as a "-", is read, too: nothing of it is left.
            if values[index].is_valid or left is None:
                filled[row] = index
                self.taken += 1
                texts[row] = _text({**parts[index], **_rescued(left)})
            else:
                self.left += 1
        new = cells.take(pa.array(filled, pa.int64()))
        column = self._target.chain[0]
        if column.name in table.column_names:
            new = _merged(table[column.name].combine_chunks(), new, self._target.names[1:])
        table = _with_column(table, column.name, new)
        if self._versions is not None:
            # A row that changes is of the version that changes it, which the log will say.
            same = pa.array([place is None for place in filled])
            told: Array = table[self._versions].combine_chunks()
            table = _with_column(table, self._versions, pc.if_else(same, told, None))
        return _with_column(table, RESCUED, pa.array(texts, pa.string()))

    def _free(self, table: pa.Table) -> Sequence[bool]:
        """Return of each row whether the field is null there, and may be set."""
        first, *inner = self._target.names
        if first not in table.column_names:
            return [not inner] * table.num_rows
        column: Array = table[first].combine_chunks()
        free: Array = pc.is_null(_leaf(column, inner))
        if inner:
            free = pc.and_(free, pc.is_valid(_leaf(column, inner[:-1])))
        return list(free.to_pylist())

    def _decoded(self, lines: Sequence[str]) -> tuple[Array, list[str | None]]:
        """Read records; return the column, and what is left of each."""
        kind = self._target.alone().fields[0].arrow_type()
        if not lines:
            return pa.array([], kind), []
        body = "".join(f"{line}\n" for line in lines).encode()
        batches = [one.batch for one in self._decoder.decode([body], from_start=False)]
        table = pa.Table.from_batches(batches)
        if table.num_rows != len(lines):
            raise AssertionError("records that were rescued are not read one by one")
        return table[self._target.chain[0].name].combine_chunks(), table[RESCUED].to_pylist()


def _rescued(text: str | None) -> dict[str, str]:
    """Return the values of a row by their paths; nothing where another program wrote the text."""
    if text is None or not grammar.opens_object(text):
        return {}
    try:
        return {path: source for path, (_value, source) in grammar.members(text).items()}
    except (grammar.NotJson, grammar.BadMember):
        return {}


def _record(path: str, source: str, target: Target) -> str:
    """Make a record of a value again; line breaks between its parts mean nothing in JSON."""
    text = source.replace("\r", " ").replace("\n", " ")
    for name in reversed(target.source[: len(steps(path))]):
        text = f"{{{json.dumps(name, ensure_ascii=False)}:{text}}}"
    return text


def _text(members: Mapping[str, str]) -> str | None:
    """Write what is left of a row; None where nothing is."""
    if not members:
        return None
    found = (f"{json.dumps(path, ensure_ascii=False)}:{text}" for path, text in members.items())
    return "{" + ",".join(found) + "}"


def _leaf(column: Array, names: Sequence[str]) -> Array:
    for name in names:
        column = _child(column, name)
    return column


def _child(column: Array, name: str) -> Array:
    """Return a field of a struct, null where the struct is; all null where it has none such."""
    place = column.type.get_field_index(name)
    return pa.nulls(len(column)) if place < 0 else pc.struct_field(column, [place])


def _merged(old: Array, new: Array, inner: Sequence[str]) -> Array:
    """Return a column with new values where there are any; those inside structs one by one."""
    if not inner:
        return pc.if_else(pc.is_null(old), new, old.cast(new.type))
    children = {one.name: _child(old, one.name) for one in old.type}
    name, *rest = inner
    fresh = _child(new, name)
    children[name] = _merged(children[name], fresh, rest) if name in children else fresh
    known = {one.name: one for one in old.type}
    fields = [
        pa.field(each, child.type, known[each].nullable if each in known else True)
        for each, child in children.items()
    ]
    return pa.StructArray.from_arrays(list(children.values()), fields=fields, mask=pc.is_null(old))


def _with_column(table: pa.Table, name: str, column: Array) -> pa.Table:
    place = table.schema.get_field_index(name)
    if place < 0:
        return table.append_column(pa.field(name, column.type), column)
    known = table.schema.field(place)
    return table.set_column(place, known.with_type(column.type), column)
