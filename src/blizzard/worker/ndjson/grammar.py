"""A strict JSON parser in plain Python that reads an object or array one level at a time.

Every member comes with its source text, which preserves duplicate fields and the spelling of
numbers.
"""

import json
import re
from typing import NoReturn

from blizzard.worker.ndjson.values import NUMBER, JsonValue, Nested, Number

_SPACE = re.compile(r"[ \t\r]*")
_PLAIN_MEMBER = re.compile(
    r'[ \t\r]*"(?P<name>[^"\\\x00-\x1f]*+)"[ \t\r]*:[ \t\r]*'
    r'(?P<source>"(?P<text>[^"\\\x00-\x1f]*+)"|(?P<number>' + NUMBER.pattern + r")"
    r"|true|false|null)[ \t\r]*(?P<after>[,}])"
)
_LITERALS = {"true": True, "false": False, "null": None}
_LITERAL = re.compile("|".join(_LITERALS))
_BRACKET_OR_STRING = re.compile(r'[\[{]|[\]}]|"(?:[^"\\]|\\.)*+"?')
_NESTED = Nested()

Member = tuple[JsonValue | None, str]
"""A value and its source text."""


class NotJson(Exception):
    """A JSON syntax error: the position, what was found and what was expected."""

    def __init__(self, at: int, expected: str, found: str | None = None) -> None:
        super().__init__(expected)
        self.at = at
        self.expected = expected
        self.found = found


class BadMember(Exception):
    """A duplicate or invalid member name in valid JSON."""

    def __init__(self, code: str, name: str, found: str, expected: str) -> None:
        super().__init__(found)
        self.code = code
        self.name = name
        self.found = found
        self.expected = expected


def whole(text: str) -> Member:
    """Parse a text that is one value; anything after it is an error."""
    at = _skip(text, 0)
    value, end = _value(text, at)
    after = _skip(text, end)
    if after < len(text):
        raise NotJson(after, "the end of the line")
    return value, text[at:end]


def opens_object(text: str) -> bool:
    """Whether a text begins like an object."""
    at = _skip(text, 0)
    return text[at : at + 1] == "{"


def members(text: str) -> dict[str, Member]:
    """Parse an object: return the value and source text of every member by name."""
    found: dict[str, Member] = {}
    at = _skip(text, _skip(text, 0) + 1)
    after = text[at : at + 1]
    while after != "}":
        name, member, at = _plain_member(text, at) or _member(text, at)
        if not name.isascii() and not _is_unicode(name):
            raise BadMember("not_utf8", name, "half a surrogate pair in a field name", "text")
        if name in found:
            found_twice = "the field twice in one object"
            raise BadMember("duplicate_field", name, found_twice, "each field once")
        found[name] = member
        after = text[at : at + 1]
        if after == ",":
            at += 1
        elif after != "}":
            raise NotJson(at, "a comma or a closing brace")
    at = _skip(text, at + 1)
    if at < len(text):
        raise NotJson(at, "the end of the line")
    return found


def elements(source: str) -> list[Member]:
    """Parse an array that is known to be valid JSON."""
    found: list[Member] = []
    at = _skip(source, 1)
    while source[at] != "]":
        value, end = _value(source, at)
        found.append((value, source[at:end]))
        at = _skip(source, end)
        if source[at] == ",":
            at = _skip(source, at + 1)
    return found


def depth_exceeds(text: str, limit: int) -> bool:
    """Whether nesting exceeds a limit."""
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for token in _BRACKET_OR_STRING.finditer(text):
        first = token.group()[0]
        depth += (first in "[{") - (first in "]}")
        if depth > limit:
            return True
    return False


def kind_of_rest(rest: str) -> str:
    """Describe the text at a syntax error without quoting content."""
    if not rest:
        return "the end of the line"
    if rest[0].isspace():
        return f"white space that JSON does not allow (U+{ord(rest[0]):04X})"
    return "other text"


_MESSAGES: tuple[tuple[str, str | None, str], ...] = (
    ("Unterminated string", "a string without an end", "a closing quote"),
    ("Invalid control character", "a control character in a string", r"an escape such as \t"),
    (r"Invalid \u", r"an incomplete \u escape in a string", r"four hexadecimal digits after \u"),
    (
        r"Invalid \escape",
        "an unknown escape in a string",
        'a JSON escape, such as \\n or \\"',
    ),
    ("Expecting property name", None, "a field name in quotes"),
    ("Expecting ':'", None, "a colon"),
    ("Expecting ','", None, "a comma or the end of the array or object"),
    ("Illegal trailing comma", "a comma after the last element", "none"),
)
"""Prefixes of the json library's messages, with our own description and expectation."""


def _not_json(cause: json.JSONDecodeError) -> NotJson:
    """Translate an error of the json library. Pure."""
    for beginning, found, expected in _MESSAGES:
        if cause.msg.startswith(beginning):
            return NotJson(cause.pos, expected, found)
    return NotJson(cause.pos, "a JSON value")


def _plain_member(text: str, at: int) -> tuple[str, Member, int] | None:
    """Parse a member without escapes or nesting with one regex; most are like that."""
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
        raise NotJson(at, "a colon")
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
            raise NotJson(at, "JSON numbers", f"a value with {cause} in it") from None
    if number := NUMBER.match(text, at):
        return Number(number.group()), number.end()
    if literal := _LITERAL.match(text, at):
        return _LITERALS[literal.group()], literal.end()
    raise NotJson(at, "a JSON value")


def _string(text: str, at: int, expected: str) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise NotJson(at, expected)
    try:
        return _PARSER.raw_decode(text, at)
    except json.JSONDecodeError as cause:
        raise _not_json(cause) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


# Nested values are only validated here: their numbers and objects are not built.
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
