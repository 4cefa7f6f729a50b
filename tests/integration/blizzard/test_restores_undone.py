"""A RESTORE to before a rewrite, and another one back: the rows are where the rewrite put them."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakebed.deltalog.actions import LogActions
from lakebed.deltalog.lineage import Lineage
from tests.support.compactions import crowded
from tests.support.desk import Desk
from tests.support.promotions import ID
from tests.support.retractions import Taken


def states(desk: Desk) -> dict[str, str]:
    """Return the state of each source file, which `why` and `files` agree on."""
    (group,) = json.loads(desk.cli("files", "--output", "json").stdout)["groups"]
    found = {}
    for path in sorted(desk.landing.folder.iterdir()):
        found[path.name] = json.loads(desk.cli("why", path.name, "--output", "json").stdout)[
            "state"
        ]
    for state in set(found.values()):
        assert group[state] == [*found.values()].count(state)
    return found


@pytest.mark.parametrize("again", [False, True], ids=["once", "compacted_again"])
def test_a_compaction_that_was_undone_and_put_back(tmp_path: Path, again: bool) -> None:
    desk = crowded(tmp_path, files=3)
    ids, before = desk.ids(), desk.version
    desk.tidy()
    after = desk.version
    DeltaTable(str(desk.table)).restore(before)
    if again:
        desk.tidy()
    DeltaTable(str(desk.table)).restore(after)
    assert desk.ids() == ids
    assert desk.audited().is_balanced
    assert set(states(desk).values()) == {"in_table"}
    assert desk.cli("files", "--check").exit_code == 0


@pytest.mark.parametrize("together", [False, True])
def test_a_retraction_that_was_undone_and_put_back(tmp_path: Path, together: bool) -> None:
    desk = Taken(tmp_path, {"fields": [ID]})
    for name, number in (("a.ndjson", 1), ("c.ndjson", 2)):
        desk.land(name, {"id": number})
        if not together:
            desk.ingest()
    desk.ingest()
    before = desk.version
    desk.take_back("a.ndjson")
    after = desk.version
    for version in (before, after):
        DeltaTable(str(desk.table)).restore(version)
    assert desk.ids() == [2]
    assert desk.audited().is_balanced
    assert states(desk) == {"a.ndjson": "retracted", "c.ndjson": "in_table"}


def test_versions_before_a_checkpoint_are_in_effect() -> None:
    lineage = Lineage()
    lineage.take(LogActions(version=10, is_checkpoint=True))
    assert lineage.in_effect(5)


@pytest.mark.unbalanced("rows_removed", "rows_back")
def test_a_replacement_that_was_undone_beside_another_one(tmp_path: Path) -> None:
    """Three source files share a data file, and an entry supersedes only the rows of one."""
    desk = Taken(tmp_path, {"fields": [ID]})
    for name, *numbers in (("a.ndjson", 1), ("b.ndjson", 2, 3), ("c.ndjson", 4)):
        desk.land(name, *({"id": number} for number in numbers))
    desk.ingest()
    before = desk.version

    def replace(name: str, *numbers: int) -> None:
        desk.land(name, *({"id": number} for number in numbers))
        desk.replace(name, by=name)
        desk.penguin()

    def messages() -> list[str]:
        return sorted(one.message for one in desk.audited().differences)

    replace("b.ndjson", 5, 6)
    DeltaTable(str(desk.table)).restore(before)
    for others in ("that file is in it again", "parquet now"):
        back, lost = messages()
        assert "entry 2 took 2 rows of" in back
        assert others in back
        for one in (back, lost):
            assert "blizzard retract --replace" in one
        why = desk.cli("why", "b.ndjson").stdout
        assert ("Replace them again" in why, "replay" in why) == (True, False)
        replace("a.ndjson", 7)
    assert desk.cli("audit", "--accept", "3", "--reason", "replaced").exit_code == 1
    replace("a.ndjson", 8)
    (back,) = messages()
    assert "entry 2 took 2 rows of" in back
    replace("b.ndjson", 5, 6)
    assert desk.ids() == [4, 5, 6, 8]
    assert desk.audited().is_balanced


@pytest.mark.unbalanced("rows_removed", "rows_back")
@pytest.mark.parametrize("on_change", ["error", "replace"])
def test_only_the_superseded_rows_of_a_data_file_are_back(tmp_path: Path, on_change: str) -> None:
    """Rows are replaced while their data file is out of the table, and then it comes back."""
    desk = Taken(tmp_path, {"fields": [ID]}, source={"on_change": on_change})
    for name, *numbers in (("a.ndjson", 1), ("b.ndjson", 2, 3), ("c.ndjson", 4)):
        desk.land(name, *({"id": number} for number in numbers))
    desk.ingest()
    DeltaTable(str(desk.table)).restore(0)
    desk.land("b.ndjson", {"id": 5})
    if on_change == "error":
        for yes in ((), ("--yes",)):
            done = desk.cli("retract", "b.ndjson", "--replace", "b.ndjson", *yes)
            assert "run penguin replay first, or accept the loss" in done.stderr
    else:
        desk.ingest()
        why = desk.cli("why", "b.ndjson").stdout
        assert "once 1 data file is committed, given up or back in the table" in why
        assert "audit --accept 2 " in why
    assert desk.version == 2
    desk.cli("audit", "--accept", "2", "--reason", "replaced")
    for name, number in (("b.ndjson", 5), ("a.ndjson", 6)):
        desk.land(name, {"id": number})
        if on_change == "error":
            desk.replace(name, by=name)
        desk.ingest()
    assert desk.ids() == [5, 6]
    DeltaTable(str(desk.table)).restore(1)
    said = sorted(one.message for one in desk.audited().differences)
    assert [one.split(" of ")[0] for one in said] == [
        "entry 2 supersedes 2 rows",
        "entry 3 supersedes 1 row",
        "version 5 (RESTORE",
    ]
    desk.replace("b.ndjson", by="b.ndjson")
    desk.ingest()
    assert "rows that entry 3 of pipeline default supersedes" in desk.order("replay").output
    assert desk.ids() == [1, 4, 5]
    (back, _lost) = sorted(one.message for one in desk.audited().differences)
    assert back.startswith("entry 3 supersedes 1 row of ")


@pytest.mark.unbalanced("rows_removed", "rows_back")
def test_rows_of_several_source_files_replaced_by_another_are_back(tmp_path: Path) -> None:
    desk = Taken(tmp_path, {"fields": [ID]})
    for name, *numbers in (("a.ndjson", 1), ("b.ndjson", 2, 3), ("c.ndjson", 4)):
        desk.land(name, *({"id": number} for number in numbers))
    desk.ingest()
    DeltaTable(str(desk.table)).restore(0)
    desk.cli("audit", "--accept", "2", "--reason", "replaced")
    desk.land("n.ndjson", {"id": 9})
    names = ("a.ndjson", "b.ndjson")
    assert desk.cli("retract", *names, "--replace", "n.ndjson", "--yes").exit_code == 0
    desk.ingest()
    assert desk.audited().is_balanced
    DeltaTable(str(desk.table)).restore(1)
    back, _lost = sorted(one.message for one in desk.audited().differences)
    assert back.startswith("entry 2 supersedes 3 rows of ")


ERASED_A = {"a.ndjson": "in_table", "b.ndjson": "removed"}
ONLY_B = {"a.ndjson": "retracted", "b.ndjson": "in_table"}
LOST_B = {"a.ndjson": "retracted", "b.ndjson": "removed"}
REMOVED = "removed 2 rows"


@pytest.mark.unbalanced("rows_removed", "rows_back")
@pytest.mark.parametrize(
    ("steps", "ids", "said", "expected"),
    [
        ("retract restore:1 restore:0", [], [REMOVED], LOST_B),
        ("retract restore:1 delete", [], [REMOVED], LOST_B),
        ("retract restore:1 retract delete", [], [REMOVED], LOST_B),
        ("retract restore:1 retract delete accept:5 restore:2", [2, 3], [], ONLY_B),
        ("retract restore:1 retract delete accept:5 restore:2 delete", [], [REMOVED], LOST_B),
        ("retract restore:1 retract restore:1 restore:2", [2, 3], [], ONLY_B),
        ("retract replace restore:1 restore:2 restore:3", [2], [], ONLY_B),
        ("erase restore:1 erase restore:0", [], [REMOVED], ERASED_A),
        ("retract restore:1 checkpoint restore:0 restore:2", [2, 3], [], ONLY_B),
    ],
)
def test_what_restores_have_undone_has_no_effect(
    tmp_path: Path, steps: str, ids: list[int], said: list[str], expected: dict[str, str]
) -> None:
    """The versions between a RESTORE and the one that it restored explain nothing."""
    desk = Taken(tmp_path, {"fields": [ID]})
    desk.land("a.ndjson", {"id": 1})
    desk.land("b.ndjson", {"id": 2}, {"id": 3})
    desk.ingest()
    for step in steps.split():
        name, _, number = step.partition(":")
        table = DeltaTable(str(desk.table))
        match name:
            case "retract":
                desk.take_back("a.ndjson")
            case "replace":
                desk.land("b.ndjson", {"id": 2})
                desk.replace("b.ndjson", by="b.ndjson")
                desk.penguin()
            case "erase":
                desk.cli("erase", "--where", "id = 1", "--yes")
                desk.penguin()
            case "accept":
                desk.cli("audit", "--accept", number, "--reason", "a test")
            case "restore":
                table.restore(int(number))
            case "delete":
                table.delete()
            case _:
                table.create_checkpoint()
    assert desk.ids() == ids
    found = [one.message for one in desk.audited().differences]
    assert [words for words in said if words in "".join(found)] == said
    assert len(found) == len(said), found
    assert states(desk) == expected
    is_whole = "removed" not in expected.values()
    assert desk.cli("files", "--check").exit_code == (0 if is_whole else 1)


def test_rows_that_were_erased_again_after_a_restore_are_counted_once(tmp_path: Path) -> None:
    desk = Taken(tmp_path, {"fields": [ID]})
    desk.land("a.ndjson", *({"id": number} for number in range(5)))
    desk.ingest()
    for again in (False, True):
        if again:
            DeltaTable(str(desk.table)).restore(1)
        desk.cli("erase", "--where", "id < 2", "--yes")
        desk.penguin()
    assert desk.ids() == [2, 3, 4]
    assert "3 rows from 5 lines" in desk.cli("why", "a.ndjson").stdout
