"""Rows divided by their partitions."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from blizzard.model.event_time import RefusedRow, RowPartitions, row_partitions
from blizzard.worker.output.partitioner import Values, grouped, refused_rows
from lakebed.columns.schema import Field, Schema
from lakebed.layout import NULL_FOLDER
from lakebed.partition import Template
from lakebed.types import FieldType
from tests.support.builders import declared

DECLARED = declared(
    id="int64", ts="timestamp", day="date", region="string", shard="int32", live="boolean"
)


Row = dict[str, Any]


def partitions(template: str, time: str = "ts", declared: Schema = DECLARED) -> RowPartitions:
    by = row_partitions(Template.parse(template), declared, time)
    assert by is not None
    return by


def batch(*rows: Row, declared: Schema = DECLARED) -> pa.RecordBatch:
    numbered = [{"id": number, **row} for number, row in enumerate(rows)]
    return pa.RecordBatch.from_pylist(numbered, schema=declared.arrow())


def ids(batches, by: RowPartitions) -> dict[Values, list[Any]]:
    return {
        values: [number for part in parts for number in part["id"].to_pylist()]
        for values, parts in grouped(batches, by, ["id"])
    }


NESTED = Schema(
    DECLARED.fields
    + declared(meta={"of": {"at": "timestamp_ntz"}}, tags=["string"], small="int16").fields
)


def at(*when: int) -> Row:
    return {"of": {"at": datetime(*when)}}  # type: ignore[arg-type]  # noqa: DTZ001 - a local time


def test_a_field_of_a_struct_gives_the_time_and_nested_columns_go_with_their_rows():
    by = partitions("date=%Y-%m-%d/small=%s", "meta.of.at", NESTED)
    rows: list[Row] = [
        {"meta": at(2024, 1, 1, 23), "tags": ["a", "b"], "small": -3},
        {"meta": None, "tags": []},
        {"meta": at(1969, 12, 31, 23), "tags": ["c"]},
        {"meta": {"of": None}, "tags": None},
        {"meta": at(2024, 1, 1, 5), "tags": [None, "d"], "small": -3},
    ]
    whole = batch({"meta": at(1, 1, 1)}, *rows, declared=NESTED).slice(1)
    found = {
        values: [row for part in parts for row in part.to_pylist()]
        for values, parts in grouped([whole], by, ["meta", "tags"])
    }
    taken = [{"meta": row["meta"], "tags": row["tags"]} for row in rows]
    assert found == {
        ("2024-01-01", "-3"): [taken[0], taken[4]],
        (None, None): [taken[1], taken[3]],
        ("1969-12-31", None): [taken[2]],
    }


def test_a_missing_struct_is_a_missing_time():
    required = Field(name="date", type=FieldType.DATE, nullable=False)
    by = partitions("date=%Y-%m-%d", "meta.of.at", Schema((*NESTED.fields, required)))
    rows = batch({"meta": at(2024, 1, 1)}, {"meta": None}, declared=NESTED)
    assert {row: one.field for row, one in refused_rows(rows, by).items()} == {1: "date"}


def test_a_date_gives_the_time_as_well():
    by = partitions("year=%Y/month=%m", "day")
    rows: list[Row] = [{"day": date(1969, 12, 31)}, {"day": None}, {"day": date(1969, 12, 1)}]
    assert ids([batch(*rows)], by) == {("1969", "12"): [0, 2], (None, None): [1]}


def test_columns_are_written_as_delta_writes_partition_values():
    """W09."""
    by = partitions("region=%s/shard=%s/live=%s/day=%s")
    rows: list[Row] = [
        {"region": "a/b", "shard": -7, "live": True, "day": date(2024, 2, 29)},
        {"region": "", "shard": None, "live": False, "day": None},
        {"region": None, "shard": None, "live": False, "day": None},
        {"region": NULL_FOLDER, "shard": None, "live": False, "day": None},
    ]
    assert ids([batch(*rows)], by) == {
        ("a/b", "-7", "true", "2024-02-29"): [0],
        (None, None, "false", None): [1, 2, 3],
    }


REQUIRED = declared(id="int64", ts="timestamp", date="date!", region="string!")


def refusal(row: Row, template: str = "region=%s") -> RefusedRow:
    read = REQUIRED.without(frozenset({"date"}))
    rows: list[Row] = [
        {"region": "eu", "ts": datetime(2024, 1, 1, tzinfo=UTC)},
        {"region": "x"} | row,
    ]
    by = partitions(template, declared=REQUIRED)
    refused = refused_rows(batch(*rows, declared=read), by)
    assert list(refused) == [1]
    return refused[1]


@pytest.mark.parametrize("value", ["", NULL_FOLDER])
def test_a_required_column_takes_nothing_that_is_null_to_delta(value):
    """W09: penguin would refuse the whole entry."""
    found = refusal({"region": value})
    assert (found.code, found.field) == ("required_field_missing", "region")


def test_a_required_date_needs_a_timestamp():
    found = refusal({"ts": None}, template="date=%Y-%m-%d")
    assert (found.code, found.field) == ("required_field_missing", "date")


@pytest.mark.parametrize("value", ["x" * 249, "/" * 83, "😀" * 63])
def test_a_value_too_long_for_a_folder_is_refused_by_name(value):
    """W09: the upload would fail, and every other source file in the group with it."""
    found = refusal({"region": value})
    assert (found.code, found.field) == ("partition_value_too_long", "region")


@pytest.mark.parametrize("value", ["x" * 248, "/" * 82, "😀" * 62])
def test_a_value_that_fits_a_folder_is_taken(value):
    by = partitions("region=%s")
    assert refused_rows(batch({"region": value}, {"region": None}), by) == {}
