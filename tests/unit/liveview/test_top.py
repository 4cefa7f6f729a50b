"""`blizzard top`: what a screen shows, how wide it is, and what the keys do."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from lakebed.clock import Clock
from lakebed.shown import printable
from lakebed.terminal.console import UNBOUNDED
from liveview.model import Freshness, Overview, Program
from liveview.terminal import words
from liveview.terminal.keys import Key, parsed
from liveview.terminal.screen import View, in_order, screen
from liveview.terminal.watch import Seen, Terminal, pressed, standing, watch
from tests.support.overviews import PROBLEM, a_pipeline, an_overview, failing, running

NOW = datetime(2026, 3, 14, 12, 0, 0, tzinfo=UTC)
MANY = an_overview(
    *(a_pipeline(f"p{each:03}") for each in range(100)), failing(a_pipeline("in-trouble"))
)


def text(overview: Overview, view: View, width: int = 80, height: int = 24, note: str = "") -> str:
    """Return a screen as plain lines."""
    lines = screen(overview, view, now=NOW, width=width, height=height, note=note)
    return "\n".join(each.plain for each in lines)


def test_a_failing_pipeline_comes_first_with_its_problem_and_the_way_out() -> None:
    shown = text(an_overview(a_pipeline("a"), failing(a_pipeline("z"))), View(), width=200)
    lines = shown.splitlines()
    assert lines[4].startswith("z")
    assert lines[5].strip() == f"{PROBLEM.code}: {PROBLEM.message}"
    assert lines[6].strip() == PROBLEM.way_out
    assert lines[7].startswith("a ")


def test_an_opened_pipeline_shows_its_batch_with_stages_and_units() -> None:
    shown = text(an_overview(running(a_pipeline())), View(chosen="orders", opened=True))
    assert "Batch 1,205: 40 files, for 48 s" in shown
    assert "✓ discover 0.2 s   ✓ plan 0.1 s   ▶ run 41 s   · journal" in shown
    assert "61% of 1.9 GiB, 3.21M rows" in shown
    assert "1205-00 on 10.0.0.7" in shown
    assert "Everything of 2026-03-13 is in the table." in shown


def test_without_a_batch_the_next_look_is_told() -> None:
    shown = text(an_overview(a_pipeline()), View(chosen="orders", opened=True))
    assert "No batch is running; the next look is in 7.0 s." in shown


def test_what_is_not_known_is_not_shown_as_nothing() -> None:
    unknown = replace(
        a_pipeline(), waiting_files=None, oldest_waiting_secs=None, freshness=Freshness()
    )
    line = text(an_overview(unknown), View()).splitlines()[4]
    assert line.split() == ["orders", "idle", "-", "-", "-", "-", "1.23M"]


def test_failed_files_are_counted_as_every_other_command_counts_them() -> None:
    one = replace(a_pipeline(), failed_files=2, held_entries=5, quarantined_lines=7)
    title, *rest = text(an_overview(one), View(), width=100).splitlines()[3:]
    assert title.split()[-3:] == ["FAILED", "BAD", "LINES"]
    assert rest[0].split()[-2:] == ["2", "7"]


def test_a_program_that_does_not_answer_is_named_with_its_note() -> None:
    away = Program(name="penguin", version=None, reachable=False, note="does not answer at :9091")
    shown = text(replace(an_overview(a_pipeline()), programs=[away]), View())
    assert "○ penguin not reached" in shown
    assert "penguin: does not answer at :9091" in shown


def test_an_empty_configuration_says_so() -> None:
    assert "There is no pipeline in this configuration." in text(an_overview(), View())


def test_a_hundred_pipelines_keep_the_marked_one_on_the_screen() -> None:
    for name in ("in-trouble", "p000", "p050", "p099"):
        lines = screen(MANY, View(chosen=name), now=NOW, width=80, height=24)
        assert len(lines) <= 24
        marked = [each.plain.split()[0] for each in lines if "reverse" in str(each.spans)]
        assert marked == [name]
        assert any("more pipelines" in each.plain for each in lines)


@given(
    width=st.integers(70, 220),
    height=st.integers(1, 60),
    name=st.text(min_size=1, max_size=90),
    opened=st.booleans(),
)
def test_no_line_is_wider_than_the_terminal_and_no_screen_higher(
    width: int, height: int, name: str, opened: bool
) -> None:
    odd = failing(running(replace(a_pipeline(name), sources=[name * 3])))
    overview = an_overview(a_pipeline("a"), odd)
    view = View(chosen=name, opened=opened)
    lines = screen(overview, view, now=NOW, width=width, height=height, note=name)
    assert len(lines) <= height
    assert all(cell_len(each.plain) <= width for each in lines)
    assert all(printable(each.plain) == each.plain for each in lines)


def test_a_pipe_gets_every_name_and_every_sentence_whole() -> None:
    name = "readings-of-the-plant-" * 6
    odd = failing(a_pipeline(name))
    shown = text(an_overview(odd, a_pipeline("a")), View(), width=UNBOUNDED, height=1000)
    lines = shown.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"{name} "))
    assert lines[at + 1].strip() == f"{PROBLEM.code}: {PROBLEM.message}"
    assert "…" not in shown
    assert max(map(len, lines)) < 300


def test_on_a_wide_terminal_numbers_stay_near_the_names() -> None:
    lines = text(an_overview(a_pipeline("a")), View(), width=200).splitlines()
    at = [number for number, line in enumerate(lines) if line.startswith(("PIPELINE", "TABLE"))]
    assert len(at) == 2
    assert all(len(lines[number + 1].rstrip()) < 160 for number in at)
    assert all("  " * 20 not in lines[number].rstrip() for number in at)


def test_one_of_a_thing_is_told_as_one() -> None:
    one = replace(a_pipeline(), failed_files=1, held_entries=1, quarantined_lines=1, rows_24h=1)
    assert "1 row in 24 h" in text(an_overview(one), View())
    opened = text(an_overview(one), View(chosen="orders", opened=True))
    assert "1 file failed, 1 entry held, 1 bad line in quarantine" in opened


@pytest.mark.parametrize(
    ("number", "shown"),
    [(None, "-"), (0, "0"), (9_999, "9,999"), (10_000, "10k"), (999_499, "999k"), (999_500, "1M")],
)
def test_counts(number: float | None, shown: str) -> None:
    assert words.count(number) == shown


@given(st.floats(0, 9e14), st.floats(-5, 8e9))
def test_numbers_fit_their_columns(number: float, seconds: float) -> None:
    assert len(words.count(number)) <= 5
    assert len(words.span(seconds)) <= 6
    assert len(words.size(min(number, 1e15))) <= 9


def test_spans_and_sizes() -> None:
    spans = [words.span(each) for each in (0.42, 9.96, 41, 99, 120, 7200, 200_000, 1.795e9)]
    assert spans == ["0.4 s", "10 s", "41 s", "99 s", "2 min", "2 h", "2 d", "57 y"]
    sizes = [words.size(each) for each in (512, 2048, 123_456_789, 1.5 * 1024**4)]
    assert sizes == ["512 B", "2.0 KiB", "118 MiB", "1.5 TiB"]


def test_a_sparkline_tells_little_from_nothing() -> None:
    assert words.sparkline([0, 1, 100, 50], 4) == " ▁█▅"
    assert words.sparkline([0, 0], 2) == "  "
    assert words.sparkline([1, 1, 1, 1], 2) == "██"


def test_hundred_percent_is_only_what_is_whole() -> None:
    assert words.percent(999_999, 1_000_000) == "99%"
    assert words.percent(5, 5) == "100%"
    assert words.percent(5, 0) == "-"


def test_keys_are_read_from_what_terminals_send() -> None:
    typed = b"j\x1b[A\x1bOB\r\x1b[5~\x1b[200~p\x1b"
    assert parsed(typed) == [Key.DOWN, Key.UP, Key.DOWN, Key.OPEN, Key.PAUSE, Key.BACK]


def test_keys_move_the_mark_and_stop_at_the_ends() -> None:
    names = [each.name for each in in_order(MANY.pipelines)]
    view = standing(View(), MANY)
    assert view.chosen == names[0]
    assert pressed(view, Key.UP, MANY).chosen == names[0]
    assert pressed(view, Key.DOWN, MANY).chosen == names[1]
    last = pressed(view, Key.LAST, MANY)
    assert pressed(last, Key.DOWN, MANY).chosen == names[-1]
    assert pressed(last, Key.FIRST, MANY).chosen == names[0]
    opened = pressed(view, Key.OPEN, MANY)
    assert opened.opened
    assert not pressed(opened, Key.BACK, MANY).opened


def test_a_pipeline_that_is_gone_is_not_kept_open() -> None:
    view = View(chosen="gone", opened=True)
    assert standing(view, an_overview(a_pipeline())) == View(chosen="orders")
    assert standing(view, an_overview()) == View()


class _Watched:
    """A terminal whose keys are given, with a clock that the waiting moves on."""

    def __init__(self, *keys: list[Key]) -> None:
        self.keys, self.at, self.looks = list(keys), NOW.timestamp(), 0
        self.screens: list[str] = []

    def look(self) -> Seen:
        self.looks += 1
        return Seen(an_overview(a_pipeline("a"), a_pipeline("b")), note=f"look {self.looks}")

    def wait(self, seconds: float) -> list[Key]:
        self.at += max(seconds, 0.001)
        return self.keys.pop(0) if self.keys else [Key.QUIT]

    def watch(self) -> None:
        terminal = Terminal(
            size=lambda: (80, 24),
            draw=lambda lines: self.screens.append("\n".join(each.plain for each in lines)),
            keys=self.wait,
        )
        watch(self.look, terminal, Clock(seconds=lambda: self.at), interval=2.0)


def test_a_watch_looks_again_after_every_interval_until_it_is_told_to_quit() -> None:
    watched = _Watched([], [], [Key.DOWN, Key.OPEN])
    watched.watch()
    assert watched.looks == 4
    assert "look 4" in watched.screens[-1]
    assert watched.screens[-1].splitlines()[4].startswith("b  idle")


def test_a_paused_watch_does_not_look() -> None:
    watched = _Watched([Key.PAUSE], [], [], [Key.PAUSE], [])
    watched.watch()
    assert watched.looks == 3
    assert "paused" in watched.screens[2]
