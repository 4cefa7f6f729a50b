"""`blizzard schema show`, `infer` and `diff`."""

import json
from pathlib import Path
from typing import Any

import yaml
from deltalake import DeltaTable
from typer.testing import CliRunner, Result

from blizzard.cli.app import app
from lakebed.types import RESCUED
from tests.support.commands import WIDTH, told
from tests.support.desk import Desk

ID = {"name": "id", "type": "int64"}


class Table(Desk):
    """A table whose schema section a test chooses, and a terminal of 80 columns."""

    def __init__(self, folder: Path, schema: dict[str, Any] | None, **more: Any) -> None:
        super().__init__(folder)
        self.landing.folder.mkdir(exist_ok=True)
        self.declared(schema, **more)

    def declared(self, schema: dict[str, Any] | None, **more: Any) -> None:
        """Declare other columns from now on."""
        sink = more.pop("sink", {})
        document = {
            "source": {"path": str(self.landing.folder)},
            "sink": {"path": str(self.table), **sink},
            "tables": {"t": {"table_uri": str(self.table), **more}},
        }
        if schema is not None:
            document["schema"] = schema
        self.file.write_text(yaml.safe_dump(document))

    def land(self, name: str, *records: Any) -> None:
        self.landing.write(name, "".join(json.dumps(each) + "\n" for each in records).encode())

    def ingest(self) -> None:
        self.blizzard()
        self.penguin()

    def run(self, *arguments: str, config: bool = True) -> Result:
        """Run a command; whatever it prints fits the terminal, but for paths and reasons."""
        words = ["schema", *arguments, *(["-c", str(self.file)] if config else [])]
        done = CliRunner().invoke(app, words, env={"COLUMNS": str(WIDTH), "NO_COLOR": "1"})
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        for line in done.stdout.splitlines():
            assert len(line) <= WIDTH or "/" in line or ":" in line or line.startswith("{"), line
        return done


def rows_of(desk: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(str(desk.table)).to_pyarrow_table().to_pylist()
    return found


def origins(row: dict[str, Any]) -> dict[str, tuple[str, str, int | None]]:
    return {one["column"]: (one["type"], one["origin"], one["entry"]) for one in row["columns"]}


def test_each_column_says_where_it_came_from(tmp_path: Path) -> None:
    by = {"partition_by": {"prefix_template": "date=%Y-%m-%d"}}
    desk = Table(tmp_path, {"infer": True, "hints": [ID]}, sink=by)
    desk.land("date=2024-01-01/a.ndjson", {"id": 1, "user": {"tags": [{"a": 1}]}})
    desk.ingest()
    desk.land("date=2024-01-01/b.ndjson", {"id": 2, "user": {"mail": "m"}, "id2": "x"})
    desk.land("date=2024-01-01/c.ndjson", {"id": "text"})
    desk.ingest()
    done = desk.run("show", "--output", "json")
    assert done.exit_code == 0
    (row,) = told(done)
    assert origins(row) == {
        "id": ("int64", "hint", None),
        "user": ("struct", "found", 1),
        "user.tags": ("list<struct>", "found", 1),
        "user.tags[].a": ("int64", "found", 1),
        "user.mail": ("string", "found", 2),
        "id2": ("string", "found", 2),
        "date": ("date", "partition", None),
        RESCUED: ("string", "rescued", None),
    }
    assert row["unknown_fields"] == "add"
    assert row["last_entry"] == 2
    assert row["without_column"] == [
        {
            "path": "id", "values": 1, "dropped": False, "not_a": "int64",
            "line": "{name: id_json, type: json, from: [id]}",
        }
    ]  # fmt: skip
    assert all(one["at"] for one in row["columns"] if one["entry"])
    text = desk.run().stdout
    assert "entry 2, 20" in text
    assert "partition, from the path" in text
    assert "in _rescued" in text
    assert text == desk.run("show").stdout


def test_what_is_rescued_is_counted_with_the_line_that_gives_it_a_column(tmp_path: Path) -> None:
    user = {"name": "user", "type": "struct", "fields": [{"name": "id", "type": "int64"}]}
    desk = Table(tmp_path, {"fields": [ID, user]})
    desk.land("a.ndjson", {"id": 1, "price": 1.5, "a b": 1}, {"id": 2, "price": 2})
    desk.land("b.ndjson", {"id": 3, "user": {"id": 1, "mail": "x"}, "ID": 7})
    desk.ingest()
    (row,) = told(desk.run("show", "--output", "json"))
    found = {one["path"]: one for one in row["without_column"]}
    assert {path: one["values"] for path, one in found.items()} == {
        "price": 2, "a b": 1, "user.mail": 1, "ID": 1,
    }  # fmt: skip
    lines = {path: yaml.safe_load(one["line"]) for path, one in found.items()}
    desk.declared({"fields": [ID, user, *lines.values()]})
    desk.land("c.ndjson", {"id": 1, "price": 1.5, "a b": 1, "user": {"mail": "x"}, "ID": 7})
    desk.ingest()
    (again,) = told(desk.run("show", "--output", "json"))
    # What is declared by now is not rescued any more; what was rescued before still is.
    assert {one["path"]: one["values"] for one in again["without_column"]} == {
        path: one["values"] for path, one in found.items()
    }
    (new,) = (row for row in rows_of(desk) if row["a_b_json"] is not None)
    assert [new["price"], new["ID_json"], new["user_mail_json"]] == ["1.5", "7", '"x"']


def test_every_line_that_is_offered_can_be_declared_with_the_others(tmp_path: Path) -> None:
    schema = {"fields": [ID], "provenance": ["file"]}
    desk = Table(tmp_path, schema)
    record = {"id": 1, "_file": "f", "_rescued": "r", "a": 1, "A": 2, "a_json": 3}
    desk.land("a.ndjson", record)
    desk.ingest()
    (row,) = told(desk.run("show", "--output", "json"))
    lines = {one["path"]: one["line"] for one in row["without_column"]}
    assert lines.keys() == record.keys() - {"id"}
    offered = [yaml.safe_load(one) for one in lines.values() if one is not None]
    assert len(offered) >= 4
    desk.declared({**schema, "fields": [ID, *offered]})
    desk.land("b.ndjson", record)
    desk.ingest()
    assert len(rows_of(desk)) == 2


def test_what_is_left_out_is_counted_apart(tmp_path: Path) -> None:
    desk = Table(tmp_path, {"fields": [ID], "unknown_fields": "drop"})
    desk.land("a.ndjson", {"id": 1, "x": 1})
    desk.ingest()
    text = desk.run().stdout
    assert "left out" in text
    assert "for a column, add to schema.fields:\n  - {name: x, type: json}" in text
    (row,) = told(desk.run("show", "--output", "json"))
    assert [one["dropped"] for one in row["without_column"]] == [True]


def test_a_table_that_is_not_there_yet_has_the_declared_columns(tmp_path: Path) -> None:
    desk = Table(tmp_path, {"fields": [ID]})
    assert "no entry yet" in desk.run().stdout
    (row,) = told(desk.run("--output", "json"))
    assert origins(row) == {"id": ("int64", "declared", None)}
    desk.declared(None)
    assert "see blizzard schema infer" in desk.run().stdout


def test_the_files_that_wait_say_their_columns(tmp_path: Path) -> None:
    desk = Table(tmp_path, None)
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land(
        "b.ndjson", {"ts": 1_700_000_000_000, "user": {"a b": 1, "c": "x"}, "tags": [{"x": "y"}]}
    )
    done = desk.run("infer")
    assert done.exit_code == 0, done.output
    fields = yaml.safe_load(done.stdout)["fields"]
    assert [one["name"] for one in fields] == ["ts", "user", "tags"]
    assert fields[0] == {"name": "ts", "type": "timestamp", "format": "epoch_ms"}
    rows = told(desk.run("infer", "--output", "json"))
    assert {one["column"]: one["type"] for one in rows} == {
        "ts": "timestamp",
        "user": "struct<a_b: int64, c: string>",
        "user.c": "string",
        "user.a_b": "int64",
        "tags": "list<struct<x: string>>",
        "tags[]": "struct<x: string>",
        "tags[].x": "string",
    }
    assert desk.run("infer").stdout == done.stdout, "nothing is written by a look"


def test_a_long_path_is_broken_after_a_dot(tmp_path: Path) -> None:
    names = [f"a_name_of_some_length_{number}" for number in range(5)]
    value: Any = 1
    for name in reversed(names):
        value = {name: value}
    desk = Table(tmp_path, None)
    desk.land("a.ndjson", {"id": 1, **value})
    desk.ingest()
    shown = desk.run("show").stdout
    assert max(map(len, shown.splitlines())) <= WIDTH, shown
    assert all(f"{name}." in shown for name in names[:-1])


def test_hints_and_the_path_decide_about_the_columns_that_they_name(tmp_path: Path) -> None:
    hints = [{"name": "id", "type": "string"}, {"name": "late", "type": "date"}]
    by = {"partition_by": {"prefix_template": "date=%Y-%m-%d"}}
    desk = Table(tmp_path, {"infer": True, "hints": hints}, sink=by)
    desk.land("date=2024-01-01/a.ndjson", {"id": 1, "n": 2, "date": "x"})
    fields = yaml.safe_load(desk.run("infer").stdout)["fields"]
    assert fields == [hints[0], {"name": "n", "type": "int64"}, hints[1]]


def test_the_files_that_wait_are_read_in_the_form_that_is_configured(tmp_path: Path) -> None:
    desk = Table(tmp_path, None)
    document = yaml.safe_load(desk.file.read_text())
    document["source"] |= {
        "format": "json", "records": "page.rows", "skip_records": {"with_key": ["action"]},
    }  # fmt: skip
    desk.file.write_text(yaml.safe_dump(document))
    rows = [{"action": "x"}, {"id": 1, "messages": [{"a": 1}, {"a": 2}]}]
    desk.landing.write("a.json", json.dumps({"id": 7, "page": {"rows": rows}}, indent=1).encode())
    fields = yaml.safe_load(desk.run("infer").stdout)["fields"]
    assert [one["name"] for one in fields] == ["id", "messages"]


def test_other_files_can_be_looked_at_without_a_configuration(tmp_path: Path) -> None:
    """Nothing to look at is an error."""
    desk = Table(tmp_path, None)
    done = desk.run("infer")
    assert done.exit_code == 1
    assert "no waiting file has JSON objects" in done.stderr
    desk.land("a.ndjson", {"id": 1, "date": "2024-01-01"})
    done = desk.run("infer", str(desk.landing.folder), config=False)
    assert yaml.safe_load(done.stdout)["fields"] == [ID, {"name": "date", "type": "date"}]
    desk.ingest()
    assert desk.run("infer").exit_code == 1
    assert desk.run("infer", str(tmp_path / "nowhere"), config=False).exit_code == 2


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    for arguments, said in (
        (["infer", "ftp://x"], "must be a local path"),
        (["infer", "--sample", "-1"], "--sample"),
        (["show", "-p", "nobody"], "there is no pipeline"),
        (["diff", "--sample", "1"], "No such option: --sample"),
        (["promoted"], "No such command"),
    ):
        done = Table(tmp_path, None).run(*arguments)
        assert done.exit_code == 2, arguments
        assert said in done.stderr, arguments


def test_a_difference_fails_if_penguin_would_hold_files_for_it(tmp_path: Path) -> None:
    more = {"fields": [ID, {"name": "x", "type": "string"}]}
    none = (0, "pipeline default: no difference\n")
    desk = Table(tmp_path, {"fields": [ID]})
    done = desk.run("diff")
    assert (done.exit_code, done.stdout) == none
    desk.land("a.ndjson", {"id": 1, "y": 2})
    desk.ingest()
    done = desk.run("diff")
    assert (done.exit_code, done.stdout) == none

    desk.declared(more)
    done = desk.run("diff")
    assert done.exit_code == 0
    assert "penguin would commit the next files" in done.stdout
    (row,) = told(desk.run("diff", "--output", "json"))
    assert row["differences"] == [
        {"path": "x", "present": "string", "journal": None, "table": None}
    ]
    assert row["held"] == []

    desk.declared({"fields": [{"name": "id", "type": "string"}]})
    done = desk.run("diff")
    assert done.exit_code == 1
    assert "penguin would hold the next files:\n  id: the table has type long" in done.stdout
    assert "schema_evolution" in done.stdout
    desk.declared(more, schema_evolution="strict")
    (row,) = told(done := desk.run("diff", "--output", "json"))
    assert done.exit_code == 1
    assert "strict" in row["held"][0]


def test_what_is_held_by_strict_is_named_after_a_column_was_found(tmp_path: Path) -> None:
    desk = Table(tmp_path, {"fields": [ID], "unknown_fields": "add"}, schema_evolution="strict")
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2, "x": 1})
    desk.ingest()
    (row,) = told(done := desk.run("diff", "--output", "json"))
    assert done.exit_code == 1
    assert row["differences"] == [
        {"path": "x", "present": "long", "journal": "long", "table": None}
    ]
