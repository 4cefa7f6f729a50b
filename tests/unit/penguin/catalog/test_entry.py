"""What a catalog should say of a table."""

import pytest

from penguin.catalog.catalog import (
    PARAMETERS,
    CatalogColumn,
    CatalogConflict,
    TableEntry,
    differs,
    hive_type,
)

STRUCT = {
    "type": "struct",
    "fields": [
        {"name": "Id", "type": "integer"},
        {"name": "tags", "type": {"type": "array", "elementType": "short"}},
    ],
}


@pytest.mark.parametrize(
    ("told", "written"),
    [
        ("byte", "tinyint"),
        ("long", "bigint"),
        ("decimal(18, 2)", "decimal(18,2)"),
        ("timestamp_ntz", "timestamp"),
        ({"type": "map", "keyType": "string", "valueType": "double"}, "map<string,double>"),
        (STRUCT, "struct<id:int,tags:array<smallint>>"),
        ({"type": "struct", "fields": [{"name": "a b", "type": "long"}]}, "string"),
        ("variant", "string"),
    ],
)
def test_types_are_written_as_catalogs_write_them(told: object, written: str) -> None:
    assert hive_type(told) == written


def entry(location: str, *columns: str, **parameters: str) -> TableEntry:
    return TableEntry(
        location=location,
        columns=tuple(CatalogColumn(name, "bigint") for name in columns),
        parameters={**PARAMETERS, **parameters},
    )


def test_two_spellings_of_a_place_are_one() -> None:
    want = entry("s3://lake/events", "id")
    assert not differs(entry("s3a://lake/events/", "id", pii="no"), want, name="lake.events")
    assert differs(entry("s3://lake/events", "id", "more"), want, name="lake.events")
    with pytest.raises(CatalogConflict):
        differs(entry("s3://lake/other", "id"), want, name="lake.events")
    local = entry("/tmp/table", "id")
    assert not differs(entry("file:/tmp/table", "id"), local, name="lake.events")
