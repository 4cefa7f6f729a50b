"""The path of a value in a record: `user.tags[3]`. Pure.

A name that would be misread is quoted in backticks, and a backtick in it is doubled. The paths of
`lakebed.columns.field_path` name fields of a schema, as Delta writes them: they have no elements,
and brackets mean nothing in them.
"""

import re

_PLAIN = re.compile(r"[^.\[\]`]+")
_QUOTED_OR_INDEX = re.compile(r"(`(?:[^`]|``)*`)|\[[0-9]+\]")
_STEP = re.compile(r"`((?:[^`]|``)*)`|\[([0-9]*)\]|([^.\[\]`]+)")
ANY = -1
"""The step to an element of a list, whichever it is."""


def member_path(above: str, name: str) -> str:
    """Return the path of a member: `user.id`; quote a name that would be misread in backticks."""
    quoted = name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"
    return f"{above}.{quoted}" if above else quoted


def element_path(above: str, index: int) -> str:
    """Return the path of an element of a list: `user.tags[3]`, counted from 0."""
    return f"{above}[{index}]"


def any_element(path: str) -> str:
    """Return a path without the numbers of elements, so that all of them are counted as one."""
    return _QUOTED_OR_INDEX.sub(lambda found: found[1] or "[]", path) if "[" in path else path


def steps(path: str) -> list[str | int]:
    """Take a path apart: `user.tags[3]` is user, tags and 3; `tags[]` is tags and any of them."""
    found: list[str | int] = []
    for match in _STEP.finditer(path):
        quoted, index, name = match.groups()
        if index is not None:
            found.append(int(index) if index else ANY)
        else:
            found.append(quoted.replace("``", "`") if name is None else name)
    return found
