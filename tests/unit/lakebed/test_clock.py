"""Time and fresh ids."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lakebed.clock import uuid7
from tests.support.builders import NOON, Hands

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
