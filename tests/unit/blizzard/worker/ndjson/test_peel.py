"""Nested values on the fast path: what they become, and what is left over of them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import Block, Decoded
from lakebed.columns.schema import ELEMENT, VALUE, Field, Reading, Schema
from lakebed.types import FieldType, UnknownFields

LIMIT = 1 << 20
INNER = (
    Field(name="id", type=FieldType.INT64, nullable=False),
    Field(name="price", type=FieldType.DECIMAL, precision=9, scale=2),
)
ITEM = Field(name=ELEMENT, type=FieldType.STRUCT, fields=INNER)
SCHEMA = Schema(
    (
        Field(name="one", type=FieldType.STRUCT, fields=INNER),
        Field(name="items", type=FieldType.LIST, items=ITEM),
        Field(name="labels", type=FieldType.MAP, items=Field(name=VALUE, type=FieldType.INT8)),
        Field(name="at", type=FieldType.DATE, reading=Reading(path=("meta", "at"))),
    )
)


def block(*lines: str) -> Block:
    return Block(text="\n".join(lines).encode(), first_line=1, lines=len(lines))


def both(schema: Schema, unknown: UnknownFields, *lines: str) -> tuple[Decoded, Decoded]:
    fast = FastPath(schema, max_line_bytes=LIMIT, unknown=unknown).read(block(*lines))
    assert fast is not None
    fast.batch.validate(full=True)
    return fast, ExactPath(schema, max_line_bytes=LIMIT, unknown=unknown).read(block(*lines))


def test_what_is_left_over_is_written_in_the_order_of_the_exact_path():
    line = (
        '{"z": 1, "items": [{"id": 1}, {"x y": {"a" : 2}, "id": 2, "p.q": "t"}, null],'
        ' "meta": {"by": [ ], "at": "2024-01-02"}, "a\\"": null, "b\\n": 1e5,'
        ' "one": {"price": 1.50, "id": 3, "\\u00e9": "\\u00e9"}}'
    )
    fast, exact = both(SCHEMA, UnknownFields.RESCUE, line, "{}", line)
    assert fast.batch.equals(exact.batch)
    assert fast.rescued == exact.rescued
    kept = (
        '{"one.é":"\\u00e9","items[1].x y":{"a" : 2},"items[1].`p.q`":"t",'
        '"z":1,"meta.by":[ ],"b\\n":1e5}'
    )
    assert fast.batch.column("_rescued").to_pylist() == [kept, None, kept]


def test_a_file_with_undeclared_fields_in_every_line_stays_on_the_fast_path():
    path = FastPath(SCHEMA, max_line_bytes=LIMIT, unknown=UnknownFields.RESCUE)
    for number in range(5):
        lines = [
            json.dumps({f"new {number}": row, "items": [{"id": 1, "deep": {}}] * 3})
            for row in range(100 * (number + 1))
        ]
        decoded = path.read(block(*lines))
        assert decoded is not None
        assert decoded.rescued == {f"new {number}": len(lines), "items[].deep": 3 * len(lines)}
        (last,) = decoded.batch.column("_rescued")[-1:].to_pylist()
        assert json.loads(last or "") == {
            "items[0].deep": {}, "items[1].deep": {}, "items[2].deep": {},
            f"new {number}": len(lines) - 1,
        }  # fmt: skip


def test_what_is_kept_of_a_map_is_told_by_its_key():
    inner = Field(name=VALUE, type=FieldType.STRUCT, fields=(Field(name="a", type=FieldType.JSON),))
    schema = Schema((Field(name="m", type=FieldType.MAP, items=inner),))
    lines = ('{"m": {"k": {"x": 1}, "k.1": {"a": 2, "y": 3}}}', '{"m": {"k": {"x": 4}}}')
    for unknown in (UnknownFields.RESCUE, UnknownFields.DROP):
        fast, exact = both(schema, unknown, *lines)
        assert fast.batch.equals(exact.batch)
        counted = {"m.k.x": 2, "m.`k.1`.y": 1}
        assert (fast.rescued or fast.dropped) == (exact.rescued or exact.dropped) == counted


@pytest.mark.parametrize(
    "line",
    [
        '{"one": {"price": 1}}',
        '{"one": {"id": null}}',
        '{"one": {"id": 1, "id": 1}}',
        '{"one": {"id": 1, "price": 1.555}}',
        '{"one": {"id": 1, "price": 12345678}}',
        '{"one": []}',
        '{"items": {}}',
        '{"items": [1]}',
        '{"items": [{}]}',
        '{"labels": {"a": 1, "\\u0061": 2}}',
        '{"labels": {"a": 128}}',
        '{"labels": {"\\ud800": 1}}',
        '{"meta": 1}',
        '{"meta": {"at": "2024-01-02", "at": "2024-01-02"}}',
        '{"meta": {"at": "2024-02-30"}}',
    ],
)
def test_what_does_not_fit_is_left_to_the_exact_path(line: str):
    assert FastPath(SCHEMA, max_line_bytes=LIMIT).read(block("{}", line)) is None


@pytest.mark.parametrize("line", ["{}", '{"meta": null}', '{"meta": {}}'])
def test_a_required_field_is_missing_where_its_path_ends_early(line: str):
    day = Field(
        name="at", type=FieldType.DATE, nullable=False, reading=Reading(path=("meta", "at"))
    )
    path = FastPath(Schema((day,)), max_line_bytes=LIMIT)
    assert path.read(block('{"meta": {"at": "2024-01-02"}}', line)) is None


def test_a_required_field_of_an_object_that_is_not_there_can_be_written(tmp_path: Path):
    lines = ['{"one": null}', '{"one": {"id": 7}, "items": [null, {"id": 8}]}', "{}"]
    fast, exact = both(SCHEMA, UnknownFields.DROP, *lines)
    table = pa.Table.from_batches([fast.batch])
    pq.write_table(table, tmp_path / "some.parquet")
    found: list[dict[str, Any]] = pq.read_table(tmp_path / "some.parquet").to_pylist()
    assert found == exact.batch.to_pylist()


def test_a_required_struct_in_one_that_is_not_there_can_be_written(tmp_path: Path):
    kinds = {
        "s": Field(name="s", type=FieldType.STRUCT, nullable=False, fields=INNER),
        "l": Field(name="l", type=FieldType.LIST, nullable=False, items=ITEM),
        "m": Field(name="m", type=FieldType.MAP, nullable=False, items=ITEM),
        "b": Field(name="b", type=FieldType.BOOLEAN, nullable=False),
        "t": Field(name="t", type=FieldType.STRING, nullable=False),
    }
    schema = Schema((Field(name="o", type=FieldType.STRUCT, fields=tuple(kinds.values())),))
    full = '{"o": {"s": {"id": 1}, "l": [{"id": 2}], "m": {"k": {"id": 3}}, "b": true, "t": "x"}}'
    fast, exact = both(schema, UnknownFields.DROP, "{}", full, '{"o": null}', full)
    pq.write_table(pa.Table.from_batches([fast.batch]), tmp_path / "some.parquet")
    assert pq.read_table(tmp_path / "some.parquet").to_pylist() == exact.batch.to_pylist()
