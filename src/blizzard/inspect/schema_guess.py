"""Which fields some lines have, as a `schema` section to paste into a configuration. Pure.

A field gets the first type that takes every value of it that was seen, by the rules that the rows
are read by later. It is a proposal for a person, and nothing is decided by it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from blizzard.worker.ndjson.lines import BYTE_ORDER_MARK
from blizzard.worker.ndjson.values import TAKE, JsonValue, Nested, Number, Refused
from lakebed.config.field_checks import allowed_name
from lakebed.types import RESCUED, FieldType

PREFERRED = (
    FieldType.BOOLEAN,
    FieldType.INT64,
    FieldType.FLOAT64,
    FieldType.DATE,
    FieldType.TIMESTAMP,
    FieldType.STRING,
)
"""`json` takes what none of them does. Base64 cannot be told from text, nor 32 bits from 64."""
MOST_FIELDS = 200
LONGEST_NAME = 200
EXACT_IN_FLOAT64 = 1 << 53

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class GuessedField:
    """One field: its name, the type it could be declared as, and what to know of it."""

    name: str
    type: FieldType
    note: str | None = None
    source: str | None = None
    """What it is called in the data, where no column can have that name."""


@dataclass(slots=True)
class _Seen:
    types: list[FieldType] = field(default_factory=lambda: list(PREFERRED))
    values: int = 0
    nested: bool = False


def guess(lines: Iterable[bytes], *, without: frozenset[str] = frozenset()) -> list[GuessedField]:
    """Return the fields of the lines that are JSON objects, in the order of their appearance.

    Those `without` are left out: the folders of a source path give them.
    """
    seen: dict[str, _Seen] = {}
    for line in lines:
        for name, value in _members(line):
            if name not in without and len(name) <= LONGEST_NAME and _is_text(name):
                _look(seen.setdefault(name, _Seen()), value)
    return list(_named(seen, without))


def section(fields: Sequence[GuessedField], *, indent: int = 0) -> str:
    """Return fields as the text of a `schema` section."""
    rows = ["schema:", "  fields:"]
    for one in fields[:MOST_FIELDS]:
        note = f"  # {one.note}" if one.note else ""
        source = f"from: [{_quoted(one.source)}], " if one.source is not None else ""
        rows.append(f"    - {{name: {_scalar(one.name)}, {source}type: {one.type}}}{note}")
    if len(fields) > MOST_FIELDS:
        rows.append(f"    # and {len(fields) - MOST_FIELDS} more")
    return "\n".join(" " * indent + row for row in rows)


def is_object(line: bytes) -> bool:
    """Whether a line is a JSON object, so that its fields count."""
    return _object(line) is not None


def _members(line: bytes) -> Iterator[tuple[str, JsonValue | None]]:
    for name, value in (_object(line) or {}).items():
        yield name, Nested() if isinstance(value, dict | list) else value


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = _PARSER.decode(line.removeprefix(BYTE_ORDER_MARK).decode())
    except (ValueError, RecursionError):
        return None  # Whoever reads the file in earnest says what is wrong with it.
    return found if isinstance(found, dict) else None


def _look(seen: _Seen, value: JsonValue | None) -> None:
    if value is None:
        return
    seen.values += 1
    seen.nested = seen.nested or isinstance(value, Nested)
    seen.types = [kind for kind in seen.types if _takes(kind, value)]


def _takes(kind: FieldType, value: JsonValue) -> bool:
    if kind is FieldType.FLOAT64 and isinstance(value, Number):
        digits = value.lstrip("-")
        if digits.isdigit() and (len(digits) > 16 or int(digits) > EXACT_IN_FLOAT64):
            return False  # The nearest double is another number.
    try:
        TAKE[kind](value)
    except Refused:
        return False
    return True


def _named(seen: dict[str, _Seen], without: frozenset[str]) -> Iterator[GuessedField]:
    taken = {name.casefold() for name in (*seen, *without, RESCUED)}
    first: dict[str, str] = {}
    for name, one in seen.items():
        before = first.setdefault(name.casefold(), name)
        if before != name:
            continue  # Delta does not tell upper from lower case; only one can be declared.
        alike = [other for other in seen if other.casefold() == name.casefold() and other != name]
        note = None
        if not one.values:
            note = "only null was seen"
        elif not one.types:
            note = "nested" if one.nested else "no other type fits all of its values"
        if alike:
            note = f"also spelled {', '.join(alike)}; only one spelling can be kept"
        kind = one.types[0] if one.values and one.types else FieldType.JSON
        column = _column(name, taken)
        yield GuessedField(column, kind, note, source=name if column != name else None)


def _column(name: str, taken: set[str]) -> str:
    """Return what to call the column of a field: its name, or one that Delta allows and is free."""
    column = allowed_name(name)
    if column == name and name.casefold() != RESCUED:
        return name
    while column.casefold() in taken:
        column += "_"
    taken.add(column.casefold())
    return column


def _scalar(name: str) -> str:
    """Write a name so that the configuration reads it as it is."""
    if _PLAIN.fullmatch(name) and name.lower() != "null":
        return name
    return _quoted(name)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False).replace("${", "$${")


def _is_text(name: str) -> bool:
    return name.isprintable() and name != ""


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


_PARSER: json.JSONDecoder = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_refuse
)
