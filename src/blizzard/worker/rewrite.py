"""One data file with a column filled from `_rescued`, written anew beside it.

A value is taken by the very rules by which a batch reads it: what stands in `_rescued` is made a
record again, and the decoder reads that with the one field declared. What fits goes into the
column, what does not stays. Rows stay in their order and in their row groups.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blizzard.model.columns import kept_exact
from blizzard.model.files import ClosedFile
from blizzard.model.json_path import steps
from blizzard.model.promotion import (
    ActiveFile,
    Promotion,
    RewriteFailed,
    RewriteOutcome,
    Rewritten,
    Target,
)
from blizzard.worker.ndjson import grammar
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.output.parquet import PARQUET_CODEC, repeating_columns
from blizzard.worker.output.upload import Uploads
from blizzard.worker.record import failure_of
from lakebed.documents.parquet_footer import statistics
from lakebed.errors import ObjectMissing, StoreUnavailable
from lakebed.schema import Schema
from lakebed.storage.store import Store
from lakebed.types import RESCUED, OnMismatch, UnknownFields

MOST_ROWS = 65_536
"""Rows whose texts are held as Python objects at once."""

Array = Any
"""An Arrow array of any type, which pyarrow's stubs cannot say."""


def rewrite_file(old: ActiveFile, promotion: Promotion, store: Store) -> RewriteOutcome:
    """Write a file anew under a fresh name; trouble of whatever kind is its outcome."""
    try:
        with tempfile.TemporaryDirectory(prefix="blizzard-", ignore_cleanup_errors=True) as folder:
            return _rewritten(old, promotion, store, Path(folder))
    except Exception as error:  # noqa: BLE001 - an exception would reach the driver without its type
        failure = failure_of(error)
        return RewriteFailed(
            old=old, code=failure.code, message=failure.message, retryable=failure.retryable
        )


def _rewritten(old: ActiveFile, promotion: Promotion, store: Store, folder: Path) -> Rewritten:
    local = _downloaded(old, store, folder / "old.parquet")
    with pq.ParquetFile(local, coerce_int96_timestamp_unit="us") as file:
        if RESCUED not in file.schema_arrow.names:
            return Rewritten(old=old, new=None)
        name = promotion.clock.fresh_id()
        path = folder / f"{name}.parquet"
        filling = Filling(promotion.target)
        _write(path, (filling.fill(group) for group in _row_groups(file)), promotion)
        rows = file.metadata.num_rows
    if not filling.taken:
        return Rewritten(old=old, new=None, left=filling.left)
    # The footer is read back from the disk: what counts is what is there, not what was meant.
    metadata = pq.read_metadata(path)
    if metadata.num_rows != rows:
        raise AssertionError("a file was written anew with another number of rows")
    closed = ClosedFile(
        name=name,
        path=path,
        size=path.stat().st_size,
        rows=rows,
        sources=(),
        statistics=statistics(metadata),
    )
    with Uploads(store, promotion.upload, pause=promotion.clock.sleep) as uploads:
        new = uploads.hand_in(
            closed, partition_values=old.partition_values, unit="promote", source_file=None
        ).result()
    return Rewritten(old=old, new=new, taken=filling.taken, left=filling.left)


def _downloaded(old: ActiveFile, store: Store, target: Path) -> Path:
    facts = store.head(old.path)
    if facts is None:
        raise ObjectMissing("a file of the table is gone", path=store.describe(old.path))
    if facts.size != old.size:
        raise StoreUnavailable(
            f"a file has {facts.size} bytes, but the log says {old.size}",
            path=store.describe(old.path),
        )
    with target.open("wb") as file:
        for piece in store.stream(old.path, size=facts.size, etag=facts.etag):
            file.write(piece)
    return target


def _row_groups(file: pq.ParquetFile) -> Iterator[pa.Table]:
    schema = _without_views(file.schema_arrow)
    return (file.read_row_group(index).cast(schema) for index in range(file.num_row_groups))


def _without_views(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose texts are plain: other writers note views, which Arrow cannot count."""
    return pa.schema([one.with_type(_plain(one.type)) for one in schema])


def _plain(kind: Any) -> Any:  # noqa: ANN401 - pyarrow's stubs know one type at a time
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        inner = (kind.field(place) for place in range(kind.num_fields))
        return pa.struct([one.with_type(_plain(one.type)) for one in inner])
    if pa.types.is_map(kind):
        item = kind.item_field
        return pa.map_(_plain(kind.key_type), item.with_type(_plain(item.type)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    return kind


def _write(path: Path, groups: Iterator[pa.Table], promotion: Promotion) -> None:
    writer: pq.ParquetWriter | None = None
    try:
        for table in groups:
            if writer is None:
                writer = pq.ParquetWriter(
                    path,
                    table.schema,
                    compression=PARQUET_CODEC[promotion.codec],
                    store_schema=False,
                    use_dictionary=repeating_columns(table),
                    write_statistics=True,
                )
                writer.add_key_value_metadata(
                    {f"blizzard.{key}": value for key, value in promotion.marks.items()}
                )
            writer.write_table(table, row_group_size=max(1, table.num_rows))
    finally:
        if writer is not None:
            writer.close()


class Filling:
    """Fills one field of the rows of one file, and counts."""

    def __init__(self, target: Target, *, most_rows: int = MOST_ROWS) -> None:
        self._target = target
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
