"""Fields that nobody declared, and schemas that nobody wrote, from the files to the table."""

import json
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from lakebed.types import RESCUED
from tests.support.desk import Desk

ID = {"name": "id", "type": "int64"}


class Table(Desk):
    """A table whose schema section a test chooses."""

    def __init__(self, folder, schema: dict[str, Any] | None, **sink: Any) -> None:
        super().__init__(folder)
        document = {
            "source": {"path": str(self.landing.folder)},
            "sink": {"path": str(self.table), **sink},
            "tables": {"t": {"table_uri": str(self.table)}},
        }
        if schema is not None:
            document["schema"] = schema
        self.file.write_text(yaml.safe_dump(document))
        self.landing.folder.mkdir(exist_ok=True)

    def land(self, name: str, *records: Any) -> None:
        lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
        self.landing.write(name, "".join(line + "\n" for line in lines).encode())

    def ingest(self) -> None:
        self.blizzard()
        self.penguin()

    def rows(self) -> list[dict[str, Any]]:
        found = DeltaTable(str(self.table)).to_pyarrow_table().to_pylist()
        return sorted(found, key=str)

    @property
    def types(self) -> dict[str, Any]:
        schema = json.loads(DeltaTable(str(self.table)).schema().to_json())
        return {one["name"]: one["type"] for one in schema["fields"]}


def test_an_undeclared_field_is_kept_letter_by_letter(tmp_path):
    desk = Table(tmp_path, {"fields": [ID]})
    desk.land("a.ndjson", '{"id":1,"price":1.50,"user":{"b": [1, null]}}', {"id": 2})
    desk.ingest()
    assert desk.rows() == [
        {"id": 1, RESCUED: '{"price":1.50,"user":{"b": [1, null]}}'},
        {"id": 2, RESCUED: None},
    ]


def test_a_table_of_which_nothing_is_rescued_never_has_the_column(tmp_path):
    desk = Table(tmp_path, {"fields": [ID]})
    desk.land("a.ndjson", {"id": 1}, {"id": 2, "x": None})
    desk.ingest()
    assert desk.types == {"id": "long"}
    desk.land("b.ndjson", {"id": 3, "x": 1})
    desk.ingest()
    assert desk.types == {"id": "long", RESCUED: "string"}
    desk.land("c.ndjson", {"id": 4})
    desk.ingest()
    assert [row[RESCUED] for row in desk.rows()] == [None, None, '{"x":1}', None]


def test_undeclared_fields_can_be_left_out_or_refused(tmp_path):
    desk = Table(tmp_path / "drop", {"fields": [ID], "unknown_fields": "drop"})
    desk.land("a.ndjson", {"id": 1, "x": 1})
    desk.ingest()
    assert desk.rows() == [{"id": 1}]
    desk = Table(tmp_path / "fail", {"fields": [ID], "unknown_fields": "fail"})
    desk.land("a.ndjson", {"id": 1, "user": {"x": 1}})
    desk.blizzard()
    shown = desk.cli("dlq", "list").stdout
    assert "unknown_field" in shown
    assert "user" in shown


def test_a_new_field_is_a_column_within_the_same_batch(tmp_path):
    desk = Table(tmp_path, {"fields": [ID], "unknown_fields": "add"})
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


def test_a_new_field_inside_a_struct_widens_the_struct(tmp_path):
    user = {"name": "user", "type": "struct", "fields": [{"name": "id", "type": "int64"}]}
    desk = Table(tmp_path, {"fields": [ID, user], "unknown_fields": "add"})
    desk.land("a.ndjson", {"id": 1, "user": {"id": 1}})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2, "user": {"id": 2, "mail": "m"}})
    desk.ingest()
    assert desk.rows()[1]["user"] == {"id": 2, "mail": "m"}


def test_what_was_found_stays_found_and_what_does_not_fit_is_rescued(tmp_path):
    desk = Table(tmp_path, {"fields": [ID], "unknown_fields": "add"})
    desk.land("a.ndjson", {"id": 1, "n": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2, "n": "text"})
    desk.ingest()
    assert desk.types["n"] == "long"
    assert desk.rows() == [
        {"id": 1, "n": 1, RESCUED: None},
        {"id": 2, "n": None, RESCUED: '{"n":"text"}'},
    ]


@pytest.mark.parametrize("schema", [None, {"infer": True}])
def test_without_a_schema_the_columns_are_found_in_the_data(tmp_path, schema):
    desk = Table(tmp_path, schema)
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


def test_hints_fix_single_columns(tmp_path):
    at = {"name": "at", "type": "timestamp", "format": "epoch_s"}
    desk = Table(tmp_path, {"infer": True, "hints": [at]})
    desk.land("a.ndjson", {"id": 1, "at": 0})
    desk.ingest()
    assert desk.types == {"at": "timestamp", "id": "long"}


def test_a_column_that_the_table_got_from_another_pipeline_is_taken_as_it_is(tmp_path):
    desk = Table(tmp_path, {"fields": [ID], "unknown_fields": "add"})
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
    desk = Table(tmp_path, None)
    desk.land("a.ndjson", {}, {"x": None})
    desk.blizzard()
    desk.land("b.ndjson", {"e": []})
    desk.land("c.ndjson", {"id": 1})
    desk.ingest()
    assert len(desk.rows()) == 4
    assert '{"e":[]}' in [row[RESCUED] for row in desk.rows()]


def test_an_entry_before_anything_is_known_of_the_columns_makes_no_table(tmp_path):
    """A source that is added before the first file brings an entry without files."""
    desk = Table(tmp_path, None)
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
