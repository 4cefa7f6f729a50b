"""Fields named by where they stand: `user.id` is the field `id` of the struct `user`. Pure.

Paths of values in a record are another matter: they lead to elements of lists as well.
"""

import re
from collections.abc import Iterable

FieldPath = tuple[str, ...]
"""The names from the column down to the field."""

_PLAIN = re.compile(r"[^.`]+")
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def format_path(path: Iterable[str]) -> str:
    """Write a path; a name with a dot or a backtick in it is quoted, as Delta quotes names."""
    return ".".join(
        name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`" for name in path
    )


def parse_path(text: str) -> FieldPath:
    """Read a path back; a ValueError says that it is none."""
    names, end = [], 0
    while True:
        found = _PART.match(text, end)
        if found is None:
            raise ValueError(f"{text!r} is not the path of a field")
        quoted, plain = found.groups()
        names.append(plain if quoted is None else quoted.replace("``", "`"))
        end = found.end()
        if end == len(text):
            return tuple(names)
        if text[end] != ".":
            raise ValueError(f"{text!r} is not the path of a field")
        end += 1
