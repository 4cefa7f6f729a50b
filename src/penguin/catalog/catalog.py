"""What is asked of a catalog, whichever it is; and the one step that registers a table in it."""

import re
from collections.abc import Mapping
from typing import Any, Protocol

from lakebed.deltalog.delta_types import TableFacts
from penguin.model.catalog import CatalogConflict, CatalogSettings, CatalogState, Column, TableEntry

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


TRIES = 3


class AlreadyRegistered(Exception):
    """Somebody else has registered the table, or changed it, since it was looked at."""


class Catalog(Protocol):
    """One table of a catalog. Errors are those of `penguin.model.catalog`."""

    def find(self) -> TableEntry | None:
        """Return what the catalog says; None where it does not know the table."""

    def create(self, entry: TableEntry) -> None:
        """Register the table; AlreadyRegistered where it is there by now."""

    def update(self, entry: TableEntry) -> None:
        """Change what was found; what others have added to it stays.

        AlreadyRegistered where somebody else has changed it meanwhile.
        """

    def close(self) -> None:
        """Let go of connections."""


def register(catalog: Catalog, settings: CatalogSettings, table: TableFacts, uri: str) -> bool:
    """Let a catalog say what it should of a table; return whether anything had to be changed.

    Repeating it changes nothing, and two at once come to the same.
    """
    entry = wanted(table, settings.location or uri)
    for attempt in range(TRIES):
        found = catalog.find()
        if found is not None and not differs(found, entry, name=settings.name):
            return False
        try:
            if found is None:
                catalog.create(entry)
            else:
                catalog.update(entry)
        except AlreadyRegistered:
            if attempt == TRIES - 1:
                raise
            continue
        return True
    raise AssertionError("unreachable")


def state_in(
    catalog: Catalog, settings: CatalogSettings, table: TableFacts, uri: str
) -> CatalogState:
    """Return what a catalog says of a table. Nothing is changed."""
    found = catalog.find()
    if found is None:
        return CatalogState.MISSING
    changed = differs(found, wanted(table, settings.location or uri), name=settings.name)
    return CatalogState.OUTDATED if changed else CatalogState.REGISTERED
