"""What the live page says of a renamed pipeline, a dead writer, and files that changed."""

import os
import re
import shutil
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from deltalake import DeltaTable

from blizzard.journal.lease_record import LeaseRecord, encode_lease, this_machine
from lakebed.clock import Clock
from lakebed.layout import writer
from liveview.looks.tables import TableLook
from liveview.observer import ANSWER_SECS
from tests.integration.liveview.test_live_trouble import Asking
from tests.support.live_lake import PATIENT, LiveLake, asked


@pytest.fixture
def lake(tmp_path):
    lake = LiveLake(tmp_path, names=("orders",))
    lake.land("orders", "a.ndjson", 2)
    lake.ingest("orders")
    lake.commit("orders")
    return lake


def first_look(lake: LiveLake) -> dict[str, Any]:
    asking = Asking(lake)
    try:
        status, found = asking.get("/api/v1/overview")
    finally:
        asking.api.close()
    assert status == 200
    return dict(found["pipelines"][0])


def test_a_renamed_pipeline_is_not_said_to_be_well(lake):
    text = lake.file.read_text()
    lake.file.write_text(re.sub(r"^  orders:", "  sales:", text, flags=re.MULTILINE))

    found = first_look(lake)

    (problem,) = (one for one in found["problems"] if one["code"] == "journal_lost")
    assert (found["name"], found["health"], found["state"]) == ("sales", "failing", "stopped")
    assert "'orders' of this table already reads" in problem["message"]
    assert problem["way_out"] == "blizzard --dry-run says what to do"
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
    asking = Asking(lake)
    _status, found = asking.get("/api/v1/pipelines/orders/batches")
    asking.api.close()

    batch, opening = found["batches"]
    assert batch["seconds"] >= 0
    assert opening["seconds"] is None


def test_freshness_over_time_adds_up_to_that_of_the_day(lake):
    asking = Asking(lake)
    _status, series = asking.get("/api/v1/pipelines/orders/freshness", "hours=2&points=4")
    _status, whole = asking.get("/api/v1/pipelines/orders")
    asking.api.close()

    day = whole["summary"]["freshness"]
    assert (sum(series["files"]), day["measured_files"]) == (1, 1)
    assert [one for one in series["worst_secs"] if one is not None] == [day["worst_secs"]]
    assert series["median_secs"].count(None) == 3


def test_a_large_table_is_as_large_as_at_its_last_checkpoint(lake):
    DeltaTable(str(lake.root / "orders-table")).create_checkpoint()
    at = DeltaTable(str(lake.root / "orders-table")).version()
    lake.land("orders", "b.ndjson", 5)
    lake.ingest("orders")
    lake.commit("orders")
    (settings,) = lake.penguin.tables

    large = TableLook(settings, clock=Clock(), most_files=0).size()
    small = TableLook(settings, clock=Clock()).size()

    assert (large.version, large.files, large.rows) == (at, 1, 2)
    assert (small.version, small.files, small.rows) == (at + 1, 2, 7)
    assert large.bytes is not None
    assert small.bytes is not None
    assert 0 < large.bytes < small.bytes


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
    look = TableLook(settings, clock=clock)

    def version() -> int | None:
        found = look.status()
        assert found == TableLook(settings, clock=clock).status()
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
