"""`blizzard status`, as an operator runs it: beside a blizzard, before one, and after trouble."""

import json
import os
import re
import shutil
import signal
import time

import pytest
import yaml

from blizzard.answers.status_reader import StatusReader
from blizzard.cli.status import headline
from blizzard.journal.lease import this_machine
from lakebed.documents.entry import Receipt, digest, encode
from lakebed.layout import entry_sequence, journal_entry, receipt
from lakebed.storage.store import Reader, Store
from tests.support.builders import Hands, ndjson, no_options, put, rows, tree
from tests.support.commands import WIDTH, told
from tests.support.processes import finish, start
from tests.support.writers import lease, machine


def status_of(desk, hands=None):
    return StatusReader(desk.settings(), (hands or Hands()).clock).read()[1]


def commit_receipt(desk, entry):
    """Write the receipt that penguin writes after a commit."""
    body = (desk.table / journal_entry("default", entry)).read_bytes()
    written = Receipt(journal=json.loads(body)["journal"], sequence=entry, digest=digest(body))
    put(desk.table, receipt("default"), encode(written))


def test_before_there_is_a_table_it_says_so_and_makes_none(desk):
    put(desk.landing, "a.ndjson", ndjson(rows(2)))
    done = desk.run("status")
    assert done.exit_code == 0
    assert "nothing is journaled yet" in done.stdout
    assert not desk.table.exists()
    (one,) = told(desk.run("status", "--output", "json"))
    assert (one["last_entry"], one["sources"][0]["pending_files"]) == (None, 1)


def test_it_says_what_waits_what_failed_what_was_done_and_what_is_committed(desk):
    put(desk.landing, "a.ndjson", ndjson(rows(3)) + b"\n")
    put(desk.landing, "bad.ndjson", b"{nope\n")
    desk.bench().pipeline().step()
    desk.commit()
    put(desk.landing, "b.ndjson", ndjson(rows(3, 3)))
    desk.bench(max_failures=None).again(run_id="run-2").pipeline().step()
    put(desk.landing, "c.ndjson", ndjson(rows(1, 9)))

    (one,) = told(desk.run("status", "--output", "json"))
    assert (one["last_entry"], one["committed_entry"], one["uncommitted_entries"]) == (2, 1, 1)
    assert (one["handoff"], one["last_batch"]["run"]) == ("journal", "run-2")
    assert one["totals"]["files"] == 2
    assert one["totals"]["rows"] == 6
    assert one["totals"]["blank"] == 1
    assert one["parquet_files"] == 2
    (source,) = one["sources"]
    assert source["pending_files"] == 1
    assert source["pending_bytes"] == len(ndjson(rows(1, 9)))
    assert source["lag_secs"] == one["lag_secs"] > 0
    assert source["failed_files"] == 1
    assert source["failures"][0]["code"] == "not_json"

    shown = desk.run("status")
    assert shown.exit_code == 0
    assert "last batch 2:" in shown.stdout
    assert "committed up to entry 1 of 2, 1 entry is waiting to be committed" in shown.stdout
    assert "bad.ndjson: not_json (parse, line 1); not tried again" in shown.stdout
    assert "Fix the file or the schema" in shown.stdout


def test_it_says_who_writes_or_has_written_last(desk):
    desk.bench().pipeline().step()
    assert told(desk.run("status", "--output", "json"))[0]["writer"] is None

    turn = lease("run-7", on=this_machine())
    turn.take(desk.store)
    (one,) = told(desk.run("status", "--output", "json"))
    assert one["writer"] == {
        "run": "run-7",
        "host": this_machine().host,
        "process": os.getpid(),
        "since": "2024-01-01T12:00:00+00:00",
        "state": "alive",
        "seen": None,
    }
    assert "  written now by run run-7 on " in desk.run("status").stdout

    turn.give_back(keep=True)
    assert told(desk.run("status", "--output", "json"))[0]["writer"]["state"] == "ended"
    shown = desk.run("status").stdout
    assert "  no blizzard is running; the last run was run-7 on " in shown
    assert re.search(r", started \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n", shown)


def test_of_a_writer_elsewhere_it_says_only_who_it_is(desk):
    lease("run-7", on=machine("db7")).take(Store(str(desk.table), no_options(), make_folder=True))
    shown = desk.run("status")
    assert shown.exit_code == 0
    assert "nothing is journaled yet" in shown.stdout
    assert "written by run run-7 on db7" in shown.stdout
    assert "whether it is alive is unknown here" in shown.stdout


def test_it_writes_nothing_and_fits_80_columns(desk):
    put(desk.landing, f"{'long' * 30}/a.ndjson", ndjson(rows(3)))
    desk.bench().pipeline().step()
    before = tree(desk.root)
    config = desk.config()
    shown = desk.run("status", config=config).stdout
    tables = [line for line in shown.splitlines() if not line.startswith(("pipeline", "  "))]
    assert tables
    assert max(map(len, tables)) <= WIDTH
    config.unlink()
    assert tree(desk.root) == before


def test_the_lag_is_the_age_of_the_oldest_file_that_waits(desk):
    put(desk.landing, "a.ndjson", ndjson(rows(1)))
    hands = Hands(at=(desk.landing / "a.ndjson").stat().st_mtime + 90)
    put(desk.landing, "b.ndjson", ndjson(rows(1)))
    (source,) = status_of(desk, hands).sources
    assert source.lag_secs == pytest.approx(90, abs=0.01)


def test_a_second_look_reads_only_what_is_new(desk):
    read: list[str] = []

    class Counting(Reader):
        def get(self, path):
            read.append(path)
            return super().get(path)

    bench = desk.bench()
    for number in range(3):
        put(desk.landing, f"{number}.ndjson", ndjson(rows(1, number)))
        bench.again(run_id=f"run-{number}").pipeline().step()
    reader = StatusReader(desk.settings(), Hands().clock)
    open_reader = lambda place: Counting(place.uri, place.options)  # noqa: E731
    for _look in range(2):
        _asked, found = reader.read(open_reader)
    numbers = [found_ for path in read if (found_ := entry_sequence(path)) is not None]
    assert [number for number in numbers if number <= 3] == [0, 1, 2, 3]
    assert found.totals.rows == 3


def test_a_source_that_cannot_be_listed_hides_nothing_else(desk):
    put(desk.landing, "a.ndjson", ndjson(rows(3)))
    desk.bench().pipeline().step()
    (desk.landing / "a.ndjson").unlink()
    desk.landing.rmdir()
    done = desk.run("status")
    assert done.exit_code == 1
    assert "source default cannot be listed: the folder does not exist" in done.stdout
    assert "in all 1 batch, 1 file, 3 rows" in done.stdout


@pytest.mark.unbalanced("entry_unreadable")
def test_a_pipeline_that_cannot_be_read_is_told_and_hides_no_other(desk):
    """HOLES L21. It is shown first."""
    put(desk.landing, "a.ndjson", ndjson(rows(3)))
    desk.bench().pipeline().step()
    desk.commit()
    put(desk.table, journal_entry("broken", 0), b"{torn")
    (desk.root / "broken").mkdir()
    config = desk.config("default", "broken")
    done = desk.run("status", config=config)
    assert done.exit_code == 1
    assert done.stdout.startswith(
        "2 pipelines: 1 failing, 1 ok\npipeline broken: this document cannot be read"
    )
    assert "in all 1 batch, 1 file, 3 rows" in done.stdout
    found = told(desk.run("status", "--output", "json", config=config))
    assert {one["code"] for one in found if one["error"]} == {"document_unreadable"}
    assert sum(one["error"] is None for one in found) == 1
    assert desk.run("status", "-p", "default", config=config).exit_code == 0
    assert desk.run("status", "-p", "no such", config=config).exit_code == 2


@pytest.mark.unbalanced("receipt_ahead")
def test_a_receipt_that_the_journal_contradicts_is_told(desk):
    """HOLES L21: the journal was rolled back."""
    bench = desk.bench()
    for number in range(2):
        put(desk.landing, f"{number}.ndjson", ndjson(rows(1, number)))
        bench.again(run_id=f"run-{number}").pipeline().step()
    commit_receipt(desk, 2)
    (desk.table / journal_entry("default", 2)).unlink()
    done = desk.run("status")
    assert done.exit_code == 1
    assert "the journal does not have it as it was" in done.stdout


@pytest.mark.unbalanced("journal_missing", "file_unnamed", "transaction_missing")
@pytest.mark.parametrize("lost", ["_blizzard", "_blizzard/default"])
def test_a_lost_journal_is_told_with_the_way_out(desk, lost):
    put(desk.landing, "a.ndjson", ndjson(rows(1)))
    desk.bench().pipeline().step()
    desk.commit()
    shutil.rmtree(desk.table / lost)
    done = desk.run("status")
    assert done.exit_code == 1
    shown = " ".join(done.stdout.split())
    assert "blizzard would refuse to start: the Delta log holds commits of this pipeline" in shown
    assert "blizzard journal new" in shown
    assert "[journal_lost]" in shown
    assert "has not written" not in shown
    (one,) = told(desk.run("status", "--output", "json"))
    assert one["code"] == "journal_lost"


def test_declared_columns_that_do_not_fit_the_table_are_told(desk):
    put(desk.landing, "a.ndjson", ndjson(rows(1)))
    desk.bench().pipeline().step()
    desk.commit()
    file = desk.config()
    document = yaml.safe_load(file.read_text())
    document["pipelines"]["default"]["schema"]["fields"][0]["type"] = "boolean"
    file.write_text(yaml.safe_dump(document))
    done = desk.run("status", config=file)
    assert done.exit_code == 1
    assert "blizzard would refuse to start: " in done.stdout
    assert "[schema_conflict]" in done.stdout


@pytest.mark.parametrize(
    ("healths", "line"),
    [
        (
            ["ok", "warning", "failing", "ok", "warning"],
            "5 pipelines: 1 failing, 2 need attention, 2 ok",
        ),
        (["warning"], "1 pipeline: needs attention"),
        (["warning"] * 2, "2 pipelines: need attention"),
        (["ok"] * 3, "3 pipelines: ok"),
    ],
)
def test_the_first_line_counts_pipelines_the_worst_first(healths, line):
    assert headline(healths) == line


def test_watching_has_a_screen_of_its_own(desk, monkeypatch):
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("blizzard.cli.status.time.sleep", interrupt)
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = desk.run("status", "--watch")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("\x1b[?1049h")
    assert shown.stdout.endswith("\x1b[?1049l\x1b[?25h")


def test_watching_goes_on_until_ctrl_c_and_ends_well(desk):
    put(desk.landing, "a.ndjson", ndjson(rows(3)))
    desk.bench().pipeline().step()
    process = start(
        "blizzard", "status", "--watch", "--interval", "0.2", "--output", "json",
        "-c", desk.config(),
    )  # fmt: skip
    assert process.stdout is not None
    first, second = process.stdout.readline(), process.stdout.readline()
    assert json.loads(first)["totals"] == json.loads(second)["totals"]
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    ended = finish(process)
    assert ended.code == 0
    assert "Traceback" not in ended.err
