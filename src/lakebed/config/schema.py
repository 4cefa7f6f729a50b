"""The `schema` section of the YAML: fields of any type, at any depth."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from lakebed.config.ddl import DECIMAL, plain_type, suggestion, type_from_ddl
from lakebed.config.section import Flag, Section, Text
from lakebed.types import NESTED_TYPES, FieldType, OnMismatch, Provenance, UnknownFields

MOST_DIGITS = 38
TIMES = frozenset({FieldType.TIMESTAMP, FieldType.TIMESTAMP_NTZ, FieldType.DATE})


class TypeName(NamedTuple):
    """A type name: `int64`, `decimal(18,2)`, `struct`."""

    type: FieldType
    precision: int = 0
    scale: int = 0


def type_name(text: object) -> TypeName:
    """Parse a type name, also one of Spark; a ValueError says what it must be."""
    written = str(text).strip()
    if digits := DECIMAL.fullmatch(written):
        if digits[1] is None:
            raise ValueError("a decimal needs its digits, as in decimal(18,2)")
        precision, scale = int(digits[1]), int(digits[2] or 0)
        if not (1 <= precision <= MOST_DIGITS and scale <= precision):
            raise ValueError(
                f"a decimal has 1 to {MOST_DIGITS} digits, and no more of them after the point "
                f"than it has in all; not {written}"
            )
        return TypeName(FieldType.DECIMAL, precision, scale)
    if written in NESTED_TYPES:
        return TypeName(FieldType(written))
    if "<" in written:
        return TypeName(FieldType(type_from_ddl(written)["type"]))
    if (plain := plain_type(written)) is None:
        raise ValueError(f"{written or 'an empty text'} is not a type; {suggestion(written)}")
    return TypeName(FieldType(plain))


def _formats(value: object) -> object:
    return value if isinstance(value, list) or value is None else [value]


def _path(value: object) -> object:
    """Split `meta.ts`; a list is for members whose names have dots."""
    return value.split(".") if isinstance(value, str) else value


class DeclaredType(Section):
    """A type with all of its settings."""

    type: Annotated[TypeName, BeforeValidator(type_name)]
    fields_: list["DeclaredField"] = Field(default=[], alias="fields")
    items: "DeclaredItems | None" = None
    values: "DeclaredItems | None" = None
    format: Annotated[list[Text], BeforeValidator(_formats)] = []
    coerce: Flag | None = None
    null_values: list[str] | None = None
    truncate: Flag = False
    nullable: Flag = True

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:  # noqa: ANN401 - any YAML value
        return with_parts(value)

    @model_validator(mode="after")
    def _check_parts(self) -> "DeclaredType":
        kind = self.type.type
        for key, given, of in (
            ("fields", self.fields_, FieldType.STRUCT),
            ("items", self.items, FieldType.LIST),
            ("values", self.values, FieldType.MAP),
        ):
            if given and kind is not of:
                raise ValueError(f"{key} belongs to a {of}, and the type is {kind}")
            if not given and kind is of:
                example = {
                    "fields": "fields: [{name: id, type: string}]",
                    "items": "items: string",
                    "values": "values: string",
                }[key]
                raise ValueError(f"a {of} needs {key}, as in {example}")
        if kind not in TIMES and (self.format or self.truncate):
            key = "format" if self.format else "truncate"
            raise ValueError(f"{key} belongs to a timestamp or a date, and the type is {kind}")
        if self.null_values is not None or self.coerce is not None:
            key = "null_values" if self.null_values is not None else "coerce"
            if kind in NESTED_TYPES:
                raise ValueError(f"{key} belongs to the values inside a {kind}, not to the {kind}")
            if kind is FieldType.JSON:
                raise ValueError(f"{key} has no meaning for json, which takes every value as it is")
        return self


def with_parts(value: Any) -> Any:  # noqa: ANN401 - any YAML value
    """Expand a declared type with inner types in its name, such as `array<string>`.

    One that cannot be parsed is left alone: validation of the name reports it.
    """
    written = value.get("type") if isinstance(value, Mapping) else None
    if not isinstance(written, str) or "<" not in written:
        return value
    try:
        parts = type_from_ddl(written)
    except ValueError:
        return value
    if twice := sorted(parts.keys() & value.keys() - {"type"}):
        raise ValueError(f"{twice[0]} is in the type already, which is {written}")
    return {**value, **parts}


def _items(value: Any) -> Any:  # noqa: ANN401 - any YAML value
    return value if isinstance(value, Mapping) or value is None else {"type": value}


class DeclaredItems(DeclaredType):
    """The type of the elements of a list or the values of a map."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:  # noqa: ANN401 - any YAML value
        return _items(value)


class DeclaredField(DeclaredType):
    """One column, or a field of a struct."""

    name: Text
    from_: Annotated[list[Text], BeforeValidator(_path)] = Field(default=[], alias="from")


class DeclaredSchema(Section):
    """The columns of the table."""

    fields_: list[DeclaredField] = Field(default=[], alias="fields")
    ddl: Text | None = None
    """The fields as DDL; in a valid document they are in `fields`."""
    file: Text | None = None
    """The file with the fields; in a valid document they are in `fields`."""
    infer: Flag = False
    hints: list[DeclaredField] = []
    """Known columns, if the others are inferred."""
    infer_max_bytes: Annotated[int, Field(gt=0)] = 1 << 30
    unknown_fields: UnknownFields | None = None
    on_mismatch: OnMismatch | None = None
    coerce: Flag = False
    null_values: list[str] = []
    provenance: list[Provenance] = []
    """The provenance columns."""

    @property
    def is_inferred(self) -> bool:
        """Whether columns are inferred from the data."""
        return self.infer or not self.fields_

    @property
    def unknown(self) -> UnknownFields:
        """Return what to do with undeclared fields, with its default."""
        if self.unknown_fields is not None:
            return self.unknown_fields
        return UnknownFields.ADD if self.is_inferred else UnknownFields.RESCUE

    @property
    def mismatch(self) -> OnMismatch:
        """Return what to do with values that do not fit, with its default.

        The type of an inferred column depends on what was seen first, so it fails no line.
        """
        if self.on_mismatch is not None:
            return self.on_mismatch
        found = self.is_inferred or self.unknown is UnknownFields.ADD
        return OnMismatch.RESCUE if found else OnMismatch.FAIL
