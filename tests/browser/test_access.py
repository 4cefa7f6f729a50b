"""Everybody can use the live page: by keyboard, by ear, on a phone, by day and by night."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.support import live_samples as samples
from tests.support.browsing import Theme, Visit, Visitor, clock
from tests.support.waits import until

pytestmark = pytest.mark.browser

VIEWS = {
    "overview": "#/",
    "running": "#/pipelines/clicks",
    "failing": "#/pipelines/payments",
    "files": "#/files?q=part&pipeline=orders",
    "journey": "#/pipelines/orders/file?path=orders%2Fpart-00017.ndjson.gz",
    "table": "#/tables/orders",
}
SERIOUS = {"serious", "critical"}


def settled(visit: Visit) -> None:
    expect(visit.heading()).to_be_visible()
    expect(visit.page.locator("[aria-busy]")).to_have_count(0)


def findings(visit: Visit) -> list[str]:
    found = Axe().run(visit.page).response["violations"]
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_finding_in_any_view(visitor: Visitor, theme: Theme):
    visit = visitor.open(samples.busy(clock()), theme=theme, expected=("ERR_",))
    for name, path in VIEWS.items():
        visit.go(path)
        settled(visit)
        assert findings(visit) == [], name
    visit.page.keyboard.press("?")
    assert findings(visit) == [], "keys"
    visit.page.keyboard.press("Escape")
    visit.kill()
    expect(visit.page.get_by_text("Connection lost since")).to_be_visible()
    assert findings(visit) == [], "lost"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_finding_where_little_is_there(visitor: Visitor, theme: Theme):
    empty = visitor.open(samples.overview(clock()), theme=theme)
    settled(empty)
    assert findings(empty) == []
    closed = visitor.open(samples.busy(clock()), theme=theme, token="x", expected=("401",))
    expect(closed.heading()).to_have_text("A token is required")
    assert findings(closed) == []


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_sticks_out(visitor: Visitor, width: int):
    visit = visitor.open(samples.busy(clock()), width=width)
    for name, path in VIEWS.items():
        visit.go(path)
        settled(visit)
        assert visit.width() == width, name


@pytest.mark.parametrize("width", [360, 1280])
def test_strange_names_neither_break_the_page_nor_run_in_it(visitor: Visitor, width: int):
    lake = samples.strange(clock())
    visit = visitor.open(lake, width=width)
    expect(visit.heading()).to_contain_text("All 6 pipelines are failing")
    expect(visit.page.locator("main img, main script")).to_have_count(0)
    for each in lake.pipelines:
        visit.go("#/")
        link = visit.section("Pipelines").get_by_role("link", name=each.name, exact=True)
        link.click()
        expect(visit.heading()).to_have_text(each.name)
        settled(visit)
        assert visit.width() == width, each.name
        expect(visit.section("Failed files").get_by_role("link").first).to_be_visible()
        visit.page.get_by_role("link", name=each.name, exact=True).first.click()
        expect(visit.page.get_by_role("navigation", name="Breadcrumbs")).to_contain_text("Table")
        settled(visit)
        assert visit.width() == width, each.name
    expect(visit.page.locator("main img, main script")).to_have_count(0)


def test_light_and_dark_follow_the_system_until_somebody_chooses(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()), theme="dark")
    settled(visit)
    assert ground(visit) == "rgb(12, 17, 22)"
    visit.page.get_by_role("button", name=re.compile("Colours")).click()
    expect(visit.page.locator("html")).to_have_attribute("data-theme", "light")
    assert ground(visit) == "rgb(246, 248, 250)"
    visit.page.reload()
    settled(visit)
    assert ground(visit) == "rgb(246, 248, 250)"
    visit.page.keyboard.press("t")
    expect(visit.page.locator("html")).to_have_attribute("data-theme", "dark")


def ground(visit: Visit) -> str:
    return str(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_rows_are_walked_and_opened_by_keyboard(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()))
    settled(visit)
    keys = visit.page.keyboard
    keys.press("/")
    search = visit.page.get_by_role("searchbox")
    expect(search).to_be_focused()
    keys.press("ArrowDown")
    rows = visit.section("Pipelines").locator(".row-link")
    expect(rows.nth(0)).to_be_focused()
    keys.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    outline = visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    keys.press("End")
    expect(rows.nth(7)).to_be_focused()
    keys.press("Home")
    expect(rows.nth(0)).to_be_focused()
    visit.page.locator("main").focus()
    keys.press("Home")  # Outside a table it is the browser's, which goes to the top of the page.
    expect(visit.page.locator("main")).to_be_focused()
    until(lambda: visit.page.evaluate("scrollY") == 0)
    rows.nth(0).focus()
    keys.press("Enter")
    expect(visit.heading()).to_have_text("payments")
    expect(visit.page.locator("main")).to_be_focused()
    keys.press("g")
    keys.press("f")
    expect(visit.heading()).to_have_text("Where is my file?")
    visit.page.go_back()
    expect(visit.heading()).to_have_text("payments")
    keys.press("/")
    expect(visit.page.get_by_role("combobox", name="Pipeline")).to_have_value("payments")
    keys.press("Escape")
    keys.press("?")
    expect(visit.page.get_by_role("dialog", name="Keys")).to_be_visible()
    keys.press("Escape")
    expect(visit.page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_the_tab_key_reaches_whatever_can_be_clicked(visitor: Visitor):
    now = clock()
    visit = visitor.open(samples.overview(now, samples.failing(now)), "#/pipelines/payments")
    settled(visit)
    wanted = visit.page.evaluate(
        "[...document.querySelectorAll('a[href], button, input, select, summary')]"
        ".filter((each) => each.checkVisibility()).length"
    )
    reached = set()
    for _ in range(wanted + 10):
        visit.page.keyboard.press("Tab")
        reached.add(
            visit.page.evaluate(
                "[...document.querySelectorAll('a[href], button, input, select, summary')]"
                ".filter((each) => each.checkVisibility()).indexOf(document.activeElement)"
            )
        )
    assert reached >= set(range(wanted))


def test_older_rows_take_the_focus_that_their_button_had(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()), "#/pipelines/orders")
    for place, (name, first) in enumerate((("batches", "4,802"), ("batches", "4,792"))):
        visit.page.get_by_role("button", name=f"Older {name}").press("Enter")
        expect(visit.page.get_by_role("button", name=first, exact=True)).to_be_focused()
        expect(visit.section("Batches").locator(".row-link")).to_have_count(20 + 50 * place)
    visit.go("#/tables/orders")
    visit.page.get_by_role("button", name="Older versions").press("Enter")
    link = visit.section("Versions").get_by_role("row").nth(21).get_by_role("link").first
    expect(link).to_have_text("4,786")
    expect(link).to_be_focused()


def test_a_chart_tells_its_values_by_keyboard_and_a_theme_its_name(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()), "#/pipelines/orders")
    chart = visit.section("Throughput, last 24 h")
    step = chart.get_by_role("slider")
    step.focus()
    last = step.get_attribute("aria-valuetext") or ""
    # Around midnight it names the day.
    assert re.match(r"[\d,]+ rows, (\d+ \w+, )?\d\d:\d\d", last)
    step.press("ArrowLeft")
    expect(step).not_to_have_attribute("aria-valuetext", last)
    tip = chart.locator(".chart-tip b").inner_text()
    assert (step.get_attribute("aria-valuetext") or "").startswith(f"{tip}, ")
    step.blur()
    expect(chart.locator(".chart-tip")).to_have_count(0)
    visit.page.keyboard.press("t")
    expect(visit.page.locator("#said")).to_have_text("Colours: light. ")


@pytest.mark.parametrize("width", [360, 1280])
def test_a_program_that_does_not_answer_says_so_in_a_word(visitor: Visitor, width: int):
    now = clock()
    lake = samples.overview(now, samples.pipeline(now), penguin=False)
    visit = visitor.open(lake, width=width)
    gone = visit.page.get_by_role("list", name="Programs").get_by_text("penguin")
    expect(gone).to_have_text("penguin no answer")
    expect(gone.locator("svg")).to_be_visible()
    warning = "getComputedStyle(document.querySelector('.gone')).color"
    assert visit.page.evaluate(warning) == "rgb(143, 90, 0)"
    assert visit.width() == width


def test_the_page_has_landmarks_and_an_outline(visitor: Visitor):
    visit = visitor.open(samples.busy(clock()), "#/pipelines/payments")
    settled(visit)
    for role in ("banner", "main", "contentinfo"):
        expect(visit.page.get_by_role(role)).to_have_count(1)
    expect(visit.heading()).to_have_count(1)
    titles = visit.page.get_by_role("heading", level=2).all_inner_texts()
    assert titles[:2] == ["Throughput, last 24 h", "Freshness"]
    assert visit.page.title() == "payments · Blizzard and Penguin"
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Enter")  # Skip to the content.
    expect(visit.page.locator("main")).to_be_focused()
    expect(visit.page).to_have_url(re.compile("#/pipelines/payments$"))


def test_nothing_moves_for_those_who_asked_for_calm(visitor: Visitor):
    moving = "document.getAnimations().filter((each) => each.playState === 'running').length"
    calm = visitor.open(samples.busy(clock()))
    settled(calm)
    assert calm.page.evaluate(moving) == 0
    lively = visitor.open(samples.busy(clock()), calm=False)
    settled(lively)
    lively.page.wait_for_function(f"{moving} > 0")
