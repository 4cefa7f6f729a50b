"""Parquet files on the disk: rolled, with dictionaries, compression, bounds and ids."""

import os
import random
import string
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blizzard.model.settings import RollingPolicy
from blizzard.model.work import ClosedFile
from blizzard.worker.output.parquet import RollingWriter, write_one_file
from lakebed.clock import Clock
from lakebed.columns.column_mapping import FIELD_ID, field_id
from lakebed.columns.schema import Field, Schema
from lakebed.documents.records import ColumnStatistics
from lakebed.types import FieldType, ParquetCodec
from tests.support.builders import ID_AND_NAME, column

SCHEMA = ID_AND_NAME.arrow()


def writer(
    folder: Path, policy: RollingPolicy | None = None, *, schema: pa.Schema = SCHEMA
) -> RollingWriter:
    return RollingWriter(
        schema=schema, policy=policy or RollingPolicy(), marks={}, folder=folder, clock=Clock()
    )


def write_all(target: RollingWriter, batches: Iterable[pa.RecordBatch]) -> list[ClosedFile]:
    closed = [file for each in batches for file in target.write(each, "s:a")]
    return closed + list(target.close())


def columns_of(path: Path, fact: str) -> dict[str, Any]:
    """Return what a file says of each column of its first row group."""
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    return {column.path_in_schema: getattr(column, fact) for column in columns}


def test_a_dictionary_is_chosen_by_the_data_column_by_column(tmp_path: Path) -> None:
    rows = range(5_000)
    table = pa.table(
        {
            "fresh": [f"value {number}" for number in rows],
            "same": ["again" for _ in rows],
            "few": [number % 10 for number in rows],
        }
    )
    (closed,) = write_all(writer(tmp_path, schema=table.schema), table.to_batches())
    dictionaries = columns_of(closed.path, "has_dictionary_page")
    assert dictionaries == {"fresh": False, "same": True, "few": True}


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
    batches = table.to_batches(max_chunksize=5_000)
    (closed,) = write_all(writer(tmp_path, schema=table.schema), batches)

    assert columns_of(closed.path, "compression") == {
        "number": "SNAPPY",
        "at": "UNCOMPRESSED",
        "seldom": "SNAPPY",
        "text": "SNAPPY",
        "inside.value": "UNCOMPRESSED",
        "list.list.element": "UNCOMPRESSED",
    }
    assert pq.read_table(closed.path).to_pylist() == table.to_pylist()


PRICE = Field(name="price", type=FieldType.DECIMAL, precision=18, scale=2)
INNER = (
    column("fresh", "string"), column("same", "string!"), PRICE, column("flag", "boolean")
)  # fmt: skip
USER = Field(name="user", type=FieldType.STRUCT, fields=INNER)
NESTED = Schema(
    (
        USER,
        Field(name="items", type=FieldType.LIST, items=replace(USER, name="element")),
        Field(name="by", type=FieldType.MAP, items=column("value", "int16")),
    )
)


def written(rows: list[dict[str, Any]], folder: Path) -> Path:
    """Write rows in two batches, of which the second is a part of a larger one."""
    target = writer(folder, schema=NESTED.arrow())
    batch = pa.RecordBatch.from_pylist(rows, schema=NESTED.arrow())
    half = len(rows) // 2
    list(target.write(batch.slice(0, half), "a"))
    target.compact()
    (closed,) = write_all(target, [batch.slice(half)])
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
    assert columns_of(path, "has_dictionary_page") == {
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


def batch(number: int, start: int = 0) -> pa.RecordBatch:
    chance = random.Random(start)
    names = ["".join(chance.choices(string.ascii_letters, k=40)) for _ in range(number)]
    return pa.record_batch([pa.array(range(start, start + number)), pa.array(names)], schema=SCHEMA)


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
    batch = pa.RecordBatch.from_pylist(rows, FLOATS)
    (closed,) = write_all(writer(tmp_path, schema=FLOATS), [batch])
    assert closed.statistics == {
        "x": ColumnStatistics(null_count=0, minimum=-0.5, maximum=2.5),
        "in.y": ColumnStatistics(null_count=0),
    }


@pytest.mark.parametrize(("y", "bounds"), [(0.25, 0.25), (float("nan"), None)])
def test_floats_of_a_file_that_is_written_anew_have_bounds_unless_one_is_nan(tmp_path, y, bounds):
    rows = pa.Table.from_pylist([{"x": 1.5, "in": {"y": y}}, {"x": None}], FLOATS)
    writing: dict[str, Any] = {"marks": {}, "folder": tmp_path, "clock": Clock()}
    closed = write_one_file([rows], ParquetCodec.SNAPPY, **writing)
    assert closed is not None
    found = closed.statistics
    assert (found["x"].minimum, found["in.y"].maximum) == (bounds and 1.5, bounds)
