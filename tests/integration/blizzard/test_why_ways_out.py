"""The next steps that `blizzard why` and `status` name are those that help."""

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakebed.layout import DELTA_LOG
from tests.support.desk import Desk


def steps(desk: Desk, name: str) -> list[str]:
    """Return the commands that `why` names, without the program's path and configuration."""
    (found,) = json.loads(f"[{desk.cli('why', name, '--output', 'json').stdout}]")
    return [short(each) for one in found["next"] for each in one["commands"]]


def short(command: str) -> str:
    program, _option, _file, *words = command.split()
    return " ".join([program, *words])


def three_commits(folder: Path) -> Desk:
    desk = Desk(folder)
    for name in "abc":
        desk.arrives(f"{name}.ndjson", 3)
    return desk


def test_a_log_that_lost_a_version_is_replayed_not_waited_for(tmp_path: Path) -> None:
    desk = three_commits(tmp_path)
    max((desk.table / DELTA_LOG).glob("*.json")).unlink()
    status = desk.cli("status")
    assert (status.exit_code, "[log_rolled_back]" in status.stdout) == (1, True)
    replay = ["penguin replay", "penguin replay --yes"]
    assert [short(one) for one in status.stdout.splitlines() if " replay" in one] == replay
    assert steps(desk, "c.ndjson") == replay
    assert "the commit of entry 3 was lost" in desk.cli("why", "c.ndjson").stdout
    assert desk.order("replay", "--yes").exit_code == 0
    assert steps(desk, "c.ndjson") == ["penguin --once", "penguin status"]
    desk.penguin()
    assert steps(desk, "c.ndjson") == []


@pytest.mark.parametrize(
    ("removes", "commands"),
    [
        (
            lambda table: table.restore(2),
            ["penguin replay", "penguin replay --yes", "blizzard audit --accept 4 --reason TEXT"],
        ),
        (lambda table: table.delete(), ["blizzard audit --accept 4 --reason TEXT"]),
    ],
    ids=["restore", "delete"],
)
@pytest.mark.unbalanced("rows_removed")
def test_removed_rows_are_put_back_or_accepted(
    tmp_path: Path, removes: Any, commands: list[str]
) -> None:
    desk = three_commits(tmp_path)
    removes(DeltaTable(str(desk.table)))
    assert steps(desk, "c.ndjson") == commands


def test_what_replaces_held_rows_waits_for_penguin(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    text = desk.file.read_text()
    desk.file.write_text(text.replace('landing"\n', 'landing"\n  on_change: replace\n', 1))
    held = desk.holds_a_file()
    schema = desk.cli("why", "b.ndjson").stdout
    assert "schema_evolution" in schema
    assert "Read the file again." in schema
    desk.landing.land("b.ndjson", 7)
    assert steps(desk, "b.ndjson") == [
        f"penguin release {held}",
        f"penguin discard {held}",
        f"penguin discard {held} --yes",
    ]
    desk.landing.land("c.ndjson", 1)
    desk.blizzard()
    desk.landing.land("c.ndjson", 2)
    assert steps(desk, "c.ndjson") == ["penguin --once", "penguin status"]
