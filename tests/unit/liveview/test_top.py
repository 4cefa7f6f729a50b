"""`blizzard top`: what a screen shows, and what the keys do."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

from liveview.model import Freshness, Overview
from liveview.terminal.command import after_key, keys_of
from liveview.terminal.screen import View, percent, screen, sparkline
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
    assert lines[5].startswith("payments")
    (problem, *_more) = samples.failing(CLOCK).problems
    at = lines.index(f"payments  {problem.code}: {problem.message}")
    assert lines[at + 1].strip() == problem.way_out


def test_the_marked_pipeline_shows_its_batch_and_its_problems() -> None:
    shown = text(samples.busy(CLOCK), View(chosen="clicks"), width=100)
    assert "Batch 4,813: 576 files, for 52 s; run: 47% of 6.0 GiB, " in shown
    assert "Yes: all 288 files that landed on 2026-03-13" in shown
    waits = text(samples.busy(CLOCK), View(chosen="orders"))
    assert "No batch is running; the next look is in 24.0 s." in waits
    failing = text(samples.busy(CLOCK), View(chosen="payments"), width=200)
    assert all(one.message in failing for one in samples.failing(CLOCK).problems)


def test_what_is_not_known_is_not_shown_as_nothing() -> None:
    unknown = samples.pipeline(CLOCK, waiting_files=None, behind_secs=None, freshness=Freshness())
    line = text(samples.overview(CLOCK, unknown), View()).splitlines()[5]
    assert line.split()[:6] == ["orders", "idle", "-", "-", "-", "-"]


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
        assert "… 88 more pipelines" in shown


def test_a_sparkline_tells_little_from_nothing_and_100_percent_is_everything() -> None:
    assert sparkline([0, 1, 100, 50]) == " ▁█▅"
    assert [percent(*each) for each in ((999_999, 1_000_000), (5, 5), (5, 0))] == [
        "99%",
        "100%",
        "-",
    ]


def test_keys_are_read_from_what_terminals_send() -> None:
    typed = "j\x1b[A\x1bOB\r\x1b[5~\x1b[200~p\x1b"
    assert keys_of(typed) == ["down", "up", "down", "pause"]
    assert keys_of("") == ["quit"]


def test_keys_move_the_mark_and_stop_at_the_ends() -> None:
    names = ["a", "b", "c"]
    view = after_key(View(chosen="gone"), "", names)
    assert view == View(chosen="a")
    moves = (("up", "a"), ("down", "b"), ("last", "c"), ("down", "c"), ("first", "a"))
    for key, chosen in moves:
        view = after_key(view, key, names)
        assert view.chosen == chosen
    assert after_key(view, "pause", names).paused
    assert after_key(view, "down", []) == View()
