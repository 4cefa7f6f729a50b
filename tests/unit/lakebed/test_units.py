"""Quantities, times, ids, names and errors as they are shown, and searches in sorted rows."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.clock import uuid7
from lakebed.errors import ArgumentInvalid, LakeError, printable
from lakebed.seek import seek
from lakebed.telemetry.events import FaultFound
from lakebed.telemetry.logs import log_events
from lakebed.terminal.console import print_text
from lakebed.types import LogFormat, LogLevel
from lakebed.units import in_words, span, took, typed
from tests.support.builders import NOON, Hands


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


INSTANT = st.integers(0, 2**48 - 1)
RANDOM = st.binary(min_size=10, max_size=10)


@given(INSTANT, RANDOM)
def test_an_id_says_that_it_is_a_uuid_of_version_7_and_when_it_was_drawn(instant, random):
    fresh = uuid7(instant, random)
    assert fresh.version == 7
    assert fresh.variant == "specified in RFC 4122"
    assert fresh.int >> 80 == instant


@given(INSTANT, INSTANT, RANDOM, RANDOM)
def test_ids_sort_by_their_time(early, late, one, other):
    if early < late:
        assert str(uuid7(early, one)) < str(uuid7(late, other))


def test_a_clock_tells_utc_and_milliseconds():
    hands = Hands()
    assert hands.clock.now() == NOON
    assert hands.clock.now().tzinfo is UTC
    assert hands.clock.milliseconds() == int(NOON.timestamp() * 1000)
    assert datetime.fromtimestamp((hands.clock.fresh_id().int >> 80) / 1000, UTC) == NOON


def test_every_code_is_used_once():
    def family(kind: type[LakeError]) -> list[type[LakeError]]:
        return [kind, *(each for below in kind.__subclasses__() for each in family(below))]

    ours = [kind for kind in family(LakeError) if kind.__module__ == "lakebed.errors"]
    codes = [kind.code for kind in ours if kind is not ArgumentInvalid]
    assert len(codes) == len(set(codes)) > 10


def test_a_name_takes_hold_of_no_terminal(capsys):
    """W23: it could clear the screen, or pass for another line of the log."""
    name = "a\x1b[2J\nERROR forged\x9b1m\ud800\u2028"
    error = LakeError("gone", path=name)
    log_events(LogLevel.INFO, LogFormat.TEXT)(FaultFound(code="x", error=f"gone: {name}"))
    print_text([name.replace("\n", "")])
    out, err = capsys.readouterr()
    for text in (str(error), out, err):
        assert not set(text.rstrip("\n")) & set("\x1b\n\x9b\ud800\u2028")
        assert "\\x1b[2J" in text


ODD = ["a\nb", "a\tb", "\x1b[31m", "x\u202egpj.ndjson", "a\u2066b", "a\u200bb", "\ufeffa", "\x85"]


@pytest.mark.parametrize("name", ODD)
def test_what_would_mislead_is_written_out_and_understood_again(name):
    text = printable(name)

    assert text.isprintable()
    assert "\u202e" not in text
    assert typed(text) == name


@pytest.mark.parametrize(
    "name", ["a/b.ndjson", "größe 1.ndjson", "日本", "a\\d", "\\x41", "\\u0041"]
)
def test_other_names_are_themselves(name):
    assert (printable(name), typed(name)) == (name, None)


@given(st.text(alphabet=st.characters(exclude_characters="\\")))
def test_every_name_without_a_backslash_is_found_as_it_is_printed(name):
    text = printable(name)
    assert (typed(text) or text) == name


class Row:
    """A row of documents, of which it is counted how many are read."""

    def __init__(self, values):
        self.values = values
        self.reads = self.rounds = 0

    def read(self, numbers):
        self.reads += len(numbers)
        self.rounds += 1
        return [self.values[number] for number in numbers]


@given(
    values=st.lists(st.none() | st.integers(0, 40), max_size=60),
    target=st.integers(-1, 41),
    at_once=st.integers(1, 9),
)
def test_it_finds_what_reading_everything_finds(values, target, at_once):
    in_order = iter(sorted(value for value in values if value is not None))
    row = [None if value is None else next(in_order) for value in values]
    expected = next(
        (n for n, value in enumerate(row) if value is not None and value >= target), None
    )
    found = seek(target, 0, len(row) - 1, Row(row).read, at_once=at_once)
    assert found == expected


def test_a_hundred_thousand_even_values_cost_one_round():
    row = Row(list(range(7, 100_007)))
    found = seek(40_007, 0, 99_999, row.read, known={-1: 6, 99_999: 100_006})
    assert found == 40_000
    assert (row.rounds, row.reads) == (1, 3)


def test_a_hundred_thousand_uneven_values_cost_few_reads():
    row = Row([number // 1000 * 5000 + number % 7 // 7 for number in range(100_000)])
    assert seek(250_000, 0, 99_999, row.read) == 50_000
    assert row.reads < 60


def test_a_row_that_hardly_says_anything_is_given_up():
    row = Row([*[None] * 50_000, 5, *[None] * 50_000])
    assert seek(5, 0, 100_000, row.read, most=100) is None
    assert row.reads <= 108
