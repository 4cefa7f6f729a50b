"""Nested columns and odd paths: every reader reads the table, or the file was refused before."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from lakebed.types import Evolution
from penguin.events.backlog import FilesLeftOut
from tests.support.foreign import Directory

A = pa.struct([("a", pa.int64())])
B = pa.struct([("b", pa.int64())])
BOTH = pa.struct([("a", pa.int64()), ("b", pa.int64())])
TURNED = pa.struct([("b", pa.int64()), ("a", pa.int64())])
SMALL = pa.struct([("a", pa.int32())])

WRAPS: dict[str, tuple[Callable[[Any], pa.DataType], Callable[[Any], Any]]] = {
    "struct": (lambda kind: kind, lambda value: value),
    "list": (pa.list_, lambda value: [value]),
    "map": (lambda kind: pa.map_(pa.string(), kind), lambda value: {"k": value}),
    "map of lists": (
        lambda kind: pa.map_(pa.string(), pa.list_(kind)),
        lambda value: {"k": [value]},
    ),
}


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


def commit(table, number, kind, value, mode):
    """Let another program write one row, and penguin look at it; say why it is not committed."""
    columns = {"id": pa.array([number]), "x": pa.array([value], kind)}
    table.file(folder="", data=pa.table(columns))
    table.hands.at += 1
    return [one.reason for one in table.penguin(evolution=mode).drain().told(FilesLeftOut)]


def plain(value):
    """Turn the pairs of a map into a dict."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: plain(inner) for key, inner in value}
    return [plain(one) for one in value] if isinstance(value, list) else value


def read_by_all(table):
    """Return the rows, by their ids, as deltalake, pyarrow and polars read them alike."""
    delta = table.delta()
    found = [
        pa.table(delta.scan().read_all()).to_pylist(),
        delta.to_pyarrow_dataset().to_table(use_threads=False).to_pylist(),
        pl.scan_delta(str(table.root)).collect().to_dicts(),
    ]
    first, *rest = ({row["id"]: plain(row["x"]) for row in rows} for rows in found)
    assert rest == [first, first]
    return first


@pytest.mark.parametrize("wrap", ["struct", "list"])
@pytest.mark.parametrize(
    ("mode", "kinds", "rows"),
    [
        (Evolution.MERGE, (A, BOTH), ({"a": 1, "b": None}, {"a": 2, "b": 3})),
        (Evolution.MERGE, (A, B), ({"a": 1, "b": None}, {"a": None, "b": 3})),
        (Evolution.OVERWRITE, (A, B), ({"a": 1, "b": None}, {"a": None, "b": 3})),
        (Evolution.OVERWRITE, (BOTH, A), ({"a": 1, "b": None}, {"a": 2, "b": None})),
        (Evolution.OVERWRITE, (A, BOTH, B), ({"a": 1, "b": None}, {"a": 2, "b": 3})),
    ],
)
def test_a_struct_that_changes_is_read_by_every_reader(table, wrap, mode, kinds, rows):
    """HOLES W25: of each file at least one field is in the table's struct."""
    made, put = WRAPS[wrap]
    values = {"a": 1}, {"a": 2, "b": 3}, {"b": 4}
    for number, kind in enumerate(kinds):
        inside = {name: values[number].get(name) for name in (one.name for one in kind)}
        assert commit(table, number, made(kind), put(inside), mode) == []
    found = read_by_all(table)
    assert [found[number] for number in (0, 1)] == [put(row) for row in rows]
    assert len(found) == len(kinds)


@pytest.mark.parametrize("wrap", ["map", "map of lists"])
@pytest.mark.parametrize("mode", list(Evolution))
@pytest.mark.parametrize(("first", "second"), [(A, BOTH), (BOTH, A), (A, B)])
def test_other_fields_of_a_struct_in_a_map_are_refused_before_the_commit(
    table, wrap, mode, first, second
):
    """HOLES W25: committed, deltalake could not scan it, or gave values of one field as another."""
    made, put = WRAPS[wrap]
    commit(table, 0, made(first), put(dict.fromkeys((one.name for one in first), 1)), mode)
    after = put(dict.fromkeys((one.name for one in second), 2))
    (reason,) = commit(table, 1, made(second), after, mode)
    assert "inside a map" in reason
    assert set(read_by_all(table)) == {0}


@pytest.mark.parametrize("wrap", ["map", "map of lists"])
@pytest.mark.parametrize(("first", "second"), [(BOTH, TURNED), (A, SMALL)])
def test_the_same_fields_of_a_struct_in_a_map_go_in(table, wrap, first, second):
    made, put = WRAPS[wrap]
    for number, kind in enumerate((first, second)):
        value = {one.name: 10 * number + place for place, one in enumerate(sorted(kind, key=str))}
        assert commit(table, number, made(kind), put(value), Evolution.MERGE) == []
    wanted = {one.name: 10 + place for place, one in enumerate(sorted(first, key=str))}
    assert read_by_all(table)[1] == put(wanted)


@pytest.mark.parametrize(
    ("path", "sign"),
    [
        ("a:b=1/{name}", "colon"),
        ("p=12:30/{name}", "colon"),
        ("a:b.parquet", "colon"),
        ("p=1/a:b.parquet", "colon"),
        ("p=*/{name}", "star"),
    ],
)
def test_a_path_that_readers_take_for_something_else_is_refused_before_the_commit(
    table, path, sign
):
    """HOLES W25: one such path in the log makes the whole table unreadable to Spark or others."""
    bad = table.file(9, path=path.format(name=Path(table.path("")).name))
    good = table.file(1, folder="p=1" if "=" in path else "")
    (left,) = table.penguin(file_pattern="*.parquet").drain().told(FilesLeftOut)
    assert left.paths == (bad,)
    assert left.code == "file_unfit"
    assert sign in left.reason
    assert table.ids() == [1], good


@pytest.mark.parametrize("folder", ["p=12%3A30", "q=1/p=12:30"])
def test_a_colon_that_harms_no_reader_is_taken(table, folder):
    """HOLES W25: escaped as Spark and blizzard do, or below the first folder."""
    table.file(1, folder=folder)
    table.penguin().drain()
    (row,) = table.rows()
    assert row["p"] == "12:30"
    assert pl.scan_delta(str(table.root)).collect()["p"].to_list() == ["12:30"]
