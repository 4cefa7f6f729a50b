"""Declared fields, and the two schemas they mean: Arrow's in files, Delta's in the log."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakebed.types import FieldType

ARROW: Mapping[FieldType, pa.DataType] = {
    FieldType.STRING: pa.string(),
    FieldType.INT32: pa.int32(),
    FieldType.INT64: pa.int64(),
    FieldType.FLOAT32: pa.float32(),
    FieldType.FLOAT64: pa.float64(),
    FieldType.BOOLEAN: pa.bool_(),
    FieldType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    FieldType.DATE: pa.date32(),
    FieldType.JSON: pa.string(),
    FieldType.BINARY: pa.binary(),
}

DELTA: Mapping[FieldType, str] = {
    FieldType.STRING: "string",
    FieldType.INT32: "integer",
    FieldType.INT64: "long",
    FieldType.FLOAT32: "float",
    FieldType.FLOAT64: "double",
    FieldType.BOOLEAN: "boolean",
    FieldType.TIMESTAMP: "timestamp",
    FieldType.DATE: "date",
    FieldType.JSON: "string",
    FieldType.BINARY: "binary",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One declared column."""

    name: str
    type: FieldType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Schema:
    """Declared columns, in their order."""

    fields: tuple[Field, ...]

    def arrow(self) -> pa.Schema:
        """Return the schema of the data files and of the batches in memory."""
        return pa.schema(
            [pa.field(field.name, ARROW[field.type], field.nullable) for field in self.fields]
        )

    def delta(self) -> dict[str, object]:
        """Return the schema as the Delta protocol writes it."""
        return {
            "type": "struct",
            "fields": [
                {
                    "name": field.name,
                    "type": DELTA[field.type],
                    "nullable": field.nullable,
                    "metadata": {},
                }
                for field in self.fields
            ],
        }

    def without(self, names: frozenset[str]) -> "Schema":
        """Leave some columns out: partition columns stand in the path, not in the file."""
        return Schema(tuple(field for field in self.fields if field.name not in names))
