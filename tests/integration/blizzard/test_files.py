"""What landed on each day against what is in the table: every file is counted once."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from blizzard.answers.answer import LANDED
from blizzard.answers.file_counts import DayOrPartition, Reconciliation
from blizzard.answers.report import Question, Reconciler
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from blizzard.model.stores import open_reader
from lakebed.clock import Clock
from tests.support.builders import entries
from tests.support.desk import Desk
from tests.support.retractions import Taken

NOON = datetime(2024, 5, 2, 12, tzinfo=UTC)
TODAY, YESTERDAY, BEFORE = "2024-05-02", "2024-05-01", "2024-04-30"


def lands(desk: Desk, name: str, count: int = 2, *, day: str = YESTERDAY) -> Path:
    """Let a file land on a day, by the store's clock."""
    desk.landing.land(name, count)
    return dated(desk, name, day)


def dated(desk: Desk, name: str, day: str) -> Path:
    file = desk.landing.folder / name
    at = datetime.fromisoformat(day).replace(tzinfo=UTC, hour=9).timestamp()
    os.utime(file, (at, at))
    return file


def asks(desk: Desk, **question: object) -> Reconciliation:
    reconciler = Reconciler(desk.settings, open_reader, Clock(seconds=NOON.timestamp))
    return reconciler.reconcile(Question(**question))  # type: ignore[arg-type]


def of_day(desk: Desk, day: str = YESTERDAY) -> DayOrPartition:
    found = asks(desk, days=(day,)).day(day)
    assert found is not None
    assert found.landed == sum(found.states.values())
    return found


def landed_on(file: Path) -> str:
    return f"{datetime.fromtimestamp(file.stat().st_mtime, UTC):%Y-%m-%d}"


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path / "both")


def test_every_file_of_a_day_is_followed_from_landing_to_the_table(desk):
    """The command says so in words and by its exit code."""
    lands(desk, "a.ndjson", 3)
    lands(desk, "sub/b.ndjson", 4)
    lands(desk, "c.ndjson", 1, day=BEFORE)

    waiting = of_day(desk)
    assert (waiting.landed, waiting.waiting, waiting.complete) == (2, 2, False)
    assert waiting.sentence == (f"{YESTERDAY} is incomplete: of 2 files, 2 waiting to be read")

    desk.blizzard()
    journaled = of_day(desk)
    assert (journaled.journaled, journaled.rows, journaled.complete) == (2, 7, False)
    code, told = said(desk, "--day", YESTERDAY)
    assert code == 0
    assert f"{YESTERDAY} is incomplete: of 2 files, 2 waiting to be committed" in told
    assert said(desk, "--day", YESTERDAY, "--check")[0] == 1

    desk.penguin()
    done = of_day(desk)
    assert (done.in_table, done.rows, done.complete) == (2, 7, True)
    assert done.sentence.startswith(f"{YESTERDAY} is complete: 2 files, 7 rows, ")
    assert done.bytes == sum(
        (desk.landing.folder / name).stat().st_size for name in ("a.ndjson", "sub/b.ndjson")
    )
    code, told = said(desk, "--day", YESTERDAY, "--check")
    assert code == 0
    assert f"{YESTERDAY} is complete: 2 files, 7 rows" in told


def test_the_last_days_are_told_newest_first_and_older_ones_are_counted(desk):
    lands(desk, "a.ndjson", day=TODAY)
    lands(desk, "b.ndjson", day=BEFORE)
    lands(desk, "c.ndjson", day="2023-01-01")

    found = asks(desk)
    none = of_day(desk)
    output = said(desk, "--day", BEFORE)[1]

    assert [group.name for group in found.groups] == [TODAY, BEFORE]
    assert found.left_out == 1
    assert "2024-05-02 so far" in found.groups[0].sentence
    lands(desk, "d.ndjson", day="2300-01-01")
    assert of_day(desk, "2300-01-01").standing == "not_over"
    assert (none.landed, none.complete) == (0, False)
    assert none.sentence == f"no file of {YESTERDAY} has landed yet"
    assert "2 files landed on other days, not counted here" in output


def test_a_failed_file_and_one_that_changed_are_missing(desk):
    lands(desk, "a.ndjson")
    lands(desk, "b.ndjson")
    desk.landing.write("bad.ndjson", b"{nope\n")
    dated(desk, "bad.ndjson", YESTERDAY)
    desk.blizzard()
    desk.penguin()
    lands(desk, "b.ndjson", 5)

    found = of_day(desk)

    assert (found.in_table, found.failed, found.changed) == (1, 1, 1)
    assert found.sentence == (
        f"{YESTERDAY} is incomplete: of 3 files, 1 failed, 1 changed after being read, and not "
        "read again"
    )


def test_files_that_were_deleted_since_are_counted_by_the_day_they_were_read(desk):
    lands(desk, "a.ndjson", 3)
    lands(desk, "b.ndjson", 4)
    lands(desk, "z.ndjson", 5)
    desk.blizzard()
    desk.penguin()
    (desk.landing.folder / "b.ndjson").unlink()
    (desk.landing.folder / "z.ndjson").unlink()
    read_on = entries(desk.table)[-1].created[:10]

    still = of_day(desk)
    gone = of_day(desk, read_on)

    assert (still.landed, still.deleted, still.rows) == (1, 0, 3)
    assert (gone.landed, gone.in_table, gone.deleted, gone.rows) == (2, 2, 2, 9)


def test_files_that_share_a_held_data_file_are_all_missing(desk):
    """penguin's note of such a file has no URI of one source, only what the entry names."""
    lands(desk, "a.ndjson", 3)
    desk.blizzard()
    desk.penguin()
    desk.declare("small", "int64")
    lands(desk, "b.ndjson", 4)
    lands(desk, "c.ndjson", 5)
    desk.blizzard()
    desk.penguin()

    found = of_day(desk)

    assert (found.landed, found.in_table, found.held, found.complete) == (3, 1, 2, False)
    assert found.sentence == f"{YESTERDAY} is incomplete: of 3 files, 2 held by penguin"


def test_a_retracted_file_is_settled_and_told_apart(tmp_path):
    taken = Taken(tmp_path)
    taken.land("a.ndjson", {"id": 1})
    taken.land("b.ndjson", {"id": 2})
    taken.ingest()
    taken.take_back("a.ndjson")
    day = landed_on(next(taken.folder.rglob("a.ndjson")))

    found = asks(taken, days=(day,), prefix="a.").groups[0]

    assert (found.retracted, found.in_table, found.complete) == (1, 0, True)
    assert found.sentence.endswith("; 1 retracted")


def test_a_prefix_and_a_partition_narrow_the_question(tmp_path):
    desk = Desk(tmp_path / "both")
    desk.file.write_text(
        desk.file.read_text().replace(
            "sink:\n", 'sink:\n  partition_by: {prefix_template: "date=%Y-%m-%d"}\n'
        )
    )
    lands(desk, "date=2024-04-01/a.ndjson", 1)
    lands(desk, "date=2024-04-01/b.ndjson", 2)
    lands(desk, "date=2024-04-02/c.ndjson", 3)
    desk.blizzard()
    desk.penguin()

    below = asks(desk, prefix="date=2024-04-01/b").groups
    by_partition = asks(desk, by="partition").groups
    one = asks(desk, by="partition", partition="2024-04-02").groups

    assert [(each.name, each.landed, each.rows) for each in below] == [(YESTERDAY, 1, 2)]
    assert [(each.name, each.landed, each.rows) for each in by_partition] == [
        ("date=2024-04-02", 1, 3),
        ("date=2024-04-01", 2, 3),
    ]
    assert [(each.name, each.in_table) for each in one] == [("date=2024-04-02", 1)]


def test_names_in_segments_are_gone_through_like_those_in_memory(desk):
    for number in range(30):
        lands(desk, f"{number:02}.ndjson", 1)
        if number % 10 == 9:
            desk.blizzard()
            writer = SnapshotWriter(store=desk.store, pipeline="default", clock=desk.clock)
            writer.write(read_ledger(desk.store, "default"))
    desk.penguin()
    lands(desk, "2x.ndjson")
    assert read_ledger(desk.store, "default").segments
    (desk.landing.folder / "15.ndjson").unlink()

    found = of_day(desk)

    assert (found.landed, found.in_table, found.waiting, found.rows) == (30, 29, 1, 29)


def test_an_answer_that_is_asked_again_reads_only_what_is_new(desk):
    lands(desk, "a.ndjson")
    desk.blizzard()
    desk.penguin()
    clock = Clock(seconds=(NOON + timedelta(hours=1)).timestamp)
    reconciler = Reconciler(desk.settings, open_reader, clock)
    first = reconciler.reconcile(Question(days=(YESTERDAY,)))
    lands(desk, "b.ndjson")
    desk.blizzard()

    second = reconciler.reconcile(Question(days=(YESTERDAY,)))

    assert first.groups[0].in_table == 1
    assert (second.groups[0].in_table, second.groups[0].journaled) == (1, 1)


def said(desk: Desk, *arguments: str) -> tuple[int, str]:
    done = desk.cli("files", *arguments)
    return done.exit_code, done.output


def test_what_no_file_has_landed_of_is_not_in(desk):
    lands(desk, "a.ndjson", 3)
    desk.blizzard()
    desk.penguin()
    for asked in (
        ("--day", TODAY),
        ("--day", YESTERDAY, "--day", TODAY),
        ("nosuch/",),
        ("--partition", "x"),
    ):
        code, output = said(desk, *asked, "--check")
        assert code == 1, output
        assert "has landed yet" in output
        assert said(desk, *asked)[0] == 0
    assert "no file of partition x has landed yet" in " ".join(output.split())
    assert said(desk, "a.ndjson", "--day", YESTERDAY, "--check")[0] == 0


def test_the_command_lists_files_by_path_and_by_state(desk):
    lands(desk, "in/a.ndjson")
    lands(desk, "in/b.ndjson")
    lands(desk, "other.ndjson")
    desk.blizzard()
    desk.landing.write("in/bad.ndjson", b"{nope\n")
    desk.blizzard()

    below = said(desk, "in/")[1]
    by_uri = said(desk, f"{desk.landing.folder}/in/", "--output", "json")[1]
    failed = said(desk, "--state", "failed", "--output", "json")[1]

    assert "in/a.ndjson" in below
    assert "other.ndjson" not in below
    assert {json.loads(line)["path"] for line in by_uri.splitlines()} == {
        "in/a.ndjson",
        "in/b.ndjson",
        "in/bad.ndjson",
    }
    (row,) = map(json.loads, failed.splitlines())
    assert (row["path"], row["state"], row["reason"]) == ("in/bad.ndjson", "failed", "not_json")


def test_a_path_is_read_as_a_shell_does_before_it_is_one_below_the_source(desk, monkeypatch):
    lands(desk, "in/a.ndjson")
    lands(desk, "in/sub/b.ndjson")
    lands(desk, "in2/c.ndjson")
    lands(desk, "sub/d.ndjson")

    def paths(asked: str, *, at: Path) -> list[str]:
        monkeypatch.chdir(at)
        lines = said(desk, asked, "--output", "json")[1].splitlines()
        return sorted(json.loads(line)["path"] for line in lines)

    every = ["in/a.ndjson", "in/sub/b.ndjson", "in2/c.ndjson", "sub/d.ndjson"]
    landing = desk.landing.folder
    assert paths("landing", at=desk.folder) == every
    assert paths("landing/", at=desk.folder) == every
    assert paths(".", at=landing) == every
    assert paths(".", at=desk.folder) == every, "the folder that the source is in"
    assert paths("..", at=landing / "in") == every
    assert paths("landing/in", at=desk.folder) == every[:2], "a folder, and none that begins so"
    assert paths(f"{landing}/in", at=desk.folder) == every[:2]
    assert paths("landing/in/a.ndjson", at=desk.folder) == every[:1]
    assert paths("in", at=desk.folder) == every[:3], "not here: what paths begin with"
    assert paths("sub", at=landing / "in") == ["in/sub/b.ndjson"], "the one that is here"
    assert paths("default:sub", at=landing / "in") == ["sub/d.ndjson"]
    (desk.folder / "sub").mkdir()
    assert paths("sub", at=desk.folder) == ["sub/d.ndjson"], "here, but in no source"


def test_a_path_that_no_file_has_says_where_it_was_looked_for(desk):
    lands(desk, "a.ndjson")
    landing = desk.landing.folder

    output = said(desk, "nosuch/*.ndjson")[1]
    refused = said(desk, "/elsewhere")[1]

    asked = f"no file below {landing} whose path begins with 'nosuch/*.ndjson'"
    assert f"{asked} (it is not a pattern) has landed yet" in output
    assert "/elsewhere is in none of the sources: " in refused


def test_a_day_a_path_and_a_state_that_are_none_are_refused(desk):
    desk.landing.folder.mkdir(parents=True)
    for wrong in (("--day", "2024-02-30"), ("--day", "20240201"), ("s3://elsewhere/x",)):
        code, output = said(desk, *wrong)
        assert code == 2, (wrong, output)
    code, output = said(desk, "--state", "foo")
    assert code == 2
    shown = " ".join(output.split())
    assert "'foo' is not a state of files that landed; choose from" in shown
    assert all(state in shown for state in LANDED)
    assert "orphan" not in shown


def test_a_source_that_cannot_be_listed_leaves_every_day_undecided(desk):
    lands(desk, "a.ndjson")
    desk.blizzard()
    desk.landing.folder.rename(desk.folder / "elsewhere")

    found = asks(desk, days=(YESTERDAY,))
    code, output = said(desk, "--day", YESTERDAY)

    assert found.errors
    assert found.groups[0].complete is None
    assert code == 1
    assert "is not known: not every source can be listed" in output


def test_names_whose_suffix_is_not_read_are_counted_by_files_and_status(desk):
    """Nothing else would say that they are there: no run reads them."""
    for name in ("A.NDJSON", "part-0001", "_SUCCESS", "b.ndjson.tmp"):
        desk.landing.write(name, b"{}\n")
    counted = [{"reason": "not_ndjson", "files": 2, "some": ["A.NDJSON", "part-0001"]}]

    def told(skipped):
        return [{key: one[key] for key in counted[0]} for one in skipped]

    (source,) = json.loads(desk.cli("status", "--output", "json").output)["sources"]
    assert told(source["skipped_names"]) == counted
    found = json.loads(desk.cli("files", "--output", "json").output)
    assert told(found["skipped_names"]) == counted
    for command in ("status", "files"):
        assert "2 names ignored: not named like NDJSON" in desk.cli(command).output
