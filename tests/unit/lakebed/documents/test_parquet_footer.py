"""Which columns have bounds, and how they are written."""

import io
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.documents.parquet_footer import lower_bound, statistics, upper_bound
from lakebed.documents.records import ColumnStatistics


def facts_of(
    table: pa.Table, *, group: int = 100, counted: bool = True
) -> dict[str, ColumnStatistics]:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=group, store_schema=False, write_statistics=counted)
    return statistics(pq.read_metadata(file))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, float("nan")], pa.float64()),
        pa.array([1.0, 2.0], pa.float32()),
        pa.array([True, False]),
        pa.array([b"a", b"\xff"]),
    ],
)
def test_columns_without_sound_bounds_have_none_but_their_nulls_are_counted(column):
    """W13: a NaN leaves no trace in a footer."""
    table = pa.table({"c": pa.concat_arrays([column, pa.nulls(1, column.type)])})
    assert facts_of(table) == {"c": ColumnStatistics(null_count=1)}


def test_a_column_of_nulls_has_a_count_and_no_bounds():
    """W03."""
    assert facts_of(pa.table({"c": pa.nulls(3, pa.int64())}), group=2) == {
        "c": ColumnStatistics(null_count=3)
    }


def test_a_row_group_of_nulls_does_not_take_the_bounds_of_the_others_away():
    table = pa.table({"c": pa.array([None, None, 5, 7], pa.int64())})
    assert facts_of(table, group=2) == {"c": ColumnStatistics(null_count=2, minimum=5, maximum=7)}


def test_a_column_with_a_dot_in_its_name_is_no_nested_one():
    table = pa.table({"a.b": [1, 2], "a": pa.array([{"b": 7}, {"b": 8}])})
    assert facts_of(table) == {
        "`a.b`": ColumnStatistics(null_count=0, minimum=1, maximum=2),
        "a.b": ColumnStatistics(null_count=0, minimum=7, maximum=8),
    }


def test_a_field_of_a_struct_has_bounds_and_a_null_struct_counts_as_its_null():
    kind = pa.struct([("id", pa.int16()), ("deep", pa.struct([("s", pa.string())]))])
    users = [{"id": 5, "deep": {"s": "x"}}, None, {"id": None, "deep": None}]
    assert facts_of(pa.table({"user": pa.array(users, kind)}), group=2) == {
        "user.id": ColumnStatistics(null_count=2, minimum=5, maximum=5),
        "user.deep.s": ColumnStatistics(null_count=2, minimum="x", maximum="x"),
    }


def test_what_is_inside_lists_and_maps_has_no_statistics():
    table = pa.table(
        {
            "tags": pa.array([[1, 2]]),
            "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "structs": pa.array([[{"x": 1}]]),
            "in": pa.array([{"list": [1], "after": 4}]),
            "last": [3],
        }
    )
    assert facts_of(table) == {
        "in.after": ColumnStatistics(null_count=0, minimum=4, maximum=4),
        "last": ColumnStatistics(null_count=0, minimum=3, maximum=3),
    }


@pytest.mark.parametrize("precision", [4, 9, 18, 38])
@pytest.mark.parametrize("as_integer", [True, False])
def test_a_decimal_is_written_with_all_of_its_digits(precision, as_integer):
    """W13: a float would round it."""
    low, high = Decimal("-0.50"), Decimal("9" * (precision - 2) + ".99")
    column = pa.array([high, low], pa.decimal128(precision, 2))
    file = io.BytesIO()
    pq.write_table(pa.table({"c": column}), file, store_decimal_as_integer=as_integer)
    assert statistics(pq.read_metadata(file)) == {
        "c": ColumnStatistics(null_count=0, minimum="-0.50", maximum=str(high))
    }


def test_a_time_without_a_zone_has_bounds_without_one():
    at = datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 - it has none
    assert facts_of(pa.table({"c": pa.array([at], pa.timestamp("us"))})) == {
        "c": ColumnStatistics(
            null_count=0, minimum="1969-12-31T23:59:59.999", maximum="1970-01-01T00:00:00.000"
        )
    }


def test_a_file_without_statistics_gives_none_rather_than_wrong_ones():
    assert facts_of(pa.table({"c": [1]}), counted=False) == {}


def test_a_row_group_whose_string_is_too_long_for_a_footer_takes_the_bounds_of_all():
    table = pa.table({"c": ["a", "z" * 10_000]})
    assert facts_of(table, group=1) == {"c": ColumnStatistics(null_count=0)}


def test_instants_are_written_as_delta_does_rounded_outwards():
    instant = datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC)
    assert lower_bound(instant) == "1969-12-31T23:59:59.999Z"
    assert upper_bound(instant) == "1970-01-01T00:00:00.000Z"
    assert lower_bound(datetime(2024, 1, 1, 0, 0, 0, 1500)) == "2024-01-01T00:00:00.001"  # noqa: DTZ001


def test_the_last_instant_has_no_upper_bound_rather_than_a_wrong_one():
    assert upper_bound(datetime.max.replace(tzinfo=UTC)) is None
    millisecond = datetime.max.replace(microsecond=999_000, tzinfo=UTC)
    assert upper_bound(millisecond) == "9999-12-31T23:59:59.999Z"


def test_a_string_is_cut_so_that_the_bound_still_holds():
    assert upper_bound("b" * 40) == "b" * 32 + "\U0010ffff"
    assert upper_bound("\U0010ffff" * 40) == "\U0010ffff" * 40
    assert upper_bound("b" * 32) == "b" * 32
    assert lower_bound("b" * 40) == "b" * 32
