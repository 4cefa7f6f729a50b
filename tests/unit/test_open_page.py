"""What the bench of the open page counts, and that the page says what its figures say."""

import json
import threading
import time
from statistics import median

from bench import open_page
from bench.open_page import STATES, Clocks, documents, order, share, table


def test_the_page_says_what_the_figures_say():
    figures = json.loads(open_page.FIGURES.read_text())
    assert open_page.SECTION.read().split("\n") == list(table(figures))


def test_in_the_figures_an_open_page_takes_less_than_a_hundredth_of_the_run():
    """What is wanted, on the runs that are kept."""
    runs = json.loads(open_page.FIGURES.read_text())["runs"]["open"]
    assert median(map(open_page.share, runs)) < 1


def test_every_round_has_all_states_and_no_state_is_always_first():
    rounds = [order(number) for number in range(6)]
    assert all(sorted(each) == sorted(STATES) for each in rounds)
    assert {each[0] for each in rounds} == set(STATES)


def test_the_share_is_of_what_the_run_takes_without_the_page():
    run = {"cpu": 102.0, "seconds": 60.0, "accepting": 0.5, "looking": 1.0, "answering": 0.5}
    assert share(run) == 2.0


def test_threads_that_serve_are_counted_while_they_run_and_after():
    run = threading.Thread.run
    try:
        clocks = Clocks()
        left = clocks.serving()  # by threads of other tests
        over, done = threading.Event(), threading.Event()
        took: list[float] = []

        def work() -> None:
            end = time.thread_time() + 0.2
            while time.thread_time() < end:
                pass
            took.append(time.thread_time())
            done.set()
            over.wait(300)

        for name in ("live look", "another"):
            threading.Thread(target=work, name=name, daemon=True).start()
            assert done.wait(300)
            done.clear()
        running = clocks.serving()
        over.set()
        for thread in threading.enumerate():
            if thread.name == "live look":
                thread.join(300)
        looked, _other = took
        after = clocks.serving()["looking"] - left["looking"]
        assert looked <= running["looking"] - left["looking"] <= after < 2 * looked
        assert running["answering"] - left["answering"] < looked / 10
    finally:
        threading.Thread.run = run  # type: ignore[method-assign]


def test_a_view_is_read_again_when_an_entry_is_written():
    def stamps(entry: int) -> dict[str, str]:
        fresh = {"measured_files": entry}
        summary = {"name": "events", "last_entry": entry, "health": "ok", "freshness": fresh}
        return dict(documents({"pipelines": [summary]}, 0))

    assert stamps(1) == stamps(1)
    assert all(stamps(1)[path] != stamp for path, stamp in stamps(2).items())
