"""Rows taken back after another program has rewritten data files of the table."""

import json

import pytest
from deltalake import DeltaTable

from tests.support.promotions import ID
from tests.support.retractions import Taken

NAME = {"name": "name", "type": "string"}
TELLS = {"fields": [ID, NAME], "provenance": ["file"]}
BY_DAY = {"prefix_template": "date=%Y-%m-%d"}


def row(number, name="x"):
    return {"id": number, "name": name}


@pytest.fixture
def desk(tmp_path):
    desk = Taken(tmp_path, TELLS)
    desk.land("a.ndjson", row(1), row(2))
    desk.land("b.ndjson", row(3), row(4))
    desk.ingest()
    return desk


def change(desk, where, **updates):
    DeltaTable(str(desk.table)).update(updates=updates, predicate=where)


def test_rows_of_a_file_that_an_update_wrote_are_found_and_taken_back(desk):
    """How many rows go is known before anything is done."""
    change(desk, "id = 3", name="'changed'")
    traced = desk.cli("trace", "--where", "name = 'changed'", "--output", "json")
    assert traced.exit_code == 0, traced.output
    assert json.loads(traced.stdout)["values"]["name"] == "changed"
    shown = desk.cli("retract", "b.ndjson")
    assert shown.exit_code == 1, shown.output
    assert "pipeline default: 2 rows of 1 source file" in shown.stdout
    assert "identified by _file" in shown.stdout
    assert json.loads(desk.cli("retract", "b.ndjson", "--output", "json").stdout)["rows"] == 2
    assert dict(desk.take_back("b.ndjson").rows) == {"in:b.ndjson": 2}
    assert desk.ids() == [1, 2]


@pytest.mark.unbalanced("rows_removed")
def test_rows_of_a_file_that_a_delete_wrote_are_erased(desk):
    DeltaTable(str(desk.table)).delete("id = 3")
    erased = desk.cli("erase", "--where", "name = 'x' and id = 4", "--yes", "--output", "json")
    assert erased.exit_code == 0, erased.output
    desk.penguin()
    assert desk.ids() == [1, 2]


def test_rows_that_an_update_has_moved_to_another_partition_go_too(tmp_path):
    desk = Taken(tmp_path, TELLS, partition_by=BY_DAY)
    for day in ("2024-01-01", "2024-01-02", "2024-01-03"):
        desk.land(f"date={day}/a.ndjson", row(int(day[-1])))
    desk.ingest()
    change(desk, "id = 1", date="'2024-01-03'")
    found = desk.look("date=2024-01-01/a.ndjson").rows
    assert [one.partition_values for one in found.unnamed] == [{"date": "2024-01-03"}]
    desk.take_back("date=2024-01-01/a.ndjson")
    assert desk.ids() == [2, 3]


def test_files_without_such_rows_are_left_alone(desk):
    desk.land("c.ndjson", row(5))
    desk.ingest()
    change(desk, "id >= 3", name="'changed'")
    assert len(desk.look("c.ndjson").rows.unnamed) == 1
