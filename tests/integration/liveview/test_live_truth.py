"""What the live page says of a renamed pipeline, a dead writer, and files that changed."""

import json
import os
import re
import shutil
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.journal.lease import LeaseRecord, encode_lease, this_machine
from lakebed.clock import Clock
from lakebed.layout import writer
from lakebed.telemetry.events import StepFailed
from lakebed.telemetry.health import PartKind
from liveview.followers import TableFollower
from liveview.lake import lake_of
from liveview.observer import ANSWER_SECS
from penguin.config import load as penguin_config
from tests.integration.liveview.test_live_trouble import Asking, answer
from tests.support.live_lake import PATIENT, LiveLake, asked


@pytest.fixture
def lake(tmp_path):
    lake = LiveLake(tmp_path, names=("orders",))
    lake.land("orders", "a.ndjson", 2)
    lake.ingest("orders")
    lake.commit("orders")
    return lake


def first_look(lake: LiveLake) -> dict[str, Any]:
    return dict(answer(lake, "/api/v1/overview")["pipelines"][0])


def test_a_renamed_pipeline_is_not_said_to_be_well(lake):
    text = lake.file.read_text()
    lake.file.write_text(re.sub(r"^  orders:", "  sales:", text, flags=re.MULTILINE))

    found = first_look(lake)

    (problem,) = (one for one in found["problems"] if one["code"] == "journal_lost")
    assert (found["name"], found["health"], found["state"]) == ("sales", "failing", "stopped")
    assert "'orders' of this table already reads" in problem["message"]
    assert problem["way_out"]["commands"] == ["blizzard --dry-run"]
    assert found["last_entry"] is None


def test_a_pipeline_that_was_never_started_is_well(tmp_path):
    lake = LiveLake(tmp_path, names=("orders",))
    (tmp_path / "orders-table").mkdir()

    assert first_look(lake)["health"] == "ok"


def test_a_writer_died_when_it_was_last_seen(lake):
    machine = this_machine()
    note = LeaseRecord(
        run="r",
        turn=1,
        host=machine.host,
        process=os.getpid(),
        machine=machine.id,
        born="another process",
        since="2024-01-01T00:00:00+00:00",
        every=10.0,
    )
    path = lake.root / "orders-table" / writer("orders")
    path.write_bytes(encode_lease(note))
    at = datetime(2024, 3, 1, 9, 30, tzinfo=UTC).timestamp()
    os.utime(path, (at, at))

    (problem,) = first_look(lake)["problems"]

    assert (problem["code"], problem["since"]) == ("writer_died", "2024-03-01T09:30:00.000Z")


def test_files_that_changed_are_told_while_the_pipeline_runs_and_while_it_does_not(lake):
    with lake.served() as (pages, _site, emit):
        lake.land("orders", "a.ndjson", 5)
        lake.ingest("orders", emit=emit)
        running = asked(pages, "/api/v1/overview")["pipelines"][0]
    assert running["changed_files"] == 1
    (problem,) = running["problems"]
    assert (problem["code"], problem["subject"]) == ("changed", "default")


def test_how_long_a_batch_took_is_known_after_its_process_has_ended(lake):
    batch, opening = answer(lake, "/api/v1/pipelines/orders/batches")["batches"]
    assert batch["seconds"] >= 0
    assert opening["seconds"] is None


def test_freshness_over_time_adds_up_to_that_of_the_day(lake):
    series = answer(lake, "/api/v1/pipelines/orders/freshness", "hours=2&points=4")
    day = answer(lake, "/api/v1/pipelines/orders")["summary"]["freshness"]
    assert (sum(series["files"]), day["measured_files"]) == (1, 1)
    assert [one for one in series["worst_secs"] if one is not None] == [day["worst_secs"]]
    assert series["median_secs"].count(None) == 3


def test_the_size_of_a_large_table_is_unknown(lake, monkeypatch):
    DeltaTable(str(lake.root / "orders-table")).create_checkpoint()
    (settings,) = lake.penguin.tables
    small = TableFollower(settings, clock=Clock()).size()
    assert (small.files, small.rows) == (1, 2)
    monkeypatch.setattr("liveview.followers.MOST_FILES", 0)
    large = TableFollower(settings, clock=Clock()).size()
    assert (large.version, large.files, large.rows, large.bytes) == (small.version, *[None] * 3)


def test_a_table_that_changes_faster_than_it_is_added_up_keeps_its_last_size(lake):
    ahead = [0.0]
    asking = Asking(lake, clock=Clock(seconds=lambda: time.time() + ahead[0]))
    busy = threading.Event()
    try:
        asking.get("/api/v1/overview")
        asking.observer.settle(PATIENT.first)
        asking.observer.slow.begin("something long", busy.wait, max_age=0)
        lake.land("orders", "b.ndjson", 5)
        lake.ingest("orders")
        lake.commit("orders")
        ahead[0] += ANSWER_SECS
        _status, found = asking.get("/api/v1/tables/orders-t")
    finally:
        busy.set()
        asking.api.close()
    table = found["summary"]
    assert (table["files"], table["rows"], table["size_version"]) == (1, 2, table["version"] - 1)
    assert f"those of version {table['size_version']}, committed at 20" in found["note"]


def test_the_status_of_a_table_that_is_looked_at_again_is_that_of_a_first_look(lake):
    (settings,), clock = lake.penguin.tables, Clock(lambda: 1_700_000_000.0)
    look = TableFollower(settings, clock=clock)

    def version() -> int | None:
        found = look.status()
        assert found == TableFollower(settings, clock=clock).status()
        return None if found is None else found.version

    for number in range(3):
        lake.land("orders", f"{number}.ndjson", 1)
        lake.ingest("orders")
        assert version() == number + 1
        lake.commit("orders")
        assert version() == number + 2
    shutil.rmtree(lake.root / "orders-table")
    assert version() is None
    lake.ingest("orders")
    lake.commit("orders")
    assert version() == 1


def overview_after(lake: LiveLake, *, secs: float) -> dict[str, Any]:
    """Return the overview as it is so many seconds later, with everything listed."""
    asking = Asking(lake, clock=Clock(seconds=lambda: time.time() + secs))
    try:
        asking.observer.overview()
        asking.observer.settle(PATIENT.first)
        _status, found = asking.get("/api/v1/overview")
    finally:
        asking.api.close()
    return dict(found)


def test_what_waits_too_long_for_its_commit_is_the_headline_and_one_problem(tmp_path):
    lake = LiveLake(tmp_path)
    for name in lake.names:
        lake.land(name, "a.ndjson", 3)
        lake.ingest(name)

    soon, late = overview_after(lake, secs=0), overview_after(lake, secs=1000)

    assert soon["headline"]["health"] == "ok"
    assert "blizzard audit" in soon["headline"]["covers"]
    told = late["headline"]
    wait = r"2 entries \(6 rows\) are waiting to be committed, the oldest since .*\d\d:\d\d UTC"
    assert re.fullmatch(rf"{wait}: penguin is running but has fallen behind\.", told["text"])
    assert told["way_out"]["commands"] == ["penguin status"]
    assert (told["health"], told["covers"]) == ("failing", None)
    for name, table in zip(lake.names, late["tables"], strict=True):
        assert [(one["code"], one["subject"]) for one in table["problems"]] == [
            ("commit_late", name)
        ]
        assert (table["health"], table["state"]) == ("failing", "to_commit")
    (problem,) = late["problems"]
    assert (problem["pipelines"], problem["problem"]["code"]) == (
        ["orders", "clicks"],
        "commit_late",
    )
    (orders, _clicks) = late["pipelines"]
    assert (orders["health"], orders["uncommitted_entries"], orders["uncommitted_rows"]) == (
        "failing",
        1,
        3,
    )
    assert orders["behind_secs"] >= 1000


def test_a_warning_comes_after_three_polls_and_the_configuration_moves_the_error(tmp_path):
    lake = LiveLake(tmp_path, names=("orders",))
    lake.land("orders", "a.ndjson", 1)
    lake.ingest("orders")
    text = lake.file.read_text().replace("poll_interval_secs: 600", "poll_interval_secs: 20")
    lake.file.write_text(text)
    table = '-table"}'
    assert overview_after(lake, secs=50)["headline"]["health"] == "ok"
    assert overview_after(lake, secs=70)["headline"]["health"] == "warning"
    lake.file.write_text(text.replace(table, '-table", late_after_secs: 65}'))
    assert overview_after(lake, secs=70)["headline"]["health"] == "failing"


def test_files_that_no_program_reads_are_not_up_to_date(tmp_path):
    lake = LiveLake(tmp_path)
    for name in lake.names:
        lake.land(name, "a.ndjson", 3)
        (tmp_path / f"{name}-table").mkdir()

    found = overview_after(lake, secs=1000)

    assert found["headline"]["text"].startswith("2 source files are unread, the oldest since ")
    assert found["headline"]["health"] == "failing"
    assert found["headline"]["way_out"]["commands"] == ["blizzard"]


def test_status_has_what_the_page_has(tmp_path, monkeypatch):
    lake = LiveLake(tmp_path, names=("orders",))
    lake.land("orders", "a.ndjson", 3)
    lake.ingest("orders")
    (page,) = overview_after(lake, secs=1000)["pipelines"]
    at = time.time() + 1000
    monkeypatch.setattr("blizzard.cli.status.Clock", lambda: Clock(seconds=lambda: at))

    found = CliRunner().invoke(app, ["status", "-c", str(lake.file), "--output", "json"])

    (late,), document = json.loads(found.stdout)["late"], json.loads(found.stdout)
    (problem,) = page["problems"]
    assert [problem[key] for key in ("severity", "code", "message")] == [
        late[key] for key in ("severity", "code", "message")
    ]
    assert late["way_out"]["commands"] == [f"penguin -c {lake.file}"]
    for key in ("uncommitted_entries", "uncommitted_rows"):
        assert page[key] == document[key]


def test_a_pipeline_without_a_batch_has_none_and_what_is_unread_is_not_nothing(tmp_path):
    lake = LiveLake(tmp_path, names=("orders",))
    lake.ingest("orders")
    (found,) = overview_after(lake, secs=0)["pipelines"]
    assert (found["last_batch"], found["last_batch_at"]) == (None, None)
    unread = answer(lake, "/api/v1/overview", failing=True)
    (pipeline,) = unread["pipelines"]
    counts = ("rows_24h", "failed_files", "held_entries", "quarantined_lines", "behind_secs")
    assert [pipeline[key] for key in counts] == [None] * 5
    assert unread["headline"]["health"] == "failing"


def test_a_program_that_the_configuration_does_not_have_is_not_needed(tmp_path, monkeypatch):
    lake = LiveLake(tmp_path, names=("orders",))
    monkeypatch.chdir(tmp_path)
    Path("tables.yaml").write_text(f'tables: {{t: {{table_uri: "{tmp_path}/orders-table"}}}}')
    tables = penguin_config.load([Path("tables.yaml")], [], {})
    alone = lake_of(tables, [Path("tables.yaml")], [], {})
    both = lake_of(lake.blizzard, [Path("lake.yaml")], [], {})
    assert [alone.unreachable(name, None).needed for name in ("blizzard", "penguin")] == [
        False,
        True,
    ]
    assert both.unreachable("blizzard", None).needed
    assert (both.options, alone.options) == (
        f" -c {tmp_path}/lake.yaml",
        f" -c {tmp_path}/tables.yaml",
    )


def test_a_lost_file_is_among_those_that_failed_with_its_name_and_both_commands(tmp_path):
    lake = LiveLake(tmp_path)
    file = tmp_path / "orders-in" / "lost.ndjson.gz"
    file.write_bytes(b"\x1f\x8b nothing of gzip")
    lake.ingest("orders")
    file.unlink()
    lake.ingest("orders")
    found = answer(lake, "/api/v1/pipelines/orders")
    (failed,) = found["failed"]
    discard = "blizzard -p orders dlq discard default:lost.ndjson.gz"
    assert (failed["path"], failed["code"]) == ("default:lost.ndjson.gz", "decompress_failed")
    assert failed["way_out"]["commands"] == [discard, f"{discard} --yes"]
    (problem,) = found["summary"]["problems"]
    every = "blizzard -p orders dlq discard --deleted"
    assert problem["way_out"]["commands"] == [
        "blizzard -p orders dlq list",
        every,
        f"{every} --yes",
    ]


def test_a_step_that_failed_has_a_way_out(tmp_path):
    lake = LiveLake(tmp_path)
    asking = Asking(lake)
    for kind, who in ((PartKind.PIPELINE, "orders"), (PartKind.TABLE, "clicks-t")):
        asking.observer.live.emit(
            StepFailed(kind=kind, who=who, code="store_full", error="", next_try_secs=2.0)
        )
    _status, found = asking.get("/api/v1/overview")
    asking.api.close()
    ways = [
        one["way_out"]["commands"]
        for each in (*found["pipelines"], *found["tables"])
        for one in each["problems"]
        if one["code"] == "store_full"
    ]
    assert ways == [["blizzard -p orders --dry-run"], ["penguin status"]]


def test_where_blizzard_commits_itself_no_penguin_is_missed(tmp_path):
    lake = LiveLake(tmp_path, names=("orders",))
    text = lake.file.read_text().replace('-table"}', '-table", commit: inline}')
    lake.file.write_text(text)
    (_blizzard, penguin) = overview_after(lake, secs=0)["programs"]
    assert penguin["needed"] is False
