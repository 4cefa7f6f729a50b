"""Partition values and folder names, by the Delta rules."""

import pytest

from lakebed.columns.schema import Field, Schema
from lakebed.layout import NULL_FOLDER, escape, unescape
from lakebed.partition import Template, check_value, table_schema
from lakebed.types import FieldType


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("a/b", "a%2Fb"),
        ("a b", "a b"),
        ("50%", "50%25"),
        ("a=b", "a%3Db"),
        ("a:b", "a%3Ab"),
        ("línea", "línea"),
        ("a\nb", "a%0Ab"),
        ("\x7f", "%7F"),
        ("", NULL_FOLDER),
        (None, NULL_FOLDER),
    ],
)
def test_a_value_is_one_folder_name_as_hive_and_spark_write_it(value, name):
    """W09."""
    assert escape(value) == name


def test_an_empty_folder_value_is_null():
    """W09."""
    assert unescape("") is None
    assert unescape(NULL_FOLDER) is None


def test_a_folder_that_is_no_utf8_is_refused_not_guessed():
    """W09."""
    with pytest.raises(ValueError, match="utf-8"):
        unescape("%FF")


def test_a_key_that_stands_in_no_folder_is_never_guessed():
    template = Template.parse("date=%Y-%m-%d/region=%s")
    with pytest.raises(KeyError, match="region"):
        template.values("date=2024-01-01/a.ndjson")


def test_the_file_name_itself_gives_no_partition_value():
    with pytest.raises(KeyError, match="date"):
        Template.parse("date=%Y-%m-%d").values("date=2024-01-01")


def test_folders_that_are_no_keys_of_ours_are_skipped():
    template = Template.parse("date=%Y-%m-%d")
    assert template.values("raw/v=2/date=2024-01-01/h=3/a.ndjson") == {"date": "2024-01-01"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("date", "part 1 of it is not of the form key=pattern"),
        ("=%Y", "is not of the form"),
        ("date=", "is not of the form"),
        ("", "is not of the form"),
        ("a=%s//b=%s", "part 2 of it is not of the form"),
        ("a=%s/a=%d", "part 2 of it repeats the key of an earlier part"),
    ],
)
def test_a_wrong_template_says_what_is_wrong_with_it(text, fault):
    with pytest.raises(ValueError, match=fault):
        Template.parse(text)


def test_a_declared_partition_column_wins_over_the_template():
    declared = Schema((Field(name="hour", type=FieldType.INT32),))
    columns = table_schema(declared, Template.parse("date=%Y-%m-%d/hour=%H")).fields
    assert [(column.name, column.type) for column in columns] == [
        ("hour", FieldType.INT32),
        ("date", FieldType.DATE),
    ]
    assert table_schema(declared, None) is declared


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (FieldType.DATE, "2024-02-29"),
        (FieldType.INT32, "-2147483648"),
        (FieldType.INT32, "2147483647"),
        (FieldType.INT64, "9223372036854775807"),
        (FieldType.BOOLEAN, "true"),
        (FieldType.STRING, "anything / at % all\n"),
        (FieldType.DATE, None),
    ],
)
def test_a_value_that_its_column_can_hold_is_taken(kind, value):
    check_value(Field(name="k", type=kind), value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (FieldType.DATE, "2024-02-30"),
        (FieldType.DATE, "20240101"),
        (FieldType.DATE, "2024-W01-1"),
        (FieldType.DATE, "2024-1-1"),
        (FieldType.DATE, "today"),
        (FieldType.INT32, "2147483648"),
        (FieldType.INT32, "007"),
        (FieldType.INT32, "1_000"),
        (FieldType.INT32, " 1"),
        (FieldType.INT32, "1.0"),
        (FieldType.INT64, "9223372036854775808"),
        (FieldType.INT64, "\u0661"),
        (FieldType.BOOLEAN, "True"),
        (FieldType.FLOAT64, "1.5"),
        (FieldType.TIMESTAMP, "2024-01-01T00:00:00Z"),
        (FieldType.BINARY, "x"),
    ],
)
def test_a_value_that_would_make_the_table_unreadable_is_refused(kind, value):
    """W10."""
    with pytest.raises(ValueError, match=r"."):
        check_value(Field(name="k", type=kind), value)


def test_a_required_partition_column_takes_no_null():
    with pytest.raises(ValueError, match="k is required"):
        check_value(Field(name="k", type=FieldType.STRING, nullable=False), None)
