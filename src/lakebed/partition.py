"""Partition keys: from a template or a path, and checked against column types."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from urllib.parse import unquote

from lakebed.columns.schema import Field, Schema
from lakebed.layout import unescape
from lakebed.types import FieldType

INTEGER_BITS: Mapping[FieldType, int] = {
    FieldType.INT8: 8,
    FieldType.INT16: 16,
    FieldType.INT32: 32,
    FieldType.INT64: 64,
}

INTEGER = re.compile(r"-?[0-9]{1,40}")


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """One `key=pattern` of a template."""

    key: str
    pattern: str

    @property
    def field(self) -> Field:
        """Return the column of the part if none is declared."""
        is_date = self.pattern == "%Y-%m-%d"
        return Field(name=self.key, type=FieldType.DATE if is_date else FieldType.STRING)


@dataclass(frozen=True, slots=True)
class Template:
    """A `prefix_template`, such as `date=%Y-%m-%d/region=%s`; its order is the folders' order."""

    parts: tuple[TemplatePart, ...]

    @classmethod
    def parse(cls, text: str) -> "Template":
        """Parse a template; a ValueError says what is wrong with it."""
        parts: dict[str, TemplatePart] = {}
        for number, segment in enumerate(text.strip("/").split("/"), start=1):
            key, equals, pattern = segment.partition("=")
            # No part is quoted: what a variable holds may be a secret.
            if not (key and equals and pattern):
                raise ValueError(f"part {number} of it is not of the form key=pattern")
            if key in parts:
                raise ValueError(f"part {number} of it repeats the key of an earlier part")
            parts[key] = TemplatePart(key, pattern)
        return cls(tuple(parts.values()))

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the partition columns, in the order of the folders."""
        return tuple(part.key for part in self.parts)

    def values(self, path: str) -> dict[str, str | None]:
        """Return the values of the template's keys from the `key=value` folders of a path.

        Raise KeyError if a folder is missing: partitions are never guessed.
        """
        found: dict[str, str | None] = {}
        for segment in path.split("/")[:-1]:
            key, equals, name = segment.partition("=")
            if equals:
                found[unquote(key)] = unescape(name)
        return {key: found[key] for key in self.keys}


def table_schema(declared: Schema, template: Template | None) -> Schema:
    """Return the table's columns: the declared ones, and undeclared partition columns."""
    if template is None:
        return declared
    names = {field.name for field in declared.fields}
    added = tuple(part.field for part in template.parts if part.key not in names)
    return Schema(declared.fields + added)


def check_value(field: Field, value: str | None) -> None:
    """Raise ValueError for a partition value that its column cannot hold.

    Delta accepts such a value into the log, and then no reader can open the table.
    """
    if value is None:
        if not field.nullable:
            raise ValueError(f"{field.name} is required and has no value")
        return
    match field.type:
        case FieldType.DATE:
            if not is_date(value):
                raise ValueError(f"{value!r} is not a date of the form YYYY-MM-DD")
        case FieldType.INT8 | FieldType.INT16 | FieldType.INT32 | FieldType.INT64:
            most = 2 ** (INTEGER_BITS[field.type] - 1)
            written = str(int(value)) if INTEGER.fullmatch(value) else ""
            if written != value or not -most <= int(value) < most:
                raise ValueError(f"{value!r} is not of type {field.type}")
        case FieldType.BOOLEAN:
            if value not in ("true", "false"):
                raise ValueError(f"{value!r} is neither true nor false")
        case FieldType.STRING | FieldType.JSON:
            pass
        case _:
            raise ValueError(f"a column of type {field.type} cannot be a partition column")


def is_date(value: str) -> bool:
    """Whether a value is a date in the Delta log's form."""
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def typed_value(field: Field, value: str | None) -> str | None:
    """Return a partition value in the log's form; raise ValueError if it does not fit its type.

    A folder may write a number with leading zeros, as in `month=07`; the log does not.
    """
    if value is not None and field.type in INTEGER_BITS and INTEGER.fullmatch(value):
        value = str(int(value))
    check_value(field, value)
    return value


PARTITION_TYPES: Iterable[FieldType] = (
    FieldType.STRING,
    FieldType.DATE,
    *INTEGER_BITS,
    FieldType.BOOLEAN,
)
