"""Documents from a landing folder to rows of a Delta table, and what an operator sees of them."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

import penguin.cli.app
from blizzard.config.load import load
from lakebed.types import RESCUED
from tests.support.builders import Bench, gz, put, rows
from tests.support.commands import Desk, recorded, told

SOURCE = "format: json, records: Records, skip_records: {only_key: [ping]}"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    trail = [{"ping": 1}, *rows(3), {"ping": 2}]
    put(tmp_path / "in", "a.json.gz", gz(json.dumps({"Records": trail}).encode()))
    put(tmp_path / "in", "b.json", json.dumps({"Records": rows(2, 3), "n": 0}, indent=2).encode())
    put(tmp_path / "in", "bad.json", b'{"records": []}\n')
    return Desk(tmp_path, source=SOURCE)


def ingest(desk: Desk, config: Path | None = None) -> None:
    (settings,) = load([config or desk.config()], [], {}).pipelines
    assert Bench(settings).pipeline().step()


def commit(desk: Desk) -> pa.Table:
    """Run penguin, and return the table that it makes."""
    config = desk.root / "penguin.yaml"
    config.write_text(f"tables: {{events: {{table_uri: {desk.table}}}}}\n")
    done = CliRunner().invoke(penguin.cli.app.app, ["--once", "-c", str(config)])
    assert done.exit_code == 0, done.output
    return DeltaTable(desk.table).to_pyarrow_table()


def test_records_of_documents_are_rows_of_the_table(desk: Desk):
    ingest(desk)
    table = commit(desk)
    assert sorted(table.to_pylist(), key=lambda row: row["id"]) == rows(5)


def test_an_operator_sees_what_was_left_out_and_what_failed(desk: Desk):
    ingest(desk)
    done = desk.run("status")
    assert "1 batch, 2 files, 5 rows, 2 filtered records" in " ".join(done.stdout.split())
    (status,) = told(desk.run("status", "--output", "json"))
    totals = status["totals"]
    assert (totals["lines"], totals["filtered"], totals["rows"]) == (7, 2, 5)
    shown = desk.run("journal", "1")
    sources = {one["path"]: one for one in recorded(shown.stdout)["sources"]}
    assert sum(one.get("filtered", 0) for one in sources.values()) == 2
    assert sources["bad.json"]["failure"]["code"] == "records_missing"
    (letter,) = told(desk.run("dlq", "list", "--output", "json"))
    assert (letter["code"], letter["line"]) == ("records_missing", 1)
    assert "found no array of records at Records" in letter["error"]
    assert "record 1, at byte 14" in letter["error"]


def test_a_pipeline_without_a_schema_finds_its_columns_in_the_records_of_documents(desk: Desk):
    """Members of the document, and records that are left out, are no columns."""
    config = desk.config()
    config.write_text(config.read_text().partition("    schema:")[0])
    ingest(desk, config)
    table = commit(desk)
    assert set(table.column_names) - {RESCUED} == set(rows(1)[0])
    assert {row["id"] for row in table.to_pylist()} == {row["id"] for row in rows(5)}
    assert table.num_rows == 5


def test_a_dry_run_says_what_files_are(desk: Desk):
    (plan,) = told(desk.run("--dry-run", "--output", "json"))
    assert {file["format"] for unit in plan["units"] for file in unit["files"]} == {"json"}
