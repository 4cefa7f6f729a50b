"""Which types read which, and what a table asks of files and of a change beyond its schema. Pure.

Every reader reads some narrow types of files as wider ones of a table. A table with the feature
`typeWidening` allows more, and records every change of a type in the column's metadata, for readers
of older files. A file is bound to the names, and in mode `id` to the ids, that it was written with:
its entry has them in the metadata of the schema's fields, as Delta writes it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lakebed.columns.column_mapping import (
    COLUMN_ID,
    MODE,
    PHYSICAL_NAME,
    mapping_of,
    maps_columns,
    mode_of,
)
from lakebed.columns.field_path import FieldPath, format_path
from lakebed.columns.nested_types import DeltaType, types_within
from lakebed.columns.row_tracking import row_columns
from lakebed.deltalog.delta_types import (
    DECIMAL,
    NEEDS_FEATURE,
    READ_AS,
    DeltaField,
    DeltaSchema,
    TableFacts,
    clean,
    kind_of,
)
from lakebed.deltalog.table_features import (
    CLUSTERING,
    ROW_TRACKING,
    TYPE_WIDENING,
    TYPE_WIDENING_PREVIEW,
    is_on,
)
from lakebed.documents.entry import Entry
from penguin.model.commit import Changes

ENABLED = "delta.enableTypeWidening"
TYPE_CHANGES = "delta.typeChanges"
WIDENED_TO: dict[str, frozenset[str]] = {
    "double": frozenset({"byte", "short", "integer"}),
    "timestamp_ntz": frozenset({"date"}),
}
"""For a type, those that it takes the place of only where the table records it."""
DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""The digits before the point of a decimal that takes the place of an integer, by the protocol."""


def may_widen(features: frozenset[str], configuration: Mapping[str, str]) -> bool:
    """Whether a table records changes of its columns' types, and has them switched on."""
    return TYPE_WIDENING in features and is_on(configuration, ENABLED)


def widens(before: DeltaType, after: DeltaType, features: frozenset[str]) -> bool:
    """Whether a column that is recorded as widened may go from one plain type to another.

    These are the changes of the Delta protocol. Local times ask for a feature of their own.
    """
    if not isinstance(before, str) or not isinstance(after, str) or before == after:
        return False
    if NEEDS_FEATURE.get(after, TYPE_WIDENING) not in features:
        return False
    wide, narrow = DECIMAL.fullmatch(after), DECIMAL.fullmatch(before)
    if wide is None:
        return before in READ_AS.get(after, ()) or before in WIDENED_TO.get(after, ())
    scale = int(wide[2])
    whole = int(wide[1]) - scale
    if narrow is None:
        return before in DIGITS and whole >= DIGITS[before]
    return scale >= int(narrow[2]) and whole >= int(narrow[1]) - int(narrow[2])


def recorded(field: DeltaField, kind: DeltaType) -> DeltaField:
    """Return a field with another type, and in its metadata what has changed.

    What is inside of a struct is recorded by the fields of that struct.
    """
    new = [*_changes(field["type"], kind)]
    metadata = field.get("metadata") or {}
    if new:
        metadata = {**metadata, TYPE_CHANGES: [*metadata.get(TYPE_CHANGES, ()), *new]}
    return {**field, "type": kind, "metadata": metadata}


def _changes(before: DeltaType, after: DeltaType, path: str = "") -> Iterator[dict[str, Any]]:
    match kind_of(before), kind_of(after):
        case "array", "array":
            yield from _changes(before["elementType"], after["elementType"], f"{path}.element")
        case "map", "map":
            yield from _changes(before["keyType"], after["keyType"], f"{path}.key")
            yield from _changes(before["valueType"], after["valueType"], f"{path}.value")
        case "plain", "plain" if clean(before) != clean(after):
            where = {"fieldPath": path[1:]} if path else {}
            yield {"fromType": clean(before), "toType": clean(after), **where}


CHANGE_DATA_FEED = "delta.enableChangeDataFeed"
RECORDS_TYPES = frozenset({TYPE_WIDENING, TYPE_WIDENING_PREVIEW})
ASK_FOR_MORE = RECORDS_TYPES | {CLUSTERING}
"""Features by which the columns of a table are not free to become others."""
OF_CHANGES = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
"""The columns that every reader of a table's changes sees beside the table's own."""
WAY_OUT = (
    "they were written before the table was changed, or by a program that does not know how it "
    "calls its columns. Start blizzard anew and have it read the sources again: blizzard redo"
)


def reasons_against_names(table: TableFacts, entry: DeltaSchema) -> Iterator[str]:
    """Yield why a table that maps its columns does not find those of some files in them."""
    mode = mode_of(table.configuration)
    if mode == "none":
        return
    fields = [field for field in entry["fields"] if field["name"] not in table.partition_columns]
    ours = _names_in_files(table.schema["fields"], by_id=mode == "id")
    theirs = _names_in_files(fields, by_id=mode == "id")
    others = [format_path(path) for path, one in theirs.items() if ours.get(path, one) != one]
    if others:
        what = "names" if mode == "name" else "names or ids"
        yield (
            f"the files hold {', '.join(others)} under other {what} than the table does: {WAY_OUT}"
        )


def reasons_against_rewritten(table: TableFacts, entry: Entry) -> Iterator[str]:
    """Yield why files do not take the place of others: columns have other names since.

    Their statistics go by the names that people saw when they were written, and their rows have the
    ids that they had in other files in the columns that the table named for that.
    """
    kept = row_columns(table.configuration) if ROW_TRACKING in table.features else None
    new = entry.data_files[len(entry.files) :]
    if kept is not None and any(file.row_columns != kept for file in new):
        yield "the table tracks its rows, and did not when the files were written; run it again"
    now = mapping_of(table.schema, table.configuration)
    if now is None:
        return
    then = mapping_of(entry.table_schema, table.configuration) or {}
    others = sorted(format_path(path) for path, one in then.items() if now.get(path) != one)
    if others:
        yield (
            f"columns were renamed or dropped since the files were written: {', '.join(others)}; "
            "run it again"
        )


def reasons_against_change(table: TableFacts, changes: Changes) -> Iterator[str]:
    """Yield why a change of columns is not made: the table asks for more than a new schema."""
    changed = {"add columns to": changes.added, "drop columns of": changes.dropped}
    for verb, columns in changed.items() if maps_columns(table.configuration) else ():
        if columns:
            yield (
                f"{', '.join(sorted(columns))}: {verb} the table with Spark, which assigns the ids "
                f"that they need ({MODE} is set)"
            )
    if CLUSTERING in table.features and changes.dropped:
        yield (
            f"the table is clustered, and a clustering column must stay: drop "
            f"{', '.join(changes.dropped)} with Spark"
        )
    if is_on(table.configuration, CHANGE_DATA_FEED) and (taken := OF_CHANGES & {*changes.added}):
        yield f"{', '.join(sorted(taken))}: readers of the table's changes have such a column"
    records = not table.features.isdisjoint(RECORDS_TYPES)
    if records and changes.widened and not may_widen(table.features, table.configuration):
        yield (
            f"the table records changes of its columns' types, but does not have {TYPE_WIDENING} "
            f"with {ENABLED} set: set it, or change {', '.join(changes.widened)} with Spark"
        )


def _names_in_files(fields: list[DeltaField], *, by_id: bool) -> dict[FieldPath, object]:
    """Return the names, and the ids if they count, under which files hold all fields."""
    return {
        path: (said.get(PHYSICAL_NAME, path[-1]), said.get(COLUMN_ID) if by_id else None)
        for path, _kind, said in types_within({"type": "struct", "fields": fields})
        if said is not None
    }
