"""`penguin status`, `held`, `plan` and `history`, as a user runs them."""

import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial

import pytest
from typer.testing import CliRunner

from lakebed.columns.schema import Field, Schema
from lakebed.deltalog.versions import read_commit
from lakebed.documents.entry import encode
from lakebed.layout import journal_entry
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader
from lakebed.types import Evolution, FieldType
from penguin.cli.app import app
from penguin.status import table_status
from tests.support import penguin_commands
from tests.support.tables import EVENTS, WIDER, Penguin, rows_of

BAD = Schema((Field(name="id", type=FieldType.STRING), *EVENTS.fields[1:]))
COMMANDS = ["status", "held", "plan", "history"]


@pytest.fixture
def penguin(tmp_path):
    return partial(penguin_commands.penguin, tmp_path / "table")


KNOWN = ["table", "table_uri", "error"]


def told(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def seen(table):
    return sorted((path, path.stat().st_mtime_ns) for path in table.root.rglob("*"))


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize(
    ("command", "code"),
    [
        *[("status", 0), ("plan", 0), ("held", 1), ("history", 1), ("vacuum", 1), ("fsck", 1)],
        *[("replay", 0), ("forget", 0), ("release --all", 0)],
    ],
)
def test_a_place_without_a_table_and_a_journal_is_named(tmp_path, command, code, made):
    """Most often the table_uri has a typo; blizzard may also not have begun yet."""
    place = tmp_path / "later"
    if made:
        place.mkdir()
    done = penguin_commands.penguin(place, *command.split())
    assert done.exit_code == code, done.output
    assert f"events: there is no table and no journal at {place}\n" in done.output
    assert "nothing" not in done.output


@pytest.mark.parametrize("command", ["plan", "held", "history", "vacuum", "fsck"])
def test_a_journal_without_a_table_is_no_failure(penguin, table, command):
    table.journal().batch(rows_of(1))
    done = penguin(command)
    assert done.exit_code == 0, done.output


def test_a_time_in_the_history_stays_on_one_line(penguin, table):
    for name in ("clickstream_of_the_shop", "clickstream_of_the_app"):
        table.journal(name).batch(rows_of(1))
    Penguin(table).drain()
    lines = penguin("history").stdout.splitlines()
    assert len([one for one in lines if re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", one)]) == 2
    assert max(map(len, lines)) <= 80


def test_a_repair_says_that_a_file_of_another_size_stays_in_the_log(penguin, table):
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    (file,) = table.root.rglob("*.parquet")
    file.write_bytes(b"1")
    for options in (("--repair",), ("--repair", "--yes")):
        done = penguin("fsck", *options)
        assert done.exit_code == 1
        stays = "  1 file stays in the log: --repair takes out only missing files\n"
        assert stays in done.stdout
        assert "    restore it from a backup; if that is not possible, move it" in done.stdout
    assert "stays in the log" not in penguin("fsck").stdout


@pytest.mark.parametrize("command", ["status", "plan"])
def test_a_sink_that_no_table_is_at_is_named(tmp_path, table, command):
    file = tmp_path / "p.yaml"
    part = "{source: {path: /in}, sink: {path: %s%s}}"
    file.write_text(
        f"tables: {{events: {{table_uri: {table.root}}}}}\n"
        "pipelines:\n"
        f"  right: {part % (table.root, '')}\n"
        f"  wrong: {part % (tmp_path / 'typo', '')}\n"
        f"  inline: {part % (tmp_path / 'own', ', commit: inline')}\n"
    )
    done = CliRunner().invoke(app, [command, "-c", str(file)])
    assert done.exit_code == 0, done.output
    named = [line for line in done.stdout.splitlines() if line.startswith("pipeline ")]
    (line,) = named
    assert line.startswith(f"pipeline wrong writes to {tmp_path / 'typo'}, which is not")


@pytest.mark.parametrize("command", COMMANDS)
def test_looking_writes_nothing(penguin, table, command):
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    table.journal().batch(rows_of(2))
    table.journal("other", schema=BAD).batch([{"id": "x", "date": "2026-01-01"}])
    before = seen(table)
    penguin(command)
    penguin(command, "--output", "json")
    assert seen(table) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_configuration_is_exit_2(penguin, command):
    done = penguin(command, poll_interval_secs=-1)
    assert done.exit_code == 2
    assert "poll_interval_secs" in done.stderr


@pytest.mark.parametrize("command", ["status", "plan", "held", "history"])
def test_a_log_that_cannot_be_read_is_exit_1_and_nothing_is_counted(penguin, table, command):
    """W14."""
    table.journal().batch(rows_of(1))
    table.store.create(f"_delta_log/{0:020d}.json", b"{")
    done = penguin(command)
    assert done.exit_code == 1
    assert "events: " in done.output
    for document in told(penguin(command, "--output", "json")):
        assert [key for key in document if document[key] is not None] == KNOWN


def test_the_configuration_may_stand_before_the_command(tmp_path, table):
    file = tmp_path / "p.yaml"
    file.write_text(f"tables: {{events: {{table_uri: {table.root}}}}}\n")
    done = CliRunner().invoke(app, ["-c", str(file), "status"])
    assert done.exit_code == 0
    assert "there is no table and no journal at" in done.stdout


def test_status_says_what_is_committed_and_what_waits_and_for_how_long(penguin, table):
    journal = table.journal()
    journal.batch(rows_of(1, 2))
    Penguin(table).drain()
    just_now = datetime.now(UTC).isoformat()
    journal.batch(rows_of(3), rows_of(4, 5), created=just_now)
    journal.batch(rows_of(6), created=just_now)
    (row,) = told(penguin("status", "--output", "json"))
    assert (row["version"], row["last_commit"]["version"]) == (1, 1)
    assert row["last_commit"]["entries"] == [{"pipeline": "events", "first": 1, "last": 1}]
    (pipeline,) = row["pipelines"]
    assert pipeline["committed_entry"] == 1
    assert (row["pending_entries"], row["pending_files"], row["pending_rows"]) == (2, 3, 4)
    assert row["lag_secs"] == pipeline["lag_secs"] > 0
    done = penguin("status")
    assert done.exit_code == 0
    assert "version 1, last commit" in done.stdout
    assert "2 entries are waiting with 3 files" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_everything_that_waits_is_counted_and_the_lag_is_the_age_of_the_oldest(table):
    now = datetime(2026, 1, 2, tzinfo=UTC)
    journal = table.journal()
    for hours in (5, 4, 3, 2, 1):
        journal.batch(rows_of(hours), created=(now - timedelta(hours=hours)).isoformat())
    reader = Reader(str(table.root), StorageOptions())
    found = table_status(table.settings(max_files_per_commit=2), reader, now)
    (pipeline,) = found.pipelines
    assert (pipeline.pending_entries, found.lag_secs) == (5, 5 * 3600)
    Penguin(table).drain()
    assert table_status(table.settings(), reader, now).lag_secs == 0


def test_held_says_which_files_wait_for_what(penguin, table):
    """W07: every reason on a line, with field and both types."""
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    other = table.journal("other")
    other.batch(rows_of(2))
    other.schema = Schema((*BAD.fields, Field(name="new", type=FieldType.DATE, nullable=False)))
    file = other.batch([{"id": "x", "new": date(2026, 1, 1), "date": "2026-01-01"}]).files[0]
    Penguin(table).drain()
    assert table.ids() == [1, 2], "others go on"
    done = penguin("held", "--output", "json")
    assert done.exit_code == 1
    (row,) = told(done)
    assert (row["kind"], row["pipeline"], row["entry"]) == ("file", "other", 2)
    assert (row["file"], row["rows"], row["code"]) == (file.filename, 1, "schema_refused")
    assert any("id: the table has type long, the files have type string" in one
               for one in row["reasons"])  # fmt: skip
    text = penguin("held").stdout
    assert "events, other, entry 2: 1 file with 1 row has been held since " in text
    assert all(f"  {reason}" in text.splitlines() for reason in row["reasons"])
    assert row["id"] in text
    shown = penguin("status").stdout
    assert "1 file with 1 row is held" in shown
    assert all(f"  1 file: {reason} [schema_refused]" in shown for reason in row["reasons"])
    (status,) = told(penguin("status", "--output", "json"))
    assert (status["held_files"], status["held_rows"], status["stopped"]) == (1, 1, 0)
    why = {"code": "schema_refused", "reasons": row["reasons"], "files": 1, "rows": 1}
    assert status["held"] == [why]


def test_a_pipeline_whose_journal_is_broken_is_held_too(penguin, table):
    journal = table.journal()
    entry = journal.batch(rows_of(1))
    table.store.replace(journal_entry("events", 1), encode(replace(entry, previous="0" * 64)))
    (row,) = told(penguin("held", "--output", "json"))
    assert row["kind"] == "pipeline"
    assert (row["entry"], row["code"]) == (None, "journal_broken")
    (status,) = told(penguin("status", "--output", "json"))
    assert status["pipelines"][0]["pending_entries"] is None
    assert penguin("status").exit_code == 1


def test_plan_says_what_would_be_held_and_exits_with_1_where_something_is(penguin, table):
    """HOLES W42: as the page on penguin's commands says."""
    journal = table.journal()
    journal.batch(rows_of(1))
    assert penguin("plan").exit_code == 0
    Penguin(table).drain()
    assert penguin("plan").exit_code == 0
    journal.schema = WIDER
    journal.batch(rows_of(2))
    would = penguin("plan", schema_evolution="strict")
    assert would.exit_code == 1, "it would be held"
    assert "hold    events: entry 2: 1 file: extra: the table does not have it" in would.stdout
    Penguin(table, options={"evolution": Evolution.STRICT}).drain()
    held = penguin("plan", schema_evolution="strict")
    assert held.exit_code == 1, "it is held, and stays so"
    assert "leave   1 file that is held; `penguin held` says why" in held.stdout
    (row,) = told(penguin("plan", "--output", "json", schema_evolution="strict"))
    assert (row["held"], row["still_held"], row["released"]) == ([], 1, 0)
    (row,) = told(penguin("plan", "--output", "json", schema_evolution="merge"))
    assert (row["still_held"], row["released"]) == (0, 1)
    fits = penguin("plan", schema_evolution="merge")
    assert (fits.exit_code, "release 1 file that was held" in fits.stdout) == (0, True)
    assert penguin("held", schema_evolution="merge").exit_code == 1
    Penguin(table).drain()
    done = penguin("held", schema_evolution="merge")
    assert (done.exit_code, done.stdout) == (0, "nothing is held\n")


def test_plan_is_the_dry_run(penguin, table, tmp_path):
    table.journal().batch(rows_of(1, 2))
    Penguin(table).drain()
    table.journal().schema = Schema((EVENTS.fields[0], EVENTS.fields[2]))
    table.journal().batch(rows_of(3))
    done = penguin("plan", schema_evolution="overwrite")
    assert done.exit_code == 0
    assert "would commit 1 entry, 1 file, 1 row" in done.stdout
    assert "drop    column name" in done.stdout
    dry = CliRunner().invoke(app, ["-c", str(tmp_path / "penguin.yaml"), "--dry-run"])
    assert dry.stdout == done.stdout


def test_history_shows_the_last_commits_with_entries_files_and_rows(penguin, table):
    journal = table.journal()
    for number in (1, 2, 3):
        journal.batch(rows_of(number), rows_of(number + 10, number + 20))
        if number != 2:
            Penguin(table).drain()
    table.delta().optimize.compact()
    rows = told(penguin("history", "--output", "json"))
    assert [row["version"] for row in rows] == [3, 2, 1, 0]
    optimize, second, first, create = rows
    assert second["entries"] == [{"pipeline": "events", "first": 2, "last": 3}]
    assert (second["files_added"], second["rows_added"]) == (4, 6)
    assert (first["files_added"], first["rows_added"]) == (2, 3)
    assert (optimize["files_added"], optimize["files_removed"], optimize["rows_added"]) == (1, 6, 0)
    assert create["entries"] == []
    text = penguin("history", "2").stdout
    assert "events 2-3" in text
    assert (
        len([line for line in text.splitlines() if "-" in line and ":" in line and " 20" in line])
        == 2
    )
    assert max(len(line) for line in text.splitlines()) <= 80


def test_history_ends_where_the_log_was_cleaned_up(penguin, table):
    for number in (1, 2):
        table.journal().batch(rows_of(number))
        Penguin(table, options={"checkpoint_interval": 1}).drain()
    (table.root / f"_delta_log/{0:020d}.json").unlink()
    assert [row["version"] for row in told(penguin("history", "--output", "json"))] == [2, 1]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]\n3\n",
        b'{"commitInfo": {"penguin": 3, "timestamp": "x"}}',
        b'{"commitInfo": {"penguin": {"entries": {"p": {}}}}}\n{"add": {"stats": "["}}',
        b'{"commitInfo": {"timestamp": 1767225600000000}}',
        b'{"commitInfo": {"timestamp": -99999999999999999999}}',
    ],
)
def test_a_commit_of_somebody_else_may_say_anything(body):
    commit = read_commit(7, body)
    assert (commit.version, commit.entries, commit.at_ms) == (7, (), None)
