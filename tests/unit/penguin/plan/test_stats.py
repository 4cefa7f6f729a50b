import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.deltalog.delta_types import TableFacts
from lakebed.documents.records import ColumnStatistics, FinishedFile
from lakebed.layout import TablePath
from penguin.plan.evolution import CREATED_WITH
from penguin.plan.stats import (
    SKIPPING_PROPERTY,
    bounded_columns,
    delta_statistics,
    format_columns,
    parse_columns,
    relisted,
)


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


def schema_of(**kinds):
    """Return a schema; a mapping in place of a type is a struct."""
    fields = [
        {
            "name": name,
            "type": schema_of(**kind) if isinstance(kind, dict) and "type" not in kind else kind,
            "nullable": True,
            "metadata": {},
        }
        for name, kind in kinds.items()
    ]
    return {"type": "struct", "fields": fields}


def table_of(schema, listed):
    """Return a table with a schema and the value of its property."""
    configuration = {} if listed is None else {SKIPPING_PROPERTY: listed}
    return TableFacts(version=0, schema=schema, partition_columns=(), configuration=configuration)


def told(file, schema, listed, in_file=None):
    """Return what is written of a file, as text."""
    return delta_statistics(file, written=in_file or schema, table=table_of(schema, listed))


def written(file, columns, listed):
    schema = schema_of(
        **dict.fromkeys({**dict.fromkeys(columns), **dict.fromkeys(listed or ())}, "long")
    )
    in_file = schema_of(**dict.fromkeys(columns, "long"))
    return json.loads(told(file, schema, listed and ",".join(listed), in_file))


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
    file = file_with(name=bounded("\U00020bb7", "\U0001f427"))
    text = told(file, schema_of(name="string"), "name")
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


ARRAY = {"type": "array", "elementType": "string", "containsNull": True}
USER = {"id": "integer", "price": "decimal(18,2)", "deep": {"at": "timestamp_ntz", "f": "double"}}


def test_a_field_of_a_struct_has_its_statistics_inside_those_of_the_struct():
    """W13."""
    file = file_with(
        id=bounded(1, 9),
        **{
            "user.id": bounded(5, 7, nulls=1),
            "user.price": bounded("-0.50", "1234567890123456.25"),
            "user.deep.at": bounded("2020-01-01T00:00:00.000", "2020-01-01T00:00:00.001"),
            "user.deep.f": ColumnStatistics(null_count=2),
        },
    )
    schema = schema_of(id="long", user=USER)
    text = told(file, schema, "id,user.id,user.price,user.deep.at,user.deep.f")
    assert json.loads(text, parse_float=str) == {
        "numRecords": 3,
        "minValues": {
            "id": 1,
            "user": {"id": 5, "price": "-0.50", "deep": {"at": "2020-01-01T00:00:00.000"}},
        },
        "maxValues": {
            "id": 9,
            "user": {
                "id": 7,
                "price": "1234567890123456.25",
                "deep": {"at": "2020-01-01T00:00:00.001"},
            },
        },
        "nullCount": {"id": 0, "user": {"id": 1, "price": 0, "deep": {"at": 0, "f": 2}}},
    }


def test_a_struct_on_the_list_means_all_of_its_fields():
    file = file_with(**{"user.id": bounded(5, 7), "user.deep.f": ColumnStatistics(null_count=0)})
    schema = schema_of(user={"id": "integer", "tags": ARRAY, "deep": {"f": "double"}})
    assert json.loads(told(file, schema, "user")) == {
        "numRecords": 3,
        "minValues": {"user": {"id": 5}},
        "maxValues": {"user": {"id": 7}},
        "nullCount": {"user": {"id": 0, "deep": {"f": 0}}},
    }


def test_a_field_that_the_struct_of_a_file_lacks_is_null_in_every_row():
    file = file_with(**{"user.id": bounded(5, 7)})
    table, in_file = schema_of(user={"id": "long", "late": "long"}), schema_of(user={"id": "long"})
    found = json.loads(told(file, table, "user.id,user.late", in_file))
    assert found["nullCount"] == {"user": {"id": 0, "late": 3}}
    assert found["minValues"] == {"user": {"id": 5}}


def test_a_name_with_a_dot_is_not_taken_for_a_field_of_a_struct():
    file = file_with(**{"`user.id`": bounded(1, 2), "user.id": bounded(5, 7)})
    schema = schema_of(**{"user.id": "long", "user": {"id": "long"}})
    found = json.loads(told(file, schema, "`user.id`,user.id"))
    assert found["minValues"] == {"user.id": 1, "user": {"id": 5}}


def listed_in(schema, apart=(), *, floats=True):
    return format_columns(bounded_columns(schema, apart, floats=floats))


def test_bounds_are_kept_for_types_that_have_them():
    schema = schema_of(
        s="string", y="byte", h="short", i="integer", l="long", t="timestamp", n="timestamp_ntz",
        d="date", m="decimal(38,2)", f="float", g="double", b="boolean", x="binary", a=ARRAY,
        p="string", _rescued="string", **{"a.b": "string"},
    )  # fmt: skip
    assert listed_in(schema, apart=["p"]) == "s,y,h,i,l,t,n,d,m,f,g"
    assert listed_in(schema, ["p"], floats=False) == "s,y,h,i,l,t,n,d,m"


@pytest.mark.parametrize("floats", [True, False])
def test_a_struct_is_listed_whole_with_the_fields_that_have_no_bounds(floats):
    """W13: polars fails on a struct of which a part has statistics."""
    found = listed_in(schema_of(user={**USER, "b": "boolean"}), floats=floats)
    assert found == "user.id,user.price,user.deep.at,user.deep.f,user.b"


def test_a_struct_whose_fields_have_no_bounds_is_not_listed():
    assert listed_in(schema_of(user={"b": "boolean"})) == ""
    assert listed_in(schema_of(user={"f": "double"})) == "user.f"
    assert listed_in(schema_of(user={"f": "double"}), floats=False) == ""


def relisted_as(before, after, listed, *, floats=True):
    found = relisted(table_of(before, listed), table_of(after, listed), floats=floats)
    return found.get(SKIPPING_PROPERTY)


def test_new_fields_of_a_listed_struct_and_new_columns_are_listed():
    before = schema_of(id="long", user={"id": "long"})
    more = {"late": "long", "f": "double", "s": {"x": "long"}}
    after = schema_of(id="long", user={"id": "long", "f": "double"}, **more)
    assert relisted_as(before, after, "id,user") == "id,user,late,f,s.x"
    assert relisted_as(before, after, "id,user.id") == "id,user.id,user.f,late,f,s.x"
    assert relisted_as(before, after, "id,user.id", floats=False) == "id,user.id,user.f,late,s.x"


def test_a_list_that_leaves_columns_out_gets_no_new_ones():
    before, after = schema_of(id="long", name="string"), schema_of(id="long", late="long")
    assert relisted_as(before, after, "id") == "id"


def test_floats_that_are_not_listed_do_not_keep_new_columns_off_the_list():
    before = schema_of(id="long", f="double")
    assert relisted_as(before, schema_of(id="long", f="double", late="long"), "id") == "id,late"


def test_a_struct_that_gets_its_first_bounded_field_is_listed_whole():
    before = schema_of(id="long", user={"b": "boolean"})
    after = schema_of(id="long", user={"b": "boolean", "id": "long"})
    assert relisted_as(before, after, "id") == "id,user.b,user.id"


def test_a_struct_that_somebody_listed_in_part_stays_as_it_is():
    before = schema_of(user={"id": "long", "at": "date"})
    after = schema_of(user={"id": "long", "at": "date", "late": "long"})
    assert relisted_as(before, after, "user.id") == "user.id"


def test_what_a_table_no_longer_has_goes_from_its_list():
    before = schema_of(id="long", user={"id": "long"}, tags=ARRAY)
    after = schema_of(id="long", tags=ARRAY)
    assert relisted_as(before, after, "id,user.id,tags") == "id,tags"
    assert relisted_as(before, after, None) is None


NAMES = st.text(st.characters(exclude_categories=["C"]), min_size=1)


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3).map(tuple), unique=True))
def test_any_list_of_fields_is_read_back_as_it_was_written(paths):
    assert parse_columns(format_columns(paths)) == tuple(paths)


def test_a_list_is_read_as_spark_writes_it():
    assert parse_columns("id,address.city") == (("id",), ("address", "city"))
    assert parse_columns("id, name , `a.b` . `c``d`") == (("id",), ("name",), ("a.b", "c`d"))
    assert parse_columns("") == ()


@pytest.mark.parametrize("text", ["a.", ".a", "a..b", "`a", "a,,b"])
def test_what_is_no_list_of_fields_is_not_understood(text):
    assert parse_columns(text) is None


def test_properties_of_a_new_table_are_on_the_page():
    page = Path("docs/penguin.md").read_text()
    missing = [f"| `{key}` | `{value}` |" for key, value in CREATED_WITH.items()]
    assert [row for row in missing if row not in page] == []
