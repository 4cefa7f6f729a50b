"""A table that somebody restored to a version before a compaction: no row twice, none unnoticed."""

import re

import pytest
from deltalake import DeltaTable

from tests.support.compactions import Crowded, crowded
from tests.support.erasures import FIELDS


@pytest.fixture
def desk(tmp_path):
    return crowded(tmp_path, compact={"min_files": 2}, files=3)


def restore(desk, version):
    DeltaTable(str(desk.table)).restore(version)


def kinds(desk):
    return {one.kind.value for one in desk.audited().differences}


def arrives(desk, number):
    desk.land(f"{number}.ndjson", *({"id": 2 * number + place, "user": "x"} for place in (0, 1)))
    desk.ingest()


@pytest.mark.parametrize("back", [1, 2], ids=["and a batch", "the compaction alone"])
def test_what_a_restore_took_out_comes_back_once_where_it_was_compacted(desk, back):
    before = desk.version - 2 + back
    desk.tidy()
    arrives(desk, 3)
    restore(desk, before)
    assert desk.order("replay", "--yes").exit_code == 0
    assert desk.ids() == list(range(8))
    assert desk.audited().is_balanced, desk.audited().differences
    assert desk.order("replay", "--yes").exit_code == 0
    desk.tidy()
    assert (desk.ids(), len(desk.active)) == (list(range(8)), 1)


def test_a_restore_that_undid_a_compaction_and_nothing_else_needs_no_replay(desk):
    before = desk.version
    desk.tidy()
    restore(desk, before)
    assert "nothing" in desk.order("replay").output
    assert desk.ids() == list(range(6))
    assert desk.audited().is_balanced, desk.audited().differences


@pytest.mark.unbalanced("rows_back")
def test_erased_rows_that_came_back_with_files_of_before_a_compaction_are_reported(desk):
    """An erasure of other rows does not hide them."""
    before = desk.version
    desk.tidy()
    desk.forget("id <= 1")
    assert desk.audited().is_balanced
    restore(desk, before)
    assert kinds(desk) == {"rows_back"}
    desk.tidy()
    assert desk.ids() == list(range(6))
    assert kinds(desk) == {"rows_back"}
    desk.forget("id = 2 or id = 3")
    assert desk.ids() == [0, 1, 4, 5]
    assert kinds(desk) == {"rows_back"}


@pytest.mark.unbalanced("rows_back")
def test_erased_rows_that_came_back_are_reported_wherever_a_compaction_put_them(desk):
    desk.tidy()
    compacted = desk.version
    desk.forget("id <= 1")
    restore(desk, compacted)
    assert kinds(desk) == {"rows_back"}
    arrives(desk, 3)
    arrives(desk, 4)
    arrives(desk, 5)
    desk.tidy()
    assert (len(desk.active), desk.ids()) == (1, list(range(12)))
    assert kinds(desk) == {"rows_back"}


@pytest.mark.parametrize(("how", "compacts"), [("retract", True), ("erase", False)])
def test_rows_that_came_back_and_were_taken_out_again_are_not_reported(desk, how, compacts):
    before = desk.version
    desk.tidy()
    desk.forget("id <= 1")
    restore(desk, before)
    if compacts:
        desk.tidy()
    if how == "erase":
        desk.forget("id <= 1")
    else:
        desk.take_back("0.ndjson")
    assert desk.ids() == list(range(2, 6))
    assert desk.audited().is_balanced, desk.audited().differences


@pytest.mark.parametrize(("how", "arrived"), [("retract", True), ("erase", False)])
def test_a_replay_that_is_refused_names_a_way_out_that_works(desk, how, arrived):
    """Rows that were taken out before the RESTORE are out again, and no other row is missing."""
    before = desk.version
    desk.tidy()
    if how == "erase":
        desk.forget("id <= 1")
    else:
        desk.take_back("0.ndjson")
    arrives(desk, 3)
    restore(desk, before)
    if arrived:
        arrives(desk, 4)
    refused = desk.order("replay", "--yes")
    assert refused.exit_code == 1
    assert "(UPDATE by penguin" in refused.output or "(DELETE by penguin" in refused.output
    (version,) = re.findall(r"restore the table to version (\d+)", " ".join(refused.output.split()))
    restore(desk, int(version))
    assert desk.ids() == list(range(2, 8))
    for _ in range(2):
        assert desk.order("replay", "--yes").exit_code == 0
        assert desk.ids() == list(range(2, 10 if arrived else 8))
    assert desk.audited().is_balanced, desk.audited().differences


@pytest.mark.unbalanced("rows_back")
def test_rows_that_came_back_are_reported_after_another_pipeline_took_the_journal_over(desk):
    before = desk.version
    desk.tidy()
    desk.ends_well()
    later = Crowded(desk.folder, FIELDS, pipeline="later")
    later.landing = desk.landing
    later.configure(FIELDS)
    assert later.cli("journal", "new", "--from", "default", "--yes").exit_code == 0
    later.blizzard()
    later.take_back("0.ndjson")
    assert later.audited().is_balanced, later.audited().differences
    restore(desk, before)
    assert (kinds(later), later.ids()) == ({"rows_back"}, list(range(6)))


@pytest.mark.parametrize("compacts", [True, False], ids=["compacted", "as they were"])
@pytest.mark.parametrize("by", ["on_change", "2.ndjson", "3.ndjson"])
def test_rows_are_not_put_back_beside_those_that_they_supersede(tmp_path, by, compacts):
    on_change, new = ("replace", "2.ndjson") if by == "on_change" else ("error", by)
    desk = crowded(tmp_path, files=3, compact={"min_files": 2}, source={"on_change": on_change})
    before = desk.version
    restore(desk, before - 1)
    desk.land(new, {"id": 4}, {"id": 5}, {"id": 6})
    if on_change == "error":
        desk.replace("2.ndjson", by=new)
    desk.ingest()
    assert desk.ids() == list(range(7))
    if by == "3.ndjson":
        assert "0 rows left the table with it" in desk.cli("why", "2.ndjson").output
    restore(desk, before)
    if compacts:
        desk.tidy()
    refused = desk.order("replay", "--yes")
    assert refused.exit_code == 1
    words = " ".join(refused.output.split())
    assert "rows that entry 4 of pipeline default supersedes are in the table again" in words
    (command,) = re.findall(r"`blizzard (retract .*?)`", words)
    assert command == f"retract in:2.ndjson --replace in:{new} --yes -p default"
    assert desk.ids() == list(range(6))
    removed, back = sorted(one.message for one in desk.audited().differences)[::-1]
    assert "; blizzard retract --replace puts back those that supersede others; " in removed
    assert "entry 4 supersedes" in back
    desk.replace("in:2.ndjson", by=f"in:{new}")
    desk.penguin()
    assert "nothing" in desk.order("replay", "--yes").output
    assert desk.ids() == list(range(7))
    assert desk.audited().is_balanced, desk.audited().differences
