"""A replacement that penguin has rejected: nobody takes the new content for loaded."""

import json

import pytest
from deltalake import DeltaTable

from tests.support.live_files import on_the_page
from tests.support.promotions import ID
from tests.support.retractions import Taken


@pytest.fixture
def desk(tmp_path):
    """A table on which the replacement of a file was overtaken by another program."""
    desk = Taken(tmp_path, {"fields": [ID], "provenance": ["file"]})
    desk.land("a.ndjson", {"id": 1}, {"id": 2})
    desk.ingest()
    desk.land("b.ndjson", {"id": 3})
    desk.ingest()
    desk.land("a.ndjson", {"id": 7}, {"id": 8}, {"id": 9})
    desk.replace("a.ndjson", by="a.ndjson")
    desk.optimize()
    desk.penguin()
    assert desk.ids() == [1, 2, 3]
    return desk


def plain(text):
    return " ".join(text.split())


def said(desk, *arguments):
    return json.loads(desk.cli(*arguments, "--output", "json").stdout)


def test_everybody_says_that_it_was_not_applied_and_the_old_rows_are_there(desk):
    checked = desk.cli("files", "--check")
    assert checked.exit_code == 1
    assert "1 of the changed ones rejected" in plain(checked.output)
    (day,) = said(desk, "files")["groups"]
    assert (day["landed"], day["in_table"], day["changed"], day["not_applied"]) == (3, 2, 1, 1)
    assert (day["rows"], day["overwritten"], day["uncounted"], day["complete"]) == (3, 1, 0, False)
    assert "changed (not_applied)" in plain(desk.cli("files", "--state", "changed").output)

    answer = said(desk, "why", "a.ndjson")
    assert (answer["state"], answer["reason"]) == ("changed", "not_applied")
    assert "The replacement was not applied" in answer["answer"]
    assert "the old rows are as they were" in answer["answer"]
    (way,) = answer["next"]
    assert way["commands"][0].endswith(" retract in:a.ndjson --replace in:a.ndjson")

    status = plain(desk.cli("status").output)
    assert "1 file with 3 rows, discarded, or rejected as replacements" in status
    assert "blizzard redo" not in status
    row = said(desk, "status")
    assert (row["discarded_files"], row["discarded_rows"]) == (1, 3)
    # A file that is deleted since keeps its day open.
    (desk.landing.folder / "a.ndjson").unlink()
    (day,) = said(desk, "files")["groups"]
    assert (day["in_table"], day["not_applied"], day["rows"], day["complete"]) == (2, 1, 3, False)


def test_once_it_is_repeated_nobody_speaks_of_it_any_more(desk):
    desk.replace("a.ndjson", by="a.ndjson")
    desk.penguin()
    assert desk.ids() == [3, 7, 8, 9]
    assert desk.cli("files", "--check").exit_code == 0
    (day,) = said(desk, "files")["groups"]
    assert (day["in_table"], day["not_applied"], day["rows"]) == (2, 0, 4)
    assert said(desk, "why", "a.ndjson")["state"] == "in_table"
    row = said(desk, "status")
    assert row["discarded_files"] == 0


def test_another_file_that_was_to_take_the_place_is_not_in_either(desk):
    desk.land("d.ndjson", {"id": 40})
    desk.ingest()
    desk.land("c.ndjson", {"id": 30})
    desk.replace("b.ndjson", by="c.ndjson")
    desk.optimize()
    desk.penguin()
    assert desk.ids() == [1, 2, 3, 40]
    answer = said(desk, "why", "c.ndjson")
    assert (answer["state"], answer["reason"]) == ("changed", "not_applied")
    assert "was to replace the rows of in:b.ndjson, and penguin rejected it" in answer["answer"]
    assert answer["next"][0]["commands"][0].endswith(" retract in:b.ndjson --replace in:c.ndjson")
    assert said(desk, "why", "b.ndjson")["state"] == "in_table"
    (day,) = said(desk, "files")["groups"]
    assert (day["in_table"], day["not_applied"], day["rows"], day["uncounted"]) == (3, 2, 4, 0)
    (row,) = on_the_page(desk, "c.ndjson")
    assert (row.state, row.reason) == ("changed", "not_applied")
    (row,) = on_the_page(desk, "b.ndjson")
    assert row.state == "in_table"
    desk.blizzard()
    desk.penguin()
    assert 30 not in desk.ids(), "it is not read by itself: both would be in the table"


def test_a_retraction_without_effect_leaves_its_rows_counted(tmp_path):
    desk = Taken(tmp_path)
    desk.land("a.ndjson", {"id": 1}, {"id": 2})
    desk.ingest()
    desk.land("b.ndjson", {"id": 3})
    desk.ingest()
    desk.retract("a.ndjson")
    desk.optimize()
    desk.penguin()
    (day,) = said(desk, "files")["groups"]
    assert (day["in_table"], day["rows"], day["uncounted"], day["complete"]) == (2, 3, 0, True)


@pytest.mark.parametrize("by", ["b.ndjson", "c.ndjson"])
@pytest.mark.parametrize(
    "back", [2, pytest.param(0, marks=pytest.mark.unbalanced("rows_removed"))], ids=["back", "out"]
)
def test_rows_that_came_back_before_the_commit_are_counted_as_those_that_stay(tmp_path, by, back):
    desk = Taken(tmp_path, {"fields": [ID]})
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    first = desk.version
    desk.land("b.ndjson", {"id": 3}, {"id": 4})
    desk.ingest()
    DeltaTable(str(desk.table)).restore(first)
    desk.land(by, {"id": 3}, {"id": 4}, {"id": 5})
    desk.replace("b.ndjson", by=by)
    DeltaTable(str(desk.table)).restore(first + 1 if back else first)
    desk.penguin()
    assert desk.ids() == [1, 3, 4][: 1 + back]
    answer = said(desk, "why", by)
    assert "the old rows are as they were" in answer["answer"]
    assert answer["reason"] == "not_applied"
