"""What an operator sees of values without a column, and of columns that were found."""

import json
from typing import Any

from tests.support.builders import entries
from tests.support.open_table import ID, OpenTable


def status(desk: OpenTable) -> Any:
    return json.loads(desk.cli("status", "--output", "json").stdout)


def places(desk: OpenTable) -> dict[str, int]:
    """Return where values without a column were, and how many, as `schema show` has them."""
    (found,) = map(json.loads, desk.cli("schema", "show", "--output", "json").stdout.splitlines())
    return {one["path"]: one["values"] for one in found["without_column"]}


def shown(desk: OpenTable, *command: str) -> str:
    return " ".join(desk.cli(*(command or ("status",))).stdout.split())


def test_rescued_values_are_counted_by_where_they_were(tmp_path):
    desk = OpenTable(tmp_path, {"fields": [ID]})
    desk.land("a.ndjson", {"id": 1, "x": 1, "user": {"plan": "pro"}}, {"id": 2, "x": 2})
    desk.ingest()
    desk.land("b.ndjson", {"id": 3, "x": 3})
    desk.ingest()
    found = status(desk)
    assert (found["totals"]["rescued"], found["totals"]["dropped"]) == (4, 0)
    assert places(desk) == {"x": 3, "user": 1}
    assert "default: 4 values are in _rescued; blizzard schema show lists where" in shown(desk)


def test_values_that_are_left_out_are_counted_by_where_they_were(tmp_path):
    """L16."""
    desk = OpenTable(tmp_path, {"fields": [ID], "unknown_fields": "drop"})
    desk.land("a.ndjson", {"id": 1, **{f"f{number:02}": 1 for number in range(12)}})
    desk.ingest()
    found = status(desk)
    assert (found["totals"]["rescued"], found["totals"]["dropped"]) == (0, 12)
    assert len(places(desk)) == 12
    assert "default: 12 values are left out; blizzard schema show lists where" in shown(desk)


def test_what_a_redo_gives_up_is_counted_once(tmp_path):
    desk = OpenTable(tmp_path, {"fields": [ID]})
    desk.land("a.ndjson", {"id": 1, "x": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2, "x": 2})
    desk.blizzard()
    (file,) = entries(desk.table)[-1].files
    (desk.table / file.filename).unlink()
    desk.penguin()
    desk.redo()
    assert status(desk)["totals"]["rescued"] == 1
    desk.ingest()
    assert status(desk)["totals"]["rescued"] == 2
    assert places(desk) == {"x": 2}
