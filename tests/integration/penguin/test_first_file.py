"""The file that would make a table, and cannot: it is named, and blocks no other."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.columns.schema import Schema
from penguin.config import load
from penguin.delta.table import refused_properties
from penguin.events.backlog import FilesLeftOut
from tests.integration.penguin.test_cli import penguin as run_penguin
from tests.support.foreign import Directory
from tests.support.tables import Penguin, TableDirectory, rows_of

ROW = pa.table({"id": [1]})
NO_COLUMNS = ROW.select([])


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


@pytest.mark.parametrize(
    ("folder", "data", "next_folder", "words"),
    [
        ("", NO_COLUMNS, "", "it has no columns"),
        ("p=1", NO_COLUMNS, "p=1", "it has no columns"),
        ("A=1/a=2", ROW, "A=1", "columns A and a differ only in case"),
        ("ID=1", ROW, "p=1", "columns id and ID differ only in case"),
        ("a=1/a=2", ROW, "a=1", "its folders name column a twice"),
        ("=1", ROW, "p=1", "its folder =1 names no column"),
        ("a b=1", ROW, "p=1", "partition column a b: a column's name must not contain [' ']"),
        ("a%3Ab=1", ROW, "p=1", "partition column a:b: a column's name must not contain [':']"),
        ("p=%ff", ROW, "p=1", "its folder p=%ff is not UTF-8"),
    ],
)
def test_a_first_file_that_can_make_no_table_blocks_no_other(
    table, folder, data, next_folder, words
):
    """HOLES W37: the library refused the table at every poll, and nothing went in ever after."""
    bad = table.file(folder=folder, data=data)
    first = table.penguin().drain()
    assert [(one.paths, one.reason) for one in first.told(FilesLeftOut)] == [((bad,), words)]
    table.file(2, folder=next_folder)
    table.penguin().drain()
    assert table.ids() == [2]


def test_a_file_without_columns_is_left_out_of_a_table_too(table):
    table.file(1)
    table.penguin().drain()
    bad = table.file(data=NO_COLUMNS)
    (left,) = table.penguin().drain().told(FilesLeftOut)
    assert left.paths == (bad,)
    assert table.ids() == [1]


def test_an_entry_that_can_make_no_table_stops_its_pipeline_by_name(tmp_path):
    """HOLES W37"""
    directory = TableDirectory(tmp_path / "table")
    directory.journal(schema=Schema(()), partitions=()).batch([{"id": 7}])
    found = Penguin(directory).drain()
    assert found.codes == {"events": "schema_refused"}
    assert "it has no columns" in found.reason()
    directory.journal("other").batch(rows_of(1))
    found.drain()
    assert directory.ids() == [1]


def test_an_entry_that_knows_no_columns_yet_stops_nothing(tmp_path):
    """HOLES W37: all files of its batch failed, and columns are found in later ones."""
    directory = TableDirectory(tmp_path / "table")
    directory.journal(schema=Schema(()), partitions=()).batch(kind="batch")
    found = Penguin(directory).drain()
    assert found.codes == {}
    directory.journal("other").batch(rows_of(1))
    found.drain()
    assert directory.ids() == [1]


@pytest.mark.parametrize("column", ["_x", ".x"])
def test_a_partition_column_may_begin_with_an_underscore(table, column):
    """HOLES W37: the folder of a partition is no hidden one, whatever its column is called."""
    visitor = table.penguin()
    for number in range(3):
        path = table.file(number, folder=f"{column}={number % 2}")
        if number == 2:
            table.meta(path)
        table.hands.at += 1
        visitor.drain()
    assert table.ids() == [0, 1, 2]
    assert {row[column] for row in table.rows()} == {"0", "1"}
    table.file(9, folder=column)
    table.file(9, folder=f"{column}=1/_temporary")
    table.penguin().drain()
    assert table.ids() == [0, 1, 2]


def test_table_properties_that_no_table_can_be_made_with_are_exit_2_at_load(tmp_path, table):
    """HOLES W37: each attempt to create the table failed, without an end."""
    file = tmp_path / "penguin.yaml"
    file.write_text(f"""\
tables:
  events:
    table_uri: {table.root}
    table_properties:
      delta.logRetentionDuration: interval 7 days
      delta.enableRowTracking: 'true'
      my.own: x
""")
    table.file(1)
    done = run_penguin("-c", file, "--once")
    assert done.exit_code == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert "tables.events.table_properties.delta.enableRowTracking: a table cannot" in lines[0]
    assert "tables.events.table_properties.my.own: a table cannot" in lines[1]
    assert not (table.root / "_delta_log").exists()


def test_properties_that_make_a_table_which_penguin_refuses_are_refused_too():
    """HOLES W37: deltalake makes such a table, and penguin could not write it."""
    found = refused_properties({"delta.columnMapping.mode": "name", "delta.appendOnly": "true"})
    assert list(found) == ["delta.columnMapping.mode"]
    assert refused_properties({"delta.appendOnly": "true", "delta.checkpointInterval": "7"}) == {}


def test_no_property_means_no_question(tmp_path, table):
    file = tmp_path / "penguin.yaml"
    file.write_text(f"tables: {{events: {{table_uri: {table.root}}}}}\n")

    def refuse(_properties):
        raise AssertionError("there is nothing to ask")

    assert load.load([file], [], {}, refuse).tables
