import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.documents.data_file import ColumnStatistics, FinishedFile
from lakebed.layout import TablePath
from penguin.plan.stats import columns_with_bounds, delta_statistics, format_columns, parse_columns


def file_with(rows=3, partition_values=None, **columns):
    return FinishedFile(
        filename=TablePath("f.parquet"),
        size=1,
        record_count=rows,
        partition_values=partition_values or {},
        source_file=None,
        unit="u",
        statistics=columns,
        modification_time=0,
    )


def bounded(low, high, nulls=0):
    return ColumnStatistics(null_count=nulls, minimum=low, maximum=high)


def written(file, columns, listed):
    return json.loads(delta_statistics(file, columns=frozenset(columns), listed=listed))


def test_bounds_and_null_counts_are_given_for_the_listed_columns():
    file = file_with(id=bounded(1, 9), name=bounded("a", "z", nulls=1), other=bounded(0, 0))
    assert written(file, ["id", "name", "other"], ("id", "name")) == {
        "numRecords": 3,
        "minValues": {"id": 1, "name": "a"},
        "maxValues": {"id": 9, "name": "z"},
        "nullCount": {"id": 0, "name": 1},
    }


def test_a_character_above_u_20000_is_written_as_itself():
    """W13: an escaped surrogate pair is read back as another character."""
    text = delta_statistics(
        file_with(name=bounded("\U00020bb7", "\U0001f427")),
        columns=frozenset({"name"}),
        listed=("name",),
    )
    assert "\U00020bb7" in text
    assert "\\u" not in text


def test_a_column_that_is_null_in_every_row_needs_no_bounds():
    file = file_with(id=bounded(1, 2), name=ColumnStatistics(null_count=3))
    assert written(file, ["id", "name"], ("id", "name")) == {
        "numRecords": 3,
        "minValues": {"id": 1},
        "maxValues": {"id": 2},
        "nullCount": {"id": 0, "name": 3},
    }


def test_a_column_the_file_was_written_without_is_null_in_every_row():
    assert written(file_with(id=bounded(1, 2)), ["id"], ("id", "late"))["nullCount"]["late"] == 3


@pytest.mark.parametrize("name", [ColumnStatistics(null_count=1), None])
def test_one_listed_column_without_bounds_leaves_the_file_with_counts_alone(name):
    """W13: one reader takes a missing bound for "no row matches"."""
    columns = {"id": bounded(1, 2)} | ({"name": name} if name else {})
    found = written(file_with(**columns), ["id", "name"], ("id", "name"))
    assert "minValues" not in found
    assert found["nullCount"]["id"] == 0


def test_a_table_that_lists_no_columns_gets_counts_alone():
    found = written(file_with(id=bounded(1, 2)), ["id"], None)
    assert found == {"numRecords": 3, "nullCount": {"id": 0}}


def test_partition_columns_have_no_statistics():
    file = file_with(partition_values={"date": "2026-01-01"}, id=bounded(1, 2))
    assert "date" not in written(file, ["id", "date"], ("id", "date"))["nullCount"]


def test_bounds_are_kept_for_types_that_always_have_them():
    fields = [
        ("s", "string"), ("i", "integer"), ("l", "long"), ("t", "timestamp"), ("d", "date"),
        ("f", "float"), ("b", "boolean"), ("x", "binary"), ("a.b", "string"), ("p", "string"),
        ("_rescued", "string"),
    ]  # fmt: skip
    schema = {"type": "struct", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    assert columns_with_bounds(schema, ["p"]) == ("s", "i", "l", "t", "d")


@given(st.lists(st.text(st.characters(exclude_categories=["C"]), min_size=1), unique=True))
def test_any_list_of_names_is_read_back_as_it_was_written(names):
    assert parse_columns(format_columns(names)) == tuple(names)


def test_a_list_with_a_field_inside_a_struct_is_not_understood():
    assert parse_columns("id,address.city") is None
    assert parse_columns("id, name") == ("id", "name")
    assert parse_columns("") == ()
