"""Conditions on rows: how they are read, and what they hold for."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blizzard.model.predicate import (
    Combined,
    Comparison,
    IsNull,
    Operator,
    Predicate,
    PredicateInvalid,
    parse,
)
from blizzard.worker.table_file import ColumnBounds, matches, may_match

COLUMNS: dict[tuple[str, ...], Any] = {
    ("text",): pa.array(["x", "it's", None]),
    ("small",): pa.array([1, 2, None], pa.int8()),
    ("exact",): pa.array([Decimal("1.50"), None, Decimal("2.00")], pa.decimal128(10, 2)),
    ("float",): pa.array([0.5, float("nan"), None]),
    ("flag",): pa.array([True, False, None]),
    ("at",): pa.array([0, 1_000_000, None], pa.timestamp("us", "UTC")),
    ("local",): pa.array([0, 1_000_000, None], pa.timestamp("us")),
    ("day",): pa.array([0, 1, None], pa.date32()),
    ("user", "a.b"): pa.array([7, 8, None]),
    ("lacking",): pa.nulls(3),
}


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("text = 'x'", [True, False, None]),
        ("text = 'it''s'", [False, True, None]),
        ("text != 'x'", [False, True, None]),
        ("text <> 'x'", [False, True, None]),
        ("small <= 300", [True, True, None]),
        ("small > -1", [True, True, None]),
        ("small in (2, 3)", [False, True, None]),
        ("exact >= 1.5", [True, None, True]),
        ("exact = 2", [False, None, True]),
        ("float < 1e0", [True, False, None]),
        ("flag = TRUE", [True, False, None]),
        ("at = '1970-01-01T01:00:00+01:00'", [True, False, None]),
        ("local > '1970-01-01T00:00:00'", [False, True, None]),
        ("day = '1970-01-02'", [False, True, None]),
        ("user.`a.b` = 8", [False, True, None]),
        ("text is null", [False, False, True]),
        ("text IS NOT NULL", [True, True, False]),
        ("lacking = 1", [None, None, None]),
        ("lacking is null", [True, True, True]),
        ("text = 'x' or small = 2 and text is null", [True, False, None]),
        ("(text = 'x' or small = 2) and text is not null", [True, True, False]),
    ],
)
def test_a_condition_holds_as_in_sql(where: str, holds: list[bool | None]) -> None:
    assert matches(parse(where), lambda path: COLUMNS[path]).to_pylist() == holds


@pytest.mark.parametrize(
    "where",
    [
        "text = 7",
        "small = 'x'",
        "small = 1.5",
        "flag = 1",
        "exact = 1.555",
        "at = '1970-01-01T00:00:00'",
        "local = '1970-01-01T00:00:00Z'",
        "day = 'tomorrow'",
        "small = 99999999999999999999",
    ],
)
def test_a_value_that_a_column_cannot_have_is_refused(where: str) -> None:
    with pytest.raises(PredicateInvalid, match="cannot be compared with"):
        matches(parse(where), lambda path: COLUMNS[path])


@pytest.mark.parametrize(
    "where",
    ["", "id", "id =", "id = x", "= 1", "id in ()", "id is 1", "id = 1 and", "id = 'x", "(id = 1"],
)
def test_what_is_no_condition_is_refused(where: str) -> None:
    with pytest.raises(PredicateInvalid):
        parse(where)


@pytest.mark.parametrize(
    ("where", "may"),
    [
        ("n < 5", False),
        ("n < 6", True),
        ("n <= 4", False),
        ("n <= 5", True),
        ("n > 7", False),
        ("n > 6", True),
        ("n >= 8", False),
        ("n >= 7", True),
        ("n = 4", False),
        ("n in (4, 8)", False),
        ("n in (4, 6)", True),
        ("n != 5", True),
        ("n = 6 and n > 7", False),
        ("n = 9 or n is null", True),
        ("unknown = 9", True),
    ],
)
def test_rows_outside_of_the_bounds_are_skipped(where: str, may: bool) -> None:
    def bounds(path: tuple[str, ...]) -> ColumnBounds | None:
        return ColumnBounds(pa.int64(), 5, 7) if path == ("n",) else None

    assert may_match(parse(where), bounds) is may


NAMES = st.sampled_from([("n",), ("t",)])
PREDICATES: st.SearchStrategy[Predicate] = st.recursive(
    st.one_of(
        st.builds(Comparison, st.just(("n",)), st.sampled_from(Operator), st.integers(-3, 3)),
        st.builds(
            Comparison, st.just(("t",)), st.sampled_from(Operator), st.text("ab", max_size=2)
        ),
        st.builds(IsNull, NAMES, st.booleans()),
    ),
    lambda inner: st.builds(
        Combined, st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3).map(tuple)
    ),
    max_leaves=5,
)


@given(
    PREDICATES,
    st.lists(
        st.tuples(st.none() | st.integers(-3, 3), st.none() | st.text("ab", max_size=2)),
        min_size=1,
        max_size=5,
    ),
)
def test_bounds_never_hide_a_row(predicate: Predicate, rows: list[tuple[int | None, str | None]]):
    columns: dict[tuple[str, ...], Any] = {
        ("n",): pa.array([number for number, _text in rows], pa.int64()),
        ("t",): pa.array([text for _number, text in rows], pa.string()),
    }

    def bounds(path: tuple[str, ...]) -> ColumnBounds | None:
        there = columns[path].drop_null().to_pylist()
        return ColumnBounds(columns[path].type, min(there), max(there)) if there else None

    if any(matches(predicate, lambda path: columns[path]).to_pylist()):
        assert may_match(predicate, bounds)


def test_a_condition_of_too_many_parentheses_is_refused() -> None:
    assert parse("(" * 50 + "id = 1" + ")" * 50) == parse("id = 1")
    with pytest.raises(PredicateInvalid, match="at most 50 nested parentheses"):
        parse("(" * 3000 + "id = 1" + ")" * 3000)
