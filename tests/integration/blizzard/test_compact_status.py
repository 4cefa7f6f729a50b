"""What `blizzard status` says of compactions, from the books alone."""

import re

import pytest

from tests.support.compactions import crowded


@pytest.fixture
def desk(tmp_path):
    return crowded(tmp_path)


def shown(desk):
    """Return what a person reads of compactions."""
    lines = desk.cli("status").stdout.splitlines()
    return [line.strip() for line in lines if re.match(r" +\d+ compaction", line)]


def test_a_compaction_is_counted_and_its_commit_is_told(desk):
    assert desk.said("status")["compactions"] is None
    assert shown(desk) == []
    entry = desk.compact().entry
    found = desk.said("status")["compactions"]
    assert found["last_state"] == "waiting"
    desk.penguin()
    found = desk.said("status")["compactions"]
    assert found.pop("last_at")
    assert found == {
        "entries": 1, "files": 5, "into": 1, "last_entry": entry, "last_files": 5,
        "last_into": 1, "last_rows": 10, "last_state": "committed",
    }  # fmt: skip
    (line,) = shown(desk)
    assert line.startswith("1 compaction: 5 files put into 1; the last ")
    assert line.endswith(f"ago (entry {entry}): 5 into 1, committed")


def test_one_that_others_came_before_has_no_effect(desk):
    desk.compact()
    desk.optimize()
    desk.penguin()
    assert desk.said("status")["compactions"]["last_state"] == "passed_over"
    (line,) = shown(desk)
    assert line.endswith("without effect, since other writers came first")


def test_a_snapshot_keeps_what_was_counted(desk):
    desk.tidy()
    before = desk.said("status")["compactions"]
    desk.writes_a_snapshot()
    assert desk.said("status")["compactions"] == before
