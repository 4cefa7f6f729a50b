"""Where the dead letter queue is, and how it is read back, by a program and by the command."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.handoff import dead_letters
from lakebed.errors import LakeError
from lakebed.layout import journal_entry
from lakebed.storage.options import Location, StorageOptions
from tests.support.builders import put
from tests.support.dead_letters import drain, objects, queue

BAD = b'{"id": "one"}\n'
HOUR = 3600


# ------------------------------------------------------------------------------ the place


def at(uri: str, **options: str) -> Location:
    return Location(uri=uri, options=StorageOptions(options))


@pytest.mark.parametrize(
    ("configured", "uri", "has_options"),
    [
        ("s3://other/dlq", "s3://other/dlq", True),
        ("gs://other/dlq", "gs://other/dlq", False),
        ("/var/dlq", "/var/dlq", False),
    ],
)
def test_a_configured_queue_is_reached_as_the_sink_is_if_it_is_of_its_kind(
    bench, configured, uri, has_options
):
    """W17: the sink's credentials go to no store of another kind."""
    options = StorageOptions({"AWS_SECRET_ACCESS_KEY": "hunter2"})
    sink = replace(bench.settings.sink, table_uri="s3://bucket/table", storage_options=options)
    settings = replace(bench.settings, sink=sink, dlq_path=configured)
    location, folder = dead_letters.dlq_location_of(settings)
    assert (location.uri, folder) == (uri, "")
    assert (location.options == options) is has_options


# ------------------------------------------------------------------------------ reading it back


def test_the_newest_failures_come_first_also_from_an_earlier_place(bench, source, tmp_path):
    """L22: the order is the journal's, whatever the clock did."""
    put(source, "first.ndjson", BAD)
    drain(bench)
    put(source, "second.ndjson", BAD)
    bench.hands.at -= HOUR
    moved = replace(
        bench, settings=replace(bench.settings, dlq_path=str(tmp_path / "queue")), run_id="run-2"
    )
    drain(moved)
    assert [letter.path.rpartition("/")[2] for letter in queue(moved).letters] == [
        "second.ndjson",
        "first.ndjson",
    ]


@pytest.mark.parametrize("body", [b"{", b"[]\n", b'{"path": "a"}\n'])
def test_an_object_that_is_no_queue_is_an_error_that_names_it(body):
    with pytest.raises(LakeError, match=r"not an object of a dead letter queue.*dlq/x"):
        dead_letters.decode(body, "dlq/x")


# ------------------------------------------------------------------------------ the command


@pytest.fixture
def configured(tmp_path: Path, source: Path) -> Path:
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"source: {{path: {source}}}\n"
        f"sink: {{path: {tmp_path}/table}}\n"
        "schema: {fields: [{name: id, type: int64, nullable: false}, {name: name, type: string}]}\n"
    )
    return file


def listed(file: Path, *arguments: str):
    return CliRunner().invoke(app, ["dlq", "list", "-c", str(file), *arguments])


def test_the_command_shows_a_table_with_every_name_whole(bench, source, configured, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    long = f"date=2024-01-01/{'long-name-' * 8}[x].ndjson"
    put(source, long, BAD)
    put(source, "date=2024-01-02/b.ndjson.gz", b"no gzip")
    drain(bench)
    shown = listed(configured)
    assert shown.exit_code == 0
    header, *body = shown.stdout.splitlines()
    assert header == f"pipeline default: 2 failures, newest first, below {source}"
    assert body[0].split() == ["stage", "code", "line", "message", "retries", "path"]
    assert {word for line in body for word in line.split() if word.startswith("date=")} == {
        "date=2024-01-02/b.ndjson.gz",
        long,
    }
    together = "".join(shown.stdout.split())
    assert "wrong_type" in together
    assert "decompress_failed" in together


def test_the_command_warns_of_what_was_cleared_away(bench, source, configured):
    put(source, "bad.ndjson", BAD)
    drain(bench)
    (written,) = objects(bench)
    written.unlink()
    shown = listed(configured)
    assert shown.exit_code == 0
    assert f"{written} is not there any more" in shown.stderr


def test_the_command_fails_where_the_journal_cannot_be_read(bench, source, configured):
    """D05."""
    put(source, "bad.ndjson", BAD)
    drain(bench)
    (bench.table / journal_entry("default", 1)).write_bytes(b"{")
    shown = listed(configured)
    assert shown.exit_code == 1
    assert "cannot be read" in shown.stderr
