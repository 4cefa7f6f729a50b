"""Which types read which, and how a table records that a column got a wider one. Pure.

Every reader reads some narrow types of files as wider ones of a table. A table with the feature
`typeWidening` allows more, since whoever reads it must know the feature; there every change of a
type is recorded in the column's metadata, for readers of the files of before.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lakebed.columns.nested_types import DeltaType
from lakebed.deltalog.delta_types import (
    DECIMAL,
    NEEDS_FEATURE,
    DeltaField,
    clean,
    kind_of,
)
from lakebed.deltalog.table_features import TYPE_WIDENING, is_on

ENABLED = "delta.enableTypeWidening"
TYPE_CHANGES = "delta.typeChanges"
READ_AS: dict[str, frozenset[str]] = {
    "long": frozenset({"integer", "short", "byte"}),
    "integer": frozenset({"short", "byte"}),
    "short": frozenset({"byte"}),
    "double": frozenset({"float"}),
}
"""For a table's type, the types of files that every reader reads as it."""
WIDENED_TO: dict[str, frozenset[str]] = {
    "double": frozenset({"byte", "short", "integer"}),
    "timestamp_ntz": frozenset({"date"}),
}
"""For a type, those that it takes the place of only where the table records it."""
DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""The digits before the point of a decimal that takes the place of an integer, by the protocol."""


def reads(table: DeltaType, file: DeltaType) -> bool:
    """Whether every reader reads a file's plain type as the table's."""
    if not isinstance(table, str) or not isinstance(file, str):
        return False
    ours, theirs = DECIMAL.fullmatch(table), DECIMAL.fullmatch(file)
    if ours and theirs:
        return ours[2] == theirs[2] and int(ours[1]) >= int(theirs[1])
    return table == file or file in READ_AS.get(table, ())


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
