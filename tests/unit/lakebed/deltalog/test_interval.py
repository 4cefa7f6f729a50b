"""How long the intervals of table properties are. `tests/interop` holds the same against Spark."""

import pytest

from lakebed.deltalog.retention import FOR_EVER, parse_interval
from tests.support.intervals import INTERVALS, length, strange


@pytest.mark.parametrize(("text", "microseconds"), INTERVALS)
def test_an_interval_is_as_long_as_delta_says(text, microseconds):
    """HOLES L31"""
    assert parse_interval(text) == length(microseconds)


def test_an_interval_beyond_every_calendar_is_for_ever_or_none():
    """HOLES L31: neither removes anything."""
    assert parse_interval("interval 99999999 weeks") == FOR_EVER
    assert parse_interval(f"{'9' * 18} days") == FOR_EVER
    assert parse_interval(f"{'9' * 40} days") is None


def test_anything_at_all_is_a_length_or_none():
    """HOLES L31: it is read at every clean-up, and must never end one with an error."""
    found = [parse_interval(text) for text in strange(3000, seed=7)]
    assert 100 < sum(one is not None for one in found) < 2900
