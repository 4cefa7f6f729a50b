"""Time and fresh ids."""

import pickle
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lakebed.clock import Clock, uuid7
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


@given(INSTANT, st.sets(RANDOM, min_size=2, max_size=50))
def test_ids_of_one_millisecond_differ_by_chance_alone(instant, randoms):
    # 6 of the 80 bits say version and variant; bytes that differ elsewhere give different ids.
    masked = {(r[0] & 0x0F, r[1], r[2] & 0x3F, r[3:]) for r in randoms}
    assert len({uuid7(instant, random) for random in randoms}) == len(masked)


def test_a_clock_gives_ids_nobody_else_has():
    clock = Clock()
    assert len({clock.fresh_id() for _ in range(1000)}) == 1000


def test_a_clock_tells_utc_and_milliseconds():
    hands = Hands()
    assert hands.clock.now() == NOON
    assert hands.clock.now().tzinfo is UTC
    assert hands.clock.milliseconds() == int(NOON.timestamp() * 1000)
    assert datetime.fromtimestamp((hands.clock.fresh_id().int >> 80) / 1000, UTC) == NOON


def test_a_clock_travels_to_other_processes():
    copy = pickle.loads(pickle.dumps(Clock()))
    assert copy.fresh_id() != copy.fresh_id()
