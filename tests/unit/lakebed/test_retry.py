"""The one backoff policy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.errors import (
    ConfigInvalid,
    JournalConflict,
    ObjectMissing,
    StoreDenied,
    StoreFull,
    StoreUnavailable,
)
from lakebed.retry import Backoff, attempts, can_help, may_mend


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_wait_is_never_longer_than_the_limit_nor_shorter_than_half(failures, chance):
    backoff = Backoff(first_secs=1, factor=2, limit_secs=60)
    full = min(60.0, 2.0 ** min(failures - 1, 60))
    assert full / 2 <= backoff.wait(failures, lambda: chance) <= full


def test_an_error_says_itself_whether_trying_again_can_help():
    assert can_help(StoreUnavailable("x"))
    assert can_help(StoreFull("x"))
    assert not can_help(StoreDenied("x"))
    assert not can_help(ConfigInvalid(["x"]))


def test_an_error_nobody_knows_is_tried_again():
    assert can_help(RuntimeError("x"))


def test_what_an_operator_may_mend_is_waited_for_and_what_only_a_restart_mends_is_not():
    assert may_mend(StoreDenied("x"))
    assert may_mend(ObjectMissing("x"))
    assert not may_mend(ConfigInvalid(["x"]))
    assert not may_mend(JournalConflict("x"))


def tried(*errors: Exception | None, tries: int = 3) -> tuple[int, list[float]]:
    """Fail with each error in turn; None succeeds."""
    made = 0
    pauses: list[float] = []
    for attempt in attempts(tries, Backoff(), pauses.append, never=JournalConflict):
        with attempt:
            made += 1
            if (error := errors[made - 1]) is not None:
                raise error
            break
    return made, pauses


def test_trouble_that_may_pass_is_tried_again_after_a_pause():
    made, pauses = tried(StoreUnavailable("x"), StoreUnavailable("y"), None)
    assert made == 3
    assert 0.5 <= pauses[0] <= 1 <= pauses[1] <= 2


@pytest.mark.parametrize("error", [StoreDenied("x"), JournalConflict("x"), RuntimeError("x")])
def test_any_other_trouble_is_raised_at_once(error):
    with pytest.raises(type(error)):
        tried(error, None)


def test_the_last_attempt_raises_its_trouble():
    with pytest.raises(StoreUnavailable, match="last"):
        tried(StoreUnavailable("first"), StoreUnavailable("last"), tries=2)
