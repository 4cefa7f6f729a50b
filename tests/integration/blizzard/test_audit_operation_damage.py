"""An audit of tables on which an operator's orders were undone or half done: the difference."""

import pytest

from tests.support.audits import Damage, audited, told
from tests.support.desk import Desk
from tests.support.promotions import ID, PRICE, Rescued


def added(damage: Damage, name: str) -> dict[str, object]:
    """Return the action that adds a file of the table's directory as it is."""
    return {
        "add": {
            "path": name,
            "partitionValues": {},
            "size": (damage.table / name).stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
            "stats": '{"numRecords":5}',
        }
    }


@pytest.mark.unbalanced("file_given_up_active")
@pytest.mark.parametrize(("order", "state"), [(None, "is held"), ("discard", "was given up")])
def test_a_file_that_is_held_and_in_the_table_is_told(tmp_path, order, state):
    desk = Desk(tmp_path)
    name = desk.holds_a_file()
    if order is not None:
        assert desk.order(order, name, "--yes").exit_code == 0
    assert told(audited(desk.table)) == []
    damage = Damage(desk.table)
    damage.commit(added(damage, f"{name}.parquet"))
    assert told(audited(desk.table)) == [
        f"file_given_up_active: {name}.parquet of entry 2 {state}, and is in the table"
    ]


@pytest.mark.unbalanced("file_given_up_active")
def test_a_file_that_gc_deleted_and_that_is_in_the_table_is_told(tmp_path):
    desk = Desk(tmp_path)
    desk.arrives("a.ndjson", 5)
    desk.ends_well()
    first = min(desk.table.glob("*.parquet"))
    copy = first.with_name(f"{first.stem[:-4]}0000.parquet")
    copy.write_bytes(first.read_bytes())
    assert desk.cli("gc", "--delete", "--older-than", "0s").exit_code == 0
    copy.write_bytes(first.read_bytes())
    damage = Damage(desk.table)
    damage.commit(added(damage, copy.name))
    assert told(audited(desk.table)) == [
        f"file_given_up_active: entry 2 has deleted {copy.name}, which is in the table"
    ]


@pytest.fixture
def promoted(tmp_path) -> Rescued:
    """Return a table in which both files were replaced by version 4."""
    desk = Rescued(tmp_path)
    for name in ("a", "b"):
        desk.land(f"{name}.ndjson", '{"id":1,"price":1.50}')
        desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    desk.penguin()
    assert told(audited(desk.table)) == []
    return desk


@pytest.mark.unbalanced("promotion_half")
def test_a_promotion_of_which_only_one_file_took_its_place_is_told(promoted):
    damage = Damage(promoted.table)
    entry = damage.entry(3)
    one = entry["rewrites"][1]
    pair = {one["old"][0]["path"], one["new"][0]["filename"]}
    damage.without(
        damage.last,
        lambda action: not pair.isdisjoint(each.get("path") for each in action.values()),
    )
    assert told(audited(promoted.table)) == [
        (
            "promotion_half: 1 of the 2 files of entry 3 were added to the table; "
            f"{one['new'][0]['filename']} was not"
        )
    ]


@pytest.mark.unbalanced("file_committed_twice")
def test_a_promotion_whose_old_file_is_still_in_the_table_is_told(promoted):
    damage = Damage(promoted.table)
    one = damage.entry(3)["rewrites"][0]
    old = one["old"][0]["path"]
    damage.without(damage.last, lambda action: action.get("remove", {}).get("path") == old)
    assert told(audited(promoted.table)) == [
        (
            f"file_committed_twice: entry 3 replaces {one['old'][0]['path']} with "
            f"{one['new'][0]['filename']}, and both are in the table"
        )
    ]


@pytest.mark.unbalanced("file_removed", "promotion_half")
def test_a_promotion_that_lost_a_file_is_told(promoted):
    damage = Damage(promoted.table)
    one = damage.entry(3)["rewrites"][0]
    new = one["new"][0]["filename"]
    damage.without(damage.last, lambda action: action.get("add", {}).get("path") == new)
    found = told(audited(promoted.table))
    assert [text.partition(":")[0] for text in found] == ["promotion_half", "file_removed"]
    assert one["old"][0]["path"] in found[1]
