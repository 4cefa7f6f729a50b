"""docs/schema.md shows what happens: its tables, its lines and its queries are tried."""

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from deltalake import DeltaTable
from typer.testing import CliRunner

import penguin.config.load
from blizzard.cli.app import app
from blizzard.config.columns import schema_of
from blizzard.config.load import load
from blizzard.worker.ndjson.decoder import Decoder
from lakebed.clock import Clock
from lakebed.config.schema import DeclaredSchema
from lakebed.storage.store import Store
from lakebed.types import FieldType, UnknownFields
from tests.support.builders import put
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.tables import commit_table

PAGE = (Path(__file__).parents[2] / "docs" / "schema.md").read_text()
ROW = re.compile(r"^\| `(\{name.*?\})` \| `(\{.*?\})` \| `(.*?)` \|$", re.MULTILINE)
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def chapter(title: str) -> str:
    found = PAGE.partition(f"\n## {title}\n")[2]
    assert found, title
    return re.split(r"^## ", found, flags=re.MULTILINE)[0]


def blocks(text: str, language: str) -> list[str]:
    return [body for name, body in BLOCK.findall(text) if name == language]


def ingested(root: Path, config: str, lines: str) -> Path:
    """Run both programs on some lines with a configuration of the page; return the table."""
    document = yaml.safe_load(config.replace("/data/", f"{root}/"))
    document["tables"] = {"t": {"table_uri": document["sink"]["path"]}}
    put(root, "pipeline.yaml", yaml.safe_dump(document).encode())
    put(root / "landing", "a.ndjson", lines.encode())
    (settings,) = load([root / "pipeline.yaml"], [], {}).pipelines
    pipeline = pipeline_of(settings, InProcessRunner())
    while pipeline.step():
        pass
    (table,) = penguin.config.load.load([root / "pipeline.yaml"], [], {}).tables
    commit_table(table, Store(table.table_uri, table.storage_options), lambda _: None, Clock())
    return Path(table.table_uri)


SHOWN: list[tuple[str, str, str]] = ROW.findall(PAGE)


@pytest.mark.parametrize(("declared", "line", "value"), SHOWN)
def test_every_line_of_the_tables_has_the_value_that_is_shown(
    declared: str, line: str, value: str
) -> None:
    fields = [yaml.safe_load(declared)]
    schema = schema_of(DeclaredSchema.model_validate({"fields": fields}))
    (decoded,) = Decoder(schema, unknown=UnknownFields.FAIL).decode([line.encode()])
    (row,) = decoded.batch.to_pylist()
    assert str(row["x"]) == value


def test_the_page_shows_every_type() -> None:
    shown = {yaml.safe_load(declared)["type"].partition("(")[0] for declared, _, _ in SHOWN}
    assert shown == {kind.value for kind in FieldType}


def test_files_without_a_schema_get_the_columns_that_are_shown(tmp_path: Path) -> None:
    text = chapter("Files without a schema")
    config, with_hints = blocks(text, "yaml")
    (lines,) = blocks(text, "json")
    table = ingested(tmp_path / "a", config, lines)
    found = {one["name"]: one["type"] for one in fields_of(table)}
    shown = dict(re.findall(r"^\| `(\w+)` \| `(.+)` \|$", text, re.MULTILINE))
    assert list(found) == list(shown)
    assert [found["id"], found["at"], found["price"]] == ["long", "timestamp", "double"]
    assert shown["user"] == "struct<name: string, tags: list<string>>"
    assert [one["name"] for one in found["user"]["fields"]] == ["name", "tags"]
    table = ingested(tmp_path / "b", with_hints, lines)
    assert {one["name"]: one["type"] for one in fields_of(table)}["price"] == "decimal(18,2)"


def fields_of(table: Path) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = json.loads(DeltaTable(str(table)).schema().to_json())["fields"]
    return fields


def test_the_ddl_can_be_used(tmp_path: Path) -> None:
    (config,) = blocks(chapter("Types"), "yaml")
    file = tmp_path / "p.yaml"
    file.write_text(config)
    (settings,) = load([file], [], {}).pipelines
    assert [one.name for one in settings.schema.fields] == ["id", "user", "at"]


def test_the_queries_find_what_was_rescued(tmp_path: Path) -> None:
    text = chapter("Reading `_rescued`")
    (config,), (lines,) = blocks(text, "yaml"), blocks(text, "json")
    table = ingested(tmp_path, config, lines)
    read = DeltaTable(str(table)).to_pyarrow_table()
    rescued = [json.loads(one) for one in read.column("_rescued").to_pylist() if one is not None]
    assert {key for one in rescued for key in one} == {"price", "`user.mail`"}
    _spark, query = blocks(text, "sql")
    with duckdb.connect() as connection:
        connection.register("events", read)
        plain = query.replace("delta_scan('/data/tables/events')", "events")
        assert plain != query
        assert [(row[0], str(row[1])) for row in connection.sql(plain).fetchall()] == [
            (1, "1.50"), (2, "7.00"),
        ]  # fmt: skip
    (script,) = blocks(text, "python")
    names: dict[str, Any] = {}
    exec(script.replace("/data/tables/events", str(table)), names)
    assert names["prices"].rows() == [(1, 1.5), (2, 7.0)]


def test_the_columns_are_shown_as_on_the_page(tmp_path: Path) -> None:
    (config,) = blocks(chapter("Reading `_rescued`"), "yaml")
    ingested(tmp_path, config, '{"id": 1, "price": 1}\n')
    put(tmp_path / "landing", "b.ndjson", b'{"id": 2, "price": 2}\n')
    (settings,) = load([tmp_path / "pipeline.yaml"], [], {}).pipelines
    assert pipeline_of(settings, InProcessRunner()).step()
    shown = re.findall(r"```\n(pipeline default .*?)```", PAGE, re.DOTALL)
    done = CliRunner().invoke(app, ["schema", "show", "-c", str(tmp_path / "pipeline.yaml")])
    assert [" ".join(line.split()) for line in done.stdout.splitlines()] == [
        " ".join(line.split()) for line in shown[0].splitlines()
    ]
