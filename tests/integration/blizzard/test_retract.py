"""Rows of source files taken out of the table, in one process with the real programs."""

import json
import shutil

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from blizzard.rewrite.retract import RowOriginsUnknown, SourceNotRetractable
from blizzard.rewrite.transaction import NotRewritten, PromotionPending
from penguin.cli.app import app as penguin_app
from tests.support.builders import entries
from tests.support.landing import Landing
from tests.support.promotions import ID, PRICE
from tests.support.retractions import Taken

QUARANTINE = {"error_handling": {"on_bad_record": "quarantine"}}


def landed(tmp_path, *given, **more):
    desk = Taken(tmp_path, *given, **more)
    desk.land("a.ndjson", {"id": 1}, {"id": 2})
    desk.land("b.ndjson", {"id": 3}, {"id": 4})
    desk.land("c.ndjson", {"id": 5})
    desk.ingest()
    return desk


@pytest.fixture
def desk(tmp_path):
    return landed(tmp_path)


def test_the_rows_of_one_of_several_files_in_a_data_file_go(desk):
    """They are not read again, twice is as once, and an earlier version still has them."""
    before = desk.version
    done = desk.retract("b.ndjson")
    assert dict(done.rows) == {"in:b.ndjson": 2}
    entry = entries(desk.table)[-1]
    assert sum(one.rows for one in entry.sources) == entry.left_out == 2
    desk.penguin()
    assert desk.ids() == [1, 2, 5]
    assert desk.ids(before) == [1, 2, 3, 4, 5]
    assert desk.audited().totals.rows == 5
    assert desk.amounts() == {"in_table": 3, "replaced": 3, "retracted": 2}
    (told, *_others) = DeltaTable(str(desk.table)).history(1)
    assert told["penguin"]["retracted"] == {"rows": 2}
    log = (desk.table / "_delta_log" / f"{desk.version:020}.json").read_text()
    assert log.count('"dataChange":true') == 2
    assert '"txn"' in log
    desk.ingest()
    assert desk.ids() == [1, 2, 5]
    again = desk.take_back("b.ndjson")
    assert again.entry is None
    desk.take_back("a.ndjson")
    assert desk.ids() == [5]
    assert desk.audited().totals.rows == 5


def test_a_data_file_with_no_other_rows_goes_without_a_new_one(tmp_path):
    desk = Taken(tmp_path)
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2})
    desk.ingest()
    done = desk.take_back("a.ndjson")
    assert [one.new for one in done.replaced] == [()]
    assert desk.ids() == [2]
    assert desk.amounts() == {"in_table": 1, "retracted": 1}


def test_a_file_is_named_by_its_path_its_key_or_its_uri(desk):
    desk.take_back("in:a.ndjson", f"{desk.landing.folder}/c.ndjson")
    assert desk.ids() == [3, 4]
    desk.take_back("b.ndjson")
    assert desk.ids() == []


@pytest.mark.parametrize("renamed", [False, True])
def test_what_a_snapshot_or_the_journal_of_a_renamed_pipeline_knows_can_be_taken_back(
    desk, renamed
):
    if renamed:
        desk.ends_well()
        desk.pipeline = "renamed"
        desk.configure({"fields": [ID]})
        begun = desk.cli("journal", "new", "--from", "default", "--yes")
        assert begun.exit_code == 0, begun.output
    else:
        desk.writes_a_snapshot()
    desk.take_back("b.ndjson")
    if not renamed:
        desk.writes_a_snapshot()
    desk.land("d.ndjson", {"id": 6})
    desk.ingest()
    assert desk.ids() == [1, 2, 5, 6]
    assert (
        json.loads(desk.cli("why", "b.ndjson", "--output", "json").stdout)["state"] == "retracted"
    )


def test_rows_in_each_partition_go(tmp_path):
    desk = Taken(tmp_path, partition_by={"prefix_template": "date=%Y-%m-%d"})
    for day in ("2024-01-01", "2024-01-02"):
        desk.land(f"date={day}/a.ndjson", {"id": int(day[-1])})
        desk.land(f"date={day}/b.ndjson", {"id": int(day[-1]) + 10})
    desk.ingest()
    desk.take_back("date=2024-01-02/a.ndjson", "date=2024-01-01/b.ndjson")
    assert [(row["id"], str(row["date"])) for row in desk.rows()] == [
        (1, "2024-01-01"),
        (12, "2024-01-02"),
    ]


def test_after_optimize_rows_are_told_apart_by_their_file_column(tmp_path):
    desk = landed(tmp_path, {"fields": [ID], "provenance": ["file"]})
    desk.land("d.ndjson", {"id": 6})
    desk.ingest()
    desk.optimize()
    done = desk.take_back("b.ndjson", "d.ndjson")
    assert dict(done.rows) == {"in:b.ndjson": 2, "in:d.ndjson": 1}
    assert desk.ids() == [1, 2, 5]
    desk.take_back("a.ndjson")
    assert desk.ids() == [5]


def test_after_optimize_without_that_column_it_is_refused(desk):
    desk.land("d.ndjson", {"id": 6})
    desk.ingest()
    desk.optimize()
    before = desk.version
    with pytest.raises(RowOriginsUnknown, match=r"in:b\.ndjson .*Nothing was changed"):
        desk.retract("b.ndjson")
    assert desk.version == before
    assert [one.kind for one in entries(desk.table)][-1] == "batch"


def test_rows_that_somebody_else_has_deleted_need_not_be_told_apart(tmp_path):
    desk = Taken(tmp_path)
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2})
    desk.ingest()
    version = desk.version
    DeltaTable(str(desk.table)).delete("id = 1")
    assert desk.retract("a.ndjson").entry is None
    DeltaTable(str(desk.table)).restore(version)
    assert desk.take_back("a.ndjson").entry is not None
    assert desk.ids() == [2]


def test_the_rows_of_another_pipeline_stay(tmp_path):
    desk = landed(tmp_path)
    other = Taken(tmp_path, pipeline="other")
    other.land("b.ndjson", {"id": 30})
    other.ingest()
    desk.take_back("b.ndjson")
    assert desk.ids() == [1, 2, 5, 30]
    other.take_back("b.ndjson")
    assert desk.ids() == [1, 2, 5]


def test_after_a_promotion_and_before_one(tmp_path):
    desk = Taken(tmp_path)
    for number, name in enumerate(("a", "b", "c"), start=1):
        desk.land(f"{name}.ndjson", f'{{"id":{number},"price":{number}.25,"x":{number}}}')
    desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    with pytest.raises(PromotionPending, match="promotion in entry 2"):
        desk.retract("b.ndjson")
    desk.penguin()
    desk.retract("b.ndjson")
    desk.configure({"fields": [ID, PRICE, {"name": "x", "type": "int64"}]})
    with pytest.raises(PromotionPending, match="retraction in entry 3"):
        desk.promote("x")
    desk.penguin()
    desk.promote("x")
    desk.penguin()
    found = [(row["id"], str(row["price"]), row["x"]) for row in desk.rows()]
    assert found == [(1, "1.25", 1), (3, "3.25", 3)]
    desk.take_back("c.ndjson")
    assert desk.ids() == [1]


def test_what_is_not_committed_yet_failed_or_is_unknown_is_refused(desk):
    desk.land("d.ndjson", {"id": 6})
    desk.land("f.ndjson", "{nope")
    desk.blizzard()
    with pytest.raises(SourceNotRetractable, match="run penguin first"):
        desk.retract("d.ndjson")
    with pytest.raises(SourceNotRetractable, match="knows no source file"):
        desk.retract("in:e.ndjson")
    desk.take_back("b.ndjson")
    assert desk.ids() == [1, 2, 5, 6]
    with pytest.raises(SourceNotRetractable, match="failed, and no row of it is in the table"):
        desk.retract("f.ndjson")


@pytest.mark.unbalanced("file_size_differs", "file_damaged")
def test_a_truncated_data_file_is_reported_with_the_way_out(desk):
    (name,) = desk.active
    path = desk.table / name
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(NotRewritten, match="it is damaged: run penguin fsck") as refused:
        desk.retract("b.ndjson")
    assert str(refused.value).count("try again") == 0


def test_bad_lines_that_wait_are_given_up_and_rows_of_replayed_ones_go(tmp_path):
    desk = Taken(tmp_path, more=QUARANTINE)
    desk.land("a.ndjson", {"id": 1}, {"id": "2"}, {"id": "x"})
    desk.land("b.ndjson", {"id": 3}, {"id": "4"}, {"id": "y"})
    desk.ingest()
    desk.configure({"fields": [ID], "coerce": True})
    assert desk.cli("dlq", "replay", "--all", "--yes").exit_code == 0
    desk.penguin()
    assert desk.ids() == [1, 2, 3, 4]
    done = desk.take_back("a.ndjson")
    assert (dict(done.rows), done.found.waiting_lines) == ({"in:a.ndjson": 2}, 1)
    assert desk.ids() == [3, 4]
    totals = desk.audited().totals
    assert (totals.discarded, totals.bad_lines_waiting, totals.replayed) == (1, 1, 2)


def test_replayed_lines_that_are_too_scattered_to_list_are_told_apart_by_their_file(tmp_path):
    desk = Taken(tmp_path, more=QUARANTINE)
    for place, name in enumerate(("a", "b")):
        ids = (1000 * place + number for number in range(160))
        desk.land(f"{name}.ndjson", *({"id": str(one) if one % 2 else one} for one in ids))
    desk.ingest()
    desk.configure({"fields": [ID], "coerce": True})
    assert desk.cli("dlq", "replay", "--all", "--yes").exit_code == 0
    desk.penguin()
    desk.take_back("a.ndjson")
    assert desk.ids() == list(range(1000, 1160))


def test_a_source_that_has_moved_since_is_found_in_the_rows_of_an_optimize(tmp_path):
    desk = landed(tmp_path, {"fields": [ID], "provenance": ["file"]})
    desk.land("d.ndjson", {"id": 6})
    desk.ingest()
    before = desk.landing.folder
    desk.landing = Landing(tmp_path / "moved")
    before.rename(desk.landing.folder)
    desk.configure({"fields": [ID], "provenance": ["file"]})
    desk.ends_well()
    moved = desk.cli("source", "set", "in", "--same-files", "--yes")
    assert moved.exit_code == 0, moved.output
    desk.ingest()
    desk.optimize()
    desk.take_back("b.ndjson")
    assert desk.ids() == [1, 2, 5, 6]


def test_a_log_that_was_lost_and_is_replayed_has_the_rows_no_more(desk):
    desk.take_back("b.ndjson")
    shutil.rmtree(desk.table / "_delta_log")
    replayed = CliRunner().invoke(penguin_app, ["replay", "--yes", "-c", str(desk.file)])
    assert replayed.exit_code == 0, replayed.output
    desk.penguin()
    desk.penguin()
    assert desk.ids() == [1, 2, 5]


NAME = {"name": "name", "type": "string"}
TELLS = {"fields": [ID, NAME], "provenance": ["file"]}
BY_DAY = {"prefix_template": "date=%Y-%m-%d"}


def row(number, name="x"):
    return {"id": number, "name": name}


@pytest.fixture
def tells(tmp_path):
    tells = Taken(tmp_path, TELLS)
    tells.land("a.ndjson", row(1), row(2))
    tells.land("b.ndjson", row(3), row(4))
    tells.ingest()
    return tells


def change(tells, where, **updates):
    DeltaTable(str(tells.table)).update(updates=updates, predicate=where)


def test_rows_of_a_file_that_an_update_wrote_are_found_and_taken_back(tells):
    """How many rows go is known before anything is done."""
    change(tells, "id = 3", name="'changed'")
    traced = tells.cli("trace", "--where", "name = 'changed'", "--output", "json")
    assert traced.exit_code == 0, traced.output
    assert json.loads(traced.stdout)["values"]["name"] == "changed"
    shown = tells.cli("retract", "b.ndjson")
    assert shown.exit_code == 1, shown.output
    assert "pipeline default: 2 rows of 1 source file" in shown.stdout
    assert "identified by _file" in shown.stdout
    assert json.loads(tells.cli("retract", "b.ndjson", "--output", "json").stdout)["rows"] == 2
    assert dict(tells.take_back("b.ndjson").rows) == {"in:b.ndjson": 2}
    assert tells.ids() == [1, 2]


@pytest.mark.unbalanced("rows_removed")
def test_rows_of_a_file_that_a_delete_wrote_are_erased(tells):
    DeltaTable(str(tells.table)).delete("id = 3")
    erased = tells.cli("erase", "--where", "name = 'x' and id = 4", "--yes", "--output", "json")
    assert erased.exit_code == 0, erased.output
    tells.penguin()
    assert tells.ids() == [1, 2]


def test_rows_that_an_update_has_moved_to_another_partition_go_too(tmp_path):
    tells = Taken(tmp_path, TELLS, partition_by=BY_DAY)
    for day in ("2024-01-01", "2024-01-02", "2024-01-03"):
        tells.land(f"date={day}/a.ndjson", row(int(day[-1])))
    tells.ingest()
    change(tells, "id = 1", date="'2024-01-03'")
    found = tells.look("date=2024-01-01/a.ndjson").rows
    assert [one.partition_values for one in found.unnamed] == [{"date": "2024-01-03"}]
    tells.take_back("date=2024-01-01/a.ndjson")
    assert tells.ids() == [2, 3]


def test_files_without_such_rows_are_left_alone(tells):
    tells.land("c.ndjson", row(5))
    tells.ingest()
    change(tells, "id >= 3", name="'changed'")
    assert len(tells.look("c.ndjson").rows.unnamed) == 1
