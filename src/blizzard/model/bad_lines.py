"""Bad lines: limits, groups, selections, and the paths of values such as `user.tags[3]`. Pure.

An ambiguous name is quoted in backticks, and a backtick in it is doubled. The paths in
`lakebed.columns.column_mapping` name fields of a schema, as Delta writes them: they have no
elements, and brackets are ordinary characters.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from blizzard.model.source.form import SkipRule
from lakebed.documents.records import QuarantineFile
from lakebed.layout import file_name

_PLAIN = re.compile(r"[^.\[\]`]+")
_QUOTED_OR_INDEX = re.compile(r"(`(?:[^`]|``)*`)|\[[0-9]+\]")
_STEP = re.compile(r"`((?:[^`]|``)*)`|\[([0-9]*)\]|([^.\[\]`]+)")
ANY = -1
"""The step to any element of a list."""


def member_path(above: str, name: str) -> str:
    """Return the path of a member such as `user.id`; quote ambiguous names in backticks."""
    quoted = name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"
    return f"{above}.{quoted}" if above else quoted


def element_path(above: str, index: int) -> str:
    """Return the path of an element of a list: `user.tags[3]`, counted from 0."""
    return f"{above}[{index}]"


def any_element(path: str) -> str:
    """Return a path without element indexes, so that all elements count as one."""
    return _QUOTED_OR_INDEX.sub(lambda found: found[1] or "[]", path) if "[" in path else path


def steps(path: str) -> list[str | int]:
    """Split a path: `user.tags[3]` is user, tags and 3; `tags[]` is tags and `ANY`."""
    found: list[str | int] = []
    for match in _STEP.finditer(path):
        quoted, index, name = match.groups()
        if index is not None:
            found.append(int(index) if index else ANY)
        else:
            found.append(quoted.replace("``", "`") if name is None else name)
    return found


TOO_MANY = "too_many_bad_lines"
GROUP_DIGITS = 8
_AT_COLUMN = re.compile(r" at column \d+$")


def too_many_message(exceeded: str, *, code: str, message: str) -> str:
    """Return the failure message of too many bad lines: the limit, and the first error."""
    return f"{exceeded}; the first of them: {message} [{code}]"


@dataclass(frozen=True, slots=True)
class LineFault:
    """The error of a line; lines with equal errors form a group."""

    code: str
    field: str | None
    """The path of the value; all elements of a list share one."""
    expected: str | None
    found: str | None

    @property
    def group(self) -> str:
        """Return the stable name of the group."""
        text = json.dumps([self.code, self.field, self.expected, self.found])
        return hashlib.sha256(text.encode()).hexdigest()[:GROUP_DIGITS]


def fault_of(code: str, field: str | None, expected: str | None, found: str | None) -> LineFault:
    """Return the error of a quarantined line, independent of its position in the line."""
    found = None if found is None else _AT_COLUMN.sub("", found)
    return LineFault(code, None if field is None else any_element(field), expected, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedLines:
    """The quarantined lines that an operator selects: by group, by source file, or all."""

    everything: bool = False
    groups: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    """The keys of source files."""

    def includes(self, group: str, source: str) -> bool:
        """Whether a line is selected, by its group and the key of its source file."""
        return self.everything or group in self.groups or source in self.sources

    def may_be_in(self, waiting: "WaitingFile") -> bool:
        """Whether a quarantine file may have selected lines."""
        has_source = any(one.source in self.sources for one in waiting.file.sources)
        return self.everything or bool(self.groups) or has_source


@dataclass(frozen=True, slots=True, kw_only=True)
class LineReplay:
    """Lines of a quarantine file to replay."""

    file: QuarantineFile
    selected: SelectedLines
    skips: Mapping[str, SkipRule] = field(default_factory=dict)
    """The skip rules by source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFile:
    """A quarantine file with waiting lines, and the entry that quarantined them."""

    file: QuarantineFile
    entry: int
    source_uris: Mapping[str, str] = field(default_factory=dict)
    """The URIs of the sources at that time."""
    place: tuple[int, int] = (0, 0)
    """The entry that names the file and the file's index in it, for sorting."""


def selected_by(names: list[str] | None, files: tuple[WaitingFile, ...]) -> SelectedLines:
    """Return the selection of an operator's names; without names, all lines.

    A name is the key of a source file, the path or name of a quarantine file (which selects its
    source files), or a group.
    """
    if names is None:
        return SelectedLines(everything=True)
    by_name: dict[str, set[str]] = {}
    for waiting in files:
        file_names = (waiting.file.filename, file_name(waiting.file.filename))
        for one in waiting.file.sources:
            for name in (*file_names, one.source):
                by_name.setdefault(name, set()).add(one.source)
    return SelectedLines(
        groups=frozenset(name for name in names if name not in by_name),
        sources=frozenset(key for name in names for key in by_name.get(name, ())),
    )
