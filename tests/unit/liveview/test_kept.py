"""The last look at a journal or a log, and for whom it does."""

import pytest

from liveview.looks.kept import ANEW, Fresh, Kept


class Time:
    """Seconds that pass when a test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def kept(time):
    kept: Kept[str] = Kept(time)
    kept.begin(Fresh("a", 5.0), since=10.0)
    kept.keep("view")
    return kept


def test_a_look_does_for_the_same_span_until_it_is_too_old(kept, time):
    assert kept.does(Fresh("a", 5.0), 10.0) == "view"
    time.now += 4.9
    assert kept.does(Fresh("a", 5.0), 14.9) == "view"
    time.now += 0.1
    assert kept.does(Fresh("a", 5.0), 15.0) is None


@pytest.mark.parametrize(
    ("fresh", "since"),
    [
        pytest.param(Fresh("b", 5.0), 10.0, id="something has happened"),
        pytest.param(Fresh(None, 5.0), 10.0, id="nobody tells any more"),
        pytest.param(Fresh("a", 5.0), 9.0, id="a longer span"),
        pytest.param(Fresh("a", 5.0), 16.0, id="a shorter span"),
        pytest.param(ANEW, 10.0, id="anew"),
    ],
)
def test_a_look_does_for_no_other_question(kept, fresh, since):
    assert kept.does(fresh, since) is None


def test_a_look_that_fails_leaves_nothing_to_be_shown_in_its_place(kept):
    kept.begin(Fresh("a", 5.0), since=10.0)
    assert kept.does(Fresh("a", 5.0), 10.0) is None


def test_the_age_counts_from_when_the_look_began(kept, time):
    kept.begin(Fresh("a", 5.0), since=10.0)
    time.now += 5.0
    kept.keep("slow")
    assert kept.does(Fresh("a", 5.0), 10.0) is None
