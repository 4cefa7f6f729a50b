"""Partitions by event time. Pure.

With a `timestamp_field`, rows determine their partition. A template part with time codes formats
that field in UTC; a part `%s` is the declared column of the same name, or, without one, a folder of
the source path.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from blizzard.model.time_pattern import CODE
from lakebed.columns.column_mapping import FieldPath, parse_path
from lakebed.columns.schema import Field, Schema
from lakebed.documents.records import FinishedFile
from lakebed.layout import PartitionValues
from lakebed.partition import Template, TemplatePart
from lakebed.types import FieldType

ANY = "%s"
TIME_TYPES = (FieldType.TIMESTAMP, FieldType.TIMESTAMP_NTZ, FieldType.DATE)
DAY, HOUR, MINUTE, SECOND = 86_400, 3_600, 60, 1
DIGITS = {FieldType.INT8: 2, FieldType.INT16: 4, FieldType.INT32: 9, FieldType.INT64: 18}
"""The number of digits that always fit into the type."""


@dataclass(frozen=True, slots=True)
class Code:
    """A time code: its format, its number of digits, and its resolution in seconds."""

    write: Callable[[datetime], str]
    digits: int
    seconds: int = DAY


CODES: Mapping[str, Code] = {
    "%Y": Code(lambda at: f"{at.year:04}", 4),
    "%y": Code(lambda at: f"{at.year % 100:02}", 2),
    "%m": Code(lambda at: f"{at.month:02}", 2),
    "%d": Code(lambda at: f"{at.day:02}", 2),
    "%j": Code(lambda at: f"{at.timetuple().tm_yday:03}", 3),
    "%G": Code(lambda at: f"{at.isocalendar().year:04}", 4),
    "%V": Code(lambda at: f"{at.isocalendar().week:02}", 2),
    "%H": Code(lambda at: f"{at.hour:02}", 2, HOUR),
    "%M": Code(lambda at: f"{at.minute:02}", 2, MINUTE),
    "%S": Code(lambda at: f"{at.second:02}", 2, SECOND),
}
"""The time codes of a template. The set is closed: no code depends on a locale or a time zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRow:
    """Why a row cannot be written."""

    code: str
    message: str
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPart:
    """A partition column whose value comes from the row."""

    column: Field
    pattern: str | None
    """The format of the timestamp; None if the column's own value is used."""

    def written(self, at: datetime) -> str:
        """Format a time as this part's value, a number without leading zeros."""
        text = CODE.sub(lambda code: CODES[code[0]].write(at), self.pattern or "")
        return str(int(text)) if self.column.type in DIGITS else text


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPartitions:
    """How to determine the partition of a row."""

    keys: tuple[str, ...]
    """All partition columns, in the order of the folders."""
    timestamp: Field
    timestamp_path: FieldPath
    """The path to it: a column, or fields of nested structs."""
    parts: tuple[RowPart, ...]
    """The partition columns whose values come from rows, in the same order."""

    @property
    def times(self) -> tuple[RowPart, ...]:
        """Return the parts that format the timestamp."""
        return tuple(part for part in self.parts if part.pattern is not None)

    @property
    def columns(self) -> tuple[RowPart, ...]:
        """Return the parts that are the column of the same name."""
        return tuple(part for part in self.parts if part.pattern is None)

    @property
    def read(self) -> tuple[Field, ...]:
        """Return the fields that are read from rows but not written to data files."""
        read = {part.column.name: part.column for part in self.columns}
        if len(self.timestamp_path) == 1 and self.timestamp.name in self.keys:
            read[self.timestamp.name] = self.timestamp
        return tuple(read.values())

    @property
    def seconds(self) -> int:
        """Return the resolution in seconds: rows within one such interval have equal parts."""
        codes = (code for part in self.times for code in _codes(part.pattern or ""))
        return min((CODES[code].seconds for code in codes), default=DAY)

    def values(self, row: Mapping[str, str | None], path: PartitionValues) -> PartitionValues:
        """Merge the values of a row and of the source path, in the order of the folders."""
        return {key: row[key] if key in row else path[key] for key in self.keys}


def row_partitions(
    template: Template | None, declared: Schema, timestamp_field: str | None
) -> RowPartitions | None:
    """Return how to partition rows; None if only the source path determines the partition."""
    if template is None or timestamp_field is None:
        return None
    fields = {field.name: field for field in declared.fields}
    found = find_timestamp(declared.fields, timestamp_field)
    if found is None:
        raise ValueError(f"{timestamp_field} is not a declared field")
    path, timestamp = found
    return RowPartitions(
        keys=template.keys,
        timestamp=timestamp,
        timestamp_path=path,
        parts=tuple(
            RowPart(
                column=fields.get(part.key, part.field),
                pattern=None if part.pattern == ANY else part.pattern,
            )
            for part in template.parts
            if not _is_from_path(part, fields)
        ),
    )


def find_timestamp(declared: Sequence[Field], name: str) -> tuple[FieldPath, Field] | None:
    """Find a `timestamp_field`: a column of this name, or a field of nested structs."""
    columns = {field.name: field for field in declared}
    if name in columns:
        return (name,), columns[name]
    try:
        path = parse_path(name)
    except ValueError:
        return None
    found: Field | None = None
    for part in path:
        inside = declared if found is None else found.fields
        found = next((field for field in inside if field.name == part), None)
        if found is None:
            return None
    return None if found is None else (path, found)


def from_path(
    template: Template | None, declared: Schema, timestamp_field: str | None
) -> Template | None:
    """Return the template parts that folders of the source path fill."""
    if template is None or timestamp_field is None:
        return template
    names = {field.name for field in declared.fields}
    return Template(tuple(part for part in template.parts if _is_from_path(part, names)))


def rows_without_time(files: Iterable[FinishedFile], by: RowPartitions) -> int:
    """Count the rows in the null partition because their timestamp is null.

    Files of an earlier run may be partitioned differently.
    """
    if not by.times:
        return 0
    key = by.times[0].column.name
    return sum(file.record_count for file in files if file.partition_values.get(key, key) is None)


def faults(template: Template, timestamp: Field, declared: Iterable[Field]) -> Iterator[str]:
    """Yield the reasons why a timestamp cannot fill the partitions of a template."""
    types = {field.name: field.type for field in declared}
    for part in template.parts:
        if part.pattern == ANY:
            continue
        codes = _codes(part.pattern)
        unknown = sorted(set(codes) - CODES.keys())
        if unknown or not codes:
            what = f"has {', '.join(unknown)}" if unknown else "has neither %s nor a time code"
            known = f"use %s alone, or {' '.join(CODES)}"
            yield f"{part.key} {what}, which cannot be filled from timestamp_field; {known}"
        elif timestamp.type is FieldType.DATE and any(CODES[code].seconds < DAY for code in codes):
            yield f"{part.key} needs a time of day, but {timestamp.name} is a date"
        elif part.key in types and not _holds(types[part.key], part.pattern, codes):
            yield (
                f"{part.key} is declared as {types[part.key]}, which cannot hold {part.pattern}; "
                "declare it as a string"
            )


def _codes(pattern: str) -> list[str]:
    return CODE.findall(pattern)


def _is_from_path(part: TemplatePart, declared: Iterable[str]) -> bool:
    return part.pattern == ANY and part.key not in declared


def _holds(kind: FieldType, pattern: str, codes: list[str]) -> bool:
    """Whether a column of a type can hold every value of a pattern."""
    match kind:
        case FieldType.DATE:
            return pattern == "%Y-%m-%d"
        case FieldType.INT8 | FieldType.INT16 | FieldType.INT32 | FieldType.INT64:
            literal = CODE.sub("", pattern)
            digits = len(literal) + sum(CODES[code].digits for code in codes)
            plain = not literal or (literal.isascii() and literal.isdigit())
            return plain and digits <= DIGITS[kind]
        case _:
            return kind is FieldType.STRING
