"""The judge of the hard values: what counts as kept, wrong and lost."""

from datetime import UTC, datetime
from typing import Any

import pytest

from bench.hard import KINDS, Found, Verdict, judged, lines_of, ordinary, values_of

AT = datetime(2024, 1, 1, 12, tzinfo=UTC)


def row(number: int, **other: Any) -> dict[str, Any]:
    usual = {
        "id": number,
        "user": f"user-{number}",
        "action": "view",
        "amount": number + 0.25,
        "member": True,
        "at": AT,
    }
    return usual | other


def verdict(line: str, *rows: dict[str, Any], aside: str | None = None) -> tuple[int, int]:
    found = Found(rows=rows, aside=frozenset([aside] if aside else []))
    one = judged([line], found)
    assert one.values == len(values_of(line))
    return one.wrong, one.lost


def test_a_row_that_has_everything_is_right():
    assert verdict(ordinary(7), row(7)) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "other", "expected"),
    [
        ("1.5 in an integer", {"id": 10}, (1, 0)),
        ("1.5 in an integer", {"id": None}, (0, 1)),
        ("1.5 in an integer", {"id": None, "_rescued": '{"id": 10.5}'}, (0, 0)),
        ("1.5 in an integer", {"id": None, "_rescued": '{"id": 10.50001}'}, (0, 1)),
        ("2^63 in an integer", {"id": -(2**63) + 10}, (1, 0)),
        ("1e400 in a float", {"amount": float("inf")}, (1, 0)),
        ("a number of 30 digits in a float", {"amount": 0.1}, (0, 0)),
        ("a number of 30 digits in a float", {"amount": 0.1000001}, (1, 0)),
        ("a field without a column", {}, (0, 1)),
        ("a field without a column", {"_rescued": '{"coupon": "half off"}'}, (0, 0)),
        ("a field twice", {"user": "somebody else"}, (1, 0)),
        ("a lone surrogate", {"user": "\ufffdx"}, (1, 0)),
        ("NUL in a string", {"user": "a"}, (1, 0)),
        ("NUL in a string", {"user": "a\0b"}, (0, 0)),
        ("a time with an offset", {"at": datetime(2024, 1, 1, 6, 30, 0, 500_000, UTC)}, (0, 0)),
        ("a time with an offset", {"at": datetime(2024, 1, 1, 12, 0, 0, 500_000)}, (1, 0)),  # noqa: DTZ001 - what a contestant wrote
    ],
)
def test_a_value_is_kept_or_another_or_none(kind: str, other: Any, expected: tuple[int, int]):
    assert verdict(KINDS[kind](10), row(10, **other)) == expected


def test_a_line_that_is_set_aside_loses_nothing_and_one_that_is_left_out_all():
    cut = KINDS["a line cut short"](10)
    assert verdict(cut, aside=cut) == (0, 0)
    assert verdict(cut) == (0, 1)
    assert verdict(ordinary(10)) == (0, 6)


def test_a_row_of_a_bad_line_takes_no_other_from_its_line():
    """Whoever writes an empty row for a bad line loses that line, and no other."""
    lines = [KINDS["a line cut short"](10), ordinary(11)]
    empty = dict.fromkeys(row(10))
    assert judged(lines, Found(rows=[empty, row(11)])) == Verdict(7, 0, 1)


def test_who_fails_loses_the_whole_file():
    lines = lines_of("nothing hard")
    assert judged(lines, None).share == 1.0
    assert judged(lines, Found(rows=[row(n) for n in range(1, len(lines) + 1)])).share == 0.0
