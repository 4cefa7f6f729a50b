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
    assert (told["state"], file["state"], file["replaced_by"]) == ("committed", "rewritten", now)
    assert f"The rows are in {now} now." in told["answer"]
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
    (new,) = entries(desk.table)[-1].merged[0].new
    assert desk.said("why", str(desk.table / new.filename))["state"] == "removed"


@pytest.mark.unbalanced("rows_removed")
def test_a_restore_to_before_a_compaction_removes_what_was_read_since(desk):
    before = desk.version - 1
    desk.tidy()
    DeltaTable(str(desk.table)).restore(before)
    assert asked(desk, "0.ndjson")[1]["state"] == "committed"
    told, file = asked(desk, "2.ndjson")
    assert (told["state"], file["removed_version"]) == ("removed", desk.version)
    assert "RESTORE" in told["answer"]


def test_compacted_rows_that_another_writer_compacted_are_in_the_table(desk):
    desk.tidy()
    arrives(desk, 3)
    desk.optimize()
    told, file = asked(desk, "0.ndjson")
    assert (told["state"], file["state"], file["replaced_by"]) == ("committed", "rewritten", None)
