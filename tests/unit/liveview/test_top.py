"""`blizzard top`: what a screen shows, and what the keys do."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

from liveview.model import Freshness, Overview
from liveview.terminal.command import NAMES, after_key, keys_of
from liveview.terminal.screen import View, listed, percent, screen, sparkline
from tests.support import live_samples as samples

CLOCK = samples.Clock(datetime(2026, 3, 14, 12, 0, 0, tzinfo=UTC))


def text(overview: Overview, view: View, width: int = 80, height: int | None = None) -> str:
    """Return a screen as plain text."""
    console = Console(width=width, markup=False, highlight=False, emoji=False)
    drawn = screen(overview, view, now=CLOCK.now, width=width, height=height)
    with console.capture() as captured:
        console.print(drawn)
    return captured.get()


def test_a_failing_pipeline_comes_first_and_its_problem_is_shown_with_the_way_out() -> None:
    lines = text(samples.busy(CLOCK), View(), width=200).splitlines()
    assert lines[6].split()[:3] == ["✗", "payments", "failing"]
    (problem, *_more) = samples.failing(CLOCK).problems
    at = lines.index(f"payments  {problem.code}: {problem.message} (since 11:46 UTC)")
    assert problem.way_out is not None
    assert (lines[at + 1].strip(),) == problem.way_out.commands


def test_the_marked_pipeline_shows_its_batch_and_its_problems() -> None:
    shown = text(samples.busy(CLOCK), View(chosen="clicks"), width=100)
    assert "Batch 4,813: 576 files, for 52 s; run: 47% of 6.0 GiB, " in shown
    assert "Yes: all 288 files that landed on 2026-03-13" in shown
    waits = text(samples.busy(CLOCK), View(chosen="orders"))
    assert "No batch is running; the next poll is in 24.0 s." in waits
    failing = text(samples.busy(CLOCK), View(chosen="payments"), width=200)
    assert all(one.message in failing for one in samples.failing(CLOCK).problems)


def test_what_is_not_known_is_not_shown_as_nothing() -> None:
    unknown = samples.pipeline(CLOCK, waiting_files=None, behind_secs=None, freshness=Freshness())
    line = text(samples.overview(CLOCK, unknown), View()).splitlines()[5]
    assert line.split()[:7] == ["✓", "orders", "idle", "-", "0", "-", "-"]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_no_name_controls_it(width: int) -> None:
    odd = samples.overview(CLOCK, samples.failing(CLOCK, "\x1b[2Jcleared"))
    for overview in (samples.many(CLOCK), samples.strange(CLOCK), odd):
        shown = text(overview, View(), width=width, height=24)
        assert "\x1b" not in shown
        assert max(map(len, shown.splitlines())) <= width


def test_the_marked_one_of_many_is_on_the_screen() -> None:
    overview = samples.many(CLOCK)
    for name in ("orders-000", "sensors-095"):
        shown = text(overview, View(chosen=name), height=24)
        assert name in shown
        assert "… 93 more pipelines" in shown


def test_a_sparkline_tells_little_from_nothing_and_100_percent_is_everything() -> None:
    assert sparkline([0, 1, 100, 50]) == " ▁█▅"
    assert [percent(*each) for each in ((999_999, 1_000_000), (5, 5), (5, 0))] == [
        "99%",
        "100%",
        "-",
    ]


def test_at_80_by_24_a_pipeline_is_a_line_and_the_problem_of_the_marked_one_is_there() -> None:
    overview = samples.busy(CLOCK)
    long = samples.pipeline(CLOCK, samples.LONG)
    lines = text(
        samples.overview(CLOCK, *overview.pipelines, long), View(chosen="payments"), height=24
    )
    first = lines.splitlines()[: 24 - 1]
    at = next(at for at, line in enumerate(first) if "PIPELINE" in line)
    names = [line.split()[1] for line in first[at + 1 : at + 4]]
    assert names == ["payments", "shipments", "a-pipelin…ator-end"]
    shown = " ".join("\n".join(first).split())
    for problem in samples.failing(CLOCK).problems:
        assert problem.message in shown
        assert problem.way_out is not None
        assert f" {problem.way_out.commands[0]}" in shown


def test_well_is_said_with_what_it_covers() -> None:
    shown = text(samples.overview(CLOCK, samples.pipeline(CLOCK)), View())
    assert "up to date" in shown
    assert "blizzard audit" in " ".join(shown.split())


def test_keys_are_read_from_what_terminals_send() -> None:
    typed = keys_of("j\x1b[A\x1bOB\r\x1b[5~p\x1b")
    names = [NAMES.get(key) for key in typed]
    assert names == ["down", "up", "down", None, None, "pause", None]
    assert NAMES[keys_of("")[0]] == "quit"


def test_keys_move_the_mark_and_stop_at_the_ends() -> None:
    three = samples.overview(CLOCK, *(samples.pipeline(CLOCK, name) for name in "abc"))
    view = after_key(View(chosen="gone"), "", three)
    assert view == View(chosen="a")
    moves = (("k", "a"), ("j", "b"), ("G", "c"), ("j", "c"), ("g", "a"))
    for key, chosen in moves:
        view = after_key(view, key, three)
        assert view.chosen == chosen
    assert after_key(view, "p", three).paused
    assert after_key(view, "j", samples.overview(CLOCK)) == View()


def test_pipelines_are_filtered_and_sorted() -> None:
    overview, view = samples.busy(CLOCK), View()
    for key in ("/", *"pay q", "\x7f", "\x7f", "\r"):
        view = after_key(view, key, overview)
    assert (view.search, view.typing, view.chosen) == ("pay", False, "payments")
    assert [each.name for each in listed(overview, view)] == ["payments"]
    view = after_key(after_key(view, "/", overview), "\x1b", overview)
    assert listed(overview, view)[0].name == "payments"
    assert [each.name for each in listed(overview, View(search="to read"))] == ["shipments"]
    names = [each.name for each in listed(overview, after_key(view, "s", overview))]
    assert names == sorted(names)
    assert listed(overview, View(order="to read"))[0].name == "clicks"
