"""`blizzard why` follows rows through compactions to where they are, or to who removed them."""

import pytest
from deltalake import DeltaTable

from tests.support.builders import entries
from tests.support.compactions import crowded


@pytest.fixture
def desk(tmp_path):
    return crowded(tmp_path, compact={"min_files": 2}, files=3)


def asked(desk, name):
    told = desk.said("why", desk.uri(name))
    return told, told["data_files"][0]


def arrives(desk, *numbers):
    for number in numbers:
        rows = ({"id": 2 * number + place, "user": "x"} for place in (0, 1))
        desk.land(f"{number}.ndjson", *rows)
        desk.ingest()


def test_rows_are_followed_through_compactions_and_rewrites_to_the_file_that_has_them(desk):
    desk.tidy()
    desk.take_back("2.ndjson")
    arrives(desk, 3, 4, 5)
    desk.tidy()
    (now,) = desk.active
    told, file = asked(desk, "0.ndjson")
    assert (told["state"], file["state"], file["replaced_by"]) == ("in_table", "rewritten", now)
    old = desk.said("why", str(desk.table / entries(desk.table)[1].files[0].filename))
    assert (old["state"], f"{now} has them" in old["answer"]) == ("rewritten", True)


@pytest.mark.unbalanced("rows_removed")
def test_compacted_rows_that_another_writer_deleted_are_not_in_the_table(desk):
    desk.tidy()
    DeltaTable(str(desk.table)).delete()
    told, file = asked(desk, "0.ndjson")
    assert (told["state"], file["state"]) == ("removed", "removed")
    assert (file["replaced_by"], file["removed_version"]) == (None, desk.version)
    assert "DELETE" in told["answer"]
    (new,) = entries(desk.table)[-1].rewrites[0].new
    assert desk.said("why", str(desk.table / new.filename))["state"] == "removed"


@pytest.mark.unbalanced("rows_removed")
def test_rows_beside_others_that_another_writer_deleted_are_not_said_to_be_removed(desk):
    desk.tidy()
    DeltaTable(str(desk.table)).delete("id = 0")
    told, file = asked(desk, "1.ndjson")
    assert (told["state"], file["state"]) == ("altered", "altered")
    assert (file["replaced_by"], file["removed_version"]) == (None, desk.version)
    assert "rewritten since, or rows in them deleted: DELETE" in told["answer"]
    assert "may have been removed" in told["answer"]
    (new,) = entries(desk.table)[-1].rewrites[0].new
    assert desk.said("why", str(desk.table / new.filename))["state"] == "altered"


@pytest.mark.unbalanced("rows_removed")
def test_a_restore_to_before_a_compaction_removes_what_was_read_since(desk):
    before = desk.version - 1
    desk.tidy()
    DeltaTable(str(desk.table)).restore(before)
    assert asked(desk, "0.ndjson")[1]["state"] == "in_table"
    told, file = asked(desk, "2.ndjson")
    assert (told["state"], file["removed_version"]) == ("removed", desk.version)
    assert "RESTORE" in told["answer"]


def test_compacted_rows_that_another_writer_compacted_are_in_the_table(desk):
    desk.tidy()
    arrives(desk, 3)
    desk.optimize()
    told, file = asked(desk, "0.ndjson")
    assert (told["state"], file["state"], file["replaced_by"]) == ("in_table", "rewritten", None)


@pytest.mark.unbalanced("rows_back")
@pytest.mark.parametrize(
    ("how", "past", "compacts"),
    [
        ("retract", False, False),
        ("retract", True, True),
        ("erase", False, True),
        ("erase", True, False),
    ],
)
def test_rows_that_came_back_past_a_compaction_are_told_as_such(desk, how, past, compacts):
    before = desk.version
    desk.tidy()
    before += past
    if how == "retract":
        desk.take_back("0.ndjson")
    else:
        desk.forget("id = 1")
    DeltaTable(str(desk.table)).restore(before)
    if compacts:
        arrives(desk, 3, 4, 5)
        desk.tidy()
        assert len(desk.active) == 1
    told, _file = asked(desk, "0.ndjson")
    assert told["state"] == "in_table"
    (taken,) = [told["retraction"]] if how == "retract" else told["erased"]
    assert taken["came_back"]
    assert ("were put back" if how == "retract" else "came back") in told["answer"]
    assert not asked(desk, "1.ndjson")[0]["erased"]


def test_rows_that_came_back_and_were_taken_out_again_are_counted_once(desk):
    before = desk.version
    desk.tidy()
    desk.forget("id = 1")
    DeltaTable(str(desk.table)).restore(before)
    desk.tidy()
    desk.forget("id = 1")
    told, _file = asked(desk, "0.ndjson")
    assert [one["came_back"] for one in told["erased"]] == [True, False]
    desk.take_back("0.ndjson")
    told, _file = asked(desk, "0.ndjson")
    assert told["state"] == "retracted"
    assert [one["came_back"] for one in told["erased"]] == [True, False]


def test_other_rows_of_a_source_file_that_were_compacted_since_have_not_come_back(tmp_path):
    desk = crowded(tmp_path, compact={"min_files": 2}, files=3)
    desk.tidy()
    desk.forget("id = 1")
    arrives(desk, 3, 4, 5)
    desk.tidy()
    told, _file = asked(desk, "0.ndjson")
    assert [one["came_back"] for one in told["erased"]] == [False]


@pytest.mark.unbalanced("rows_back", "rows_removed")
def test_content_that_was_replaced_and_came_back_past_a_compaction_is_told_as_such(desk):
    before = desk.version
    desk.tidy()
    desk.land("0.ndjson", {"id": 100, "user": "x"})
    desk.replace("0.ndjson", by="0.ndjson")
    desk.penguin()
    assert not asked(desk, "0.ndjson")[0]["retraction"]["came_back"]
    DeltaTable(str(desk.table)).restore(before)
    assert asked(desk, "0.ndjson")[0]["retraction"]["came_back"]


@pytest.mark.parametrize("how", ["compact", "erase"])
def test_rows_that_are_lost_with_a_rewritten_file_are_read_again_by_the_command_of_why(desk, how):
    if how == "compact":
        desk.tidy()
    else:
        desk.forget("id = 1")
    for path in desk.active:
        (desk.table / path).unlink()
    done = desk.order("fsck", "--repair", "--rows-lost", "--yes")
    assert done.exit_code == 0, done.output
    told, _file = asked(desk, "0.ndjson")
    (way,) = told["next"]
    again = desk.cli(*way["commands"][-1].partition(f"{desk.file} ")[2].split())
    assert again.exit_code == 0, again.output
    desk.penguin()
    assert asked(desk, "0.ndjson")[0]["state"] == "in_table"
    assert desk.ids()[:2] == [0, 1]
