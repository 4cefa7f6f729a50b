"""What may stand in a request: names in paths and parameters in queries, and nothing else. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote_to_bytes

LONGEST = 4096
NUMBER = re.compile(r"[0-9]{1,18}")
TEXT = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"
"""What a parameter may be, as JSON Schema writes it: no control characters."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
"""What a name in a path may be."""


class Refused(Exception):
    """A request is not one of those that are answered; the message says why."""

    def __init__(self, code: str, message: str, way_out: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.way_out = code, message, way_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a query."""

    name: str
    what: str
    default: int | str | None = None
    least: int | None = None
    """The lowest number; None where it is a text."""
    most: int | None = None
    required: bool = False

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.least is not None

    def value(self, text: str) -> int | str:
        """Return what a text means; Refused where it is not one that may stand there."""
        if not self.is_number:
            return plain_text(self.name, text, empty=not self.required)
        number = int(text) if NUMBER.fullmatch(text) else None
        if number is None or not (self.least or 0) <= number <= (self.most or number):
            raise Refused(
                "parameter_invalid",
                f"{self.name} must be a number from {self.least:,} to {self.most:,}",
            )
        return number


Values = Mapping[str, int | str | None]


def values_of(query: str, parameters: Sequence[Parameter]) -> Values:
    """Return the parameters of a query, each once; unknown ones are refused."""
    known = {one.name: one for one in parameters}
    found: dict[str, int | str | None] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=32)
    except (ValueError, UnicodeDecodeError):
        raise Refused("query_invalid", "the query cannot be read") from None
    for name, text in pairs:
        if name not in known:
            there = ", ".join(known) or "none"
            raise Refused(
                "parameter_unknown", f"there is no such parameter here; there are: {there}"
            )
        if name in found:
            raise Refused("parameter_repeated", f"{name} is there more than once")
        found[name] = known[name].value(text)
    for one in parameters:
        if one.required and one.name not in found:
            raise Refused("parameter_missing", f"{one.name} is missing: {one.what}")
        found.setdefault(one.name, one.default)
    return found


def segments_of(path: str) -> list[str]:
    """Return the parts of a path, decoded; Refused where one could mean more than a name."""
    return [_segment(part) for part in path.split("/")[1:]]


def plain_text(name: str, text: str, *, empty: bool) -> str:
    """Return a text that is the name of a file or a part of one; Refused where it cannot be."""
    if not text and not empty:
        raise Refused("parameter_invalid", f"{name} is empty")
    if len(text) > LONGEST or not re.fullmatch(TEXT, text):
        raise Refused("parameter_invalid", f"{name} is too long, or has control characters")
    return text


def leads_out(key: str) -> bool:
    """Whether a path could lead out of the folder that it is looked for in."""
    below = key.partition(":")[2] or key
    parts = re.split(r"[/\\]", below)
    return ".." in parts or "." in parts or below.startswith(("/", "\\", "~")) or "://" in key


def _segment(part: str) -> str:
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise Refused("name_invalid", "a name in the path is not UTF-8") from None
    if not re.fullmatch(NAME, text):
        raise Refused(
            "name_invalid",
            "a name in the path must start with a letter or digit and consist of at most 100 "
            "letters, digits, _, . or -",
        )
    return text
