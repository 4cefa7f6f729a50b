"""Rows that another engine deleted in place: commands that rewrite or show rows leave them out."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from blizzard.cli.audit import audit_of
from blizzard.inspect.audit.findings import FindingKind
from blizzard.model.stores import sink_location
from blizzard.worker.find_rows import VectorUnreadable
from lakebed.errors import LakeError
from tests.support.compactions import Crowded, crowded
from tests.support.deletion_vectors import delete_in_place
from tests.support.erasures import FIELDS
from tests.support.mapped import added
from tests.support.promotions import PRICE
from tests.support.runner import RewriteRace

pytestmark = pytest.mark.unbalanced("rows_removed")


@pytest.fixture
def desk(tmp_path: Path) -> Crowded:
    """A table with rows 1 to 6 of two source files in one data file, and 7 and 8 in another."""
    desk = crowded(tmp_path, files=0, compact={"min_files": 2})
    for name, ids in (("a", (1, 2, 3)), ("b", (4, 5, 6))):
        desk.land(f"{name}.ndjson", *({"id": one, "user": f"u{one}", "price": one} for one in ids))
    desk.ingest()
    desk.land("c.ndjson", {"id": 7, "user": "u7"}, {"id": 8, "user": "u8"})
    desk.ingest()
    return desk


def ids(desk: Crowded) -> list[int]:
    """Return the ids of all rows, as the library reads them."""
    rows = pa.table(DeltaTable(str(desk.table)).scan(columns=["id"]).read_all())
    found: list[Any] = rows["id"].to_pylist()
    return sorted(found)


def in_files(desk: Crowded) -> list[int]:
    """Return the ids of all rows that the files of the table hold, deleted or not."""
    found: list[Any] = []
    for path in added(desk):
        found += pq.read_table(desk.table / path, columns=["id"])["id"].to_pylist()
    return sorted(found)


def file_with(desk: Crowded, wanted: int) -> str:
    return next(
        path
        for path in added(desk)
        if wanted in pq.read_table(desk.table / path, columns=["id"])["id"].to_pylist()
    )


def delete(desk: Crowded, *wanted: int, inline: bool = False) -> dict[str, Any]:
    """Delete rows of one data file in place."""
    path = file_with(desk, wanted[0])
    there = pq.read_table(desk.table / path, columns=["id"])["id"].to_pylist()
    return delete_in_place(desk, path, [there.index(one) for one in wanted], inline=inline)


def lines(desk: Crowded, where: str = "id > 0") -> dict[int, tuple[str, int]]:
    """Return the source file and the line of rows, by their ids."""
    done = desk.cli("trace", "--where", where, "--output", "json")
    assert done.exit_code == 0, done.output
    rows = map(json.loads, done.stdout.splitlines())
    return {row["values"]["id"]: (Path(row["source"]).stem, row["line"]) for row in rows}


def balance(desk: Crowded) -> dict[str, int]:
    """Return where rows are; nothing differs but that another writer has deleted rows."""
    audit = audit_of(sink_location(desk.settings), deep=True)
    assert {one.kind for one in audit.differences} <= {FindingKind.ROWS_REMOVED}, audit.differences
    assert audit.active.rows == len(ids(desk))
    return {place: one.rows for place, one in audit.places.amounts.items() if one.rows}


@pytest.mark.parametrize("inline", [False, True], ids=["file", "inline"])
def test_rows_that_are_deleted_in_place_are_not_shown(desk: Crowded, inline: bool) -> None:
    delete(desk, 2, 5, inline=inline)
    assert ids(desk) == [1, 3, 4, 6, 7, 8]
    assert lines(desk) == {
        1: ("a", 1), 3: ("a", 3), 4: ("b", 1), 6: ("b", 3), 7: ("c", 1), 8: ("c", 2),
    }  # fmt: skip
    assert balance(desk) == {"in_table": 6, "removed_by_others": 2}


def test_a_retraction_counts_and_writes_the_rows_that_are_left(desk: Crowded) -> None:
    vector = delete(desk, 2, 5)
    old = file_with(desk, 1)
    done = desk.take_back("a.ndjson")
    assert dict(done.rows) == {"in:a.ndjson": 2}
    assert ids(desk) == [4, 6, 7, 8] == in_files(desk)
    assert lines(desk, "id < 7") == {4: ("b", 1), 6: ("b", 3)}
    last = (desk.table / "_delta_log" / f"{desk.version:020}.json").read_text().splitlines()
    (gone,) = (told["remove"] for told in map(json.loads, last) if "remove" in told)
    assert (gone["path"], gone["deletionVector"]) == (old, vector)
    assert balance(desk) == {
        "in_table": 4, "replaced": 2, "retracted": 2, "removed_by_others": 2,
    }  # fmt: skip
    # What is left of both goes as a whole; nothing is left to take of a source file that is gone.
    delete(desk, 7)
    assert dict(desk.take_back("b.ndjson", "c.ndjson").rows) == {"in:b.ndjson": 2, "in:c.ndjson": 1}
    assert ids(desk) == []
    assert desk.take_back("b.ndjson").entry is None


def test_files_whose_matching_rows_are_all_deleted_in_place_are_searched(desk: Crowded) -> None:
    delete(desk, 7, 8)
    assert "no row of the table matches" in desk.cli("trace", "--where", "id >= 7").output
    done = desk.cli("erase", "--where", "id >= 7", "--yes", "--output", "json")
    assert (done.exit_code, json.loads(done.stdout)["deleted"]) == (0, 2), done.output
    desk.penguin()
    assert in_files(desk) == ids(desk) == [1, 2, 3, 4, 5, 6]


def test_an_erasure_also_clears_files_of_rows_that_were_deleted_before(desk: Crowded) -> None:
    delete(desk, 2, 5)
    found = desk.forget("id = 2 or id = 3").found
    assert (found.rows, found.deleted) == (1, 1)
    assert ids(desk) == [1, 4, 6, 7, 8] == in_files(desk)
    delete(desk, 4)
    before = desk.cli("erase", "--where", "id = 4")
    assert "1 row that was deleted in place before" in before.output, before.output
    assert before.exit_code == 1
    assert desk.forget("id = 4").found.rows == 0
    assert ids(desk) == [1, 6, 7, 8] == in_files(desk)
    delete(desk, 7, 8)
    desk.forget("id = 8")
    assert ids(desk) == [1, 6] == in_files(desk)
    assert lines(desk) == {1: ("a", 1), 6: ("b", 3)}
    places = balance(desk)
    assert (places["in_table"], places["retracted"], places["removed_by_others"]) == (2, 1, 5)


def test_a_compaction_leaves_deleted_rows_behind(desk: Crowded) -> None:
    for name in "def":
        first = 10 * "abcdef".index(name)
        desk.land(f"{name}.ndjson", *({"id": first + one, "user": "x"} for one in range(4)))
        desk.ingest()
    delete(desk, 31, 32)
    delete(desk, 40)
    assert desk.tidy().failed == ()
    left = [30, 33, 41, 42, 43, 50, 51, 52, 53]
    assert [one for one in ids(desk) if one >= 30] == left
    assert [one for one in in_files(desk) if one >= 30] == left
    found = {30: ("d", 1), 33: ("d", 4), 41: ("e", 2), 42: ("e", 3), 43: ("e", 4)}
    assert lines(desk, "id >= 30 and id < 50") == found
    places = balance(desk)
    assert (places["in_table"], places["removed_by_others"]) == (17, 3)


def test_a_promotion_leaves_deleted_rows_behind(desk: Crowded) -> None:
    delete(desk, 2, 6)
    desk.configure({"fields": [*FIELDS["fields"], PRICE]})
    desk.promote("price")
    desk.penguin()
    assert ids(desk) == [1, 3, 4, 5, 7, 8] == in_files(desk)
    assert lines(desk, "price > 0") == {1: ("a", 1), 3: ("a", 3), 4: ("b", 1), 5: ("b", 2)}
    assert dict(desk.take_back("b.ndjson").rows) == {"in:b.ndjson": 2}
    assert balance(desk)["in_table"] == 4


@pytest.mark.parametrize("command", ["retract", "erase", "compact", "promote"])
def test_rows_that_are_deleted_meanwhile_do_not_come_back(desk: Crowded, command: str) -> None:
    """What was written anew still has them, so it does not take the place of the file."""
    desk.configure({"fields": [*FIELDS["fields"], PRICE]})
    given = {"retract": ("a.ndjson",), "erase": ("id = 1",), "compact": (), "promote": ("price",)}
    delete(desk, 2)
    getattr(desk, command)(*given[command])
    delete(desk, 2, 4, 5)
    desk.penguin()
    assert ids(desk) == [1, 3, 6, 7, 8]
    # The next one sees what is deleted by now.
    getattr(desk, command)(*given[command])
    desk.penguin()
    left = {"retract": [6, 7, 8], "erase": [3, 6, 7, 8]}.get(command, [1, 3, 6, 7, 8])
    assert ids(desk) == left
    assert balance(desk)["in_table"] == len(left)


@pytest.mark.parametrize("command", ["retract", "erase", "promote"])
def test_rows_that_are_deleted_while_files_are_written_are_noticed(
    desk: Crowded, command: str
) -> None:
    """The command begins anew, with the vector of by now."""
    desk.configure({"fields": [*FIELDS["fields"], PRICE]})
    given = {"retract": ("a.ndjson",), "erase": ("id = 1",), "promote": ("price",)}
    race = RewriteRace(after=lambda: delete(desk, 4), times=1)
    getattr(desk, command)(*given[command], runner=race)
    desk.penguin()
    left = {"retract": [5, 6, 7, 8], "erase": [2, 3, 5, 6, 7, 8], "promote": [1, 2, 3, 5, 6, 7, 8]}
    assert ids(desk) == left[command] == in_files(desk)


@pytest.mark.parametrize("damage", ["gone", "changed", "cut"])
def test_a_vector_that_cannot_be_read_stops_the_command_by_name(desk: Crowded, damage: str) -> None:
    delete(desk, 2)
    (vector,) = desk.table.rglob("deletion_vector*")
    body = vector.read_bytes()
    if damage == "gone":
        vector.unlink()
    else:
        vector.write_bytes(body[:-9] + b"x" * (9 if damage == "changed" else 2))
    with pytest.raises(LakeError, match="deletion vector") as told:
        desk.erase("id = 1")
    assert isinstance(told.value, VectorUnreadable) is (damage != "gone")
    assert vector.name in str(told.value)


def answers(desk: Crowded) -> dict[str, str]:
    """Return the state of each source file, which `why` and `files` agree on."""
    found = {}
    for name in ("a", "b", "c"):
        (why,) = map(
            json.loads, desk.cli("why", f"{name}.ndjson", "--output", "json").stdout.splitlines()
        )
        (listed,) = map(
            json.loads, desk.cli("files", f"{name}.ndjson", "--output", "json").stdout.splitlines()
        )
        assert listed["state"] == why["state"]
        found[name] = why["state"]
    return found


def losses(desk: Crowded) -> list[int | None]:
    """Return the versions whose losses the audit names."""
    audit = audit_of(sink_location(desk.settings))
    assert {one.kind for one in audit.differences} <= {FindingKind.ROWS_REMOVED}
    return [one.version for one in audit.differences]


@pytest.mark.parametrize("checkpointed", [False, True])
def test_what_was_deleted_in_place_is_missed_whatever_rewrites_the_file_since(
    desk: Crowded, checkpointed: bool
):
    desk.penguin()
    delete(desk, 1)
    delete(desk, 7, 8)
    assert desk.retract("c.ndjson").entry is None, "none of its rows is left to take back"
    assert answers(desk) == {"a": "altered", "b": "altered", "c": "removed"}
    if checkpointed:
        DeltaTable(str(desk.table)).create_checkpoint()
    assert desk.cli("files", "--check").exit_code == 1
    DeltaTable(str(desk.table)).optimize.compact()
    assert ids(desk) == [2, 3, 4, 5, 6] == in_files(desk)
    assert answers(desk) == {"a": "altered", "b": "altered", "c": "removed"}
    assert losses(desk) == [3, 4]


def test_each_deletion_in_place_of_one_file_is_a_loss_of_its_own(desk: Crowded):
    desk.penguin()
    delete(desk, 1)
    delete_in_place(desk, file_with(desk, 3), [0, 1])
    assert ids(desk) == [3, 4, 5, 6, 7, 8]
    assert losses(desk) == [3, 4]
    for version in ("3", "4"):
        done = desk.cli("audit", "--accept", version, "--reason", "asked for")
    assert (done.exit_code, losses(desk)) == (0, [])


@pytest.mark.parametrize(("deleted", "state"), [((1,), "altered"), ((1, 2, 3), "removed")])
def test_rows_deleted_in_place_beside_retracted_ones_are_missed(
    desk: Crowded, deleted: tuple[int, ...], state: str
):
    desk.penguin()
    delete(desk, *deleted)
    assert desk.cli("retract", "b.ndjson", "--yes").exit_code == 0
    desk.penguin()
    assert ids(desk) == [one for one in (1, 2, 3, 7, 8) if one not in deleted]
    assert answers(desk) == {"a": state, "b": "retracted", "c": "in_table"}
    assert losses(desk) == [3]


def test_a_restore_undoes_a_deletion_in_place_and_another_brings_it_back(desk: Crowded):
    desk.penguin()
    delete(desk, 1)
    DeltaTable(str(desk.table)).restore(2)
    assert (ids(desk), losses(desk)) == ([1, 2, 3, 4, 5, 6, 7, 8], [])
    assert answers(desk) == dict.fromkeys("abc", "in_table")
    DeltaTable(str(desk.table)).restore(3)
    assert (ids(desk), losses(desk)) == ([2, 3, 4, 5, 6, 7, 8], [3])
    assert answers(desk) == {"a": "altered", "b": "altered", "c": "in_table"}


def test_rows_that_were_updated_in_place_are_not_retracted_as_if_they_were_gone(desk: Crowded):
    """An UPDATE deletes them from their file, and adds them in one of its own."""
    desk.penguin()
    path = file_with(desk, 1)
    rows = pq.read_table(desk.table / path).slice(0, 1)
    pq.write_table(rows, desk.table / "updated.parquet")
    size = (desk.table / "updated.parquet").stat().st_size
    facts = {"partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
    stats = json.dumps({"numRecords": 1})
    new = {"add": {"path": "updated.parquet", "stats": stats, **facts}}
    delete_in_place(desk, path, [0], more=[new])
    assert (ids(desk), losses(desk)) == ([1, 2, 3, 4, 5, 6, 7, 8], [])
    for command in (["retract", "a.ndjson"], ["retract", "a.ndjson", "--replace", "a.ndjson"]):
        refused = desk.cli(*command, "--yes")
        assert refused.exit_code == 1, refused.output
        assert "can no longer be distinguished" in refused.output
    assert ids(desk) == [1, 2, 3, 4, 5, 6, 7, 8]
