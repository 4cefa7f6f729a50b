"""The live page while things happen: batches run, fail, and the program dies under it."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from tests.support import live_samples as samples
from tests.support.browsing import Visitor, clock
from tests.support.live_server import LiveServer
from tests.support.waits import until

pytestmark = pytest.mark.browser

REFUSED = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_INCOMPLETE_CHUNKED_ENCODING")


def test_a_batch_moves_without_a_reload(visitor: Visitor):
    now = clock()
    visit = visitor.open(samples.overview(now, samples.running(now)), "#/pipelines/clicks")
    batch = visit.section("Batch 4,813 is running")
    expect(batch.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "47")
    expect(batch.get_by_role("list", name="Stages").locator("[aria-current=step]")).to_contain_text(
        "Read and write, running"
    )
    expect(batch).to_contain_text("Units: 4 running, 23 waiting, 21 done")
    batch.get_by_role("button", name="Show all 48 units").click()
    expect(batch.get_by_role("table", name="Units").get_by_role("row")).to_have_count(49)
    visit.scene.show(samples.overview(now, samples.running(now, share=0.93)))
    expect(batch.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "51")
    expect(batch.get_by_role("table", name="Units").get_by_role("row")).to_have_count(49)
    visit.scene.show(samples.overview(now, samples.pipeline(now, "clicks", last_entry=4_813)))
    expect(batch).to_have_count(0)
    expect(visit.page.locator(".title-row .badge").first).to_have_text("Idle")
    assert visit.page.evaluate("performance.getEntriesByType('navigation').length") == 1


def test_ticks_ask_for_nothing_and_an_entry_asks_once(visitor: Visitor):
    now = clock()
    visit = visitor.open(samples.overview(now, samples.running(now)), "#/pipelines/clicks")
    expect(visit.section("Batches").locator(".row-link").first).to_be_visible()
    expect(visit.section("Days").get_by_role("row").first).to_be_visible()
    expect(visit.section("Throughput, last 24 h")).to_be_visible()
    before = len(visit.scene.asked)
    for share in (0.5, 0.6, 0.7):
        visit.scene.show(samples.overview(now, samples.running(now, share=share)))
    expect(visit.page.get_by_title("93,952,409 bytes").first).to_be_visible()
    assert set(visit.scene.asked[before:]) <= {"/api/v1/overview"}
    visit.scene.show(samples.overview(now, samples.pipeline(now, "clicks", last_entry=4_813)))
    details = "/api/v1/pipelines/clicks"
    until(lambda: visit.scene.asked[before:].count(details) == 1)


def test_a_failure_is_told_where_it_happens_and_read_out_once(visitor: Visitor):
    now = clock()
    visit = visitor.open(samples.overview(now, samples.pipeline(now, "payments")))
    expect(visit.heading()).to_have_text("The pipeline is up to date")
    said = visit.page.locator("#said")
    expect(said).to_be_empty()
    visit.scene.show(samples.overview(now, samples.failing(now)))
    expect(visit.heading()).to_have_text("The pipeline is failing")
    expect(said).to_have_text("payments: failing. ")
    expect(said).to_have_attribute("aria-live", "polite")
    visit.scene.show(samples.overview(now, samples.pipeline(now, "payments")))
    expect(said).to_have_text("payments: ok. ")


def test_a_killed_program_is_told_and_its_return_needs_no_reload(visitor: Visitor):
    now = clock()
    lake = samples.overview(now, samples.running(now))
    visit = visitor.open(lake, "#/pipelines/clicks", expected=REFUSED)
    expect(visit.section("Batches").locator(".row-link").first).to_be_visible()
    visit.page.evaluate("window.same = true")
    port = visit.kill()
    banner = visit.page.get_by_role("region", name="Connection")
    expect(banner).to_contain_text(re.compile(r"Connection lost since \d\d:\d\d:\d\d"))
    expect(banner).to_contain_text("shows the last known state")
    expect(visit.section("Batch 4,813 was running")).to_be_visible()
    expect(visit.section("Batches").locator(".row-link").first).to_be_visible()
    visit.scene.overview = samples.overview(now, samples.pipeline(now, "clicks", last_entry=4_813))
    visitor.servers.append(LiveServer(visit.scene, port))
    expect(banner).to_be_hidden()
    expect(visit.page.locator(".title-row .badge").first).to_have_text("Idle")
    expect(visit.page.locator("#said")).to_have_text("Connection restored. ")
    assert visit.page.evaluate("window.same")


def test_a_tab_that_nobody_sees_asks_for_nothing(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()))
    expect(visit.page.get_by_text("Live", exact=True)).to_be_visible()
    visit.hide(True)
    expect(visit.page.get_by_text("Paused", exact=True)).to_be_visible()
    before = len(visit.scene.asked)
    visit.page.wait_for_timeout(3_000)
    assert len(visit.scene.asked) <= before + 1
    visit.hide(False)
    expect(visit.page.get_by_text("Live", exact=True)).to_be_visible()
    until(lambda: len(visit.scene.asked) > before + 1)


def test_a_token_is_asked_for_and_stays_out_of_every_address(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()), token="kept-quiet", expected=("401",))
    expect(visit.heading()).to_have_text("A token is required")
    field = visit.page.get_by_label("Token", exact=True)
    field.fill("wrong")
    field.press("Enter")
    expect(visit.page.get_by_role("alert")).to_have_text("That token was refused.")
    field.fill("kept-quiet")
    visit.page.get_by_role("button", name="Show the page").click()
    expect(visit.heading()).to_have_text("1 of 8 pipelines is failing")
    visit.go("#/pipelines/orders")
    expect(visit.section("Batches").locator(".row-link").first).to_be_visible()
    visit.page.reload()
    expect(visit.heading()).to_have_text("orders")
    assert not any("kept-quiet" in path for path in visit.scene.asked)
    assert visit.page.evaluate("sessionStorage.length") == 1
    assert "kept-quiet" not in visit.page.evaluate("JSON.stringify(localStorage)")
    assert "kept-quiet" not in visit.page.url


def test_ages_go_on_while_nothing_else_happens(visitor: Visitor):
    now = clock()
    visit = visitor.open(samples.overview(now, samples.pipeline(now)))
    cell = visit.section("Pipelines").locator("time").last
    first = cell.inner_text()
    until(lambda: cell.inner_text() != first)
    assert re.fullmatch(r"\d+ s ago|\d+ min ago", cell.inner_text())
    assert re.search(r"\(.* UTC\)", cell.get_attribute("title") or "")


def test_what_a_reader_typed_and_opened_survives_an_update(visitor: Visitor):
    now = clock()
    visit = visitor.open(samples.busy(now))
    search = visit.page.get_by_role("searchbox")
    search.press_sequentially("pay")
    visit.scene.show(replace(samples.busy(now), at=samples.stamp(clock().now)))
    search.press_sequentially("ments")
    expect(search).to_have_value("payments")
    expect(search).to_be_focused()
    expect(visit.section("Pipelines").locator(".row-link")).to_have_count(1)
