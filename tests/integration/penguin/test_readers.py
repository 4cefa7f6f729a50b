"""Every reader finds every row under every filter, held against the rows themselves."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import deltalake
import polars as pl
import pyarrow.dataset as ds
import pytest

from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType
from tests.support.tables import Penguin, Row, TableDirectory

SCHEMA = Schema(
    (
        Field(name="id", type=FieldType.INT64, nullable=False),
        Field(name="small", type=FieldType.INT32),
        Field(name="text", type=FieldType.STRING),
        Field(name="odd name, `x`", type=FieldType.STRING),
        Field(name="dotted.name", type=FieldType.INT64),
        Field(name="price", type=FieldType.FLOAT64),
        Field(name="flag", type=FieldType.BOOLEAN),
        Field(name="at", type=FieldType.TIMESTAMP),
        Field(name="day", type=FieldType.DATE),
        Field(name="part", type=FieldType.STRING),
    )
)


def at(year, microsecond):
    return datetime(year, 1, 1, 0, 0, 0, microsecond, UTC)


def row(number, **values):
    return {"id": number, "part": "p", **values}


FILES = [
    [
        row(1, small=1, text="a", price=1.5, flag=True, at=at(2026, 999_999)),
        row(
            2, small=-5, text="\U00020bb7" * 40, price=float("nan"), flag=None, day=date(2026, 1, 1)
        ),
        row(3, text="z" * 100, **{"odd name, `x`": "y", "dotted.name": 7}),
    ],
    # A file in which most columns are null in every row.
    [row(4), row(5)],
    [
        row(6, small=2**31 - 1, text="\U0001f427", price=-0.0, flag=False, day=date(1969, 12, 31)),
        row(7, text="", at=at(1960, 1), **{"dotted.name": -7}),
        row(8, text="a" * 32 + "b", price=float("inf"), **{"odd name, `x`": "x"}),
    ],
    [row(9, part=None, text="in no partition", small=0)],
]
ROWS = [{name: one.get(name) for name in SCHEMA.arrow().names} for file in FILES for one in file]


@pytest.fixture(scope="module", params=["log", "checkpoint", "evolved"])
def table(request, tmp_path_factory):
    made = TableDirectory(tmp_path_factory.mktemp("readers") / "table")
    journal = made.journal(schema=SCHEMA, partitions=("part",))
    if request.param == "evolved":
        # The table starts with fewer columns; the rest are added by a later entry.
        journal.schema = Schema((*SCHEMA.fields[:3], SCHEMA.fields[-1]))
        journal.batch(FILES[1])
        Penguin(made).drain()
        journal.schema = SCHEMA
        journal.batch(FILES[0], FILES[2], FILES[3])
    else:
        journal.batch(*FILES)
    interval = 1 if request.param == "checkpoint" else 100
    Penguin(made, options={"checkpoint_interval": interval}).drain()
    return made


def literal(value):
    match value:
        case datetime():
            kind = 'Timestamp(Microsecond, Some("UTC"))'
            return f"arrow_cast('{value:%Y-%m-%dT%H:%M:%S.%fZ}', '{kind}')"
        case date() | str():
            return f"'{value}'"
        case _:
            return str(value)


FILTERS = [
    (name, value)
    for name in SCHEMA.arrow().names
    for value in dict.fromkeys([None, *(one[name] for one in ROWS)])
    if value == value and value != float("inf")  # noqa: PLR0124 - NaN is unlike itself
]


def wanted(test):
    return sorted(one["id"] for one in ROWS if test(one))


@pytest.mark.parametrize(
    ("name", "value"), FILTERS, ids=[f"{n}-{str(v)[:12]!a}" for n, v in FILTERS]
)
def test_deltalake_and_polars_find_the_rows(table, name, value):
    """W13."""
    quoted = f'"{name}"'
    if value is None:
        expected = wanted(lambda one: one[name] is None)
        assert table.ids(f"{quoted} IS NULL") == expected
        condition = pl.col(name).is_null()
    else:
        expected = wanted(lambda one: one[name] == value)
        assert table.ids(f"{quoted} = {literal(value)}") == expected
        condition = pl.col(name) == value
    found = pl.scan_delta(str(table.root)).filter(condition).select("id").collect()
    assert sorted(found["id"].to_list()) == expected


@pytest.mark.parametrize("name", ["id", "small", "text", "at", "day"])
def test_ranges_find_the_rows(table, name):
    """W13."""
    for value in {one[name] for one in ROWS if one[name] is not None}:
        expected = wanted(lambda one, edge=value: one[name] is not None and one[name] >= edge)
        assert table.ids(f"{name} >= {literal(value)}") == expected
        found = pl.scan_delta(str(table.root)).filter(pl.col(name) >= value).collect()
        assert sorted(found["id"].to_list()) == expected


def test_all_rows_are_there_once(table):
    assert table.ids() == [one["id"] for one in ROWS]


GROWN = Schema(
    (
        Field(name="id", type=FieldType.INT64, nullable=False),
        Field(name="late", type=FieldType.INT64),
        Field(name="price", type=FieldType.FLOAT64),
        Field(
            name="user",
            type=FieldType.STRUCT,
            fields=(
                Field(name="age", type=FieldType.INT32),
                Field(
                    name="tags",
                    type=FieldType.LIST,
                    items=Field(name="element", type=FieldType.STRING),
                ),
            ),
        ),
    )
)


@pytest.fixture
def grown(tmp_path):
    """Make a table whose columns but one came later."""
    made = TableDirectory(tmp_path / "table")
    journal = made.journal(schema=Schema(GROWN.fields[:1]), partitions=())
    first: Row = {"id": 2, "late": 5, "price": -0.5, "user": {"age": 7, "tags": ["a"]}}
    files: list[list[Row]] = [
        [{"id": 1}], [first], [{"id": 3}, {"id": 4, "price": 2.5, "user": {"age": 9}}]
    ]  # fmt: skip
    for rows in files:
        journal.batch(rows)
        journal.schema = GROWN
        Penguin(made).drain()
    return made


def bounded(table):
    found = [
        json.loads(json.loads(line)["add"]["stats"]).get("minValues", {})
        for version in range(table.versions())
        for line in table.commit_text(version).splitlines()
        if '"add"' in line
    ]
    return [set(low) for low in found]


def test_added_columns_floats_and_structs_with_lists_have_bounds(grown):
    later = {"late", "price", "user"}
    assert bounded(grown) == [{"id"}, {"id", *later}, {"id", *(later - {"late"})}]


def test_filters_on_a_grown_table_agree_with_a_scan(grown):
    """W13."""
    table = grown
    wanted = {
        "late = 5": [2], "late IS NULL": [1, 3, 4], "late IS NOT NULL": [2], "price < 0": [2],
        "price >= 2.5": [4], "price IS NULL": [1, 3], "user['age'] > 7": [4],
        "user['age'] IS NULL": [1, 3],
    }  # fmt: skip
    assert {one: table.ids(one) for one in wanted} == wanted
    frame = pl.scan_delta(str(table.root))
    late, price = pl.col("late"), pl.col("price")
    for condition, expected in (
        (late == 5, [2]), (late.is_null(), [1, 3, 4]), (late.is_not_null(), [2]), (price < 0, [2]),
        (price >= 2.5, [4]), (price.is_null(), [1, 3]),
    ):  # fmt: skip
        assert sorted(frame.filter(condition).collect()["id"].to_list()) == expected


def test_readers_that_err_are_named_with_their_versions(grown):
    """W13: once one of them is right, the page and the default may change."""
    page = Path("docs/penguin.md").read_text()
    dataset = grown.delta().to_pyarrow_dataset()
    present = dataset.to_table(filter=ds.field("late").is_valid(), use_threads=False)
    assert sorted(present["id"].to_pylist()) == [1, 2]
    assert f"deltalake {deltalake.__version__}" in page
    with pytest.raises(pl.exceptions.InvalidOperationError):
        pl.scan_delta(str(grown.root)).filter(pl.col("user").struct.field("age") > 7).collect()
    assert f"polars {pl.__version__}" in page
