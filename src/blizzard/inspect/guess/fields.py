"""Guess the columns for some records, with remarks for the configuration's author. Pure.

Types are those of inference. In addition, times written as numbers or text are recognised: a guess
is kept if every value fits, by the rules by which rows are read. Names that no column can have are
replaced.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from blizzard.model.bad_lines import ANY
from blizzard.model.columns import MOST_COLUMNS
from blizzard.model.seen import NOTHING, Seen, Text, column_of, is_column_name
from blizzard.model.time_pattern import EPOCHS
from blizzard.worker.ndjson.fields import converter
from blizzard.worker.ndjson.inference import MOST_PATHS, infer, text_kind
from blizzard.worker.ndjson.values import NUMBER, ValueRefused
from lakebed.columns.schema import ELEMENT, VALUE, Field, Reading
from lakebed.types import FORBIDDEN_IN_NAMES, RESERVED, FieldType

Path = tuple[str | int, ...]

NULLS = frozenset(("", "-", "null", "NULL", "None", "N/A", "n/a", "NaN", "nan"))
"""Strings that commonly stand for null."""
PATTERNS = (
    "%d/%b/%Y:%H:%M:%S %z",
    "%a %b %d %H:%M:%S %z %Y",
    "%a, %d %b %Y %H:%M:%S %z",
    "%a, %d %b %Y %H:%M:%S %Z",
    "%Y/%m/%d %H:%M:%S",
)
"""Time formats of web server logs, tweets, mail and HTTP (RFC 2822), and nginx error logs."""
_EARLIEST, _LATEST = (
    int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000 for year in (2000, 2100)
)
"""Numbers count as times in this range; it does not overlap between units."""
_TIME_WORDS = frozenset([
    "time", "timestamp", "ts", "date", "datetime", "at", "on", "when", "epoch", "created",
    "updated", "modified", "changed", "expires", "expiry", "expiration", "started", "finished",
    "ended", "start", "end", "begin", "since", "until", "birthday", "dob", "seen", "published",
    "received", "sent", "occurred", "unix", "nano", "nanos", "ms", "msec", "us", "ns", "utc",
    "exp", "iat", "nbf", "modification",
])  # fmt: skip
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True, slots=True)
class GuessedColumn:
    """A guessed column or inner field, with a remark."""

    field: Field | None
    """None if its type is unknown so far."""
    name: str
    remarks: tuple[str, ...] = ()
    inner: tuple["GuessedColumn", ...] = ()
    """The fields of a struct, or the elements of a list, or the values of a map."""


def columns_in(
    records: Sequence[Mapping[str, Any]], *, without: frozenset[str] = frozenset()
) -> tuple[GuessedColumn, ...]:
    """Return the columns of records, in the order in which their members appear.

    Those `without` are left out: the folders of a source path give them.
    """
    guesser = _Guesser()
    members: dict[str, list[Any]] = {}
    for record in records:
        guesser.note((), record)
        for name, value in record.items():
            if name in members or (name not in without and len(members) < MOST_PATHS):
                members.setdefault(name, []).append(value)
    seen = {name: infer(values, 1) for name, values in members.items()}
    return tuple(guesser.fields(seen, ()))


def fields_of(columns: Iterable[GuessedColumn]) -> tuple[Field, ...]:
    """Return the columns whose types are known."""
    return tuple(one.field for one in columns if one.field is not None)


@dataclass(slots=True)
class _Guesser:
    values: dict[Path, dict[str, None]] = field(default_factory=dict)
    """The distinct strings and numbers at each place, in order of appearance."""
    columns: int = 0

    def note(self, path: Path, value: Any) -> None:  # noqa: ANN401 - any JSON value
        match value:
            case dict():
                for name, inner in value.items():
                    self.note((*path, name), inner)
            case list():
                for inner in value:
                    self.note((*path, ANY), inner)
            case str() if path in self.values or len(self.values) < MOST_PATHS:
                self.values.setdefault(path, {})[value] = None

    def fields(self, members: Mapping[str, Seen], path: Path) -> Iterator[GuessedColumn]:
        """Yield a column for each member, under a unique name that Delta accepts."""
        taken = {name.casefold() for name in members if is_column_name(name)}
        first: dict[str, str] = {}
        last: dict[str, int] = {}
        for name, seen in members.items():
            if not name or any("\ud800" <= letter <= "\udfff" for letter in name):
                yield GuessedColumn(None, name, ("no column can take a field of this name",))
                continue
            remarks: list[str] = []
            column = name
            before = first.setdefault(name.casefold(), name)
            if not is_column_name(name) or (not path and name.casefold() in RESERVED):
                column = _free(allowed_name(name), taken, last)
                remarks.append("no column can have the name of the field")
            elif before != name:
                column = _free(name, taken, last)
                remarks.append(f"differs from {before} only in case")
            taken.add(column.casefold())
            if self.columns >= MOST_COLUMNS:
                continue
            made = self.column(column, seen, (*path, name))
            if column != name and made.field is not None:
                reading = replace(made.field.reading, path=(name,))
                made = replace(made, field=replace(made.field, reading=reading))
            yield replace(made, remarks=(*remarks, *made.remarks))

    def column(self, name: str, seen: Seen, path: Path) -> GuessedColumn:
        self.columns += 1
        made = column_of(name, seen)
        if made is not None and made.type is FieldType.JSON:
            return GuessedColumn(made, name, (_why_json(seen),))
        if seen.arrays:
            inner = self.column(ELEMENT, seen.elements or NOTHING, (*path, ANY))
            if inner.field is None:
                return GuessedColumn(None, name, ("only empty arrays were seen",))
            made = Field(name=name, type=FieldType.LIST, items=inner.field)
            return GuessedColumn(made, name, (), (inner,))
        if seen.objects is not None:
            return self._object(name, seen, path)
        if made is None:
            return GuessedColumn(None, name, ("only null was seen",))
        # Elements of a list are guessed by the list's name.
        named = next((str(step) for step in reversed(path) if step != ANY), name)
        found, remark = _reading(made, named, self.values.get(path, {}))
        return GuessedColumn(found, name, (remark,) if remark else ())

    def _object(self, name: str, seen: Seen, path: Path) -> GuessedColumn:
        known = column_of(name, seen)
        if known is not None and known.type is FieldType.MAP and known.items is not None:
            inner = GuessedColumn(known.items, VALUE)
            return GuessedColumn(known, name, ("the names of its members are data",), (inner,))
        members = seen.objects.members if seen.objects is not None else {}
        below = tuple(self.fields(members, path))
        fields = fields_of(below)
        if not fields:
            return GuessedColumn(None, name, ("only empty objects were seen",))
        return GuessedColumn(
            Field(name=name, type=FieldType.STRUCT, fields=fields), name, (), below
        )


def _why_json(seen: Seen) -> str:
    if seen.families == 1:
        return "no other type holds all of its values"
    if seen.arrays or seen.objects is not None:
        return "values of several types"
    return "values of several types; type: string, coerce: true keeps them as text"


def _reading(column: Field, name: str, values: Iterable[str]) -> tuple[Field, str]:
    """Return the column of strings or numbers, read as times if all of them are, and a remark."""
    is_text = column.type is FieldType.STRING
    if not is_text and column.type not in (FieldType.INT64, FieldType.FLOAT64):
        return column, ""
    nulls = tuple(value for value in values if is_text and value in NULLS)
    others = [value for value in values if value not in nulls]
    for way in _ways(name, is_text=is_text) if others else ():
        if not all(_takes(way, value) for value in others):
            continue
        reading = way.reading
        if reading.truncate:
            format_ = "".join(f"format: {each}, " for each in reading.formats)
            return column, f"{{type: timestamp, {format_}truncate: true}} cuts to microseconds"
        remarks = ["times without a zone"] if way == _NTZ else []
        if nulls:
            remarks.append(f"{' and '.join(map(json.dumps, nulls))} for null")
        reading = replace(reading, null_values=nulls)
        return replace(way, name=column.name, reading=reading), "; ".join(remarks)
    if is_text and others and all(map(NUMBER.fullmatch, others)):
        return column, "numbers as text; a type of numbers with coerce: true reads them"
    return column, ""


def _way(kind: FieldType, *formats: str, coerce: bool = False, truncate: bool = False) -> Field:
    reading = Reading(formats=formats, coerce=coerce, truncate=truncate)
    return Field(name="", type=kind, reading=reading)


_ISO = _way(FieldType.TIMESTAMP)
_NTZ = _way(FieldType.TIMESTAMP_NTZ)
_FINER = _way(FieldType.TIMESTAMP, truncate=True)


def _ways(name: str, *, is_text: bool) -> Iterator[Field]:
    """Yield the ways to read the values of a field, the most likely first."""
    if is_text:
        yield from (_way(FieldType.DATE), _ISO, _NTZ)
        for each in PATTERNS:
            is_zoned = "%z" in each.lower()
            yield _way(FieldType.TIMESTAMP if is_zoned else FieldType.TIMESTAMP_NTZ, each)
        yield from (_way(FieldType.BOOLEAN, coerce=True), _FINER)
    # Both `createdAt` and `created_at` have the words created and at.
    if {word.lower() for word in _WORD.findall(name)} & _TIME_WORDS:
        for truncate in (False, True):
            for unit in EPOCHS:
                yield _way(FieldType.TIMESTAMP, unit, coerce=is_text, truncate=truncate)


def _takes(way: Field, value: str) -> bool:
    """Whether a value can be read in this way."""
    if way == _ISO:
        return text_kind(value) is Text.TIMESTAMP
    try:
        cell = converter(way)(value)
    except ValueRefused:
        return False
    if way.reading.formats[:1] and way.reading.formats[0] in EPOCHS:
        return bool(_EARLIEST <= cell < _LATEST)
    return way != _FINER or ":" in value


def allowed_name(name: str) -> str:
    """Return a valid column name as close to this one as possible."""
    plain = "".join(
        letter if letter.isprintable() and letter not in FORBIDDEN_IN_NAMES else "_"
        for letter in name
    )
    return plain.strip("_") if plain.casefold() in RESERVED else plain


def _free(name: str, taken: set[str], last: dict[str, int]) -> str:
    """Return a name that is unique regardless of case.

    `last` has the last number appended to each name, since names are never freed.
    """
    found, key = name, name.casefold()
    while found.casefold() in taken:
        last[key] = last.get(key, 1) + 1
        found = f"{name}_{last[key]}"
    return found
