"""The live page as the programs serve it: a lake, a batch that runs and fails, and a kill."""

import os
import re
import signal
import socket
from pathlib import Path

import pytest
from playwright.sync_api import expect

from blizzard.events import BatchProgress, BatchStarted, BatchStep, StageFinished, UnitReported
from lakebed.telemetry.events import StepFailed
from lakebed.telemetry.settings import Guard
from tests.support.browsing import Visitor
from tests.support.live_lake import CANARY, LiveLake
from tests.support.ports import reserved_port
from tests.support.processes import start
from tests.support.waits import until

pytestmark = pytest.mark.browser
BYTES = 64 * 1024 * 1024


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> LiveLake:
    made = LiveLake(tmp_path_factory.mktemp("lake"))
    made.fill()
    return made


def test_every_view_of_a_real_lake(visitor: Visitor, lake: LiveLake):
    with lake.served() as (pages, _site, _emit):
        visit = visitor.look(f"{pages.url}/", expected=("503",))
        expect(visit.heading()).to_have_text("1 of 2 pipelines needs attention")
        expect(visit.section("Problems")).to_contain_text("3 bad lines are in quarantine")
        visit.section("Pipelines").get_by_role("link", name="orders", exact=True).click()
        expect(visit.heading()).to_have_text("orders")
        expect(visit.section("Failed files")).to_contain_text("broken.ndjson.gz")
        expect(visit.section("Bad lines")).to_contain_text("3 lines in 2 files")
        batches = visit.section("Batches")
        batches.get_by_role("button", name="3", exact=True).click()
        expect(batches.locator(".equation")).to_have_text(
            re.compile("14lines read=12rows written.*2bad lines in quarantine")
        )
        expect(visit.section("Days").get_by_role("row")).to_have_count(2)
        expect(visit.section("Throughput, last 24 h")).to_contain_text("38 rows in 24 h")
        visit.page.get_by_role("link", name="Find a file").click()
        visit.page.get_by_role("searchbox").fill("a1")
        visit.page.locator(".row-link").first.click()
        expect(visit.page.locator(".answer")).to_contain_text("In the table")
        expect(visit.page.locator(".answer")).to_contain_text("11 rows from 12 lines")
        visit.go("#/tables/orders-t")
        expect(visit.section("Versions").get_by_role("row")).to_have_count(5)
        expect(visit.section("Schema").get_by_role("row")).to_have_count(3)
        assert CANARY not in visit.page.content()
        assert visit.page.locator("[aria-busy], [role=alert]").count() == 0


def test_a_batch_that_runs_and_then_fails_is_seen_as_it_happens(visitor: Visitor, lake: LiveLake):
    with lake.served() as (pages, _site, emit):
        visit = visitor.look(f"{pages.url}/", "#/pipelines/clicks", expected=("503",))
        expect(visit.page.locator(".title-row .badge").first).to_have_text("Idle")
        emit(StageFinished(pipeline="clicks", stage=BatchStep.DISCOVER, seconds=0.5))
        planned = tuple((f"u{number}", 2, BYTES) for number in range(4))
        emit(
            BatchStarted(
                pipeline="clicks", entry=1, files=8, bytes=4 * BYTES, units=4, planned=planned
            )
        )
        batch = visit.section("Batch 1 is running")
        expect(batch).to_contain_text("Units: 4 waiting")
        emit(UnitReported(pipeline="clicks", unit="u0", bytes_read=BYTES // 2, records=1_000))
        emit(BatchProgress(pipeline="clicks", bytes_read=BYTES // 2, records=1_000))
        expect(batch).to_contain_text("Units: 1 running, 3 waiting")
        expect(batch.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "13")
        emit(StepFailed(who="clicks", code="store_full", error="no space", next_try_secs=9.0))
        expect(visit.page.locator(".title-row .badge").first).to_have_text("Step failed")
        expect(visit.page.get_by_role("list", name="Problems")).to_contain_text("store_full")


def test_a_token_of_the_configuration_opens_the_page(visitor: Visitor, lake: LiveLake):
    with lake.served(guard=Guard(token="sixteen-characters")) as (pages, _site, _emit):
        visit = visitor.look(f"{pages.url}/", expected=("401", "503"))
        visit.page.get_by_label("Token", exact=True).fill("sixteen-characters")
        visit.page.get_by_role("button", name="Show the page").click()
        expect(visit.heading()).to_have_text("1 of 2 pipelines needs attention")


def test_penguin_is_killed_under_the_page_and_comes_back(visitor: Visitor, tmp_path: Path):
    with reserved_port() as port:
        more = f'metrics: {{enabled: true, address: "127.0.0.1:{port}"}}\n'
        lake = LiveLake(tmp_path, ("orders",), more=more)
        lake.land("orders", "a.ndjson", 10)
        lake.ingest("orders")
        penguin = start("penguin", "--config", lake.file)
        try:
            until(lambda: answers(port))
            url = f"http://127.0.0.1:{port}/"
            visit = visitor.look(url, "#/tables/orders-t", expected=("ERR_", "503"))
            expect(visit.section("Versions")).to_contain_text("+10")
            visit.page.evaluate("window.same = true")
            os.killpg(penguin.pid, signal.SIGKILL)
            penguin.communicate()
            banner = visit.page.get_by_role("region", name="Connection")
            expect(banner).to_contain_text("Connection lost since")
            expect(visit.section("Versions")).to_contain_text("+10")
            lake.land("orders", "b.ndjson", 7)
            lake.ingest("orders")
            penguin = start("penguin", "--config", lake.file)
            expect(banner).to_be_hidden()
            expect(visit.section("Versions")).to_contain_text("+7")
            assert visit.page.evaluate("window.same")
        finally:
            os.killpg(penguin.pid, signal.SIGKILL)
            penguin.communicate()


def answers(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0
