"""Rows of a table that tracks them: moved to another file, they keep their ids and versions."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lakebed.errors import LakeError, TableUnsupported
from penguin.upkeep.repair import RepairOrder
from tests.support.mapped import added
from tests.support.row_tracking import (
    FIELDS,
    IDS,
    NAMED,
    VERSIONS,
    but,
    fill,
    in_files,
    make_tracked,
    move_about,
    tracking,
)


def committed(desk, kind, version=None):
    """Return the actions of a kind in a version, the last one where none is named."""
    number = desk.version if version is None else version
    lines = (desk.table / "_delta_log" / f"{number:020}.json").read_text().splitlines()
    return [told[kind] for told in map(json.loads, lines) if kind in told]


@pytest.mark.parametrize("mapped", [False, True], ids=["plain", "mapped"])
def test_rows_keep_their_ids_in_whichever_file_they_are(tmp_path, mapped):
    desk = tracking(tmp_path)
    make_tracked(desk, mapped=mapped)
    fill(desk)
    name = "col-1" if mapped else "id"
    left = move_about(desk, lambda: in_files(desk, name))
    assert set(left) == {0, 1, 4, 6, 7}
    assert desk.audited().is_balanced
    # Nothing but files has these columns.
    seen = pa.table(DeltaTable(str(desk.table)).scan().read_all())
    assert set(seen.column_names) == {"id", "user", "_file", "_rescued", "price"}
    assert set(seen["id"].to_pylist()) == set(left)
    for told in added(desk).values():
        assert IDS not in told["stats"]
    assert IDS not in desk.cli("trace", "--where", "id = 4", "--output", "json").stdout


def test_a_version_says_which_ids_go_and_that_the_others_are_kept(tmp_path):
    desk = tracking(tmp_path)
    make_tracked(desk)
    fill(desk)
    files = {
        path: (one["baseRowId"], one["defaultRowCommitVersion"])
        for path, one in added(desk).items()
    }
    desk.forget("id = 2")
    (gone,) = committed(desk, "remove")
    assert (gone["baseRowId"], gone["defaultRowCommitVersion"]) == files[gone["path"]] == (2, 2)
    (new,) = committed(desk, "add")
    # The ids of the file itself are new: no two files may have the same.
    assert (new["baseRowId"], new["defaultRowCommitVersion"]) == (8, desk.version)
    (domain,) = committed(desk, "domainMetadata")
    assert json.loads(domain["configuration"])["rowIdHighWaterMark"] == 8
    (told,) = committed(desk, "commitInfo")
    assert told["tags"] == {"delta.rowTracking.preserved": "true"}
    (row,) = pq.read_table(desk.table / new["path"]).to_pylist()
    assert (row["id"], row[IDS], row[VERSIONS]) == (3, 3, 2)


def test_ids_are_found_behind_a_checkpoint(tmp_path):
    desk = tracking(tmp_path)
    desk.configure(FIELDS, delta_checkpoint_interval=3)
    make_tracked(desk)
    fill(desk)
    before = in_files(desk)
    assert [*(desk.table / "_delta_log").glob("*.checkpoint*.parquet")]
    desk.forget("id = 2")
    assert in_files(desk) == but(before, 2)
    (gone,) = committed(desk, "remove")
    assert gone["baseRowId"] == 2


@pytest.mark.unbalanced("file_missing")
def test_a_file_that_is_gone_is_taken_out_with_its_ids(tmp_path):
    desk = tracking(tmp_path)
    make_tracked(desk)
    fill(desk)
    before, files = in_files(desk), added(desk)
    lost = next(path for path, one in files.items() if one["baseRowId"] == 2)
    (desk.table / lost).unlink()
    RepairOrder(clock=desk.clock).carry_out(desk.store)
    assert in_files(desk) == but(before, 2, 3)
    (gone,) = committed(desk, "remove")
    assert (gone["baseRowId"], gone["defaultRowCommitVersion"]) == (2, 2)


def test_a_table_that_began_to_track_rows_meanwhile_keeps_its_files(tmp_path):
    """What was written before has no ids in it, so it does not take the place of files that do."""
    desk = tracking(tmp_path)
    make_tracked(desk)
    fill(desk)
    desk.erase("id = 2")
    (metadata,) = committed(desk, "metaData", 0)
    metadata["configuration"] |= {"delta.rowTracking.materializedRowIdColumnName": "another"}
    log = desk.table / "_delta_log" / f"{desk.version + 1:020}.json"
    log.write_text(json.dumps({"metaData": metadata}) + "\n")
    before = in_files(desk)
    desk.penguin()
    assert in_files(desk) == before
    assert committed(desk, "remove") == []


@pytest.mark.parametrize("command", ["erase", "retract", "compact", "promote"])
def test_a_table_that_names_no_columns_for_ids_is_refused_by_name(tmp_path, command):
    desk = tracking(tmp_path)
    make_tracked(desk, configuration={"delta.enableRowTracking": "true"})
    fill(desk)
    given = {"erase": ("id = 1",), "retract": ("1.ndjson",), "compact": (), "promote": ("price",)}
    with pytest.raises(TableUnsupported, match="materializedRowIdColumnName"):
        getattr(desk, command)(*given[command])


def test_a_file_without_ids_is_refused_by_name(tmp_path):
    """It is from before the table tracked its rows, and whoever switched it on is not done."""
    desk = tracking(tmp_path)
    make_tracked(desk, configuration=NAMED)
    fill(desk)
    log = desk.table / "_delta_log" / f"{1:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("baseRowId", None)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    with pytest.raises(LakeError, match="has no ids for them yet"):
        desk.erase("id = 7")
