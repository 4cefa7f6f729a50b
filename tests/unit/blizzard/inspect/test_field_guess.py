"""The columns that records need: types, times, nulls, names."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from blizzard.config.columns import schema_of
from blizzard.inspect.guess.fields import columns_in, fields_of
from blizzard.inspect.written import field_lines
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.inference import parse
from lakebed.columns.schema import Schema
from lakebed.config.checks import check_fields
from lakebed.config.schema import DeclaredSchema
from lakebed.types import OnMismatch, UnknownFields
from tests.support.growth import AT_MOST, growth

MS = 1_700_000_000_000


def parsed(*records: Any) -> list[Any]:
    return [parse(json.dumps(each)) for each in records]


def text_of(*records: Any) -> str:
    return "\n".join(field_lines(columns_in(parsed(*records)), 0))


def line_of(name: str, *values: Any) -> str:
    """Return the lines for one field with these values."""
    return text_of(*({name: value} for value in values))


@pytest.mark.parametrize(
    ("name", "values", "line"),
    [
        ("id", [1, 2], "- {name: id, type: int64}"),
        ("x", [1, 1.5], "- {name: x, type: float64}"),
        ("ok", [True], "- {name: ok, type: boolean}"),
        ("at", ["2024-01-01T00:00:00Z"], "- {name: at, type: timestamp}"),
        ("at", ["2024-01-01T00:00:00.000001+0000"], "- {name: at, type: timestamp}"),
        ("flow", [2**63 - 1, 2**52], "- {name: flow, type: int64}"),
        ("day", ["2024-01-01"], "- {name: day, type: date}"),
        ("big", [2**64], '- {name: big, type: "decimal(38,0)"}'),
        ("tags", [["a"], None], "- {name: tags, type: list, items: string}"),
        ("tags", [[], None], "# tags: only empty arrays were seen"),
        ("none", [None], "# none: only null was seen"),
        ("o", [{}], "# o: only empty objects were seen"),
        ("on", [None], '# "on": only null was seen'),
    ],
)
def test_a_column_has_the_type_of_its_values(name: str, values: list[Any], line: str) -> None:
    assert line_of(name, *values) == line


@pytest.mark.parametrize(
    ("name", "value", "form"),
    [
        ("ts", MS // 1000, "epoch_s"),
        ("created", 1_700_000_000.25, "epoch_s"),
        ("createdAt", MS, "epoch_ms"),
        ("event_time", MS * 1000, "epoch_us"),
        ("timeUnixNano", MS * 1_000_000, "epoch_ns"),
    ],
)
def test_numbers_are_times_by_their_name_and_range(name: str, value: Any, form: str) -> None:
    assert f"type: timestamp, format: {form}}}" in line_of(name, value, value)
    assert "timestamp" not in line_of("count", value)
    assert "timestamp" not in line_of(name, value, 7)
    assert f"format: {form}, coerce: true}}" in line_of(name, str(value))


def test_nanoseconds_that_a_timestamp_cannot_hold_stay_numbers() -> None:
    line = line_of("ts", MS * 1_000_000 + 1)
    assert "- {name: ts, type: int64}" in line
    assert "truncate: true" in line
    assert "type: string}" in line_of("ts", str(MS * 1_000_000 + 1))
    assert "truncate: true" in line_of("at", "2024-01-01T00:00:00.123456789Z")


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("10/Oct/2000:13:55:36 -0700", 'timestamp, format: "%d/%b/%Y:%H:%M:%S %z"}'),
        ("Wed Oct 10 20:19:24 +0000 2018", 'timestamp, format: "%a %b %d %H:%M:%S %z %Y"}'),
        ("Mon, 02 Jan 2006 15:04:05 -0700", 'timestamp, format: "%a, %d %b %Y %H:%M:%S %z"}'),
        ("Mon, 02 Jan 2006 15:04:05 GMT", 'timestamp, format: "%a, %d %b %Y %H:%M:%S %Z"}'),
        ("2024/01/31 15:04:05", 'timestamp_ntz, format: "%Y/%m/%d %H:%M:%S"}'),
        ("2024-01-31 15:04:05", "timestamp_ntz}  # times without a zone"),
    ],
)
def test_times_of_other_patterns_are_recognised(value: str, line: str) -> None:
    assert line_of("x", value) == f"- {{name: x, type: {line}"
    assert line_of("x", value, "y") == "- {name: x, type: string}"
    assert 'null_values: ["-"]' in line_of("x", value, "-")


def test_texts_that_are_numbers_stay_texts_and_say_how_to_be_numbers() -> None:
    for values in (["200", "404"], ["0.5", "1", "-"], ["-1e3"]):
        line = line_of("status", *values)
        assert line.endswith("- {name: status, type: string}")
        assert "numbers as text" in line
    assert "type: boolean, coerce: true" in line_of("cached", "true", "false")
    assert line_of("x", "007") == line_of("x", "1", "a") == "- {name: x, type: string}"


def test_strings_that_mean_null_are_said() -> None:
    typed = '- {name: day, type: date, null_values: ["-", ""]}  # "-" and "" for null'
    assert line_of("day", "2024-01-01", "-", "") == typed
    assert line_of("agent", "curl", "-") == "- {name: agent, type: string}"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1, "2"], "values of several types; type: string, coerce: true keeps them as text"),
        ([1, True, {"x": 1}], "values of several types"),
        ([2**53 + 1, 0.5], "no other type holds all of its values"),
    ],
)
def test_a_column_of_json_says_why(values: list[Any], why: str) -> None:
    (column,) = columns_in(parsed(*({"x": value} for value in values)))
    assert (column.field and column.field.shown, column.remarks) == ("json", (why,))


def test_names_that_no_column_can_have_are_read_from_where_they_are() -> None:
    assert "- {name: a_b, type: int64, from: [a b]}" in text_of({"a b": 1}).replace('"', "")
    text = text_of({"Name": 1, "name": 2, "name_2": 3, "_rescued": 4, "": 5, "x.y": 6})
    fields = yaml.safe_load(text.replace("- ", "- ", 1))
    assert [one["name"] for one in fields] == [
        "Name", "name_3", "name_2", "rescued", "x.y",
    ]  # fmt: skip
    assert [one.get("from") for one in fields] == [
        None, ["name"], None, ["_rescued"], None,
    ]  # fmt: skip


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["-", "", "7", "2024-01-01", "10/Oct/2000:13:55:36 -0700"])
)  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)


@settings(max_examples=50)
@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=5), max_size=4))
def test_what_is_written_is_read_back_as_it_was_meant(records: list[dict[str, Any]]) -> None:
    columns = columns_in(parsed(*records))
    text = "fields:\n" + "\n".join(field_lines(columns, 2))
    read = (yaml.safe_load(text.replace("$${", "${")) or {})["fields"] or []
    declared = DeclaredSchema.model_validate({"fields": read})
    assert not list(check_fields((), declared.fields_))
    assert schema_of(declared) == Schema(fields_of(columns))


def test_a_name_that_cannot_be_written_is_left_to_the_rescued_column() -> None:
    (column,) = columns_in([parse('{"\\ud800": 1}')])
    assert column.field is None
    (line,) = field_lines([column], 0)
    assert line.encode().startswith(b"#")


@settings(max_examples=50)
@given(st.lists(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5), min_size=1, max_size=4))
def test_every_value_that_was_seen_fits_its_column(records: list[dict[str, Any]]) -> None:
    """HOLES W34: the same rules decide what is written and what is read."""
    schema = Schema(fields_of(columns_in(parsed(*records))))
    if schema.fields:
        lines = b"\n".join(json.dumps(record).encode() for record in records)
        decoder = Decoder(schema, unknown=UnknownFields.RESCUE, on_mismatch=OnMismatch.FAIL)
        assert sum(each.batch.num_rows for each in decoder.decode([lines])) == len(records)


def test_no_value_stands_in_what_is_written() -> None:
    """HOLES W34, W28: names and types are written, never a value."""
    values = {"a": "hunter2", "b": ["hunter2", 1], "c": {"d": "hunter2"}}
    text = text_of(*({**values, "keys": {f"hunter2-{n}": n}} for n in range(100)))
    assert "hunter2" not in text
    assert "- {name: keys, type: map, values: int64}  # the names of its members are data" in text


@pytest.mark.parametrize(
    "name_of",
    [
        lambda n: f"k{n}",
        # No column can have such a name: all of them become ___, and get a number.
        lambda n: "".join(chr(1 + n // 31**place % 31) for place in range(3)),
    ],
)
def test_many_names_cost_what_each_of_them_costs(name_of: Callable[[int], str]) -> None:
    def guessing(keys: int) -> Callable[[], object]:
        records = parsed({name_of(n): n for n in range(keys)})
        return lambda: columns_in(records)

    assert growth(guessing, 500) < AT_MOST
