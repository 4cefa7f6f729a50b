"""Days of files that were deleted or overwritten at the source: each still tells the truth."""

import json

import pytest

from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from tests.integration.blizzard.test_files import YESTERDAY, asks, dated, lands, of_day, said
from tests.support.builders import entries
from tests.support.desk import Desk

OTHER_DAY = "2024-05-02"


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path / "both")


@pytest.fixture
def lost(desk: Desk) -> Desk:
    """A file that failed and was then deleted; a run has noticed that it is gone."""
    lands(desk, "a.ndjson", 3)
    desk.landing.write("bad.ndjson", b"{nope\n")
    dated(desk, "bad.ndjson", YESTERDAY)
    desk.blizzard()
    desk.penguin()
    (desk.landing.folder / "bad.ndjson").unlink()
    desk.blizzard()
    desk.penguin()
    return desk


def read_on(desk: Desk) -> str:
    return entries(desk.table)[1].created[:10]


def test_a_file_that_failed_and_was_deleted_keeps_its_day_open(lost):
    """HOLES W38: it landed, and was never loaded."""
    found = of_day(lost)

    assert (found.landed, found.in_table, found.failed, found.lost) == (2, 1, 1, 1)
    assert found.complete is False
    assert found.sentence == (
        f"{YESTERDAY} is incomplete: of 2 files, 1 failed; 1 of the failed ones deleted from the "
        "source"
    )
    code, output = said(lost, "--day", YESTERDAY, "--check")
    assert code == 1, output
    refused = lost.cli("dlq", "discard", "a.ndjson", "--yes")
    assert (refused.exit_code, "a.ndjson" in refused.output) == (1, True)
    writer = SnapshotWriter(store=lost.store, pipeline="default", clock=lost.clock)
    writer.write(read_ledger(lost.store, "default"))
    assert of_day(lost).lost == 1
    (row,) = map(json.loads, said(lost, "--state", "failed", "--output", "json")[1].splitlines())
    assert (row["path"], row["reason"], row["deleted"]) == ("bad.ndjson", "not_json", True)


@pytest.mark.parametrize("named", ["bad.ndjson", "--deleted"])
def test_an_operator_accepts_that_a_deleted_file_never_comes(lost, named):
    plan = lost.cli("dlq", "discard", named)
    assert plan.exit_code == 1
    assert "1 source file that failed and is gone would be discarded" in plan.output
    assert of_day(lost).complete is False
    why = lost.cli("why", "bad.ndjson").output
    assert "when it was deleted, and its day is not complete" in " ".join(why.split())
    assert "dlq discard default:bad.ndjson --yes" in why

    done = lost.cli("dlq", "discard", named, "--yes", "--output", "json")

    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["files"] == ["default:bad.ndjson"]
    found = of_day(lost)
    assert (found.landed, found.in_table, found.discarded, found.lost) == (2, 1, 1, 0)
    assert (found.complete, found.rows, found.uncounted) == (True, 3, 0)
    assert found.sentence.endswith("; 1 discarded")
    assert said(lost, "--day", YESTERDAY, "--check")[0] == 0
    why = lost.cli("why", "bad.ndjson").output
    assert "an operator has given that up" in " ".join(why.split())
    count = len(entries(lost.table))
    assert lost.cli("dlq", "discard", "--deleted", "--yes").exit_code == 0
    assert len(entries(lost.table)) == count
    lost.blizzard()
    lost.penguin()
    assert len(entries(lost.table)) == count


def test_a_file_that_was_given_up_and_comes_back_is_read(lost):
    lost.cli("dlq", "discard", "bad.ndjson", "--yes")
    lands(lost, "bad.ndjson", 2)
    assert of_day(lost).waiting == 1

    lost.blizzard()
    lost.penguin()

    found = of_day(lost)
    assert (found.landed, found.in_table, found.rows, found.complete) == (2, 2, 5, True)


def test_a_file_that_was_overwritten_counts_on_both_of_its_days(desk):
    lands(desk, "a.ndjson", 3)
    lands(desk, "b.ndjson", 1)
    desk.blizzard()
    desk.penguin()
    lands(desk, "b.ndjson", 5, day=OTHER_DAY)

    old, new = of_day(desk, read_on(desk)), of_day(desk, OTHER_DAY)

    assert (old.landed, old.in_table, old.overwritten, old.rows) == (1, 1, 1, 1)
    assert old.complete is True
    assert (new.landed, new.changed, new.overwritten, new.complete) == (1, 1, 0, False)
    assert new.sentence == (
        f"{OTHER_DAY} so far is incomplete: of 1 file, 1 changed after being read, and not read "
        "again"
    )
    listed = [json.loads(line) for line in said(desk, "b.", "--output", "json")[1].splitlines()]
    assert [(one["state"], one["overwritten"]) for one in listed] == [
        ("in_table", True),
        ("changed", False),
    ]
    assert asks(desk, days=(YESTERDAY,)).groups[0].landed == 1


def test_new_content_that_failed_and_was_deleted_leaves_what_is_in_the_table(desk):
    desk.file.write_text(
        desk.file.read_text().replace("source:\n", "source:\n  on_change: reingest\n")
    )
    lands(desk, "a.ndjson", 3)
    desk.blizzard()
    desk.penguin()
    desk.landing.write("a.ndjson", b"{nope\n")
    dated(desk, "a.ndjson", OTHER_DAY)
    desk.blizzard()
    assert of_day(desk, read_on(desk)).in_table == 1
    (desk.landing.folder / "a.ndjson").unlink()
    desk.blizzard()

    old, new = of_day(desk, read_on(desk)), of_day(desk, OTHER_DAY)

    assert (old.in_table, old.deleted, old.complete) == (1, 1, True)
    assert (new.failed, new.lost, new.complete) == (1, 1, False)
    told = " ".join(desk.cli("why", "a.ndjson").output.split())
    assert "its day is not complete. Other content of its name was read" in told


def test_an_object_that_is_ignored_leaves_its_file_on_the_day_it_was_read(desk):
    desk.file.write_text(
        desk.file.read_text().replace("source:\n", "source:\n  on_change: ignore\n")
    )
    lands(desk, "a.ndjson", 3)
    desk.blizzard()
    desk.penguin()
    lands(desk, "a.ndjson", 5, day=OTHER_DAY)

    assert (of_day(desk, read_on(desk)).in_table, of_day(desk, OTHER_DAY).landed) == (1, 0)
