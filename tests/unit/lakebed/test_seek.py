"""The lowest number of a row whose value is not below a target, found by few reads."""

from hypothesis import given
from hypothesis import strategies as st

from lakebed.seek import Sought, seek


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
    assert found == Sought(number=expected)


def test_a_hundred_thousand_even_values_cost_one_round():
    row = Row(list(range(7, 100_007)))
    found = seek(40_007, 0, 99_999, row.read, known={-1: 6, 99_999: 100_006})
    assert found.number == 40_000
    assert (row.rounds, row.reads) == (1, 3)


def test_a_hundred_thousand_uneven_values_cost_few_reads():
    row = Row([number // 1000 * 5000 + number % 7 // 7 for number in range(100_000)])
    assert seek(250_000, 0, 99_999, row.read).number == 50_000
    assert row.reads < 60


def test_a_row_that_hardly_says_anything_is_given_up_and_that_is_told():
    row = Row([*[None] * 50_000, 5, *[None] * 50_000])
    assert seek(5, 0, 100_000, row.read, most=100) == Sought(number=None, sure=False)
    assert row.reads <= 108
