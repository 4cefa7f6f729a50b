"""`blizzard --dry-run`: the plan as a table, and what a start would refuse."""

from dataclasses import replace
from datetime import timedelta

import pytest

from blizzard.handoff.publish import CommitsBehind
from blizzard.pipeline_log import PipelineLog
from lakebed.clock import Clock
from lakebed.documents.entry import Receipt, encode
from lakebed.errors import LakeError
from lakebed.layout import journal_entry, receipt
from tests.support.builders import Bench, Hands, ndjson, put, rows, tree
from tests.support.commands import WIDTH, Desk, told

PARTITIONED = 'partition_by: {prefix_template: "date=%Y-%m-%d"}'


def test_the_plan_is_a_table_of_files_bytes_units_and_partitions(desk):
    desk.sink = PARTITIONED
    for day in (1, 2):
        for number in range(3):
            path = f"date=2024-01-0{day}/{number}.ndjson"
            put(desk.landing, path, ndjson(rows(2, day * 10 + number)))
    put(desk.landing, "nowhere.ndjson", ndjson(rows(1)))
    put(desk.landing, "notes.txt", b"x")
    before = tree(desk.landing)
    done = desk.run("--dry-run")
    assert done.exit_code == 0
    assert "batch 1 would read 6 files" in done.stdout
    assert "in 2 units" in done.stdout
    assert "date=2024-01-01" in done.stdout
    assert "its path does not give its" in done.stdout
    assert "not named like NDJSON" in done.stdout
    tables = [line for line in done.stdout.splitlines() if not line.startswith("pipeline")]
    assert max(map(len, tables)) <= WIDTH
    assert (tree(desk.landing), desk.table.exists()) == (before, False)

    (plan,) = told(desk.run("--dry-run", "--output", "json"))
    assert (plan["files"], len(plan["units"]), plan["refusal"]) == (6, 2, None)
    assert {(one["reason"], one["files"]) for one in plan["not_taken"]} == {
        ("misplaced", 1),
        ("not_ndjson", 1),
    }
    assert {one["path"] for one in plan["left_out"]} == {"nowhere.ndjson", "notes.txt"}


def test_long_paths_leave_room_for_the_reasons(desk):
    desk.sink = PARTITIONED
    for number in range(5):
        folder = f"region=europe/date=2024-01-0{number + 1}"
        put(desk.landing, f"{folder}/events-0000{number}.ndjson.gz.tmp", b"x")
        put(desk.landing, f"{folder}/events-0000{number}.ndjson", ndjson(rows(2, number * 10)))
    done = desk.run("--dry-run")
    tables = [line for line in done.stdout.splitlines() if not line.startswith("pipeline")]
    assert max(map(len, tables)) <= WIDTH, done.stdout
    assert "…/events-00000.ndjson.gz.tmp" in done.stdout
    assert "named like an unfinished" in done.stdout
    (plan,) = told(desk.run("--dry-run", "--output", "json"))
    whole = "region=europe/date=2024-01-01/events-00000.ndjson.gz.tmp"
    assert whole in {one["path"] for one in plan["left_out"]}


def test_what_it_says_is_what_a_batch_does(desk):
    put(desk.landing, "a.ndjson", ndjson(rows(2)))
    put(desk.landing, "bad.ndjson", b"{nope\n")
    # The command goes by the clock of the machine: what is journaled now waits for nobody yet.
    bench = replace(desk.bench(), hands=Hands(at=Clock().seconds()))
    bench.pipeline().step()
    put(desk.landing, "b.ndjson", ndjson(rows(2, 5)))
    (plan,) = told(desk.run("--dry-run", "--output", "json"))
    bench.again(run_id="run-2").pipeline().step()
    last = bench.entries()[-1]
    planned = [file["path"] for unit in plan["units"] for file in unit["files"]]
    assert (plan["entry"], planned) == (last.sequence, [one.key for one in last.sources])


@pytest.mark.parametrize("waiting", [timedelta(days=3), timedelta(days=4)])
def test_files_that_wait_too_long_for_their_commit_are_told_as_a_run_tells_them(desk, waiting):
    """A table that says nothing else keeps files that its log does not name for a week."""
    put(desk.landing, "a.ndjson", ndjson(rows(2)))
    desk.bench().again(hands=ago(waiting)).pipeline().step()
    put(desk.landing, "b.ndjson", ndjson(rows(2, 5)))
    pipeline = desk.bench().again(hands=ago(timedelta()), run_id="run-2").pipeline()
    pipeline.log = PipelineLog(pipeline.settings)
    (plan,) = told(desk.run("--dry-run", "--output", "json"))
    shown = desk.run("--dry-run")
    if waiting < timedelta(days=3.5):
        assert (plan["files"], plan["refusal"], shown.exit_code) == (1, None, 0)
        assert pipeline.step()
        return
    with pytest.raises(CommitsBehind) as refused:
        pipeline.step()
    assert plan["refusal"] == {"code": "commits_behind", "error": str(refused.value)}
    assert (plan["files"], plan["units"], shown.exit_code) == (0, [], 1)
    assert "a run would read nothing [commits_behind]" in shown.stdout
    assert "Start penguin" in shown.stderr


def ago(span: timedelta) -> Hands:
    """A clock that stands this far behind the one that the commands look at."""
    return Hands(at=Clock().seconds() - span.total_seconds())


def test_a_hand_off_that_contradicts_the_table_is_told_as_a_start_tells_it(desk):
    put(desk.landing, "a.ndjson", ndjson(rows(2)))
    desk.bench().pipeline().step()
    desk.sink = "handoff: staging"
    done = desk.run("--dry-run")
    assert done.exit_code == 2
    assert "a start would be refused [protocol_conflict]" in done.stdout
    assert "this table's hand-off is 'journal'" in done.stderr


def journal_rolled_back(desk: Desk) -> Bench:
    put(desk.table, receipt("default"), encode(Receipt(journal="j", sequence=7, digest="d")))
    return desk.bench()


def pipeline_renamed(desk: Desk) -> Bench:
    folder = desk.table / "_blizzard"
    (folder / "default").rename(folder / "before")
    return desk.bench()


def source_renamed(desk: Desk) -> Bench:
    path = desk.table / journal_entry("default", 1)
    (path.parent / path.name).unlink()
    entry = desk.bench().entries()[0]
    put(
        desk.table,
        journal_entry("default", 0),
        encode(replace(entry, source_uris={"old": str(desk.landing)})),
    )
    return desk.bench()


@pytest.mark.parametrize("trouble", [journal_rolled_back, pipeline_renamed, source_renamed])
@pytest.mark.unbalanced("entry_misplaced", "receipt_differs")
def test_what_a_start_would_refuse_a_dry_run_does_not_promise(desk, trouble):
    """HOLES L21: it gives the same reason as the start does."""
    put(desk.landing, "a.ndjson", ndjson(rows(2)))
    desk.bench().pipeline().step()
    bench = trouble(desk)
    done = desk.run("--dry-run")
    assert done.exit_code == 1
    assert "a start would be refused [journal_lost]" in done.stdout
    (plan,) = told(desk.run("--dry-run", "--output", "json"))
    with pytest.raises(LakeError) as refused:
        bench.pipeline().step()
    assert plan["refusal"] == {"code": "journal_lost", "error": str(refused.value)}


@pytest.mark.unbalanced("file_unnamed", "journal_missing")
def test_a_journal_that_only_the_log_knows_of_is_not_promised_either(desk):
    """HOLES L21."""
    put(desk.landing, "a.ndjson", ndjson(rows(2)))
    bench = desk.bench()
    bench.pipeline().step()
    assert desk.commit() == 1
    for path in (desk.table / "_blizzard/default").rglob("*.json"):
        path.unlink()
    done = desk.run("--dry-run")
    assert done.exit_code == 1
    assert "its journal is gone" in done.stderr
    assert "blizzard journal new" in done.stderr
