"""`why` and `files` give one answer about rows that other engines, erasures and replays moved."""

import json
from pathlib import Path
from shutil import rmtree

import pytest
from deltalake import DeltaTable

from tests.support.retractions import Taken

FIELDS = [{"name": "id", "type": "int64"}]
INLINE = {"commit": "inline"}
pytestmark = pytest.mark.unbalanced("rows_removed", "rows_back")  # By another engine.


class Asked(Taken):
    """A table whose commands answer in JSON."""

    def restore(self, version: int) -> None:
        DeltaTable(str(self.table)).restore(version)

    def states(self, name: str) -> tuple[str, str, int]:
        """Return the state of a file by `why` and by `files`, and the exit code of a check."""
        why = json.loads(self.cli("why", name, "--output", "json").stdout)
        listed = self.cli("files", name, "--output", "json").stdout.splitlines()
        files = [one for one in map(json.loads, listed) if not one["overwritten"]]
        check = self.cli("files", "--check").exit_code
        return why["state"], files[-1]["state"], check

    def said(self, name: str) -> str:
        return str(json.loads(self.cli("why", name, "--output", "json").stdout)["answer"])


def asked(folder: Path, **more) -> Asked:
    return Asked(folder, {"fields": FIELDS}, **more)


def test_a_file_whose_last_row_was_erased_is_in_without_rows(tmp_path):
    lake = asked(tmp_path, **INLINE)
    lake.land("a.ndjson", {"id": 1})
    lake.ingest()
    lake.cli("erase", "--where", "id = 1", "--yes")
    assert lake.states("a.ndjson") == ("in_table", "in_table", 0)
    assert "0 rows" in lake.said("a.ndjson")


def test_new_content_that_failed_and_was_deleted_is_lost_until_it_is_given_up(tmp_path):
    lake = asked(tmp_path, source={"on_change": "replace"}, **INLINE)
    lake.land("a.ndjson", {"id": 1}, {"id": 2})
    lake.ingest()
    lake.land("a.ndjson", {"id": "x"})
    lake.ingest()
    (lake.landing.folder / "a.ndjson").unlink()
    lake.ingest()
    assert lake.states("a.ndjson") == ("failed", "failed", 1)
    assert "was read with entry 1; its rows may be in the table" in lake.said("a.ndjson")
    assert lake.cli("dlq", "discard", "a.ndjson", "--yes").exit_code == 0
    assert lake.states("a.ndjson") == ("in_table", "discarded", 0)


def test_rows_of_earlier_content_that_a_restore_took_out_are_not_in(tmp_path):
    lake = asked(tmp_path, source={"on_change": "reingest"}, **INLINE)
    lake.land("a.ndjson", {"id": 1}, {"id": 2})
    lake.ingest()
    lake.land("a.ndjson", {"id": 3})
    lake.restore(0)
    lake.ingest()
    assert lake.states("a.ndjson")[:2] == ("in_table", "in_table")
    assert "stay beside it" not in lake.said("a.ndjson")


def test_rows_to_be_replaced_or_retracted_that_a_restore_took_out_are_not_in(tmp_path):
    lake = asked(tmp_path)
    for name in ("a", "b"):
        lake.land(f"{name}.ndjson", {"id": 1}, {"id": 2})
    lake.ingest()
    lake.cli("retract", "b.ndjson", "--yes")
    lake.restore(0)
    assert lake.states("b.ndjson") == ("removed", "removed", 1)
    lake.restore(1)
    lake.penguin()
    lake.cli("retract", "a.ndjson", "--replace", "a.ndjson", "--yes")
    lake.restore(0)
    assert "in the table" not in lake.said("a.ndjson").partition("Until then")[2]
    listed = lake.cli("files", "a.ndjson", "--output", "json").stdout.splitlines()
    before = [one["state"] for one in map(json.loads, listed) if one["overwritten"]]
    assert before == ["removed"]
    lake.penguin()
    assert "which are in the table" not in lake.cli("files").stdout


def test_a_part_of_the_rows_removed_keeps_the_day_open(tmp_path):
    partition = {"prefix_template": "day=%Y-%m-%d", "timestamp_field": "at"}
    fields = [*FIELDS, {"name": "at", "type": "timestamp"}]
    lake = Asked(tmp_path, {"fields": fields}, partition_by=partition, commit="inline")
    days = ("2024-01-01", "2024-01-02")
    lake.land("a.ndjson", *({"id": n, "at": f"{day}T00:00:00Z"} for n, day in enumerate(days)))
    lake.ingest()
    DeltaTable(str(lake.table)).delete(f"day = '{days[0]}'")
    assert lake.states("a.ndjson") == ("removed", "removed", 1)
    (answer,) = map(json.loads, lake.cli("why", "a.ndjson", "--output", "json").stdout.splitlines())
    assert [one["own_rows"] for one in answer["data_files"] if one["state"] == "removed"] == [1]


@pytest.mark.parametrize("replayed_first", [True, False], ids=["then-restored", "after-restore"])
def test_replayed_lines_do_not_hide_removed_rows(tmp_path, replayed_first):
    bad_lines = {"error_handling": {"on_bad_record": "quarantine"}}
    lake = asked(tmp_path, more=bad_lines, **INLINE)
    lake.land("a.ndjson", {"id": 1}, {"id": "2"})
    lake.ingest()
    lake.configure({"fields": FIELDS, "coerce": True})
    replay = ("dlq", "replay", "--all", "--yes")
    if replayed_first:
        assert lake.cli(*replay).exit_code == 0
    lake.restore(0)
    if not replayed_first:
        assert lake.cli(*replay).exit_code == 0
    assert lake.states("a.ndjson") == ("removed", "removed", 1)


@pytest.mark.parametrize("rows", [[], [{"id": 1}]], ids=["its-only-row", "beside-others"])
def test_rows_of_replayed_lines_are_journaled_until_they_are_committed(tmp_path, rows):
    lake = asked(tmp_path, more={"error_handling": {"on_bad_record": "quarantine"}})
    lake.land("a.ndjson", *rows, {"id": "2"})
    lake.ingest()
    lake.configure({"fields": FIELDS, "coerce": True})
    assert lake.cli("dlq", "replay", "--all", "--yes").exit_code == 0
    assert lake.states("a.ndjson") == ("journaled", "journaled", 1)
    lake.penguin()
    assert lake.states("a.ndjson") == ("in_table", "in_table", 0)


def test_retracted_rows_that_a_restore_brought_back_are_in(tmp_path):
    lake = asked(tmp_path, **INLINE)
    lake.land("a.ndjson", {"id": 1})
    lake.land("b.ndjson", {"id": 2})
    lake.ingest()
    version = lake.version
    lake.cli("retract", "a.ndjson", "--yes")
    assert lake.states("a.ndjson")[:2] == ("retracted", "retracted")
    lake.restore(version)
    assert lake.states("a.ndjson")[:2] == ("in_table", "in_table")
    assert "complete: 2 files, 2 rows," in " ".join(lake.cli("files").stdout.split())
    assert "NOT in the table" not in lake.cli("status").stdout


def test_rows_that_another_engine_moved_can_be_retracted(tmp_path):
    lake = Asked(tmp_path, {"fields": FIELDS, "provenance": ["file"]}, commit="inline")
    lake.land("a.ndjson", {"id": 1})
    lake.land("c.ndjson", {"id": 2}, {"id": 3})
    lake.ingest()
    lake.land("d.ndjson", {"id": 4})
    lake.ingest()
    DeltaTable(str(lake.table)).optimize.compact()
    assert lake.states("c.ndjson") == ("in_table", "in_table", 0)
    assert lake.cli("retract", "c.ndjson", "--yes").exit_code == 0
    assert lake.states("c.ndjson")[:2] == ("retracted", "retracted")
    assert lake.states("a.ndjson") == ("in_table", "in_table", 0)
    assert "complete: 3 files, 2 rows," in " ".join(lake.cli("files").stdout.split())


@pytest.mark.parametrize("is_back", [True, False], ids=["restored", "retracted"])
@pytest.mark.parametrize("others", [[], [{"id": 9}]], ids=["alone", "shared data file"])
def test_retracted_content_that_came_back_stays_beside_what_is_read_since(
    tmp_path, is_back, others
):
    lake = asked(tmp_path, source={"on_change": "reingest"}, **INLINE)
    lake.land("a.ndjson", {"id": 1}, {"id": 2})
    if others:
        lake.land("c.ndjson", *others)
    lake.ingest()
    lake.land("b.ndjson", {"id": 3})
    lake.ingest()
    version = lake.version
    lake.cli("retract", "a.ndjson", "--yes")
    if is_back:
        lake.restore(version)
    lake.land("a.ndjson", {"id": 21})
    lake.ingest()
    assert (1 in lake.ids()) is is_back
    assert "It is in the table: 1 row from 1 line" in lake.said("a.ndjson")


def test_content_that_a_restore_brought_back_in_the_place_of_new_is_shown(tmp_path):
    lake = asked(tmp_path, source={"on_change": "replace"}, **INLINE)
    lake.land("a.ndjson", {"id": 1}, {"id": 2})
    lake.ingest()
    version = lake.version
    lake.land("a.ndjson", {"id": 3})
    lake.ingest()
    lake.restore(version)
    assert lake.ids() == [1, 2]
    assert lake.states("a.ndjson") == ("removed", "removed", 1)
    why = json.loads(lake.cli("why", "a.ndjson", "--output", "json").stdout)
    assert "That also undid the replacement of its earlier content" in why["answer"]
    replace = why["next"][-1]["commands"][-1]
    assert replace.endswith("retract in:a.ndjson --replace in:a.ndjson --yes")
    assert lake.cli(*replace.split()[3:]).exit_code == 0
    assert lake.ids() == [3]
    assert lake.states("a.ndjson") == ("in_table", "in_table", 0)


@pytest.mark.parametrize("journals", [1, 2])
def test_rows_read_under_an_earlier_journal_that_a_restore_took_out_are_not_in(tmp_path, journals):
    lake = asked(tmp_path, **INLINE)
    lake.land("a.ndjson", {"id": 1}, {"id": 2})
    lake.ingest()
    version = lake.version
    lake.land("b.ndjson", {"id": 3})
    lake.ingest()
    for number in range(journals):
        lake.ingest()
        lake.ends_well()
        before, lake.pipeline = lake.pipeline, f"later{number}"
        lake.configure({"fields": FIELDS})
        done = lake.cli("journal", "new", "--from", before, "--yes")
        assert done.exit_code == 0, done.output
    lake.land("c.ndjson", {"id": 4})
    lake.ingest()
    assert lake.states("b.ndjson") == ("in_table", "in_table", 0)
    lake.restore(version)
    assert lake.states("b.ndjson") == lake.states("c.ndjson") == ("removed", "removed", 1)
    assert "with an earlier journal and committed, and rows of it have been" in lake.said(
        "b.ndjson"
    )
    assert lake.states("a.ndjson")[:2] == ("in_table", "in_table")
    assert lake.cli("audit").exit_code == 1
    lake.restore(lake.version - 1)
    assert lake.states("b.ndjson") == ("in_table", "in_table", 0)


@pytest.mark.unbalanced("journal_missing", "rows_removed", "entry_missing", "file_unnamed")
def test_files_of_an_earlier_journal_that_is_deleted_are_answered_by_what_is_left(tmp_path):
    lake = asked(tmp_path, **INLINE)
    for name in ("a.ndjson", "b.ndjson"):
        lake.land(name, {"id": 1})
        lake.ingest()
    lake.ends_well()
    ours = lake.table / "_blizzard" / lake.pipeline
    max((ours / "journal").iterdir()).unlink()
    assert lake.cli("journal", "new", "--from", lake.pipeline, "--yes").exit_code == 0
    lake.land("c.ndjson", {"id": 3})
    lake.ingest()
    lake.restore(0)
    assert lake.states("a.ndjson")[:2] == ("removed", "removed")
    (kept,) = ours.glob("journal-*")
    rmtree(kept)
    assert lake.states("a.ndjson")[:2] == ("in_table", "in_table")
