"""One computation for everybody who asks, in time or not at all."""

import threading

import pytest

from liveview.answer_cache import AnswerCache, Busy, CachedAnswer

LONG = 300.0


class Seconds:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def seconds():
    return Seconds()


@pytest.fixture
def desk(seconds):
    desk = AnswerCache(seconds=seconds)
    yield desk
    desk.close()


def test_who_does_not_want_to_wait_gets_the_last_answer_or_is_told(desk, seconds):
    release = threading.Event()
    with pytest.raises(Busy):
        desk.ask("new", lambda: release.wait(LONG), max_age=1, wait=0.01)
    assert desk.ask("known", lambda: "first", max_age=1, wait=LONG) == "first"
    seconds.now += 100
    desk.begin("known", lambda: release.wait(LONG), max_age=1)
    assert desk.result("known", wait=LONG, stale_wait=0.01) == "first"
    release.set()


def test_an_error_is_told_to_all_and_tried_again_soon(desk, seconds):
    answers = iter((ValueError("no"), "well"))

    def compute():
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    with pytest.raises(ValueError, match="no"):
        desk.ask("key", compute, max_age=600, wait=LONG)
    with pytest.raises(ValueError, match="no"):
        desk.ask("key", compute, max_age=600, wait=LONG)
    seconds.now += 6
    assert desk.ask("key", compute, max_age=600, wait=LONG) == "well"


def test_what_takes_long_is_kept_for_longer(desk, seconds):
    def slow():
        seconds.now += 10
        return seconds.now

    first = desk.ask("key", slow, max_age=1, wait=LONG)
    seconds.now += 100
    assert desk.ask("key", slow, max_age=1, wait=LONG) == first
    seconds.now += 101
    assert desk.ask("key", slow, max_age=1, wait=LONG) > first


@pytest.mark.parametrize(("takes", "kept"), [(60.0, 1200.0), (1.0, 20.0), (0.0, 0.0)])
def test_after_a_change_an_answer_is_asked_for_anew_unless_it_takes_long(seconds, takes, kept):
    """A page takes little of the time."""
    found = []
    desk = AnswerCache(seconds=seconds)

    def slow():
        seconds.now += takes
        found.append(seconds.now)
        return len(found)

    def asks(mark):
        return desk.ask("key", slow, max_age=5000, wait=LONG, stale_wait=LONG, mark=mark)

    assert asks("before") == 1
    if kept:
        seconds.now += kept - 1
        assert asks("after") == 1
        seconds.now += 1
    assert asks("after") == 2
    desk.close()


def test_a_change_is_seen_at_once_by_who_computes_it_and_others_wait(seconds):
    answer: CachedAnswer[int] = CachedAnswer(seconds)
    found = iter(range(9))
    marks = ("a", "a", "b")
    assert [answer.now(lambda: next(found), max_age=5, mark=one) for one in marks] == [0, 0, 1]
    seconds.now += 5
    assert answer.now(lambda: next(found), max_age=5, mark="b") == 2


def test_only_so_many_answers_are_kept(seconds):
    desk = AnswerCache(seconds=seconds, most=2)
    for key in "abc":
        desk.ask(key, lambda: 1, max_age=60, wait=LONG)
    assert desk.last("a") is None
    desk.close()
