"""Quantities."""

import pytest

from lakebed.units import in_words, span, took


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (134_217_728, "128.0 MiB"),
        (5 * 1024**5, "5120.0 TiB"),
    ],
)
def test_a_size_is_shown_as_a_person_says_it(size, words):
    assert in_words(size) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"),
        (0, "0 s"),
        (59.4, "59 s"),
        (59.9, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (3725, "1 h 2 min"),
        (86_400, "1 d"),
        (90_000, "1 d 1 h"),
    ],
)
def test_a_time_span_is_shown_in_its_two_largest_units(seconds, words):
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (19.46, "19.5 s"), (59.94, "59.9 s"), (59.96, "1 min"), (4000, "1 h 6 min")],
)
def test_what_took_less_than_a_minute_is_shown_with_a_decimal(seconds, words):
    assert took(seconds) == words
