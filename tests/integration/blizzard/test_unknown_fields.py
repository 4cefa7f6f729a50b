"""Fields that nobody declared, and schemas that nobody wrote, from the files to the table."""

import json

import pytest
import yaml
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from lakebed.types import RESCUED
from tests.support.builders import entries
from tests.support.open_table import ID, OpenTable


def test_an_undeclared_field_is_kept_letter_by_letter(tmp_path):
    """A table of which nothing is rescued never has the column."""
    desk = OpenTable(tmp_path, {"fields": [ID]})
    desk.land("a.ndjson", {"id": 1}, {"id": 2, "x": None})
    desk.ingest()
    assert desk.types == {"id": "long"}
    value = '{"price":1.50,"user":{"b": [1, null]}}'
    desk.land("b.ndjson", f'{{"id":3,{value[1:]}', {"id": 4})
    desk.ingest()
    assert desk.types == {"id": "long", RESCUED: "string"}
    desk.land("c.ndjson", {"id": 5})
    desk.ingest()
    assert [row[RESCUED] for row in desk.rows()] == [None, None, value, None, None]
    assert [entry.rescues for entry in entries(desk.table)] == [False, False, True, False]


def test_undeclared_fields_can_be_left_out_or_refused(tmp_path):
    desk = OpenTable(tmp_path / "drop", {"fields": [ID], "unknown_fields": "drop"})
    desk.land("a.ndjson", {"id": 1, "x": 1})
    desk.ingest()
    assert desk.rows() == [{"id": 1}]
    desk = OpenTable(tmp_path / "fail", {"fields": [ID], "unknown_fields": "fail"})
    desk.land("a.ndjson", {"id": 1, "user": {"x": 1}})
    desk.blizzard()
    shown = desk.cli("dlq", "list").stdout
    assert "unknown_field" in shown
    assert "user" in shown


def test_a_new_field_is_a_column_within_the_same_batch(tmp_path):
    desk = OpenTable(tmp_path, {"fields": [ID], "unknown_fields": "add"})
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2, "name": "x", "user": {"age": 7}}, {"id": 3, "name": "y"})
    desk.ingest()
    assert desk.types["name"] == "string"
    assert desk.types["user"]["fields"][0]["type"] == "long"
    assert desk.rows() == [
        {"id": 1, "name": None, "user": None},
        {"id": 2, "name": "x", "user": {"age": 7}},
        {"id": 3, "name": "y", "user": None},
    ]


def test_a_new_field_inside_a_struct_widens_it_and_one_inside_a_map_is_rescued(tmp_path):
    inner = {"type": "struct", "fields": [{"name": "id", "type": "int64"}]}
    fields = [ID, {"name": "user", **inner}, {"name": "by", "type": "map", "values": inner}]
    desk = OpenTable(tmp_path, {"fields": fields, "unknown_fields": "add"})
    desk.land("a.ndjson", {"id": 1, "user": {"id": 1}, "by": {"k": {"id": 1}}})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2, "user": {"id": 2, "mail": "m"}, "by": {"k": {"id": 2, "b": 3}}})
    desk.ingest()
    row = desk.rows()[1]
    assert row["user"] == {"id": 2, "mail": "m"}
    assert (row["by"], row[RESCUED]) == ([("k", {"id": 2})], '{"by.k.b":3}')


@pytest.mark.parametrize("schema", [None, {"infer": True}])
def test_without_a_schema_the_columns_are_found_in_the_data(tmp_path, schema):
    desk = OpenTable(tmp_path, schema)
    desk.land(
        "a.ndjson",
        {"id": 1, "at": "2024-01-02T03:04:05Z", "tags": ["a"], "u": {"x": 1.5}},
        {"id": 2, "u": {"y": True}},
    )
    desk.land("b.ndjson", {"id": 3, "new": "2024-01-01"})
    desk.ingest()
    assert {name: kind for name, kind in desk.types.items() if isinstance(kind, str)} == {
        "id": "long",
        "at": "timestamp",
        "new": "date",
    }
    rows = desk.rows()
    assert [row["id"] for row in rows] == [1, 2, 3]
    assert rows[0]["u"] == {"x": 1.5, "y": None}
    desk.land("c.ndjson", {"id": 4, "later": 1})
    desk.ingest()
    assert desk.rows()[-1]["later"] == 1


def test_a_column_that_the_table_got_from_another_pipeline_is_taken_as_it_is(tmp_path):
    desk = OpenTable(tmp_path, {"fields": [ID], "unknown_fields": "add"})
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    table = DeltaTable(str(desk.table))
    table.alter.add_columns([Field("n", PrimitiveType("string"))])
    desk.land("b.ndjson", {"id": 2, "n": 7}, {"id": 3, "n": "x"})
    desk.ingest()
    assert desk.rows()[1:] == [
        {"id": 2, "n": None, RESCUED: '{"n":7}'},
        {"id": 3, "n": "x", RESCUED: None},
    ]


def test_files_with_no_value_that_has_a_type_are_kept_whole(tmp_path):
    desk = OpenTable(tmp_path, None)
    desk.land("a.ndjson", {}, {"x": None})
    desk.blizzard()
    desk.land("b.ndjson", {"e": []})
    desk.land("c.ndjson", {"id": 1})
    desk.ingest()
    assert len(desk.rows()) == 4
    assert '{"e":[]}' in [row[RESCUED] for row in desk.rows()]


def test_an_entry_before_anything_is_known_of_the_columns_makes_no_table(tmp_path):
    """A source that is added before the first file brings an entry without files."""
    desk = OpenTable(tmp_path, None)
    desk.blizzard()
    document = yaml.safe_load(desk.file.read_text())
    source = document.pop("source")
    (tmp_path / "other").mkdir()
    document = {
        "pipelines": {
            "default": {
                "sources": {"default": source, "other": {"path": str(tmp_path / "other")}},
                "sink": document.pop("sink"),
            }
        },
        **document,
    }
    desk.file.write_text(yaml.safe_dump(document))
    desk.ingest()
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    assert desk.rows() == [{"id": 1}]


@pytest.mark.parametrize("depth", [29, 45, 300, 700])
def test_no_column_is_nested_deeper_than_readers_bear(tmp_path, depth):
    """Beyond a depth, a value is the text of a column of JSON, and the table stays readable."""
    desk = OpenTable(tmp_path, None)
    desk.land("a.ndjson", {"id": 1}, '{"id":2,"v":' + '{"a":' * depth + "1" + "}" * depth + "}")
    desk.land("b.ndjson", '{"id":3,"v":' + "[" * depth + "1" + "]" * depth + "}")
    desk.land("good.ndjson", {"id": 4})
    desk.ingest()
    expected = [1, 2, 3, 4] if depth < 500 else [4]
    assert sorted(row["id"] for row in desk.rows()) == expected


@pytest.mark.parametrize("mode", ["rescue", "drop", "fail"])
def test_columns_are_found_whatever_becomes_of_later_fields(tmp_path, mode):
    """And hints fix single ones."""
    at = {"name": "at", "type": "timestamp", "format": "epoch_s"}
    desk = OpenTable(tmp_path, {"infer": True, "hints": [at], "unknown_fields": mode})
    desk.land("a.ndjson", {"id": 1, "price": 1.5, "at": 0})
    desk.ingest()
    assert desk.types == {"at": "timestamp", "id": "long", "price": "double"}


def test_of_two_spellings_the_one_of_the_table_gets_the_column(tmp_path):
    desk = OpenTable(tmp_path, None)
    desk.land("a.ndjson", {"id": 1, "Name": "x"})
    desk.ingest()
    other = OpenTable(tmp_path / "other", None)
    document = yaml.safe_load(other.file.read_text())
    document["pipelines"] = {
        "late": {"source": document.pop("source"), "sink": {"path": str(desk.table)}}
    }
    del document["sink"], document["tables"]
    other.file.write_text(yaml.safe_dump(document))
    other.land("b.ndjson", {"id": 2, "name": "y"}, {"id": 3, "Name": "z"})
    other.blizzard()
    desk.penguin()
    assert [row["Name"] for row in desk.rows()] == ["x", None, "z"]


def test_without_a_file_the_columns_wait_for_the_first_one(tmp_path):
    """HOLES W02: an empty source makes no table and fails nothing; the first file is typed."""
    desk = OpenTable(tmp_path, None)
    desk.ingest()
    assert not (desk.table / "_delta_log").exists()
    desk.land("a.ndjson", {"id": 1, "at": "2024-01-02T03:04:05Z"})
    desk.ingest()
    assert desk.types == {"id": "long", "at": "timestamp"}


@pytest.mark.parametrize("value", ["1.5", '"x"', "{}", '{"a":1}', "9007199254740993.5", "true"])
def test_values_of_several_types_in_one_field_are_kept_as_they_are(tmp_path, value):
    """HOLES W08: seen together they are text or a column that holds all; later ones are rescued."""
    desk = OpenTable(tmp_path / "together", None)
    desk.land("a.ndjson", '{"id":1,"v":7}', f'{{"id":2,"v":{value}}}')
    desk.ingest()
    assert [kept(row) for row in desk.rows()] == [7, json.loads(value)]
    desk = OpenTable(tmp_path / "later", None)
    desk.land("a.ndjson", '{"id":1,"v":7}')
    desk.ingest()
    desk.land("b.ndjson", f'{{"id":2,"v":{value}}}')
    desk.ingest()
    assert [kept(row) for row in desk.rows()] == [7, json.loads(value)]


def test_an_integer_that_a_found_float_cannot_hold_is_never_rounded(tmp_path):
    """HOLES W08: neither in the batch after, nor inside a struct, nor where files fail for it."""
    desk = OpenTable(tmp_path, None)
    desk.land("a.ndjson", '{"id":1,"v":0.5,"in":{"v":[1.5]}}')
    desk.ingest()
    assert desk.types["v"] == "double"
    desk.land("b.ndjson", '{"id":2,"v":9007199254740993,"in":{"v":[7,9007199254740993]}}')
    desk.land("c.ndjson", '{"id":3,"v":9007199254740994,"in":{"v":[-7]}}')
    desk.ingest()
    assert desk.rows() == [
        {"id": 1, "v": 0.5, "in": {"v": [1.5]}, RESCUED: None},
        {
            "id": 2,
            "v": None,
            "in": {"v": [7.0, None]},
            RESCUED: '{"v":9007199254740993,"in.v[1]":9007199254740993}',
        },
        {"id": 3, "v": 9007199254740994.0, "in": {"v": [-7.0]}, RESCUED: None},
    ]
    assert "no float64" in desk.cli("schema", "show").stdout
    desk.configure({"infer": True, "on_mismatch": "fail"})
    desk.land("d.ndjson", '{"id":4,"v":9007199254740993}')
    desk.ingest()
    assert "out_of_range" in desk.cli("dlq", "list").stdout
    assert len(desk.rows()) == 3
    # Who declares the column asks for doubles: the file is read again, and is rounded.
    hints = [{"name": "v", "type": "float64"}]
    desk.configure({"infer": True, "on_mismatch": "fail", "hints": hints})
    desk.ingest()
    assert [row["v"] for row in desk.rows()] == [0.5, None, 9007199254740994.0, 9007199254740992.0]


def test_an_integer_that_a_declared_float_cannot_hold_is_rescued_where_that_is_the_policy(tmp_path):
    """HOLES W08: `blizzard init` declares what it has found, and sets the policy."""
    number = {"name": "v", "type": "float64"}
    desk = OpenTable(tmp_path, {"fields": [ID, number], "on_mismatch": "rescue"})
    desk.land("a.ndjson", '{"id":1,"v":9007199254740993}', '{"id":2,"v":0.1}')
    desk.ingest()
    assert desk.rows() == [
        {"id": 1, "v": None, RESCUED: '{"v":9007199254740993}'},
        {"id": 2, "v": 0.1, RESCUED: None},
    ]


def kept(row):
    """Return what a row holds of the field, in its column or rescued."""
    if row["v"] is None:
        return json.loads(row[RESCUED])["v"]
    return json.loads(row["v"]) if isinstance(row["v"], str) else row["v"]
