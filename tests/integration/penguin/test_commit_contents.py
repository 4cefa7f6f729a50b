"""Which entries and files a commit takes, by their schema, partition values and sizes."""

import pytest

from lakebed.columns.schema import Field, Schema
from lakebed.documents.source_record import SourceRecord
from lakebed.types import FieldType
from tests.support.tables import EVENTS, Penguin, rows_of


def with_column(name="extra", kind=FieldType.STRING, *, nullable=True):
    return Schema((*EVENTS.fields, Field(name=name, type=kind, nullable=nullable)))


def test_a_missing_file_is_held_and_everything_else_goes_on(table):
    """W21: never a dangling add."""
    journal = table.journal()
    journal.batch(rows_of(1))
    lost = journal.batch(rows_of(2), rows_of(3))
    journal.batch(rows_of(4))
    table.journal("other").batch(rows_of(5))
    (table.root / lost.files[1].filename).unlink()
    penguin = Penguin(table).drain()
    assert penguin.codes == {}
    assert table.ids() == [1, 4, 5]
    assert penguin.held == {file.filename: "file_missing" for file in lost.files}
    assert f"{lost.files[1].filename}: the file is gone" in penguin.why()
    assert table.receipt().sequence == 3


def test_a_file_of_another_size_is_not_committed(table):
    """L09."""
    entry = table.journal().batch(rows_of(1))
    with (table.root / entry.files[0].filename).open("ab") as file:
        file.write(b"x")
    penguin = Penguin(table).drain()
    assert penguin.held == {entry.files[0].filename: "file_missing"}
    assert "bytes, but was written with" in penguin.why()
    assert table.ids() == []


def test_a_new_nullable_column_is_added_and_old_rows_have_none(table):
    """W07: in a commit of its own that repeats the pipeline's transactions."""
    journal = table.journal()
    journal.batch(rows_of(1))
    Penguin(table).drain()
    journal.schema = with_column()
    journal.batch([{**rows_of(2)[0], "extra": "new"}])
    penguin = Penguin(table).drain()
    assert {row["id"]: row["extra"] for row in table.rows()} == {1: None, 2: "new"}
    assert '"version":1' in table.commit_text(2)
    assert "metaData" in table.commit_text(2)
    assert any(getattr(event, "columns_added", ()) == ("extra",) for event in penguin.events)


def test_an_entry_that_does_not_fit_names_the_field_and_leaves_others_alone(table):
    """W07."""
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    fields = (Field(name="id", type=FieldType.STRING, nullable=False), *EVENTS.fields[1:])
    other = table.journal("other", schema=Schema(fields))
    other.batch([{"id": "x", "name": "n", "date": "2026-01-01"}])
    table.journal().batch(rows_of(2))
    penguin = Penguin(table).drain()
    assert set(penguin.held.values()) == {"schema_refused"}
    assert "id: the table has type long, the files have type string" in penguin.why()
    assert table.ids() == [1, 2]


def test_an_integer_file_in_a_long_table_reads_right(table):
    """W06."""
    table.journal().batch(rows_of(2**40))
    Penguin(table).drain()
    fields = (Field(name="id", type=FieldType.INT32, nullable=False), *EVENTS.fields[1:])
    table.journal("narrow", schema=Schema(fields)).batch(rows_of(7))
    Penguin(table).drain()
    assert table.ids() == [7, 2**40]
    assert table.ids("id = 7") == [7]


def test_a_partition_value_that_is_no_date_is_refused_before_the_commit(table):
    """W10."""
    journal = table.journal()
    file = journal.file(rows_of(1, date="notadate"))
    journal.write(journal.entry(files=(file,), sources=journal_sources(1)))
    penguin = Penguin(table).drain()
    assert penguin.codes == {"events": "entry_invalid"}
    assert "notadate" in penguin.reason()
    assert not (table.root / "_delta_log").exists()


def journal_sources(rows):
    return (SourceRecord(source="in", path="a", size=1, etag=None, lines=rows, rows=rows),)


@pytest.mark.parametrize("value", ["a/b", "a b", "100%", "x=y", "ü\U0001f427", "a%2Fb", "'\"#?"])
def test_a_partition_value_with_special_characters_is_read_back(table, value):
    """W09."""
    schema = Schema(
        (
            Field(name="id", type=FieldType.INT64, nullable=False),
            Field(name="city", type=FieldType.STRING),
        )
    )
    journal = table.journal(schema=schema, partitions=("city",))
    journal.batch([{"id": 1, "city": value}], [{"id": 2, "city": None}])
    Penguin(table).drain()
    assert {row["id"]: row["city"] for row in table.rows()} == {1: value, 2: None}


def test_a_batch_without_files_is_committed_so_that_its_pipeline_goes_on(table):
    journal = table.journal()
    journal.batch()
    journal.batch(rows_of(1))
    Penguin(table).drain()
    assert table.ids() == [1]
    assert table.receipt().sequence == 2
