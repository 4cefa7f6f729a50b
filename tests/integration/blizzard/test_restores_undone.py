"""A RESTORE to before a rewrite, and another one back: the rows are where the rewrite put them."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

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


def test_a_retraction_that_was_undone_and_put_back(tmp_path: Path) -> None:
    desk = Taken(tmp_path, {"fields": [ID]})
    for name, number in (("a.ndjson", 1), ("c.ndjson", 2)):
        desk.land(name, {"id": number})
    desk.ingest()
    before = desk.version
    desk.take_back("a.ndjson")
    after = desk.version
    for version in (before, after):
        DeltaTable(str(desk.table)).restore(version)
    assert desk.ids() == [2]
    assert desk.audited().is_balanced
    assert states(desk) == {"a.ndjson": "retracted", "c.ndjson": "in_table"}
