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
    change(desk, "id = 3", name="'changed'")
    traced = desk.cli("trace", "--where", "name = 'changed'", "--output", "json")
    assert traced.exit_code == 0, traced.output
    assert json.loads(traced.stdout)["values"]["name"] == "changed"
    assert dict(desk.take_back("b.ndjson").rows) == {"in:b.ndjson": 2}
    assert desk.ids() == [1, 2]


@pytest.mark.unbalanced("rows_removed")
def test_rows_of_a_file_that_a_delete_wrote_are_erased(desk):
    DeltaTable(str(desk.table)).delete("id = 3")
    erased = desk.cli("erase", "--where", "name = 'x' and id = 4", "--yes", "--output", "json")
    assert erased.exit_code == 0, erased.output
    desk.penguin()
    assert desk.ids() == [1, 2]
