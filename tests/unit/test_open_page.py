"""What the bench of the open page counts, and that the page says what its figures say."""

import json
from statistics import median

from bench import open_page
from bench.open_page import table


def test_the_page_says_what_the_figures_say():
    figures = json.loads(open_page.FIGURES.read_text())
    assert open_page.SECTION.read().split("\n") == list(table(figures))


def test_in_the_figures_an_open_page_takes_less_than_a_hundredth_of_the_run():
    """What is wanted, on the runs that are kept."""
    runs = json.loads(open_page.FIGURES.read_text())["runs"]["open"]
    assert median(map(open_page.share, runs)) < 1
