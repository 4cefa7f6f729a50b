"""A field is required in tables and files only where everything that it stands in is."""

from typing import Any

from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType

ID = Field(name="id", type=FieldType.INT64, nullable=False)


def struct(name: str, *fields: Field, nullable: bool = True) -> Field:
    return Field(name=name, type=FieldType.STRUCT, fields=fields, nullable=nullable)


def items(name: str, element: Field) -> Field:
    return Field(name=name, type=FieldType.LIST, items=element)


def stored(field: Field) -> str:
    return str(Schema((field,)).stored().arrow().field(field.name))


def test_a_required_field_of_a_struct_that_may_be_null_may_be_null():
    """W25: deltalake reads what stands in it for its value, also where the struct is null."""
    assert stored(struct("s", ID)) == "pyarrow.Field<s: struct<id: int64>>"
    assert stored(struct("s", struct("t", ID, nullable=False))) == (
        "pyarrow.Field<s: struct<t: struct<id: int64>>>"
    )


def test_a_required_field_of_a_required_struct_is_required():
    found = stored(struct("s", struct("t", ID, nullable=False), ID, nullable=False))
    assert found == (
        "pyarrow.Field<s: struct<t: struct<id: int64 not null> not null, id: int64 not null>"
        " not null>"
    )


def test_the_elements_of_a_list_that_may_be_null_stay_required():
    required = Field(name="element", type=FieldType.INT8, nullable=False)
    assert stored(items("l", required)) == "pyarrow.Field<l: list<element: int8 not null>>"
    assert stored(items("l", struct("element", ID, nullable=False))) == (
        "pyarrow.Field<l: list<element: struct<id: int64 not null> not null>>"
    )
    assert stored(items("l", struct("element", ID))) == (
        "pyarrow.Field<l: list<element: struct<id: int64>>>"
    )


def test_the_log_says_what_the_files_say():
    for nullable in (True, False):
        table: Any = Schema((struct("s", ID, nullable=nullable),)).delta()
        (column,) = table["fields"]
        assert column["type"]["fields"][0]["nullable"] is nullable
