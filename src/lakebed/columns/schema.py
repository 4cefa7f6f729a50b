"""Declared fields, and their two schemas: Arrow's in files, Delta's in the log."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import Field as PydanticField

from lakebed.types import NESTED_TYPES, RESCUED, FieldType, Provenance

if TYPE_CHECKING:
    import pyarrow as pa

ELEMENT, KEY, VALUE = "element", "key", "value"
"""The names of inner fields of lists and maps in Delta and Parquet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a source writes a field's values; the defaults are those of JSON."""

    path: tuple[str, ...] = ()
    """The path of the value in its object, member by member; the field's own name if empty."""
    formats: tuple[str, ...] = ()
    """The formats of a time, tried in this order; ISO 8601 if empty."""
    coerce: bool = False
    """Whether to convert a value of another JSON type if that is lossless."""
    null_values: tuple[str, ...] = ()
    """Strings that mean null."""
    truncate: bool = False
    """Whether to truncate times to microseconds; otherwise finer times do not fit."""
    exact: Annotated[bool, PydanticField(exclude=True)] = False
    """Whether an integer that a float cannot hold exactly is a mismatch; otherwise it is rounded.

    It is not stored: every batch derives it from the origin of the field.
    """


AS_WRITTEN = Reading()


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One declared column, or a field inside one."""

    name: str
    type: FieldType
    nullable: bool = True
    precision: int = 0
    """The digits of a decimal."""
    scale: int = 0
    """The digits of a decimal after the point."""
    fields: tuple["Field", ...] = ()
    """The fields of a struct."""
    items: "Field | None" = None
    """The elements of a list, or the values of a map; the keys of a map are strings."""
    reading: Reading = AS_WRITTEN

    @property
    def path(self) -> tuple[str, ...]:
        """Return the path of the field's value in its object, member by member."""
        return self.reading.path or (self.name,)

    @property
    def inner(self) -> tuple["Field", ...]:
        """Return the direct inner fields."""
        return self.fields if self.items is None else (self.items,)

    @property
    def depth(self) -> int:
        """Return how many levels of fields it has, itself included."""
        return 1 + max((one.depth for one in self.inner), default=0)

    @property
    def is_nested(self) -> bool:
        """Whether it is a struct, a list or a map."""
        return self.type in NESTED_TYPES

    @property
    def shown(self) -> str:
        """Return the type in readable form."""
        match self.type:
            case FieldType.DECIMAL:
                return f"decimal({self.precision},{self.scale})"
            case FieldType.STRUCT:
                return f"struct<{', '.join(f'{one.name}: {one.shown}' for one in self.fields)}>"
            case FieldType.LIST:
                return f"list<{_items(self).shown}>"
            case FieldType.MAP:
                return f"map<string, {_items(self).shown}>"
        return self.type.value

    def arrow_type(self) -> "pa.DataType":
        """Return the field's type in memory and in data files."""
        import pyarrow as pa  # noqa: PLC0415 - most of penguin needs no Arrow

        match self.type:
            case FieldType.DECIMAL:
                return pa.decimal128(self.precision, self.scale)
            case FieldType.STRUCT:
                return pa.struct([one.arrow() for one in self.fields])
            case FieldType.LIST:
                return pa.list_(_items(self).arrow())
            case FieldType.MAP:
                kind: Any = _items(self).arrow()  # pyarrow's stubs know types only
                return cast("pa.DataType", pa.map_(pa.string(), kind))
        return _arrow_types()[self.type.delta]

    def arrow(self) -> "pa.Field[Any]":
        """Return the Arrow field."""
        import pyarrow as pa  # noqa: PLC0415

        return pa.field(self.name, self.arrow_type(), self.nullable)

    def delta_type(self) -> str | dict[str, object]:
        """Return the field's type as the Delta protocol writes it."""
        match self.type:
            case FieldType.DECIMAL:
                return self.shown
            case FieldType.STRUCT:
                return _delta_struct(self.fields)
            case FieldType.LIST:
                items = _items(self)
                return {
                    "type": "array",
                    "elementType": items.delta_type(),
                    "containsNull": items.nullable,
                }
            case FieldType.MAP:
                items = _items(self)
                return {
                    "type": "map",
                    "keyType": FieldType.STRING.delta,
                    "valueType": items.delta_type(),
                    "valueContainsNull": items.nullable,
                }
        return self.type.delta


def _items(field: Field) -> Field:
    if field.items is None:
        raise ValueError(f"a {field.type} must declare its elements")
    return field.items


@cache
def _arrow_types() -> Mapping[str, "pa.DataType"]:
    """Return Arrow types by Delta type, for types without parameters."""
    import pyarrow as pa  # noqa: PLC0415

    return {
        "string": pa.string(),
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "date": pa.date32(),
        "binary": pa.binary(),
    }


def _delta_struct(fields: Iterable[Field]) -> dict[str, object]:
    return {
        "type": "struct",
        "fields": [
            {
                "name": field.name,
                "type": field.delta_type(),
                "nullable": field.nullable,
                "metadata": {},
            }
            for field in fields
        ],
    }


def _stored(field: Field, *, in_null: bool) -> Field:
    nullable = field.nullable or in_null
    return replace(
        field,
        nullable=nullable,
        fields=tuple(_stored(inner, in_null=nullable) for inner in field.fields),
        # A list that is null has no elements.
        items=None if field.items is None else _stored(field.items, in_null=False),
    )


@dataclass(frozen=True, slots=True)
class Schema:
    """Declared columns, in their order."""

    fields: tuple[Field, ...]

    def arrow(self) -> "pa.Schema":
        """Return the schema of the data files and of the batches in memory."""
        import pyarrow as pa  # noqa: PLC0415

        return pa.schema([field.arrow() for field in self.fields])

    def delta(self) -> dict[str, object]:
        """Return the schema as the Delta protocol writes it."""
        return _delta_struct(self.stored().fields)

    def stored(self) -> "Schema":
        """Return the columns as tables and data files declare them.

        A required field of a nullable struct becomes nullable, although no line may lack it:
        deltalake reads the content of a required field even where the struct is null.
        """
        return Schema(tuple(_stored(field, in_null=False) for field in self.fields))

    def without(self, names: frozenset[str]) -> "Schema":
        """Return the schema without some columns: partition columns are in paths, not in files."""
        return Schema(tuple(field for field in self.fields if field.name not in names))

    def with_rescued(self) -> "Schema":
        """Add the column for rescued values."""
        if any(field.name == RESCUED for field in self.fields):
            return self
        return Schema((*self.fields, Field(name=RESCUED, type=FieldType.STRING)))

    def with_provenance(self, wanted: Iterable[Provenance]) -> "Schema":
        """Add provenance columns."""
        return Schema((*self.fields, *(PROVENANCE[which] for which in wanted)))


PROVENANCE: Mapping[Provenance, Field] = {
    which: Field(name=which.column, type=kind)
    for which, kind in (
        (Provenance.FILE, FieldType.STRING),
        (Provenance.LINE, FieldType.INT64),
        (Provenance.BATCH, FieldType.STRING),
        (Provenance.INGESTED_AT, FieldType.TIMESTAMP),
    )
}
"""The provenance columns."""


def walk(fields: Iterable[Field]) -> Iterator[tuple[str, Field]]:
    """Yield every field at every depth with its path, such as `user.tags` and `user.tags[]`."""
    for field in fields:
        yield from _walk(field.name, field)


def _walk(path: str, field: Field) -> Iterator[tuple[str, Field]]:
    yield path, field
    if field.items is not None:
        yield from _walk(f"{path}[]", field.items)
    for inner in field.fields:
        yield from _walk(f"{path}.{inner.name}", inner)
