"""Which column the values of a place get."""

import json
from typing import Any

import pytest

from blizzard.model.seen import FEWEST_KEYS, MOST_MEMBERS, column_of
from blizzard.worker.ndjson.inference import infer, parse


def looked(*values):
    return infer(parse(json.dumps(value)) for value in values)


def shown(*values):
    """Return the type of the column that values get, as a person writes it."""
    column = column_of("c", looked(*values))
    return None if column is None else column.shown


MANY = [{f"n{number}": 1} for number in range(FEWEST_KEYS)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None, 2**62], "int64"),
        ([1, 2.5], "float64"),
        ([2**53 + 1, 2.5], "json"),
        ([2**63], "decimal(38,0)"),
        ([10**38], "json"),
        ([True, 1], "json"),
        (["2024-05-10T00:00:00Z", "2024-05-10 00:00:00+02:00"], "timestamp"),
        (["2024-05-10"], "date"),
        (["2024-05-10", "2024-05-10T00:00:00Z"], "string"),
        (["\ud800"], "json"),
        (["2024-05-10T\ud800Z"], "json"),
        (["2024-13-10", "2024-05-10T25:00:00Z"], "string"),
        ([None], None),
        ([[], {}], "json"),
        ([[]], None),
        ([{}], None),
    ],
)
def test_of_scalars_and_of_nothing(values, expected):
    assert shown(*values) == expected


def test_of_numbers_that_no_column_holds():
    column = column_of("c", infer([parse("1"), parse("1e999")]))
    assert column is not None
    assert column.shown == "json"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[1], [2.5]], "list<float64>"),
        ([[1, "a"]], "list<json>"),
        ([[[1, 2]], [[]]], "list<list<int64>>"),
        # Coordinates of a point, of a line, of a polygon.
        ([[1, 2], [[1, 2]]], "json"),
        ([[[1, 2]], [[[1, 2]]]], "json"),
        # A tuple is not of several depths.
        ([[[{"a": 1}, "created"]]], "list<list<json>>"),
    ],
)
def test_of_arrays(values, expected):
    assert shown(*values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"a": 1}, {"b": "x"}], "struct<a: int64, b: string>"),
        ([{"@id": "x", "$ref": "y", "x-y": "z"}], "struct<@id: string, $ref: string, x-y: string>"),
        (MANY, "map<string, int64>"),
        ([*MANY[1:], {"n0": 1.5}], "map<string, float64>"),
    ],
)
def test_names_are_data_if_there_are_many(values, expected):
    assert shown(*values) == expected


def test_many_names_with_values_of_several_types_are_fields():
    column = column_of("c", looked(*MANY, {"n0": "x"}, {"text": "x"}))
    assert column is not None
    assert len(column.fields) == FEWEST_KEYS + 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"app": "a", "app.kubernetes.io/name": "b"}], "map<string, string>"),
        ([{"a.b/c": ["x"]}], "map<string, list<string>>"),
        ([{"2024-05-10": 1, "2024-05-11": 2.5}], "map<string, float64>"),
        # Most of them are names of fields, and all of them can be.
        ([{"a": "x", "b": "y", "c.d": "z"}], "struct<a: string, b: string, c.d: string>"),
        # No struct can hold both, or a field of such a name.
        ([{"a": "x", "b": "y", "order_id": "z"}, {"Order_ID": "z"}], "map<string, string>"),
        ([{"a": "x", "b": "y", "c": "z", "user id": "u"}], "map<string, string>"),
        # A member that is always null needs no field.
        ([{"a": "x", "b": "y", "user id": None}], "struct<a: string, b: string>"),
        # Values of several types stay apart, and objects keep their own forms.
        ([{"a.b": 1, "c.d": "x"}], "struct<a.b: int64, c.d: string>"),
        (
            [{"a.b": {"v": 1}, "c.d": {"v": "x"}}],
            "struct<a.b: struct<v: int64>, c.d: struct<v: string>>",
        ),
    ],
)
def test_names_are_data_if_they_cannot_be_those_of_fields(values, expected):
    assert shown(*values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"80/tcp": {}, "443/tcp": {}}], "json"),
        ([{"f:status": {"f:conditions": {".": {}, 'k:{"type":"Ready"}': {".": {}}}}}], "json"),
        ([{name: {} for name in one} for one in MANY], "json"),
        ([{f"n{number}": {}} for number in range(MOST_MEMBERS + 1)], "json"),
        ([{"80/tcp": None}], None),
        ([{"checks": {}}], None),
    ],
)
def test_names_that_are_data_are_kept_where_there_is_nothing_else(values, expected):
    assert shown(*values) == expected


def test_each_level_of_a_deep_value_is_looked_at_once():
    value: dict[str, Any] = {"a.b": "x"}
    for _ in range(14):  # as deep as a column may be
        value = {"c.d": [value]}
    assert shown(value) == "struct<c.d: list<" * 14 + "map<string, string>" + ">>" * 14
