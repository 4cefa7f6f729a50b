"""Compare and describe types and fields in the form of the Delta protocol. Pure."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from lakebed.columns.column_mapping import (
    PHYSICAL_NAME,
    DeltaType,
    FieldPath,
    maps_columns,
    rebuilt,
    types_within,
)
from lakebed.columns.schema import Field
from lakebed.documents.reading import parse_json
from lakebed.types import FieldType

DeltaSchema = dict[str, Any]
"""A schema in the form of the Delta protocol."""

DeltaField = dict[str, Any]
"""One field of a schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """A table's definition in one snapshot; `version` is None before the table exists."""

    version: int | None
    schema: DeltaSchema
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    features: frozenset[str] = frozenset()
    """The table features that readers and writers must support, by name."""

    @classmethod
    def of(
        cls, version: int, metadata: Mapping[str, Any], features: frozenset[str] = frozenset()
    ) -> "TableFacts":
        """Read the metadata of a version; raise ValueError if its schema is not a struct."""
        schema: DeltaSchema = parse_json(metadata["schemaString"])
        if schema.get("type") != "struct" or not isinstance(schema.get("fields"), list):
            raise ValueError("the schema of a table is not a struct")
        return cls(
            version=version,
            schema=schema,
            partition_columns=tuple(metadata.get("partitionColumns") or ()),
            configuration=dict(metadata.get("configuration") or {}),
            features=features,
        )

    def shape(self) -> tuple[object, ...]:
        """Return the parts that a plan depends on: a plan for another shape is outdated."""
        return self.schema, self.partition_columns, dict(self.configuration)


DROPPED_PROPERTY = "penguin.droppedColumns"
"""The table property with the dropped fields that files still have, as a schema."""
DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
READ_AS: Mapping[str, frozenset[str]] = {
    "long": frozenset({"integer", "short", "byte"}),
    "integer": frozenset({"short", "byte"}),
    "short": frozenset({"byte"}),
    "double": frozenset({"float"}),
}
"""By a table's type, the types in files that every reader reads as that type."""
ADDABLE = frozenset([
    "string", "long", "integer", "short", "byte", "float", "double", "boolean", "timestamp",
    "date", "binary",
])  # fmt: skip
"""Plain types that a schema change alone can add to a table."""
NEEDS_FEATURE = {"timestamp_ntz": "timestampNtz"}
"""Plain types that need a table feature, with its name."""


def kind_of(kind: DeltaType) -> str:
    """Return `struct`, `array` or `map`, or `plain` for a type that is a name."""
    return "plain" if isinstance(kind, str) else str(kind["type"])


def by_name(struct: DeltaSchema) -> dict[str, DeltaField]:
    """Return the fields of a struct by their names."""
    return {one["name"]: one for one in struct["fields"]}


def nullable_field(name: str, kind: DeltaType) -> DeltaField:
    """Return a nullable field of a type."""
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def struct_of(fields: Any) -> DeltaSchema:  # noqa: ANN401 - any iterable of fields
    """Return a struct with copies of these fields."""
    return {"type": "struct", "fields": deepcopy(list(fields))}


def names_in_log(table: TableFacts) -> dict[str, str]:
    """Return the physical names of mapped columns by display name; empty without mapping."""
    if not maps_columns(table.configuration):
        return {}
    return {
        name: str((one.get("metadata") or {}).get(PHYSICAL_NAME, name))
        for name, one in by_name(table.schema).items()
    }


def dropped_columns(table: TableFacts) -> DeltaSchema | None:
    """Read the dropped fields that a table records; None if they cannot be read."""
    text = table.configuration.get(DROPPED_PROPERTY)
    if text is None:
        return struct_of(())
    try:
        found = parse_json(text)
        by_name(found)
    except (ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, dict) else None


def why_no_table(schema: DeltaSchema) -> str | None:
    """Return why no table can be created with these columns; None if one can."""
    if not schema["fields"]:
        return "it has no columns"
    seen: dict[str, str] = {}
    for one in schema["fields"]:
        twin = seen.setdefault(one["name"].casefold(), one["name"])
        if twin != one["name"]:
            return f"columns {twin} and {one['name']} differ only in case"
    return None


def clean(kind: DeltaType) -> DeltaType:
    """Return a type in canonical form: no field metadata, no spaces in decimals."""
    return rebuilt(kind, _cleaned)


def _cleaned(kind: DeltaType, _path: FieldPath) -> DeltaType:
    match kind_of(kind):
        case "struct":
            return struct_of({**one, "metadata": {}} for one in kind["fields"])
        case "map":
            return {**kind, "keyType": clean(kind["keyType"])}
        case "plain" if DECIMAL.fullmatch(kind):
            return kind.replace(" ", "")
    return kind


def same_fields(table: DeltaType, file: DeltaType) -> bool:
    """Whether all structs in two types have fields of the same names, in any order."""
    ours, theirs = ({path for path, *_ in types_within(kind)} for kind in (table, file))
    return ours == theirs


def reads(table: DeltaType, file: DeltaType) -> bool:
    """Whether every reader reads a file's plain type as the table's."""
    if not isinstance(table, str) or not isinstance(file, str):
        return False
    ours, theirs = DECIMAL.fullmatch(table), DECIMAL.fullmatch(file)
    if ours and theirs:
        return ours[2] == theirs[2] and int(ours[1]) >= int(theirs[1])
    return table == file or file in READ_AS.get(table, ())


def type_name(kind: DeltaType) -> str:
    """Format a type, as in `array<string>`."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        inner = ", ".join(f"{one['name']}: {type_name(one['type'])}" for one in kind["fields"])
        return f"struct<{inner}>"
    if kind["type"] == "array":
        return f"array<{type_name(kind['elementType'])}>"
    return f"map<{type_name(kind['keyType'])}, {type_name(kind['valueType'])}>"


def features_needed(schema: DeltaSchema) -> frozenset[str]:
    """Return the table features that the types of a schema need."""
    kinds = (kind for _path, kind, _said in types_within(schema) if isinstance(kind, str))
    return frozenset(NEEDS_FEATURE[kind] for kind in kinds if kind in NEEDS_FEATURE)


def reasons_against_adding(
    new: DeltaField, shown: str, features: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield why a field cannot be added to a table with these features; nothing if it can."""
    kind = type_name(new["type"])
    if not new["nullable"]:
        yield (
            f"{shown}: the table does not have it, the files have type {kind} and require it; "
            "a new column must be nullable: the rows already there have no value for it"
        )
    yield from reasons_against_type(new["type"], shown, features)


def reasons_against_type(
    kind: DeltaType, shown: str, features: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield why a schema change alone cannot add a type to a table."""
    match kind_of(kind):
        case "struct":
            twins: dict[str, str] = {}
            for one in kind["fields"]:
                inner = f"{shown}.{one['name']}"
                if twins.setdefault(one["name"].casefold(), one["name"]) != one["name"]:
                    yield f"{inner}: differs from another field only in case"
                yield from reasons_against_adding(one, inner, features)
        case "array":
            yield from reasons_against_type(kind["elementType"], f"{shown}[]", features)
        case "map":
            yield from reasons_against_type(kind["keyType"], f"{shown}[key]", features)
            yield from reasons_against_type(kind["valueType"], f"{shown}[]", features)
        case _ if kind in NEEDS_FEATURE:
            feature = NEEDS_FEATURE[kind]
            if feature not in features:
                yield (
                    f"{shown}: type {kind} needs the table feature {feature}, which the table does "
                    f"not have; declare another type, or have Spark run ALTER TABLE ... SET "
                    f"TBLPROPERTIES ('delta.feature.{feature}' = 'supported')"
                )
        case _ if kind not in ADDABLE and DECIMAL.fullmatch(kind) is None:
            yield f"{shown}: a column of type {kind} cannot be added to a table"


FIELD_TYPES = {kind.delta: kind for kind in reversed(FieldType) if kind.delta}
"""By Delta type, the declared type that a column is read as: the first that has it."""


def partition_fields(table: TableFacts) -> dict[str, Field]:
    """Return the partition columns of a table; a ValueError names one whose values are unknown."""
    fields = by_name(table.schema)
    found = {}
    for name in table.partition_columns:
        kind = fields[name]["type"] if name in fields else None
        if not isinstance(kind, str) or kind not in FIELD_TYPES:
            raise ValueError(
                f"partition column {name} has type {kind}, whose values cannot be checked"
            )
        found[name] = Field(name=name, type=FIELD_TYPES[kind], nullable=fields[name]["nullable"])
    return found
