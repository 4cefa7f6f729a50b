"""A compaction beside other writers: whoever else comes first, wins, and nobody loses a commit."""

from functools import partial

import pytest
from deltalake import DeltaTable, write_deltalake

from penguin.delta.table import Log
from penguin.events.commits import EntryRejected
from tests.support.builders import entries
from tests.support.compactions import crowded
from tests.support.runner import RewriteRace
from tests.support.tables import before_commit

ALL = list(range(10))


@pytest.fixture
def desk(tmp_path):
    return crowded(tmp_path)


def committed(desk, open_log=Log):
    """Let penguin commit everything; return the compactions that gave way."""
    return desk.events_of_penguin(EntryRejected, open_log)


def optimize(desk):
    DeltaTable(str(desk.table)).optimize.compact()


def delete(desk):
    DeltaTable(str(desk.table)).delete("id = 1")


def parquet_files(desk):
    return {path.name for path in desk.table.glob("*.parquet")}


@pytest.mark.parametrize("other", [optimize, delete])
@pytest.mark.unbalanced("rows_removed")
def test_another_program_that_comes_while_files_are_written_wins_and_they_are_dropped(desk, other):
    known = parquet_files(desk)
    done = desk.tidy(runner=RewriteRace(after=lambda: other(desk)))
    assert done.entry is None
    assert "another writer changed these files" in done.conflict
    named = {path.rpartition("/")[2] for path in desk.active}
    assert parquet_files(desk) <= known | named
    assert [one.kind for one in entries(desk.table)].count("compact") == 0


def test_appends_of_others_between_plan_and_commit_cost_nobody_a_commit(desk):
    desk.compact()
    row = DeltaTable(str(desk.table)).to_pyarrow_table().slice(0, 1)

    append = partial(write_deltalake, str(desk.table), row, mode="append")
    assert committed(desk, before_commit(append, times=2)) == []
    assert len(desk.rows()) == 12
    assert len(desk.active) == 3


@pytest.mark.parametrize("committed", [False, True])
def test_a_retraction_that_comes_meanwhile_comes_first(desk, committed):
    retract = desk.take_back if committed else desk.retract
    done = desk.tidy(runner=RewriteRace(after=lambda: retract("2.ndjson")))
    assert done.entry is None
    assert committed or "the retraction in entry 6 is not committed yet" in done.conflict
    assert desk.ids() == [0, 1, 2, 3, 6, 7, 8, 9]
    assert desk.tidy().entry is not None
    assert len(desk.active) == 1


def test_two_compactions_at_once_are_one(desk):
    def happens():
        if not [one for one in entries(desk.table) if one.kind == "compact"]:
            desk.compact()

    done = desk.tidy(runner=RewriteRace(after=happens))
    assert "the compaction in entry 6 is not committed yet" in done.conflict
    assert [one.kind for one in entries(desk.table)].count("compact") == 1
    assert (len(desk.active), desk.ids()) == (1, ALL)


def test_files_that_a_waiting_retraction_of_another_pipeline_replaces_are_left_to_it(tmp_path):
    ours, theirs = crowded(tmp_path), crowded(tmp_path, pipeline="other", files=0)
    theirs.land("a.ndjson", {"id": 50, "user": "x"})
    theirs.ingest()
    theirs.erase("user = 'user-3'")
    done = ours.tidy()
    assert [len(one.old) for one in done.replaced] == [4]
    assert ours.ids() == [number for number in [*ALL, 50] if number != 3]


def test_garbage_collection_while_files_are_written_is_noticed(desk):
    def happens():
        assert desk.cli("gc", "--delete", "--older-than", "0s").exit_code == 0

    done = desk.tidy(runner=RewriteRace(after=happens))
    assert "blizzard gc" in done.conflict
    assert desk.ids() == ALL
    assert desk.tidy().entry is not None
    assert len(desk.active) == 1


@pytest.mark.unbalanced("file_gone")
def test_a_merge_that_cannot_be_done_leaves_the_files_and_a_run_goes_on(desk):
    (desk.table / min(desk.active)).unlink()
    done = desk.compact()
    assert done.entry is None
    assert [one.code for one in done.failed] == ["object_missing"]
