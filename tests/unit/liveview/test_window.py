"""The end of a long row, read once and as far back as is needed."""

from dataclasses import dataclass
from typing import Any

from liveview.followers import DocumentWindow


@dataclass
class One:
    at: float


def window(**given: Any) -> DocumentWindow[One]:
    return DocumentWindow(lambda one: one.at, **given)


class Row:
    """Documents an hour apart."""

    def __init__(self, count):
        self.count = count
        self.read = []

    def __call__(self, number):
        self.read.append(number)
        return One(number * 3600.0) if number < self.count else None


def test_a_first_look_reads_a_day_and_not_a_year():
    row = Row(100_000)
    known = window()
    known.update(row, 99_999, since=99_999 * 3600 - 86_400)
    assert known.covered
    assert len(row.read) < 100
    assert len(known.since(99_999 * 3600 - 86_400)) == 25


def test_a_look_that_takes_too_long_goes_on_with_the_next():
    row = Row(1000)
    ticks = iter(range(10_000))
    known = window(budget_secs=2, seconds=lambda: float(next(ticks)))
    known.update(row, 999, since=0.0)
    assert not known.covered
    assert known.out_of_time
    before = len(known.documents)
    assert 0 < before < 999
    for _ in range(100):
        known.update(row, 999, since=0.0)
    assert len(known.documents) == 1000
    assert len(row.read) == 1000


def test_memory_is_bounded():
    row = Row(1000)
    known = window(most=100)
    known.update(row, 999, since=0.0)
    assert len(known.documents) <= 100
    assert max(known.documents) == 999


def test_a_row_that_begins_anew_is_read_anew():
    known = window()
    known.update(Row(100), 99, since=0.0)
    known.update(Row(3), 2, since=0.0)
    assert sorted(known.documents) == [0, 1, 2]
