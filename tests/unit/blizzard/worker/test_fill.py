"""A field filled from `_rescued`, rows in and rows out."""

from datetime import date

import pyarrow as pa
import pytest

from blizzard.model.rewriting import Target
from blizzard.worker.transform import MOST_ROWS, Filling
from lakebed.columns.schema import Field, Reading
from lakebed.types import RESCUED, FieldType

NUMBER = Field(name="n", type=FieldType.INT64)


def filled(field, rescued, *, above=(), most_rows=MOST_ROWS, **columns):
    filling = Filling(Target((*above, field)), most_rows=most_rows)
    rows = len(rescued)
    table = pa.table({"id": list(range(rows)), **columns, RESCUED: pa.array(rescued, pa.string())})
    return filling, filling.fill(table).to_pydict()


def test_rows_keep_their_order_and_their_other_columns():
    filling, rows = filled(NUMBER, ['{"n":7}', None, '{"x":1,"n":8,"y":2}', '{"x":1}'])
    assert rows["id"] == [0, 1, 2, 3]
    assert rows["n"] == [7, None, 8, None]
    assert rows[RESCUED] == [None, None, '{"x":1,"y":2}', '{"x":1}']
    assert (filling.taken, filling.left) == (2, 0)


@pytest.mark.parametrize(
    "text", ['{"n":1.5}', '{"n":"7"}', '{"n":9223372036854775808}', '{"n":{}}']
)
def test_a_value_that_does_not_fit_stays_letter_by_letter(text):
    filling, rows = filled(NUMBER, [text])
    assert (rows["n"], rows[RESCUED], filling.taken, filling.left) == ([None], [text], 0, 1)


def test_an_integer_that_was_kept_as_it_is_written_is_not_rounded():
    kept = '{"n":9007199254740993}'
    filling, rows = filled(
        Field(name="n", type=FieldType.FLOAT64), [kept, '{"n":9007199254740994}', '{"n":0.1}']
    )
    assert rows["n"] == [None, 9007199254740994.0, 0.1]
    assert rows[RESCUED] == [kept, None, None]
    assert (filling.taken, filling.left) == (2, 1)


def test_a_value_is_read_as_the_field_says():
    day = Field(
        name="day",
        type=FieldType.DATE,
        reading=Reading(formats=("%d.%m.%Y",), null_values=("-",)),
    )
    filling, rows = filled(day, ['{"day":"31.01.2024"}', '{"day":"-"}', '{"day":"2024"}'])
    assert rows["day"] == [date(2024, 1, 31), None, None]
    # What means null is read: nothing is left of it.
    assert rows[RESCUED] == [None, None, '{"day":"2024"}']
    assert (filling.taken, filling.left) == (2, 1)


def test_a_value_is_not_put_over_another():
    filling, rows = filled(NUMBER, ['{"n":7}', '{"n":8}'], n=pa.array([1, None], pa.int64()))
    assert rows["n"] == [1, 8]
    assert rows[RESCUED] == ['{"n":7}', None]
    assert (filling.taken, filling.left) == (1, 1)


def test_a_narrower_column_of_the_file_is_widened():
    _filling, rows = filled(NUMBER, ['{"n":4294967296}', None], n=pa.array([None, 1], pa.int32()))
    assert rows["n"] == [4294967296, 1]


def test_a_struct_that_is_null_gets_no_field():
    user = Field(name="user", type=FieldType.STRUCT, fields=(NUMBER,))
    users = pa.array([{"a": "x"}, None], pa.struct([("a", pa.string())]))
    filling, rows = filled(NUMBER, ['{"user.n":7}', '{"user.n":8}'], above=(user,), user=users)
    assert rows["user"] == [{"a": "x", "n": 7}, None]
    assert rows[RESCUED] == [None, '{"user.n":8}']
    assert (filling.taken, filling.left) == (1, 1)


def test_a_file_without_the_struct_is_left_as_it_is():
    user = Field(name="user", type=FieldType.STRUCT, fields=(NUMBER,))
    filling, rows = filled(NUMBER, ['{"user.n":7}'], above=(user,))
    assert (rows[RESCUED], filling.taken) == (['{"user.n":7}'], 0)


def test_line_breaks_between_the_parts_of_a_value_mean_nothing():
    both = Field(name="l", type=FieldType.LIST, items=Field(name="element", type=FieldType.INT64))
    _filling, rows = filled(both, ['{"l":[1,\n 2]}'])
    assert rows["l"] == [[1, 2]]


@pytest.mark.parametrize("text", ["", "words", "[1]", '{"n":', '{"n":1,"n":2}'])
def test_what_is_no_text_of_ours_is_left_alone(text):
    filling, rows = filled(NUMBER, [text])
    assert (rows["n"], rows[RESCUED], filling.taken) == ([None], [text], 0)


def test_names_that_are_quoted_are_found():
    odd = Field(name="a.b", type=FieldType.INT64)
    _filling, rows = filled(odd, ['{"`a.b`":1}', '{"a.b":2}'])
    assert rows["a.b"] == [1, None]


def test_many_rows_are_filled_piece_by_piece():
    filling, rows = filled(NUMBER, [f'{{"n":{row}}}' for row in range(10)], most_rows=3)
    assert rows["n"] == list(range(10))
    assert filling.taken == 10


def test_a_row_group_without_rows_has_the_column_too():
    _filling, rows = filled(NUMBER, [])
    assert rows == {"id": [], RESCUED: [], "n": []}
