"""Answers after another engine deleted rows, or somebody a version of the log, tell the truth."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from lakebed.layout import log_version
from tests.support.promotions import ID
from tests.support.retractions import Taken

NAME = "a.ndjson"


@pytest.fixture
def desk(tmp_path: Path) -> Taken:
    return Taken(tmp_path, {"fields": [ID], "provenance": ["file"]})


def why(desk: Taken, name: str = NAME) -> dict[str, Any]:
    done = desk.cli("why", name, "--output", "json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def delete(desk: Taken, where: str) -> None:
    DeltaTable(str(desk.table)).delete(where)


@pytest.mark.unbalanced("rows_removed")
def test_rows_that_another_engine_deleted_are_not_in_until_it_is_accepted(desk: Taken) -> None:
    desk.land(NAME, {"id": 1}, {"id": 2})
    desk.ingest()
    desk.land("b.ndjson", {"id": 3})
    desk.ingest()
    delete(desk, "id < 3")

    checked = desk.cli("files", "--check")
    assert checked.exit_code == 1, checked.output
    told = " ".join(checked.stdout.split())
    assert "of 2 files, 1 removed from the table" in told
    assert why(desk)["state"] == "removed"
    version = str(DeltaTable(str(desk.table)).version())
    done = desk.cli("audit", "--accept", version, "--reason", "asked for")
    assert done.exit_code == 0, done.output

    assert desk.cli("files", "--check").exit_code == 0
    answer = why(desk)
    assert answer["state"] == "discarded"
    assert "an operator has accepted that" in answer["answer"]


@pytest.mark.unbalanced("rows_removed")
def test_an_accepted_loss_of_some_rows_is_not_one_of_all(desk: Taken) -> None:
    """A file whose bad lines were replayed has rows in two data files."""
    desk.land(NAME, {"id": 1}, {"id": "2"})
    desk.more = {"error_handling": {"on_bad_record": "quarantine"}}
    desk.configure({"fields": [ID]})
    desk.ingest()
    desk.configure({"fields": [ID], "coerce": True})
    assert desk.cli("dlq", "replay", "--all", "--yes").exit_code == 0
    desk.penguin()
    delete(desk, "id = 1")
    version = str(DeltaTable(str(desk.table)).version())
    assert why(desk)["state"] == "removed"
    assert "rows of it have been removed from the table since" in why(desk)["answer"]
    assert desk.cli("audit", "--accept", version, "--reason", "asked for").exit_code == 0
    assert "an operator has accepted that" in why(desk)["answer"]


@pytest.mark.unbalanced("rows_removed")
def test_the_sentence_of_a_day_warns_of_rows_that_a_rewriting_may_have_removed(desk: Taken) -> None:
    desk.land(NAME, {"id": 1}, {"id": 2}, {"id": 3})
    desk.ingest()
    delete(desk, "id = 2")
    checked = desk.cli("files", "--check")
    assert checked.exit_code == 0, checked.output
    told = " ".join(checked.stdout.split())
    assert "1 rewritten by other writers, perhaps without some rows" in told
    assert desk.cli("audit").exit_code == 1


@pytest.mark.unbalanced("rows_removed")
@pytest.mark.parametrize("where", ["id < 3", "id = 9", "id = 1"])
def test_a_replacement_that_failed_says_that_old_rows_may_be_left(
    tmp_path: Path, where: str
) -> None:
    desk = Taken(tmp_path, {"fields": [ID]}, source={"on_change": "replace"})
    desk.land(NAME, {"id": 1}, {"id": 2})
    desk.ingest()
    desk.land("b.ndjson", {"id": 9})
    desk.ingest()
    delete(desk, where)
    desk.land(NAME, {"id": "no number"})
    desk.blizzard()

    answer = why(desk)
    assert answer["state"] == "failed"
    assert "its rows may be in the table" in answer["answer"]
    assert "no row of it" not in answer["answer"]


@pytest.mark.unbalanced("rows_removed")
def test_a_replacement_that_was_rejected_counts_no_rows_that_are_gone(desk: Taken) -> None:
    desk.land(NAME, {"id": 1}, {"id": 2})
    desk.ingest()
    desk.land(NAME, {"id": 7})
    desk.replace(NAME, by=NAME)
    delete(desk, "id = 1")
    desk.penguin()

    answer = why(desk)
    assert (answer["state"], answer["reason"]) == ("changed", "not_applied")
    assert "the old rows are as they were" in answer["answer"]


def test_a_data_file_of_another_program_is_found_by_its_name_or_uuid(tmp_path: Path) -> None:
    desk = Taken(tmp_path, {"fields": [ID]})
    desk.land(NAME, {"id": 1})
    desk.ingest()
    rows = pa.table({"id": pa.array([5], pa.int64())})
    write_deltalake(str(desk.table), rows, mode="append")
    (theirs,) = [path.name for path in desk.table.glob("part-*.parquet")]
    answer = why(desk, theirs)
    assert (answer["kind"], answer["state"], answer["reason"]) == ("data", "foreign", "in_table")
    uuid = theirs.removeprefix("part-00001-").removeprefix("part-00000-")[:36]
    assert why(desk, uuid)["path"] == theirs


def test_a_data_file_of_another_program_in_a_folder_is_found_by_its_bare_name(
    tmp_path: Path,
) -> None:
    desk = Taken(tmp_path, {"fields": [ID]})
    desk.land(NAME, {"id": 1})
    desk.ingest()
    name = "0192f0c1-2f3a-7d4e-8a5b-0123456789ab"
    file = desk.table / f"d/{name}.parquet"
    file.parent.mkdir()
    pq.write_table(pa.table({"id": pa.array([5], pa.int64())}), file)
    facts = {"size": file.stat().st_size, "modificationTime": 1, "dataChange": True}
    add = {"add": {"path": f"d/{name}.parquet", "partitionValues": {}, **facts}}
    desk.store.create(log_version(desk.version + 1), json.dumps(add).encode())
    for asked in (name, f"{name}.parquet"):
        answer = why(desk, asked)
        assert (answer["state"], answer["reason"]) == ("foreign", "in_table")
        assert answer["path"] == f"d/{name}.parquet"
