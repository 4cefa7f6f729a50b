"""What is told of failed files: gauges, the queue, the summary of a run, penguin."""

import gzip
import hashlib
from dataclasses import replace

import pytest

from blizzard.events import NothingNew, SourcesListed
from blizzard.journal import checkpoint
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from lakebed import layout
from lakebed.clock import Clock
from tests.support.builders import Bench, entries, ndjson, put, rows
from tests.support.commands import recorded, told
from tests.support.desk import Desk as Both
from tests.support.failed import BAD, HOUR, change, drain, polls, retry
from tests.support.readers import ids as table_ids


def test_the_gauge_counts_every_file_that_is_failed(bench, desk):
    """HOLES W38: also between two sweeps, and none that is gone."""
    put(desk.landing, "a.ndjson", BAD)
    running = replace(bench, once=False).pipeline()
    polls(running, bench)
    assert bench.said(SourcesListed)[-1].resting == 1
    assert bench.said(NothingNew)[-1].resting == 1
    (desk.landing / "a.ndjson").unlink()
    bench.hands.at += 2 * HOUR
    polls(running, bench)
    assert bench.said(SourcesListed)[-1].resting == 0


def test_the_queue_shows_what_is_failed_now_and_all_of_it_if_asked(bench, desk):
    """HOLES W38: ingested since, gone since, failed again."""
    for name in ("back", "gone", "stays"):
        put(desk.landing, f"{name}.ndjson", BAD)
    drain(bench)
    (desk.landing / "gone.ndjson").unlink()
    put(desk.landing, "back.ndjson", ndjson(rows(1)))
    retry(
        desk.store,
        "default",
        frozenset({"default:stays.ndjson"}),
        clock=bench.hands.clock,
    )
    asked_for = told(desk.run("dlq", "list", "--output", "json"))
    assert len(asked_for) == 3  # Nothing was read yet.
    drain(bench.again(run_id="run-2"))
    current = told(desk.run("dlq", "list", "--output", "json"))
    letters = [one for one in current if "lost" not in one]
    assert [(one["path"].rpartition("/")[2], one["retry_count"]) for one in letters] == [
        ("stays.ndjson", 1)
    ]
    shown = desk.run("dlq", "list").stdout
    assert "1 failure, newest first" in shown
    assert "2 earlier failures have been resolved" in shown
    (desk.landing / "stays.ndjson").unlink()
    drain(bench.again(run_id="run-3"))
    assert "no file is in a failed state now; 2 earlier failures" in desk.run("dlq", "list").stdout


def test_the_queue_names_files_that_are_lost_until_they_are_given_up(bench, desk):
    """Their days stay open: it is not over."""
    for name in ("first", "second"):
        put(desk.landing, f"{name}.ndjson", BAD)
    drain(bench)
    for name in ("first", "second"):
        (desk.landing / f"{name}.ndjson").unlink()
    drain(bench.again(run_id="run-2"))

    shown = " ".join(desk.run("dlq", "list").stdout.split())
    assert "no file is in a failed state now pipeline default: 2 files are lost" in shown
    assert "first.ndjson [wrong_type] second.ndjson [wrong_type]" in shown
    assert "Put them back, or give them up. blizzard" in shown
    assert "dlq discard --deleted --yes" in shown
    assert "over" not in shown
    lost = told(desk.run("dlq", "list", "--output", "json"))
    assert list(lost[0]) == ["pipeline", "lost", "source", "path", "code", "size", "since"]
    assert [(one["lost"], one["path"]) for one in lost] == [
        (f"{desk.landing}/{name}", name) for name in ("first.ndjson", "second.ndjson")
    ]

    assert desk.run("dlq", "discard", "first.ndjson", "--yes").exit_code == 0
    shown = " ".join(desk.run("dlq", "list").stdout.split())
    assert "1 earlier failure has been resolved" in shown
    assert "1 file is lost, it failed and was deleted from the source" in shown
    put(desk.landing, "second.ndjson", ndjson(rows(1)))
    drain(bench.again(run_id="run-3"))
    assert "lost" not in desk.run("dlq", "list").stdout


def test_a_misplaced_file_is_told_the_way_out(desk):
    """HOLES W38: to change the file does not help, to move it does."""
    desk.sink = 'partition_by: {prefix_template: "date=%Y-%m-%d"}'
    put(desk.landing, "a.ndjson", ndjson(rows(1)))
    settings = change(desk.settings(), template="date=%Y-%m-%d")
    bench = Bench(settings)
    drain(bench)
    assert "Move it into the folder of its partition" in desk.run("status").stdout
    (desk.landing / "date=2024-01-01").mkdir()
    (desk.landing / "a.ndjson").rename(desk.landing / "date=2024-01-01/a.ndjson")
    done = drain(bench.again(run_id="run-2"))
    assert (done.files_processed, done.files_still_failed) == (1, 0)


def test_the_field_is_told_wherever_a_failure_is(bench, desk):
    """HOLES W44: in the views for people, too."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    assert "wrong_type (parse, line 1, field id)" in desk.run("status").stdout
    (source,) = recorded(desk.run("journal", "1").stdout)["sources"]
    failure = source["failure"]
    assert (failure["code"], failure["line"], failure["field"]) == ("wrong_type", 1, "id")
    assert "id: found" in " ".join(desk.run("dlq", "list").stdout.split())
    (source,) = told(desk.run("status", "--output", "json"))[0]["sources"]
    assert source["failures"][0]["field"] == "id"


def test_the_summary_of_a_run_that_reads_nothing_counts_what_is_still_failed(bench, desk):
    """HOLES W38: `files_failed: 0` with exit code 0 no longer means that all is well."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    done = desk.run("--once", "--output", "json")
    (row,) = told(done)
    assert (done.exit_code, row["files_processed"], row["files_failed"]) == (0, 0, 0)
    assert row["files_still_failed"] == 1


def test_a_snapshot_of_another_version_is_believed(bench, desk):
    """A field more or less in it is no damage: an upgrade reads no entry again for it."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    store = desk.store
    SnapshotWriter(store=store, pipeline="default", clock=Clock()).write(
        read_ledger(store, "default")
    )
    path = desk.table / layout.snapshot("default")
    _head, text = path.read_text().split("\n", 1)
    text = text.replace(',"moving":null', "").replace(',"heir":null', "")
    head = f"{checkpoint.FORMAT} {hashlib.sha256(text.encode()).hexdigest()}\n"
    path.write_text(head + text)
    found = checkpoint.read_snapshot(store, "default")
    assert found is not None
    (known,) = read_ledger(store, "default").unfinished.values()
    assert known.record.gone is False
    path.write_text(head + text.replace("default", "defautl", 1))
    with pytest.raises(checkpoint.SnapshotBroken):
        checkpoint.read_snapshot(store, "default")


def test_a_failed_file_is_named_as_a_shell_names_it(bench, desk, monkeypatch):
    put(desk.landing, "in/a.ndjson", BAD)
    drain(bench)
    for at, name in (
        (desk.landing / "in", "a.ndjson"),
        (desk.root, f"{desk.landing.name}/in/a.ndjson"),
        (desk.root, "in/a.ndjson"),
    ):
        monkeypatch.chdir(at)
        assert desk.run("dlq", "retry", "--file", name).exit_code == 0


def test_penguin_goes_past_what_says_how_failures_end(tmp_path):
    """HOLES L33, W38: such entries have no file, and their books balance."""
    both = Both(tmp_path)
    both.landing.land("a.ndjson", 3)
    both.landing.write("bad.ndjson", b"{nope\n")
    both.landing.write("moved.ndjson", b"{nope\n")
    both.blizzard()
    assert both.cli("dlq", "retry", "--file", "bad.ndjson").exit_code == 0
    (both.landing.folder / "moved.ndjson").unlink()
    both.blizzard(later=60)
    both.penguin()
    (row,) = told(both.order("status", "--output", "json"))
    assert (row["pending_entries"], row["stopped"]) == (0, 0)
    kinds = [(entry.kind, len(entry.sources)) for entry in entries(both.table)]
    assert kinds == [("open", 0), ("batch", 3), ("retry", 1), ("batch", 2)]
    assert table_ids(both.table) == both.landing.ids


def test_files_that_failed_give_once_its_own_exit_code_and_dlq_list_names_quarantine(tmp_path):
    """A scheduler turns red in the run in which files failed, and a person learns the setting."""
    desk = Both(tmp_path / "both")
    desk.landing.land("a.ndjson", 2)
    desk.landing.write("bad.ndjson", b'{"id": 1}\n{no\n')
    run = desk.cli("--once")
    assert run.exit_code == 3
    hint = "1 file failed by a bad line; error_handling.on_bad_record: quarantine would quarant"
    assert hint in desk.cli("dlq", "list").output
    assert "error_handling:\n        on_bad_record: quarantine" in desk.cli("status").output
    again = desk.cli("--once")
    assert again.exit_code == 0
    assert "1 source file from earlier runs still fails" in again.output
    text = desk.file.read_text()
    desk.file.write_text(
        text.replace("error_handling:\n", "error_handling:\n  on_bad_record: quarantine\n")
    )
    again = desk.cli("--once")
    assert (again.exit_code, hint in desk.cli("dlq", "list").output) == (0, False)
    (desk.landing.folder / "cut.ndjson.gz").write_bytes(gzip.compress(b"{}\n")[:-4])
    cut = desk.cli("--once")
    assert (cut.exit_code, hint in desk.cli("dlq", "list").output) == (3, False)
