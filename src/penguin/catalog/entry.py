"""What a catalog should say of a table, and whether it does. Pure.

Engines that know Delta read a table's columns and files from its log. All that they need of a
catalog is where the table is and that it is a Delta table; the columns are for people, and for
engines that show them without opening the table.
"""

import re
from collections.abc import Mapping
from typing import Any

from penguin.model.catalog import CatalogConflict, Column, TableEntry
from penguin.model.table import TableFacts

PARAMETERS = {
    "EXTERNAL": "TRUE",
    "spark.sql.sources.provider": "delta",
    "table_type": "DELTA",
}
"""What Spark, Athena and Trino know a Delta table by."""
PLAIN = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "timestamp_ntz": "timestamp",
    **dict.fromkeys(("float", "double", "string", "boolean", "binary", "date", "timestamp")),
}
DECIMAL = re.compile(r"decimal\(\d+,\s*-?\d+\)")
NAME = re.compile(r"\w+")
UNKNOWN = "string"
"""What stands for a type that catalogs cannot write."""
SAME_STORE = re.compile(r"^(s3a|s3n)://")


def wanted(table: TableFacts, location: str) -> TableEntry:
    """Return what a catalog should say of a table."""
    return TableEntry(
        location=location,
        columns=tuple(
            Column(str(field["name"]).lower(), hive_type(field["type"]))
            for field in table.schema["fields"]
        ),
        parameters=PARAMETERS,
    )


def hive_type(told: object) -> str:
    """Return a type of Delta as Hive, Glue and Athena write it."""
    match told:
        case str() if told in PLAIN:
            return PLAIN[told] or told
        case str() if DECIMAL.fullmatch(told):
            return told.replace(" ", "")
        case {"type": "array", "elementType": element}:
            return f"array<{hive_type(element)}>"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"map<{hive_type(key)},{hive_type(value)}>"
        case {"type": "struct", "fields": list(fields)} if all(map(_is_plain, fields)):
            inner = (f"{field['name'].lower()}:{hive_type(field['type'])}" for field in fields)
            return f"struct<{','.join(inner)}>"
    return UNKNOWN


def _is_plain(field: Mapping[str, Any]) -> bool:
    return NAME.fullmatch(str(field["name"])) is not None


def differs(found: TableEntry, want: TableEntry, *, name: str) -> bool:
    """Whether a catalog must be told anew; CatalogConflict where it has another table there."""
    if _place(found.location) != _place(want.location):
        raise CatalogConflict(
            f"the catalog has a table {name} at another place; drop it there, or set "
            "catalog.table to another name",
            location=found.location,
        )
    if not _is_delta(found):
        raise CatalogConflict(
            f"the catalog has a table {name} that is no Delta table; drop it there, or set "
            "catalog.table to another name"
        )
    told = {key: found.parameters.get(key, "") for key in want.parameters}
    same = all(told[key].lower() == value.lower() for key, value in want.parameters.items())
    return not same or found.columns != want.columns


def _is_delta(found: TableEntry) -> bool:
    keys = ("spark.sql.sources.provider", "table_type", "classification")
    return any(found.parameters.get(key, "").lower() == "delta" for key in keys)


def _place(location: str) -> str:
    """Return a location by which two spellings of the same place are equal."""
    plain = SAME_STORE.sub("s3://", location.rstrip("/"))
    return re.sub(r"^file:/*", "/", plain)
