"""The pure modules of the live page, each function asked in the browser that will run it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.support import live_samples as samples
from tests.support.browsing import clock
from tests.support.live_server import Scene, served

pytestmark = pytest.mark.browser

Ask = Callable[..., Any]
CALL = "async ([module, name, args]) => (await import(`/live/${module}.js`))[name](...args)"
NOW = datetime(2026, 11, 16, 13, tzinfo=UTC).timestamp() * 1000
NONE = "\N{EN DASH}"
BERLIN = "Europe/Berlin"


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with served(Scene(clock(), samples.overview(clock()))) as server:
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.url)
        yield page
        context.close()


@pytest.fixture
def ask(page: Page) -> Ask:
    return lambda module, name, *args: page.evaluate(CALL, [module, name, list(args)])


def each(ask: Ask, module: str, name: str, wanted: dict[Any, Any], *rest: Any) -> None:
    """Assert what a function gives for each value."""
    assert {value: ask(module, name, value, *rest) for value in wanted} == wanted


def test_numbers_are_short_and_never_round_up_into_a_wrong_unit(ask: Ask):
    wanted = {
        0: "0", 987: "987", 9_999: "9,999", 10_000: "10 k", 123_456: "123 k", 999_499: "999 k",
        999_500: "1 M", 1_234_567: "1.23 M", 12_345_678: "12.3 M", 5_500_000_000_000: "5.5 T",
        None: NONE,
    }  # fmt: skip
    each(ask, "format", "compact", wanted)
    each(ask, "format", "exact", {1_234_567: "1,234,567", None: NONE})


def test_sizes_are_in_units_of_1024(ask: Ask):
    wanted = {
        0: "0 B", 1_000: "1000 B", 1_024: "1 KiB", 1_048_576: "1 MiB", 134_217_728: "128 MiB",
        161_204_118_301: "150 GiB", None: NONE,
    }  # fmt: skip
    each(ask, "format", "bytes", wanted)
    each(ask, "format", "exactBytes", {1: "1 byte", 1_024: "1,024 bytes"})


def test_durations_have_two_units_at_most(ask: Ask):
    wanted = {
        0: "0 s", 0.01: "< 0.1 s", 0.44: "0.4 s", 9.94: "9.9 s", 42.4: "42 s", 59.6: "1 min",
        192: "3 min 12 s", 3_599.7: "1 h", 7_500: "2 h 5 min", 90_000: "1 d 1 h", None: NONE,
    }  # fmt: skip
    each(ask, "format", "duration", wanted)


def test_ages_look_back_and_ahead(ask: Ask):
    wanted = {
        "2026-11-16T12:59:59Z": "just now",
        "2026-11-16T12:59:18Z": "42 s ago",
        "2026-11-16T12:57:00Z": "3 min ago",
        "2026-11-15T00:00:00Z": "37 h ago",
        "2026-11-01T13:00:00Z": "15 d ago",
        "2026-11-16T13:00:30Z": "in 30 s",
        "nonsense": NONE,
        None: NONE,
    }
    each(ask, "format", "age", wanted, NOW)


def test_times_are_the_readers_with_utc_beside_them(ask: Ask):
    wanted = {
        "2026-11-16T12:57:00Z": "13:57:00",
        "2026-11-15T23:30:00Z": "00:30:00",  # Today on this clock, yesterday in UTC.
        "2026-11-14T12:57:00Z": "14 Nov, 13:57",
        "2025-11-14T12:57:00Z": "14 Nov 2025, 13:57",
    }
    each(ask, "format", "clock", wanted, NOW, BERLIN)
    title = ask("format", "exactTime", "2026-11-14T12:57:00.5Z", BERLIN)
    assert title == "14 Nov 2026, 13:57:00 CET (2026-11-14 12:57:00 UTC)"
    assert ask("format", "exactTime", "2026-11-14T12:57:00Z", "UTC") == "2026-11-14 12:57:00 UTC"
    each(ask, "format", "day", {"2026-11-15": "Sun 15 Nov", "2025-11-15": "Sat 15 Nov 2025"}, NOW)


def test_a_share_is_whole_only_when_nothing_is_missing(ask: Ask):
    assert ask("format", "percent", 999, 1_000) == 99
    assert ask("format", "percent", 1_000, 1_000) == 100
    assert ask("format", "percent", 0, 0) == 0


def test_addresses_lead_back_to_where_they_came_from(ask: Ask):
    for name in (samples.HOSTILE, "a/b?c=d&e#f%", "طلبات", "100%"):
        assert ask("routes", "parse", ask("routes", "pipeline", name))["name"] == name
        route = ask("routes", "parse", ask("routes", "journey", name, f"{name}/x.ndjson"))
        assert (route["view"], route["name"], route["path"]) == (
            "journey",
            name,
            f"{name}/x.ndjson",
        )
    assert ask("routes", "parse", "#/pipelines/100%")["name"] == "100%"
    assert ask("routes", "parse", "")["view"] == "overview"
    assert ask("routes", "parse", "#/pipelines/a/b/c")["view"] == "missing"


def test_waits_grow_to_a_limit_and_are_never_in_step(ask: Ask):
    waits = [ask("connection", "backoff", attempt, 0.5) for attempt in range(8)]
    assert waits == [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000]
    assert ask("connection", "backoff", 3, 0) == 3_000
    assert ask("connection", "backoff", 3, 1) == 5_000


def test_axes_end_at_round_numbers(ask: Ask):
    wanted = {0.3: 1, 45: 60, 210: 240, 3_700: 7_200, 90_000: 172_800}
    each(ask, "charts", "roundUpSeconds", wanted)
    each(ask, "charts", "roundUp", {0: 1, 7: 10, 11: 20, 238_000: 250_000, 260_000: 500_000})
    each(ask, "charts", "roundUpBytes", {0: 1, 1_000: 1_024, 1_025: 2_048})


def test_columns_of_a_chart_reach_from_its_floor_to_its_top(ask: Ask):
    assert ask("charts", "area", [0, 5, 10], 30, 100, 10) == "M0 100V100H10V50H20V0H30V100Z"
    assert ask("charts", "area", [], 30, 100, 10) == ""
    broken = "M0 100V50H10V100ZM20 100V0H30V100Z"  # Nothing is drawn where nothing is known.
    assert ask("charts", "area", [5, None, 10], 30, 100, 10) == broken
    assert ask("charts", "onLogScale", 0.1) == 0
    assert ask("charts", "onLogScale", 10**9) == 1


def test_what_is_not_known_is_sorted_last_both_ways(ask: Ask):
    items: list[dict[str, Any]] = [
        {"name": name, "rows_24h": rows, "problems": [], "health": "ok", "state": "idle"}
        for name, rows in (("a", 1), ("b", None), ("c", 3))
    ]
    assert [one["name"] for one in ask("logic", "sorted", items, "rows")] == ["a", "c", "b"]
    assert [one["name"] for one in ask("logic", "sorted", items, "-rows")] == ["c", "a", "b"]
    assert ask("logic", "nextOrder", "", "rows") == "-rows"
    assert ask("logic", "nextOrder", "-rows", "rows") == "rows"
    assert ask("logic", "nextOrder", "rows", "rows") == ""


def test_books_that_differ_show_by_how_much(ask: Ask):
    books = [
        {"label": "lines read", "value": 10},
        {"label": "rows written", "value": 7},
        {"label": "bad lines", "value": 1},
    ]
    assert ask("logic", "equation", books)["difference"] == 2
    assert ask("logic", "equation", books[:1]) is None


def test_the_time_left_is_told_only_when_it_can_be_known(ask: Ask):
    batch = {"started_at": "2026-11-16T12:59:00Z", "bytes": 100, "read_bytes": 50}
    assert ask("logic", "timeLeft", batch, NOW) == "about 1 min left"
    assert ask("logic", "timeLeft", {**batch, "read_bytes": 1}, NOW) is None
    assert ask("logic", "timeLeft", {**batch, "read_bytes": 100}, NOW) is None
    assert ask("logic", "timeLeft", {**batch, "bytes": 0}, NOW) is None


def test_a_week_and_every_gap_stay_when_days_are_shortened(ask: Ask):
    days = [{"name": str(at), "complete": at not in {8, 20}} for at in range(31)]
    kept = [one["name"] for one in ask("logic", "shortened", days)]
    assert kept == ["0", "1", "2", "3", "4", "5", "6", "8", "20"]


def test_long_names_lose_their_middle_and_never_half_a_letter(ask: Ask):
    each(
        ask,
        "logic",
        "middle",
        {"short": "short", "0123456789": "012…789", "🐧" * 10: "🐧🐧🐧…🐧🐧🐧"},
        7,
    )


def test_sentences_begin_with_a_capital_and_commands_stay_as_they_are_typed(ask: Ask):
    wanted = {
        "no file has landed": "No file has landed",
        "blizzard dlq list shows them": "blizzard dlq list shows them",
        "s3://lake is full": "s3://lake is full",
        "decompress_failed (1)": "decompress_failed (1)",
        "": "",
    }
    each(ask, "format", "sentence", wanted)


def test_state_and_health_are_two_marks(ask: Ask):
    items = [{"name": "a", "state": "running", "health": "failing", "problems": []}]
    assert ask("logic", "per", items, "state", ["running", "failing"]) == {
        "running": 1,
        "failing": 0,
    }
    assert ask("logic", "per", items, "health", ["ok", "failing"]) == {"ok": 0, "failing": 1}
    assert ask("logic", "filtered", items, "", {"state": "running", "health": "failing"}) == items
    assert ask("logic", "filtered", items, "", {"health": "ok"}) == []


def test_sums_say_how_many_they_leave_out_and_days_count_by_their_standing(ask: Ask):
    def one(standing: str, **known: int) -> dict[str, Any]:
        return {"freshness": {"worst_secs": None}, "yesterday": {"standing": standing}, **known}

    sums = ask("logic", "totals", [one("empty")])
    names = ("rows", "waiting", "waitingBytes", "entries", "behind", "worst")
    assert [sums[name] for name in names] == [None] * 6
    days = [one("complete", waiting_files=3, behind_secs=7), one("incomplete"), one("unknown")]
    sums = ask("logic", "totals", [*days, one("empty", waiting_files=8)])
    assert sums["yesterday"] == {"complete": 1, "incomplete": 1, "empty": 1}
    assert (sums["waiting"], sums["unknown"]["waiting_files"]) == (11, 2)
    assert (sums["behind"], sums["unknown"]["behind_secs"]) == (7, 3)


READ = {
    "at": "2026-11-16T09:00:00Z", "entry": 31, "counted": "lines", "lines": 72, "rows": 56,
    "blank": 0, "filtered": 0, "quarantined": 16, "committed": True, "version": 32,
    "committed_at": "2026-11-16T09:01:00Z",
}  # fmt: skip
FAILURE = {"failed_at": "2026-11-16T12:00:00Z", "code": "gone", "message": "x", "attempts": 1}


def steps(ask: Ask, **facts: Any) -> list[tuple[str, str, str | None]]:
    stored = {"modified": "2026-11-16T12:30:00Z", "size": 1_024}
    answer: dict[str, Any] = {
        "reason": None,
        "detail": None,
        "stored": stored,
        "read": [READ],
        "failure": None,
    }
    answer |= {"resolved": [], "erased": [], "retraction": None, "running": True, **facts}
    found = ask("view-files", "stepsOf", answer, NOW)
    return [(step["state"], step["what"], step["at"]) for step in found]


def test_a_journey_is_told_by_time_and_in_the_right_tense(ask: Ask):
    at = "2026-11-16T12:30:00Z"
    assert steps(ask, state="changed", reason="changed")[1:] == [
        ("done", "committed to the table as version", READ["committed_at"]),
        ("bad", "replaced in the source by another object", at),
    ]
    waiting = steps(ask, state="waiting", reason="changed")
    assert [what for _state, what, _at in waiting[2:]] == [
        "arrived in the source",
        "waits to be read",
    ]
    for due, what in ((at, "is due to be tried again"), ("2026-11-16T13:30:00Z", "is tried again")):
        failed = steps(ask, state="failed", read=[], failure={**FAILURE, "next_try": due})
        assert failed[-1] == ("next", what, due)


def test_days_are_the_weeks_of_a_calendar(ask: Ask):
    days = [{"name": f"2026-11-{at:02}"} for at in range(10, 0, -1)]
    weeks = ask("logic", "weeksOf", [*days, {"name": "unknown"}])
    assert [[day and day["name"][-2:] for day in week] for week in weeks] == [
        [None] * 6 + ["01"],
        ["02", "03", "04", "05", "06", "07", "08"],
        ["09", "10", None, None, None, None, None],
    ]
