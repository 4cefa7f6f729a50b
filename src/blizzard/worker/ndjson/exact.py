"""The exact path: one line at a time, in plain Python. What it says is what a line means.

The top-level object is walked member by member, so that a doubled field, the source text of a
value and the way a number is written are all seen.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pyarrow as pa

from blizzard.model.limits import MAX_DEPTH
from blizzard.worker.ndjson.lines import BLANK, BadLine, Block, Decoded, line_too_long, shown
from blizzard.worker.ndjson.values import TAKE, Cell, JsonValue, Nested, Number, Refused, kind_of
from lakebed.schema import Field, Schema
from lakebed.types import FieldType

_SPACE = re.compile(r"[ \t\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_PLAIN_MEMBER = re.compile(
    r'[ \t\r]*"(?P<name>[^"\\\x00-\x1f]*+)"[ \t\r]*:[ \t\r]*'
    r'(?P<source>"(?P<text>[^"\\\x00-\x1f]*+)"|(?P<number>' + _NUMBER.pattern + r")"
    r"|true|false|null)[ \t\r]*(?P<after>[,}])"
)
_LITERALS = {"true": True, "false": False, "null": None}
_LITERAL = re.compile("|".join(_LITERALS))
_BRACKET_OR_STRING = re.compile(r'[\[{]|[\]}]|"(?:[^"\\]|\\.)*+"?')
_NESTED = Nested()

Member = tuple[JsonValue | None, str]


class ExactPath:
    """Reads blocks line by line, by the rules; the first bad line stops it."""

    def __init__(self, schema: Schema, *, max_line_bytes: int) -> None:
        self._schema = schema.arrow()
        self._fields = schema.fields
        self._declared = frozenset(field.name for field in schema.fields)
        self._max_line_bytes = max_line_bytes

    def read(self, block: Block) -> Decoded:
        """Return the block's rows, or raise its first bad line."""
        columns: list[list[Cell | None]] = [[] for _ in self._fields]
        dropped: Counter[str] = Counter()
        blank = 0
        for number, line in enumerate(_lines(block.data), block.first_line):
            if len(line) > self._max_line_bytes:
                raise line_too_long(number, self._max_line_bytes)
            if not line.strip(BLANK):
                blank += 1
                continue
            members = _members(line, number)
            for field, column in zip(self._fields, columns, strict=True):
                column.append(_cell(field, members, number))
            for name in members.keys() - self._declared:
                dropped[name] += members[name][0] is not None
        arrays = [
            _array(column, field.type) for column, field in zip(columns, self._schema, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return Decoded(
            batch=batch,
            size=batch.nbytes,
            lines=block.lines,
            blank=blank,
            dropped=+dropped,
        )


def _lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield data[start:end]
        start = end + 1


def _cell(field: Field, members: dict[str, Member], line: int) -> Cell | None:
    member = members.get(field.name)
    value, source = member or (None, "nothing")
    if value is None:
        if field.nullable:
            return None
        found = "null" if member else f"no such field{_other_spelling(field.name, members)}"
        raise BadLine(
            f"found {found}, expected a value: the field is required",
            code="required_field_missing",
            line=line,
            field=field.name,
        )
    if field.type is FieldType.JSON:
        return source
    try:
        return TAKE[field.type](value)
    except Refused as refused:
        raise BadLine(
            f"found {refused.found or kind_of(value, source)}, expected {refused.expected}",
            code=refused.code,
            line=line,
            field=field.name,
            value=shown(source),
        ) from None


def _other_spelling(name: str, members: dict[str, Member]) -> str:
    """Return a hint at a member that differs from a field only in case; else nothing. Pure."""
    wanted = name.casefold()
    other = next((each for each in members if each.casefold() == wanted), None)
    return "" if other is None else f" but {other} (names are matched exactly, case included)"


def _members(line: bytes, number: int) -> dict[str, Member]:
    """Take a line's object apart: name, value and source text of every member."""

    def bad(code: str, message: str, field: str | None = None, value: str | None = None) -> BadLine:
        return BadLine(message, code=code, line=number, field=field, value=value)

    try:
        text = line.decode()
    except UnicodeDecodeError as cause:
        message = f"found bytes that are not UTF-8 at byte {cause.start + 1} of the line"
        around = shown(line[max(cause.start - 8, 0) : cause.start + 8])
        raise bad("not_utf8", message, value=around) from None
    if _depth_exceeds(text, MAX_DEPTH):
        raise bad("too_deep", f"found values nested more than {MAX_DEPTH} deep")
    try:
        return _walk(text, bad)
    except _NotJson as cause:
        rest = text[cause.at :].strip(" \t\r")
        found = cause.found or _kind_of_rest(rest)
        message = f"found {found} at column {cause.at + 1}, expected {cause.expected}"
        value = shown(text[cause.at :]) if rest else None
        raise bad("not_json", message, value=value) from None
    except RecursionError:
        raise bad("too_deep", "found values nested too deep to be read") from None


def _kind_of_rest(rest: str) -> str:
    """Return what stands where a line stops being JSON, which is all that a message may tell."""
    if not rest:
        return "the end of the line"
    if rest[0].isspace():
        return f"white space that JSON does not allow (U+{ord(rest[0]):04X})"
    return "other text"


class _NotJson(Exception):
    def __init__(self, at: int, expected: str, found: str | None = None) -> None:
        super().__init__(expected)
        self.at = at
        self.expected = expected
        self.found = found


_IN_OUR_WORDS: tuple[tuple[str, str | None, str], ...] = (
    ("Unterminated string", "a string without an end", "a closing quote"),
    ("Invalid control character", "a control character in a string", r"an escape such as \t"),
    (r"Invalid \u", r"an incomplete \u escape in a string", r"four hexadecimal digits after \u"),
    (
        r"Invalid \escape",
        "an unknown escape in a string",
        'one that JSON knows, such as \\n or \\"',
    ),
    ("Expecting property name", None, "a field name in quotes"),
    ("Expecting ':'", None, "a colon"),
    ("Expecting ','", None, "a comma or the end of the array or object"),
    ("Illegal trailing comma", "a comma after the last element", "none"),
)
"""How the library's messages begin, what was found, and what was expected."""


def _not_json(cause: json.JSONDecodeError) -> _NotJson:
    """Return the library's error in our own words. Pure."""
    for beginning, found, expected in _IN_OUR_WORDS:
        if cause.msg.startswith(beginning):
            return _NotJson(cause.pos, expected, found)
    return _NotJson(cause.pos, "a JSON value")


def _walk(text: str, bad: Callable[..., BadLine]) -> dict[str, Member]:
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        value, end = _value(text, at)
        if _skip(text, end) < len(text):
            raise _NotJson(_skip(text, end), "the end of the line")
        source = text[at:end]
        message = f"found {kind_of(value, source)}, expected an object"
        raise bad("not_an_object", message, value=shown(source))
    members: dict[str, Member] = {}
    at = _skip(text, at + 1)
    after = text[at : at + 1]
    while after != "}":
        name, member, at = _plain_member(text, at) or _member(text, at)
        if not name.isascii() and not _is_unicode(name):
            message = "found half a surrogate pair in a field name, expected text"
            raise bad("not_utf8", message, value=shown(name))
        if name in members:
            raise bad("duplicate_field", "found the field twice in one object", name)
        members[name] = member
        after = text[at : at + 1]
        if after == ",":
            at += 1
        elif after != "}":
            raise _NotJson(at, "a comma or a closing brace")
    at = _skip(text, at + 1)
    if at < len(text):
        raise _NotJson(at, "the end of the line")
    return members


def _plain_member(text: str, at: int) -> tuple[str, Member, int] | None:
    """Take a member without escapes or nesting in one go; most are like that."""
    match = _PLAIN_MEMBER.match(text, at)
    if match is None:
        return None
    name, source, string, number, _ = match.groups()
    if string is not None:
        return name, (string, source), match.end() - 1
    if number is not None:
        return name, (Number(number), source), match.end() - 1
    return name, (_LITERALS[source], source), match.end() - 1


def _member(text: str, at: int) -> tuple[str, Member, int]:
    name, at = _string(text, _skip(text, at), "a field name in quotes")
    at = _skip(text, at)
    if text[at : at + 1] != ":":
        raise _NotJson(at, "a colon")
    start = _skip(text, at + 1)
    value, end = _value(text, start)
    return name, (value, text[start:end]), _skip(text, end)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int) -> tuple[JsonValue | None, int]:
    first = text[at : at + 1]
    if first == '"':
        return _string(text, at, "a value")
    if first in ("{", "["):
        try:
            return _NESTED, _PARSER.raw_decode(text, at)[1]
        except json.JSONDecodeError as cause:
            raise _not_json(cause) from None
        except ValueError as cause:
            raise _NotJson(at, "JSON numbers", f"a value with {cause} in it") from None
    if number := _NUMBER.match(text, at):
        return Number(number.group()), number.end()
    if literal := _LITERAL.match(text, at):
        return _LITERALS[literal.group()], literal.end()
    raise _NotJson(at, "a JSON value")


def _string(text: str, at: int, expected: str) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise _NotJson(at, expected)
    try:
        return _PARSER.raw_decode(text, at)
    except json.JSONDecodeError as cause:
        raise _not_json(cause) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


# Nested values are only checked, never used: numbers and objects in them are not built.
_PARSER = json.JSONDecoder(
    parse_int=len,
    parse_float=len,
    parse_constant=_refuse_constant,
    object_pairs_hook=lambda _: None,
)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _depth_exceeds(text: str, limit: int) -> bool:
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for token in _BRACKET_OR_STRING.finditer(text):
        first = token.group()[0]
        depth += (first in "[{") - (first in "]}")
        if depth > limit:
            return True
    return False


def _array(column: list[Cell | None], kind: pa.DataType) -> "pa.Array[Any]":
    if pa.types.is_timestamp(kind):
        return pa.array(column, pa.int64()).view(kind)
    if pa.types.is_date32(kind):
        return pa.array(column, pa.int32()).view(kind)
    return pa.array(column, kind)
