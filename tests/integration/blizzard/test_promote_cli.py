"""`blizzard schema promote`, as a person types it."""

import json
from decimal import Decimal

import pytest
from deltalake import DeltaTable

from tests.support.builders import entries
from tests.support.commands import recorded
from tests.support.promotions import ID, PRICE, Rescued


@pytest.fixture
def desk(tmp_path):
    desk = Rescued(tmp_path)
    desk.land("a.ndjson", '{"id":1,"price":1.50}', '{"id":2,"price":"much"}')
    desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    return desk


def test_without_yes_it_only_says_what_would_be_done(desk):
    shown = desk.cli("schema", "promote", "price")
    assert shown.exit_code == 1
    (file,) = desk.active
    first, second, *rest = shown.stdout.splitlines()
    assert first == "pipeline default: price, decimal(10,2)"
    assert second.startswith("  1 file with 2 rows (")
    assert rest == [f"    {file}", "add --yes to do it"]
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())
    assert [one.kind for one in entries(desk.table)][-1] == "batch"


def test_with_yes_it_is_done_and_penguin_commits_it(desk):
    (old,) = desk.active
    shown = desk.cli("schema", "promote", "price", "--yes")
    assert shown.exit_code == 0, shown.output
    assert "1 value moved from _rescued to the column" in shown.stdout
    assert "1 value left in _rescued" in shown.stdout
    assert "entry 2 replaces the files once penguin has committed it" in shown.stdout
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())
    shown = desk.cli("journal", "show", "2").stdout
    (rewrite,) = recorded(shown)["rewrites"]
    assert [one["path"] for one in rewrite["old"]] == [old]
    assert "  replace 1 file\n  add     column price\n" in desk.order("plan").stdout
    desk.penguin()
    assert [row["price"] is None for row in desk.rows()] == [False, True]
    again = desk.cli("schema", "promote", "price", "--yes")
    assert again.exit_code == 0
    assert "nothing was changed" in again.stdout


def test_its_json_has_these_keys(desk):
    shown = desk.cli("schema", "promote", "price", "--output", "json")
    row = json.loads(shown.stdout)
    assert list(row) == [
        *("pipeline", "table_uri", "field", "type", "entry", "files", "rows", "bytes"),
        *("promoted", "left", "waiting_entries"),
    ]
    assert (row["field"], row["type"], row["entry"], row["promoted"]) == (
        *("price", "decimal(10,2)"),
        *(None, None),
    )
    done = json.loads(desk.cli("schema", "promote", "price", "--yes", "--output", "json").stdout)
    assert (done["entry"], done["rows"], done["promoted"], done["left"]) == (2, 2, 1, 1)


def test_what_is_told_before_anything_is_done(desk):
    """Fields without values or that nobody declared, rows that wait, and files of others."""
    shown = desk.cli("schema", "promote", "unheard", "--yes")
    assert shown.exit_code == 1
    assert "unheard is not declared: add it to schema.fields" in shown.stderr
    desk.configure({"fields": [ID, PRICE, {"name": "none", "type": "string"}]})
    shown = desk.cli("schema", "promote", "none")
    assert shown.exit_code == 0
    assert "no file of the table has values for it in _rescued" in shown.stdout
    desk.land("b.ndjson", '{"id":3,"other":1}')
    desk.blizzard()
    shown = desk.cli("schema", "promote", "price")
    assert "1 entry is not committed yet; their rows are not included" in shown.stdout
    desk.penguin()
    DeltaTable(str(desk.table)).optimize.compact()
    shown = desk.cli("schema", "promote", "price")
    assert "1 of them was written by another program" in shown.stdout


def test_a_table_that_is_not_there_is_told(tmp_path):
    desk = Rescued(tmp_path, {"fields": [ID, PRICE]})
    shown = desk.cli("schema", "promote", "price")
    assert shown.exit_code == 1
    assert "error: default:" in shown.stderr


def test_a_schema_that_penguin_would_refuse_is_refused_at_once(desk):
    desk.configure({"fields": [ID, PRICE]}, schema_evolution="strict")
    shown = desk.cli("schema", "promote", "price", "--yes")
    assert shown.exit_code != 0
    assert "strict" in shown.stderr
    assert [one.kind for one in entries(desk.table)][-1] == "batch"


@pytest.mark.parametrize(
    ("commit", "code", "entry"), [("inline", 2, "batch"), ("penguin", 0, "promote")]
)
def test_a_faulty_table_section_is_told_by_whoever_commits(tmp_path, commit, code, entry):
    desk = Rescued(tmp_path, commit=commit)
    desk.land("a.ndjson", '{"id":1,"price":1.50}')
    desk.ingest()
    desk.configure({"fields": [ID, PRICE]}, sweep_horizon=1)
    shown = desk.cli("schema", "promote", "price", "--yes")
    assert shown.exit_code == code, shown.output
    assert ("tables.t.sweep_horizon" in shown.stderr) == (commit == "inline")
    assert [one.kind for one in entries(desk.table)][-1] == entry
    if commit == "inline":
        desk.configure({"fields": [ID, PRICE]})
        shown = desk.cli("schema", "promote", "price", "--yes")
        assert "entry 2 is committed" in shown.stdout
        assert desk.column("price") == [(Decimal("1.50"), None)]


@pytest.mark.unbalanced("rows_removed")
def test_penguin_says_what_it_would_not_replace(desk):
    desk.cli("schema", "promote", "price", "--yes")
    DeltaTable(str(desk.table)).delete("id = 1")
    shown = desk.order("plan").stdout
    assert "  leave   default: promotion in entry 2: 1 file to be replaced, such as" in shown
    assert "replace 1 file" not in shown


def test_rewritten_rows_are_not_added_rows(desk):
    desk.promote("price")
    desk.land("c.ndjson", '{"id":3,"price":3.25}')
    desk.blizzard()
    desk.penguin()
    lines = desk.order("history", "--output", "json").stdout.splitlines()
    newest = json.loads(lines[0])
    assert (newest["rows_added"], newest["files_rewritten"]) == (1, 1)
    assert (newest["files_added"], newest["files_removed"]) == (2, 1)
    assert "rewritten" in desk.order("history").stdout
    first = json.loads(lines[-2])
    assert (first["rows_added"], first["files_rewritten"]) == (2, 0)
