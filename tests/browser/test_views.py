"""Every view of the live page, empty and full."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from blizzard.answers.answer import WayOut
from liveview.model import Freshness
from tests.support import live_samples as samples
from tests.support.browsing import Visitor, clock

pytestmark = pytest.mark.browser


def test_an_empty_lake_says_how_to_begin(visitor: Visitor):
    visit = visitor.open(samples.overview(clock()))
    expect(visit.heading()).to_have_text("No pipelines are configured")
    expect(visit.page.locator("main code")).to_have_count(0)  # There is no command to make up.
    visit.go("#/files")
    expect(visit.page.locator("main")).to_contain_text("This configuration has no pipelines")


def test_one_pipeline_that_is_well_says_so(visitor: Visitor):
    now = clock()
    visit = visitor.open(samples.overview(now, samples.pipeline(now)))
    expect(visit.heading()).to_have_text("The pipeline is up to date")
    expect(visit.section("Problems")).to_have_count(0)
    row = visit.section("Pipelines").get_by_role("row").nth(1)
    expect(row).to_contain_text("orders")
    expect(row).to_contain_text("Complete")
    expect(row.get_by_title("41.3 seconds")).to_have_text("41 s")


def test_problems_come_first_with_their_way_out(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()))
    expect(visit.heading()).to_have_text("1 of 8 pipelines is failing")
    first = visit.section("Problems").get_by_role("listitem").first
    expect(first).to_contain_text("has not answered for 14 minutes")
    expect(first.locator("pre")).to_have_text("blizzard -c lake.yaml --dry-run")
    names = visit.section("Pipelines").locator(".row-link").all_inner_texts()
    assert names[:3] == ["payments", "shipments", "clicks"]  # failing, warning, running


def test_a_hundred_pipelines_are_filtered_and_sorted(visitor: Visitor):
    visit = visitor.open(samples.many(clock()))
    pipelines = visit.section("Pipelines")
    expect(pipelines.locator(".row-link")).to_have_count(100)
    pipelines.get_by_role("button", name="Rows, 24 h").click()
    expect(pipelines.get_by_role("columnheader", name="Rows, 24 h")).to_have_attribute(
        "aria-sort", "descending"
    )
    rows = [int(each.replace(",", "")) for each in totals(pipelines)]
    assert rows == sorted(rows, reverse=True)
    pipelines.get_by_role("searchbox").fill("refunds 0")
    expect(pipelines.locator(".row-link")).to_have_count(12)
    expect(pipelines.get_by_text("12 of 100")).to_be_visible()
    assert "q=refunds+0" in visit.page.url
    pipelines.get_by_role("group", name="State").get_by_role("button", name="Stopped").click()
    expect(pipelines.locator(".row-link").first).to_be_visible()
    expect(visit.section("Tables")).to_contain_text("No table matches")  # They are all idle.
    visit.page.reload()  # The address says all of it.
    expect(pipelines.get_by_role("searchbox")).to_have_value("refunds 0")
    expect(pipelines.get_by_role("button", name=re.compile("Stopped"))).to_have_attribute(
        "aria-pressed", "true"
    )


def totals(pipelines):
    return [
        each.get_attribute("title") or "" for each in pipelines.locator(".with-spark .num").all()
    ]


def test_a_pipeline_shows_charts_batches_and_days(visitor: Visitor):
    now = clock()
    visit = visitor.open(samples.overview(now, samples.pipeline(now)), "#/pipelines/orders")
    expect(visit.heading()).to_have_text("orders")
    expect(visit.page.get_by_text("Is everything of yesterday in?")).to_be_visible()
    expect(visit.page.get_by_text("all 288 files that landed")).to_be_visible()
    chart = visit.section("Throughput, last 24 h").get_by_role("img")
    expect(chart).to_have_attribute("aria-label", re.compile(r"M rows in 24 h, at most"))
    visit.section("Throughput, last 24 h").get_by_role("button", name="bytes").click()
    expect(chart).to_have_attribute("aria-label", re.compile(r"GiB in 24 h"))
    scale, trend = visit.section("Freshness").get_by_role("img").all()
    expect(scale).to_have_attribute("aria-label", "Freshness: median 41 s, worst 3 min 8 s")
    expect(trend).to_have_attribute(
        "aria-label",
        re.compile(r"reached the table in 84 of 96 steps of 15 min; the slowest took 3"),
    )
    for gone in ("Failed files", "Held entries", "Bad lines"):
        expect(visit.section(gone)).to_have_count(0)


def test_a_batch_opens_its_books(visitor: Visitor):
    now = clock()
    visit = visitor.open(samples.overview(now, samples.pipeline(now)), "#/pipelines/orders")
    batches = visit.section("Batches")
    batches.get_by_role("button", name="4,810").click()
    books = batches.locator(".equation")
    expect(books).to_contain_text("lines read")
    expect(books).to_contain_text("bad lines in quarantine")
    for _ in range(2):  # First the rest of what is known, then what is asked for.
        batches.get_by_role("button", name="Older batches").click()
    expect(batches.get_by_role("button", name="4,790")).to_be_visible()
    expect(batches.locator(".row-link")).to_have_count(70)


def test_a_year_of_days_is_shown_with_its_gaps(visitor: Visitor):
    now = clock()
    visit = visitor.open(samples.overview(now, samples.pipeline(now)), "#/pipelines/orders")
    days = visit.section("Days")
    expect(days.get_by_role("img")).to_have_attribute(
        "aria-label", "31 days: 28 complete, 2 incomplete, 1 not over yet."
    )
    for left_out in ("Held", "Changed since", "Removed", "Lost", "Deleted"):
        expect(days.get_by_role("columnheader", name=left_out)).to_have_count(0)
    parts = days.get_by_role("row").filter(has_text="1 lost")  # A part of the files that failed.
    expect(parts.get_by_role("cell", name="288 1 deleted")).to_be_visible()
    expect(parts.get_by_role("cell", name="1 1 lost")).to_be_visible()
    days.get_by_role("button", name="year").click()
    expect(days.get_by_role("img")).to_have_attribute("aria-label", re.compile("366 days"))
    expect(days.get_by_role("row")).to_have_count(1 + 7 + 3)  # a week, and the gaps before it
    days.get_by_role("button", name="Show all 366 days").click()
    expect(days.get_by_role("row")).to_have_count(367)


def test_a_file_whose_rows_others_rewrote_says_so_and_a_name_cannot_turn_around(visitor: Visitor):
    now = clock()
    visit = visitor.open(
        samples.overview(now, samples.pipeline(now)),
        "#/pipelines/orders/file?path=altered%E2%80%AEnosjdn.gpj",
    )
    expect(visit.page.get_by_text("Rewritten by others").first).to_be_visible()
    expect(visit.heading()).to_contain_text(r"altered\u202enosjdn.gpj")
    expect(visit.page.get_by_text("\u202e")).to_have_count(0)


def test_a_failing_pipeline_shows_what_needs_hands(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()), "#/pipelines/payments")
    expect(visit.page.get_by_role("list", name="Problems")).to_contain_text("Entry 4790 is held")
    expect(visit.section("Failed files")).to_contain_text("ends in the middle of a gzip member")
    expect(visit.section("Failed files")).to_contain_text("3 attempts")
    expect(visit.section("Held entries")).to_contain_text("431,204 rows")
    bad = visit.section("Bad lines")
    expect(bad).to_contain_text("1,204 lines")
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    bad.get_by_role("button", name="schema: on_mismatch: rescue").click()
    expect(visit.page.locator("#said")).to_have_text("Copied. ")
    copied = visit.page.evaluate("navigator.clipboard.readText()")
    assert copied == "schema:\n  on_mismatch: rescue"
    commands = [each for each in visit.page.locator("pre").all_inner_texts() if each != copied]
    names = visit.page.locator(".copy").evaluate_all("all => all.map((each) => each.textContent)")
    assert [each.partition(": ")[2] for each in names if "rescue" not in each] == commands
    assert all(each.startswith(("blizzard -c ", "penguin -c ")) for each in commands)
    assert not any("\n" in each for each in commands)


def test_only_the_button_that_was_pressed_says_copied(visitor: Visitor):
    now = clock()
    failing = samples.failing(now)
    way = WayOut(commands=("penguin -c lake.yaml held",))
    twice = [replace(each, way_out=way) for each in failing.problems]
    visit = visitor.open(samples.overview(now, replace(failing, problems=twice)))
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    buttons = visit.section("Problems").get_by_role("button", name="penguin -c lake.yaml held")
    expect(buttons).to_have_count(2)
    buttons.first.click()
    expect(visit.page.locator(".done:visible")).to_have_count(1)
    assert visit.page.evaluate("navigator.clipboard.readText()") == "penguin -c lake.yaml held"
    expect(visit.page.locator(".done:visible")).to_have_count(0)


def test_charts_have_spans_and_tell_what_is_under_the_pointer(visitor: Visitor):
    now = clock()
    visit = visitor.open(samples.overview(now, samples.pipeline(now)), "#/pipelines/orders")
    visit.section("Throughput, last 24 h").get_by_role("button", name="7 d").click()
    chart = visit.section("Throughput, last 7 d")
    chart.locator(".chart-plot").hover()
    expect(chart.locator(".chart-tip")).to_contain_text(re.compile(r"[\d,]+ rows"))
    fresh = visit.section("Freshness").locator(".chart-plot")
    fresh.hover()
    expect(fresh.locator(".chart-tip")).to_contain_text(re.compile("median .*worst|no file"))
    assert any("throughput?hours=168" in path for path in visit.scene.asked)


def test_entries_and_versions_are_links_to_their_rows(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()), "#/tables/orders")
    visit.section("Versions").get_by_role("link", name="4,790").click()
    expect(visit.page.locator("tr.is-open")).to_contain_text("4,790")
    visit.go("#/pipelines/orders?entry=4700")
    expect(visit.page.locator("tr.is-open")).to_contain_text("4,700")
    expect(visit.page.locator("tr.is-open")).to_be_in_viewport()
    expect(visit.section("Batches").locator(".equation")).to_be_visible()
    visit.page.locator("tr.is-open").get_by_role("link").click()
    expect(visit.page).to_have_url(re.compile("#/tables/orders.version=4694"))


def test_a_file_is_found_by_part_of_its_name_and_tells_its_journey(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()), "#/pipelines/orders")
    visit.page.get_by_role("link", name="Find a file").click()
    visit.page.get_by_role("searchbox").fill("part")
    expect(visit.page.get_by_text("12 files with “part” in the name.")).to_be_visible()
    expect(visit.page.get_by_role("cell", name="Failed")).to_be_visible()
    visit.page.get_by_role("combobox", name="Pipeline").select_option("All pipelines")
    expect(visit.page.get_by_text("96 files with “part”")).to_be_visible()
    visit.page.get_by_role("combobox", name="Pipeline").select_option("orders")
    visit.page.locator(".row-link").nth(8).click()
    expect(visit.heading()).to_have_text("orders/2026/11/16/part-00008.ndjson.gz")
    expect(visit.page.get_by_text("The file is in the table since version 4,806")).to_be_visible()
    steps = visit.section("Step by step").get_by_role("listitem")
    expect(steps).to_have_count(4)
    expect(steps.nth(2)).to_contain_text("Committed to the table as version 4,806 (done)")
    visit.page.go_back()
    expect(visit.page.get_by_role("searchbox")).to_have_value("part")


def test_a_file_that_is_not_there_is_answered_in_words(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()), "#/files?q=none-such")
    expect(visit.page.get_by_text("No such file.")).to_be_visible()
    visit.go("#/pipelines/orders/file?path=orders%2Fpart-00017.ndjson.gz")
    expect(visit.page.get_by_text("Nothing of it is in the table")).to_be_visible()
    answer = visit.page.locator(".answer")
    expect(answer).to_contain_text("Upload it again under the same name.")
    retry = "blizzard -c lake.yaml dlq retry --file orders/part-00017.ndjson.gz"
    expect(answer.locator("pre")).to_have_text(retry)  # A command, and no prose.
    expect(answer.get_by_role("button", name=retry)).to_be_visible()
    expect(visit.section("Step by step")).to_contain_text("(stopped here)")


def test_a_search_in_a_hundred_pipelines_asks_few_at_a_time_and_reaches_all(visitor: Visitor):
    visit = visitor.open(samples.many(clock()), "#/files?q=part")
    expect(visit.page.get_by_text("1,200 files with “part” in the name.")).to_be_visible()
    expect(visit.page.locator(".row-link")).to_have_count(100)
    asked = [path for path in visit.scene.asked if "/files?" in path]
    assert len(asked) == len(set(asked)) == 100


def test_a_table_shows_versions_columns_and_what_changed(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()), "#/tables/orders")
    expect(visit.heading()).to_have_text("orders")
    versions = visit.section("Versions")
    expect(versions.get_by_role("row")).to_have_count(21)
    versions.get_by_role("button", name="Older versions").click()
    expect(versions.get_by_role("row")).to_have_count(71)
    expect(visit.section("Schema")).to_contain_text("partitioned by day")
    expect(visit.section("Schema changes")).to_contain_text("added column voucher: string")
    expect(visit.section("Features and properties")).to_contain_text("typeWidening")
    visit.page.get_by_role("link", name="orders").first.click()
    expect(visit.page).to_have_url(re.compile("#/pipelines/orders$"))


def test_what_is_not_known_is_not_shown_as_nothing(visitor: Visitor):
    now = clock()
    new = samples.pipeline(
        now,
        waiting_files=None,
        waiting_bytes=None,
        last_entry=None,
        last_batch=None,
        last_batch_at=None,
        freshness=Freshness(),
        yesterday=samples.verdict(now, None),
        spark=[0.0] * 48,
    )
    bare = replace(
        samples.table(now), version=None, committed_at=None, files=None, bytes=None, rows=None
    )
    lake = replace(samples.overview(now, new, penguin=False), tables=[bare])
    visit = visitor.open(lake, "#/pipelines/orders")
    expect(visit.page.get_by_text("the source has not been listed")).to_be_visible()
    expect(visit.section("Freshness")).to_contain_text("nothing to measure")
    expect(visit.section("Batches")).to_contain_text("No batch has run yet")
    expect(visit.page.locator("footer")).to_contain_text("No answer from http://127.0.0.1:9102")
    visit.go("#/tables/orders")
    expect(visit.page.get_by_text("There is no table yet. The first commit")).to_be_visible()
    for gone in ("Versions", "Schema", "Schema changes", "Features and properties"):
        expect(visit.section(gone)).to_have_count(0)
    expect(visit.page.locator(".figure")).to_have_count(0)


def test_places_that_do_not_exist_say_so(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()), "#/nowhere", expected=("404",))
    expect(visit.heading()).to_have_text("Page not found")
    visit.go("#/pipelines/gone")
    expect(visit.page.get_by_role("alert")).to_contain_text("There is no such pipeline or table.")


def test_a_document_that_cannot_be_had_leaves_the_rest_standing(visitor: Visitor):
    visit = visitor.open(
        samples.busy(clock()),
        "#/pipelines/orders",
        broken=frozenset({"days"}),
        expected=("503",),
    )
    expect(visit.section("Days")).to_contain_text("The journal cannot be read at the moment.")
    expect(visit.section("Batches").locator(".row-link")).to_have_count(10)
