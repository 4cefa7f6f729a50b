"""A simulated day of small arrivals leaves few files, and each byte is written few times."""

import re
from pathlib import Path

import pytest

from bench.compaction import DAYS, results

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
FOUND = results()


@pytest.mark.parametrize("place", range(len(DAYS)), ids=[day.name for day in DAYS])
def test_after_a_day_there_are_at_most_twice_as_many_files_as_need_be(place):
    _day, *both = FOUND[place]
    for result in both:
        assert result.files <= 2 * result.ideal
        assert result.amplification < 3
        assert result.per_gb < result.per_gb_before


def test_the_page_has_these_figures():
    page = PAGE.read_text()
    for day, kept, _by in FOUND:
        (row,) = re.findall(rf"^\| {re.escape(day.name)} \|.*$", page, re.MULTILINE)
        assert f"| {kept.files:,} | {kept.per_gb:,.1f} | {kept.ideal:,} |" in row
