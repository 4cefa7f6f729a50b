"""The program, as a user runs it."""

import json
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from lakebed.types import Handoff
from penguin.cli import app
from penguin.cli.run import PenguinSurroundings
from tests.support.tables import TableDirectory, rows_of
from tests.support.waits import NotedStop


def config(tmp_path, **tables):
    lines = ["tables:"]
    for name, uri in tables.items():
        lines += [f"  {name}:", f"    table_uri: {uri}", "    poll_interval_secs: 1"]
    file = tmp_path / "penguin.yaml"
    file.write_text("\n".join(lines) + "\n")
    return file


def penguin(*arguments):
    return CliRunner().invoke(app.app, [*map(str, arguments)], env={"COLUMNS": "80"})


def test_once_commits_and_says_so_in_json(tmp_path, table):
    table.journal().batch(rows_of(1, 2), rows_of(3))
    done = penguin("-c", config(tmp_path, events=table.root), "--once", "--output", "json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {
        "table": "events",
        "table_uri": str(table.root),
        "version": 1,
        "commits": 1,
        "entries": 1,
        "files": 2,
        "rows": 3,
        "held_files": 0,
        "held_rows": 0,
        "error": None,
    }
    assert table.ids() == [1, 2, 3]


def test_one_failing_table_does_not_stop_another(tmp_path, table):
    """W01."""
    broken = TableDirectory(tmp_path / "broken")
    broken.journal().batch(rows_of(1), previous="0" * 64)
    table.journal().batch(rows_of(1))
    file = config(tmp_path, bad=broken.root, good=table.root)
    done = penguin("-c", file, "--once", "--output", "json")
    assert done.exit_code == 1
    bad, good = map(json.loads, done.stdout.splitlines())
    assert "does not follow" in bad["error"]
    assert (good["commits"], good["error"]) == (1, None)


def test_a_discovery_that_contradicts_the_table_is_exit_2_and_another_table_is_committed(
    tmp_path, table
):
    staging = TableDirectory(tmp_path / "staging", handoff=Handoff.STAGING)
    staging.journal()
    table.journal().batch(rows_of(1))
    file = config(tmp_path, bad=staging.root, good=table.root)
    file.write_text(file.read_text().replace("  bad:\n", "  bad:\n    discovery: journal\n"))
    done = penguin("-c", file, "--once", "--output", "json")
    assert done.exit_code == 2
    bad, good = map(json.loads, done.stdout.splitlines())
    assert "set it to auto or staging" in bad["error"]
    assert (good["commits"], good["error"]) == (1, None)


def test_a_stopped_pipeline_is_exit_1_and_the_other_one_is_committed(tmp_path, table):
    table.journal().batch(rows_of(1))
    table.journal("broken").batch(rows_of(2), previous="0" * 64)
    done = penguin("-c", config(tmp_path, events=table.root), "--once")
    assert done.exit_code == 1
    assert "pipeline broken stops" in done.stderr
    assert table.ids() == [1]


def test_a_dry_run_names_what_is_not_handed_off_yet_and_is_no_failure(tmp_path):
    staging = TableDirectory(tmp_path / "staging", handoff=Handoff.STAGING)
    staging.journal().batch(rows_of(1))
    file = config(tmp_path, events=staging.root)
    done = penguin("-c", file, "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert "wait    events: entry 1: blizzard has not written its metas yet" in done.stdout
    (row,) = map(
        json.loads, penguin("-c", file, "--dry-run", "--output", "json").stdout.splitlines()
    )
    assert [one["entry"] for one in row["waiting"]] == [1]


@pytest.mark.parametrize("made", [True, False])
def test_where_blizzard_has_not_written_yet_there_is_nothing_to_commit(tmp_path, made):
    if made:
        (tmp_path / "empty").mkdir()
    done = penguin("-c", config(tmp_path, events=tmp_path / "empty"), "--once")
    assert done.exit_code == 0
    assert "no table and no journal" in done.stdout
    assert f"there is no table and no journal at {tmp_path / 'empty'}" in done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert (tmp_path / "empty").exists() is made


def test_a_dry_run_says_what_would_be_done_and_does_nothing(tmp_path, table):
    table.journal().batch(rows_of(1, 2))
    table.journal("broken").batch(rows_of(2), previous="0" * 64)
    file = config(tmp_path, events=table.root)
    text = penguin("-c", file, "--dry-run")
    assert text.exit_code == 1
    assert "would create the table and commit 1 entry, 1 file, 2 rows" in text.stdout
    assert "broken" in text.stdout
    told = json.loads(penguin("-c", file, "--dry-run", "--output", "json").stdout)
    assert told["pipelines"][0]["pipeline"] == "events"
    assert told["stopped"][0]["code"] == "journal_broken"
    assert not (table.root / "_delta_log").exists()


def test_a_wrong_configuration_is_exit_2_with_every_fault_on_a_line(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text("tables:\n  a: {table_urii: x}\n  b: {table_uri: y, poll_interval_secs: -1}\n")
    done = penguin("-c", file)
    assert done.exit_code == 2
    assert done.stdout == ""
    faults = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(faults) >= 3
    assert penguin("--nonsense").exit_code == 2


def test_the_version_is_printed():
    assert penguin("-V").stdout.startswith("penguin ")


LOADED = """
import sys
from penguin.cli.app import main
for command in ([], ["status"], ["held"], ["plan"], ["history"]):
    for arguments in (["-h"], ["-c", "/nowhere.yaml"]):
        sys.argv = ["penguin", *command, *arguments]
        try:
            main()
        except SystemExit:
            pass
        loaded = {"deltalake", "pyarrow", "pyspark"} & set(sys.modules)
        assert not loaded, (sys.argv, loaded)
print("all of them were tried")
"""


def test_help_and_configuration_faults_load_neither_delta_nor_arrow():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.endswith("all of them were tried\n"), done.stderr


def test_a_polling_penguin_commits_what_comes_and_stops_in_good_order(tmp_path, table):
    file = config(tmp_path, events=table.root, later=tmp_path / "later")
    with subprocess.Popen(
        [sys.executable, "-m", "penguin", "-c", str(file), "--output", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        table.journal().batch(rows_of(1))
        deadline = time.monotonic() + 300
        while table.receipt() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert json.loads(out.splitlines()[0])["commits"] == 1
    assert "SIGTERM" in err
    assert table.ids() == [1]


def test_each_table_is_polled_at_its_own_interval(tmp_path):
    """The pause is read anew for every poll."""
    stop = NotedStop(threads=3)
    around = PenguinSurroundings(stop=stop, listen=lambda *_given: None)
    file = tmp_path / "penguin.yaml"
    file.write_text(
        f"tables:\n  often: {{table_uri: {tmp_path / 'a'}, poll_interval_secs: 2}}\n"
        f"  seldom: {{table_uri: {tmp_path / 'b'}, poll_interval_secs: 300}}\n"
        f"  plain: {{table_uri: {tmp_path / 'c'}}}\n"
    )
    assert CliRunner().invoke(app.app, ["-c", str(file)], obj=around).exit_code == 0
    assert stop.waits == {"table often": [2], "table seldom": [300], "table plain": [10]}
