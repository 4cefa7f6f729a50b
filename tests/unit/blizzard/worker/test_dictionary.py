"""A dictionary where values repeat, and none where they do not; ids for fields, at any depth."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from blizzard.model.settings import RollingPolicy
from blizzard.worker.output.parquet import RollingWriter, repeating_columns
from lakebed.clock import Clock
from lakebed.columns.field_ids import FIELD_ID, field_id
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType


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


def test_values_that_repeat_seldom_are_looked_at_over_more_rows() -> None:
    steps = range(10_000)
    table = pa.table(
        {
            "every 4,000": [number * 7919 % 4_000 for number in steps],
            "every 8,000": [number * 7919 % 8_000 for number in steps],
            "at first not": [number if number < 2_048 else 0 for number in steps],
        }
    )
    shuffled = table.take(np.random.default_rng(7).permutation(len(steps)))
    assert repeating_columns(shuffled) == ["every 4,000", "at first not"]
    assert repeating_columns(table.slice(0, 2_048)) == []


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
