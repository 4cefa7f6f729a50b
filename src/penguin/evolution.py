"""Table schema and entry schema → a decision. Pure.

The table's schema is the contract. A file may lack nullable columns and may bring new nullable
ones; a type is never changed in place, and a narrower one is accepted only where every reader
of Delta widens it.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from penguin.flow import AddColumns, Decision, DeltaField, DeltaSchema, Fits, Refused

READ_AS: dict[str, frozenset[str]] = {
    "long": frozenset({"integer", "short", "byte"}),
    "double": frozenset({"float"}),
}
ADDABLE = frozenset(
    {
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "boolean",
        "timestamp",
        "date",
        "binary",
    }
)
DECIMAL = re.compile(r"decimal\(\d+,\s*\d+\)")


def decide(
    table: DeltaSchema,
    table_partitions: tuple[str, ...],
    entry: DeltaSchema,
    entry_partitions: tuple[str, ...],
) -> Decision:
    """Say whether a table can hold files of an entry's schema, and what it needs for that."""
    reasons = [
        *_partition_reasons(table_partitions, entry_partitions),
        *_reasons(table, entry, inside="", exempt=frozenset(table_partitions)),
    ]
    if reasons:
        return Refused(tuple(reasons))
    after, changed = _merged(table, entry)
    return AddColumns(tuple(changed), after) if changed else Fits()


def _partition_reasons(table: tuple[str, ...], entry: tuple[str, ...]) -> Iterator[str]:
    if table != entry:
        yield (
            f"the table is partitioned by {_listing(table)}, the files by {_listing(entry)}; "
            "both must be the same columns in the same order"
        )


def _reasons(
    table: DeltaSchema, entry: DeltaSchema, *, inside: str, exempt: frozenset[str]
) -> Iterator[str]:
    """Give every reason why a struct cannot take another; `exempt` columns hold no nulls unseen."""
    ours = {field["name"]: field for field in table["fields"]}
    folded = {name.casefold(): name for name in ours}
    seen: dict[str, str] = {}
    for field in entry["fields"]:
        name, shown = field["name"], inside + field["name"]
        twin = seen.setdefault(name.casefold(), name)
        known = folded.get(name.casefold())
        if twin != name or (known is not None and known != name):
            other = twin if twin != name else known
            yield f"{shown}: differs from {inside}{other} only in case"
        elif name not in ours:
            yield from _reasons_against_adding(field, shown)
        else:
            yield from _reasons_against_type(ours[name]["type"], field["type"], shown)
            if field["nullable"] and not ours[name]["nullable"] and name not in exempt:
                yield f"{shown}: may be null in the files, and the table requires it"
    theirs = {field["name"] for field in entry["fields"]}
    for name, field in ours.items():
        if name not in theirs and not field["nullable"]:
            yield f"{inside}{name}: the table requires it, and the files do not have it"


def _reasons_against_adding(field: DeltaField, shown: str) -> Iterator[str]:
    if not field["nullable"]:
        yield f"{shown}: a new column must be nullable: the rows already there have no value for it"
    if not _addable(field["type"]):
        yield f"{shown}: a column of type {_type_name(field['type'])} cannot be added to a table"


def _reasons_against_type(table: Any, entry: Any, shown: str) -> Iterator[str]:  # noqa: ANN401 - a Delta type is a string or an object
    if table == entry or (isinstance(table, str) and entry in READ_AS.get(table, ())):
        return
    if _is_struct(table) and _is_struct(entry):
        yield from _reasons(table, entry, inside=f"{shown}.", exempt=frozenset())
        return
    yield (
        f"{shown}: the table has type {_type_name(table)}, the files have type {_type_name(entry)}"
    )


def _merged(table: DeltaSchema, entry: DeltaSchema) -> tuple[DeltaSchema, list[DeltaField]]:
    """Give the schema with the entry's new fields at the end, and the top-level fields changed."""
    after = deepcopy(table)
    ours = {field["name"]: field for field in after["fields"]}
    changed = []
    for field in entry["fields"]:
        mine = ours.get(field["name"])
        if mine is None:
            new = deepcopy(field)
            after["fields"].append(new)
            changed.append(new)
        elif _is_struct(mine["type"]) and _is_struct(field["type"]):
            mine["type"], inner = _merged(mine["type"], field["type"])
            if inner:
                changed.append(mine)
    return after, changed


def _addable(kind: Any) -> bool:  # noqa: ANN401
    if isinstance(kind, str):
        return kind in ADDABLE or DECIMAL.fullmatch(kind) is not None
    if _is_struct(kind):
        return all(_addable(field["type"]) for field in kind["fields"])
    if kind["type"] == "array":
        return _addable(kind["elementType"])
    return _addable(kind["keyType"]) and _addable(kind["valueType"])


def _is_struct(kind: Any) -> bool:  # noqa: ANN401
    return isinstance(kind, dict) and kind["type"] == "struct"


def _type_name(kind: Any) -> str:  # noqa: ANN401
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        inner = ", ".join(f"{one['name']}: {_type_name(one['type'])}" for one in kind["fields"])
        return f"struct<{inner}>"
    if kind["type"] == "array":
        return f"array<{_type_name(kind['elementType'])}>"
    return f"map<{_type_name(kind['keyType'])}, {_type_name(kind['valueType'])}>"


def _listing(names: tuple[str, ...]) -> str:
    return ", ".join(names) if names else "nothing"
