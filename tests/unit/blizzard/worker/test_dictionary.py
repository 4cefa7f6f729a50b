"""Parquet files on the disk: rolled, with dictionaries, compression, bounds and ids."""

import os
import random
import string
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blizzard.model.settings import RollingPolicy
from blizzard.model.work import ClosedFile
from blizzard.worker.output.parquet import RollingWriter
from blizzard.worker.rewrite_group import closed_file
from lakebed.clock import Clock
from lakebed.columns.column_mapping import FIELD_ID, field_id
from lakebed.columns.schema import Field, Schema
from lakebed.documents.records import ColumnStatistics
from lakebed.types import FieldType
from tests.support.builders import ID_AND_NAME


def test_a_dictionary_is_chosen_by_the_data_column_by_column(tmp_path: Path) -> None:
    schema = Schema(
        (
            Field(name="fresh", type=FieldType.STRING),
            Field(name="same", type=FieldType.STRING),
            Field(name="few", type=FieldType.INT64),
        )
    ).arrow()
    rows = 5_000
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([f"value {number}" for number in range(rows)]),
            pa.array(["again"] * rows),
            pa.array([number % 10 for number in range(rows)], pa.int64()),
        ],
        schema=schema,
    )
    writer = RollingWriter(
        schema=schema, policy=RollingPolicy(), marks={}, folder=tmp_path, clock=Clock()
    )
    list(writer.write(batch, "a"))
    (closed,) = writer.close()
    group = pq.read_metadata(closed.path).row_group(0)

    dictionaries = {
        group.column(index).path_in_schema: group.column(index).has_dictionary_page
        for index in range(group.num_columns)
    }
    assert dictionaries == {"fresh": False, "same": True, "few": True}


def compression_of(path: Path) -> dict[str, str]:
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    return {column.path_in_schema: column.compression for column in columns}


def test_numbers_that_compression_hardly_makes_smaller_are_left_as_they_are(tmp_path: Path) -> None:
    chance = np.random.default_rng(7)
    rows = 12_000
    moments = chance.integers(0, 50 * 3600 * 10**6, rows)
    table = pa.table(
        {
            "number": pa.array(range(rows)),
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "seldom": pa.array([int(at) if not n % 9 else None for n, at in enumerate(moments)]),
            "text": [f"{at:016x}" for at in moments.tolist()],
            "inside": [{"value": at / 7} for at in moments.tolist()],
            "list": [[at / 3] for at in moments.tolist()],
        }
    )
    writer = RollingWriter(
        schema=table.schema, policy=RollingPolicy(), marks={}, folder=tmp_path, clock=Clock()
    )
    for batch in table.to_batches(max_chunksize=5_000):
        list(writer.write(batch, "a"))
    (closed,) = writer.close()

    assert compression_of(closed.path) == {
        "number": "SNAPPY",
        "at": "UNCOMPRESSED",
        "seldom": "SNAPPY",
        "text": "SNAPPY",
        "inside.value": "UNCOMPRESSED",
        "list.list.element": "UNCOMPRESSED",
    }
    assert pq.read_table(closed.path).to_pylist() == table.to_pylist()


INNER = Field(
    name="user",
    type=FieldType.STRUCT,
    fields=(
        Field(name="fresh", type=FieldType.STRING),
        Field(name="same", type=FieldType.STRING, nullable=False),
        Field(name="price", type=FieldType.DECIMAL, precision=18, scale=2),
        Field(name="flag", type=FieldType.BOOLEAN),
    ),
)
NESTED = Schema(
    (
        INNER,
        Field(
            name="items",
            type=FieldType.LIST,
            items=Field(name="element", type=FieldType.STRUCT, fields=INNER.fields),
        ),
        Field(name="by", type=FieldType.MAP, items=Field(name="value", type=FieldType.INT16)),
    )
)


def written(rows: list[dict[str, Any]], folder: Path) -> Path:
    """Write rows in two batches, of which the second is a part of a larger one."""
    writer = RollingWriter(
        schema=NESTED.arrow(), policy=RollingPolicy(), marks={}, folder=folder, clock=Clock()
    )
    batch = pa.RecordBatch.from_pylist(rows, schema=NESTED.arrow())
    half = len(rows) // 2
    list(writer.write(batch.slice(0, half), "a"))
    writer.compact()
    list(writer.write(batch.slice(half), "a"))
    (closed,) = writer.close()
    return closed.path


def nested_row(number: int) -> dict[str, Any]:
    user = {"fresh": f"v{number}", "same": "again", "price": number % 4, "flag": True}
    return {
        "user": user if number % 5 else None,
        "items": None if number % 7 == 0 else [user] * (number % 3),
        "by": [("k", number % 100), (f"k{number}", None)],
    }


def test_nested_rows_are_written_as_they_are_with_dictionaries_by_leaf(tmp_path: Path) -> None:
    rows = [nested_row(number) for number in range(2_000)]
    path = written(rows, tmp_path)
    assert pq.read_table(path).to_pylist() == (
        pa.Table.from_pylist(rows, schema=NESTED.arrow()).to_pylist()
    )
    group = pq.read_metadata(path).row_group(0)
    dictionaries = {
        group.column(index).path_in_schema: group.column(index).has_dictionary_page
        for index in range(group.num_columns)
    }
    assert dictionaries == {
        "user.fresh": False,
        "user.same": True,
        "user.price": True,
        "user.flag": False,
        "items.list.element.fresh": False,
        "items.list.element.same": True,
        "items.list.element.price": True,
        "items.list.element.flag": False,
        "by.key_value.key": False,
        "by.key_value.value": True,
    }


def test_a_file_without_a_value_in_its_lists_is_written_too(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"user": None, "items": [], "by": []},
        {"user": None, "items": None, "by": None},
    ]
    assert pq.read_table(written(rows, tmp_path)).to_pylist() == rows


def test_every_field_of_a_file_has_its_id(tmp_path: Path) -> None:
    path = written([nested_row(1), nested_row(2)], tmp_path)
    assert f"{pq.read_metadata(path).schema}".count("field_id=-1") == 1 + 2  # root, list, key_value
    user: Any = pq.read_schema(path).field("user")
    assert int(user.metadata[FIELD_ID]) == field_id(("user",))
    assert int(user.type.field("price").metadata[FIELD_ID]) == field_id(("user", "price"))
    element = pq.read_schema(path).field("items").type.value_field
    assert int(element.metadata[FIELD_ID]) == field_id(("items", "element"))


SCHEMA = ID_AND_NAME.arrow()


def writer(folder: Path, policy: RollingPolicy | None = None) -> RollingWriter:
    return RollingWriter(
        schema=SCHEMA,
        policy=policy or RollingPolicy(),
        marks={"pipeline": "events", "journal": "j-1"},
        folder=folder,
        clock=Clock(),
    )


def batch(number: int, start: int = 0) -> pa.RecordBatch:
    chance = random.Random(start)
    names = ["".join(chance.choices(string.ascii_letters, k=40)) for _ in range(number)]
    return pa.record_batch([pa.array(range(start, start + number)), pa.array(names)], schema=SCHEMA)


def write_all(
    target: RollingWriter, batches: list[pa.RecordBatch], source: str = "s:a"
) -> list[ClosedFile]:
    closed = [file for each in batches for file in target.write(each, source)]
    return closed + list(target.close())


def test_a_required_column_is_required_in_parquet(tmp_path):
    (closed,) = write_all(writer(tmp_path), [batch(1)])
    schema = pq.read_metadata(closed.path).schema
    assert [schema.column(index).max_definition_level for index in range(2)] == [0, 1]


def test_a_file_names_the_sources_with_rows_in_it_and_no_other(tmp_path):
    target = writer(tmp_path, RollingPolicy(file_size=20_000, row_group_size=10**9))
    big, small, empty = batch(500), batch(10), batch(0)
    closed = [*target.write(big, "s:a"), *target.write(small, "s:b"), *target.write(empty, "s:c")]
    closed += [*target.write(small, "s:a"), *target.write(small, "s:b"), *target.close()]
    assert [file.sources for file in closed] == [("s:a",), ("s:b", "s:a")]


def test_an_abandoned_file_is_not_left_open_and_what_was_buffered_is_gone(tmp_path):
    target = writer(tmp_path, RollingPolicy(row_group_size=1000))
    assert list(target.write(batch(100), "s:a")) == []
    assert open_files(tmp_path)
    target.abandon()
    assert open_files(tmp_path) == []
    assert list(target.close()) == []


def open_files(folder: Path) -> list[str]:
    handles = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))  # noqa: PTH208
    targets = (os.readlink(handle) for handle in handles if handle.is_symlink())  # noqa: PTH115
    return [target for target in targets if target.startswith(str(folder))]


FLOATS = pa.schema([("x", pa.float64()), ("in", pa.struct([("y", pa.float32())]))])


def test_floats_have_bounds_unless_one_is_infinite(tmp_path):
    rows = [{"x": -0.5, "in": {"y": 1.5}}, {"x": 2.5, "in": {"y": float("inf")}}]
    target = RollingWriter(
        schema=FLOATS, policy=RollingPolicy(), marks={}, folder=tmp_path, clock=Clock()
    )
    (closed,) = write_all(target, [pa.RecordBatch.from_pylist(rows, FLOATS)])
    assert closed.statistics == {
        "x": ColumnStatistics(null_count=0, minimum=-0.5, maximum=2.5),
        "in.y": ColumnStatistics(null_count=0),
    }


@pytest.mark.parametrize(("y", "bounds"), [(0.25, 0.25), (float("nan"), None)])
def test_floats_of_a_file_that_is_written_anew_have_bounds_unless_one_is_nan(tmp_path, y, bounds):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.Table.from_pylist([{"x": 1.5, "in": {"y": y}}, {"x": None}], FLOATS), path)
    found = closed_file(Clock().fresh_id(), path, 2, {}, None).statistics
    assert (found["x"].minimum, found["in.y"].maximum) == (bounds and 1.5, bounds)
