"""Time formats of sources, and partitions by event time. Pure.

Sources write times as ISO 8601, epochs or patterns of codes. The set of codes is closed: none
depends on a locale or on the local time zone. Names of months and days are English.

With a `timestamp_field`, rows determine their partition. A template part with time codes is that
field in UTC; a part `%s` is the declared column of the same name; an undeclared `%s` is a folder of
the source path.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache

from lakebed.columns.column_mapping import FieldPath, parse_path
from lakebed.columns.schema import Field, Schema
from lakebed.documents.records import FinishedFile
from lakebed.layout import PartitionValues
from lakebed.partition import Template, TemplatePart
from lakebed.types import FieldType

CODE = re.compile("%.?", re.DOTALL)
ISO = "iso"
EPOCHS: Mapping[str, Decimal] = {
    "epoch_s": Decimal(1_000_000),
    "epoch_ms": Decimal(1000),
    "epoch_us": Decimal(1),
    "epoch_ns": Decimal("0.001"),
}
"""The formats that are numbers, with the microseconds of one."""

_LONG_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
MONTHS = [name[:3] for name in _LONG_MONTHS]
_LONG_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAYS = [name[:3] for name in _LONG_WEEKDAYS]
_CODES: Mapping[str, str] = {
    "%Y": r"(?P<year>[0-9]{4})",
    "%y": r"(?P<short_year>[0-9]{2})",
    "%m": r"(?P<month>[0-9]{1,2})",
    "%d": r"(?P<day>[0-9]{1,2})",
    "%e": r" ?(?P<day>[0-9]{1,2})",
    "%j": r"(?P<day_of_year>[0-9]{1,3})",
    "%b": rf"(?P<month_name>{'|'.join(MONTHS)})",
    "%B": rf"(?P<month_name>{'|'.join(_LONG_MONTHS)})",
    "%a": rf"(?P<weekday>{'|'.join(WEEKDAYS)})",
    "%A": rf"(?P<long_weekday>{'|'.join(_LONG_WEEKDAYS)})",
    "%H": r"(?P<hour>[0-9]{1,2})",
    "%I": r"(?P<hour_of_half>[0-9]{1,2})",
    "%p": r"(?P<half>am|pm)",
    "%M": r"(?P<minute>[0-9]{1,2})",
    "%S": r"(?P<second>[0-9]{1,2})",
    "%f": r"(?P<fraction>[0-9]+)",
    "%z": r"(?P<zone>z|(?P<sign>[+-])(?P<zone_hour>[0-9]{2})(?::?(?P<zone_minute>[0-9]{2}))?)",
    "%Z": r"(?P<zone>utc|gmt|z)",
    "%%": "%",
}
_SHORT_FOR: Mapping[str, str] = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%D": "%m/%d/%y"}
_ONE_OF = (("%d", "%e", "%j"), ("%m", "%b", "%B"), ("%Y", "%y"), ("%H", "%I"), ("%z", "%Z"))


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A pattern of codes, ready to be matched."""

    text: str
    regex: re.Pattern[str]
    codes: frozenset[str]

    @property
    def tells_zone(self) -> bool:
        """Whether it tells the zone of a time."""
        return bool(self.codes & {"%z", "%Z"})


@lru_cache(maxsize=256)
def pattern_of(text: str) -> TimePattern:
    """Compile a pattern; a ValueError says what is wrong with it."""
    written = CODE.sub(lambda code: _SHORT_FOR.get(code[0], code[0]), text)
    codes = CODE.findall(written)
    if unknown := [code for code in codes if code not in _CODES]:
        known = " ".join([*_CODES, *_SHORT_FOR])
        raise ValueError(f"{unknown[0]} is not a known code; known are {known}")
    if not codes:
        epochs = ", ".join(EPOCHS)
        raise ValueError(f"must be {ISO}, {epochs} or a pattern such as %d/%b/%Y:%H:%M:%S %z")
    for choice in _ONE_OF:
        if len([code for code in codes if code in choice]) > 1:
            raise ValueError(f"{text} tells the same thing twice: {' and '.join(choice)}")
    if repeated := [code for code in codes if code != "%%" and codes.count(code) > 1]:
        raise ValueError(f"{text} has {repeated[0]} twice")
    found = set(codes)
    has_day = "%j" in found or (found & {"%d", "%e"} and found & {"%m", "%b", "%B"})
    if not (found & {"%Y", "%y"} and has_day):
        raise ValueError(f"{text} does not tell a day: it needs a year, a month and a day")
    if ("%I" in found) != ("%p" in found):
        raise ValueError(f"{text} needs both %I and %p, or %H")
    parts = re.split(r"(%.)", written)
    regex = "".join(_CODES[part] if part in _CODES else re.escape(part) for part in parts)
    return TimePattern(text, re.compile(regex, re.IGNORECASE | re.ASCII), frozenset(found))


ANY = "%s"
TIME_TYPES = (FieldType.TIMESTAMP, FieldType.TIMESTAMP_NTZ, FieldType.DATE)
DAY, HOUR, MINUTE, SECOND = 86_400, 3_600, 60, 1
DIGITS = {FieldType.INT8: 2, FieldType.INT16: 4, FieldType.INT32: 9, FieldType.INT64: 18}
"""So many digits fit into the type, whichever they are."""


@dataclass(frozen=True, slots=True)
class Code:
    """One time code: how it is written, in how many digits, and how finely it tells time."""

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
    """One partition column whose value a row gives."""

    column: Field
    pattern: str | None
    """How the time is written; None where the column itself is the value."""

    def written(self, at: datetime) -> str:
        """Write a moment as this part's value; a number is written without leading zeros."""
        text = CODE.sub(lambda code: CODES[code[0]].write(at), self.pattern or "")
        return str(int(text)) if self.column.type in DIGITS else text


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPartitions:
    """How the partition of a row is found."""

    keys: tuple[str, ...]
    """All partition columns, in the order of the folders."""
    timestamp: Field
    timestamp_path: FieldPath
    """Where it stands: the column, and the fields down to it where that is a struct."""
    parts: tuple[RowPart, ...]
    """Those of them that rows give, in the same order."""

    @property
    def times(self) -> tuple[RowPart, ...]:
        """Return the parts that the timestamp is written into."""
        return tuple(part for part in self.parts if part.pattern is not None)

    @property
    def columns(self) -> tuple[RowPart, ...]:
        """Return the parts that a column of the same name gives."""
        return tuple(part for part in self.parts if part.pattern is None)

    @property
    def read(self) -> tuple[Field, ...]:
        """Return the fields that are read from the rows but are in no data file."""
        read = {part.column.name: part.column for part in self.columns}
        if len(self.timestamp_path) == 1 and self.timestamp.name in self.keys:
            read[self.timestamp.name] = self.timestamp
        return tuple(read.values())

    @property
    def seconds(self) -> int:
        """Return the resolution of time: two rows of one such span have equal parts."""
        codes = (code for part in self.times for code in _codes(part.pattern or ""))
        return min((CODES[code].seconds for code in codes), default=DAY)

    def values(self, row: Mapping[str, str | None], path: PartitionValues) -> PartitionValues:
        """Bring the values of the rows and of the source path into the order of the folders."""
        return {key: row[key] if key in row else path[key] for key in self.keys}


def row_partitions(
    template: Template | None, declared: Schema, timestamp_field: str | None
) -> RowPartitions | None:
    """Return how rows give their partition; None where the source path alone does."""
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
    """Return where a `timestamp_field` stands: a column of this name, or a field of structs."""
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
    """Return what is left of a template for the folders of the source path."""
    if template is None or timestamp_field is None:
        return template
    names = {field.name for field in declared.fields}
    return Template(tuple(part for part in template.parts if _is_from_path(part, names)))


def rows_without_time(files: Iterable[FinishedFile], by: RowPartitions) -> int:
    """Count the rows whose timestamp is null, and whose partition therefore is.

    An entry of an earlier run may be partitioned otherwise.
    """
    if not by.times:
        return 0
    key = by.times[0].column.name
    return sum(file.record_count for file in files if file.partition_values.get(key, key) is None)


def faults(template: Template, timestamp: Field, declared: Iterable[Field]) -> Iterator[str]:
    """Return what keeps rows from giving the partitions of a template."""
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
