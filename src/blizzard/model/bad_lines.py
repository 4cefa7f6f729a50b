"""Lines in quarantine: in groups by what is wrong with them, and which of them are meant. Pure."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from blizzard.model.json_path import any_element
from blizzard.model.source.form import SkipRule
from lakebed.documents.quarantine_file import QuarantineFile

GROUP_DIGITS = 8
_AT_COLUMN = re.compile(r" at column \d+$")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a line; lines of which all of it is the same are a group."""

    code: str
    field: str | None
    """The path of the value; elements of a list are not told apart."""
    expected: str | None
    found: str | None

    @property
    def group(self) -> str:
        """Return the name of the group, the same wherever and whenever it is asked for."""
        text = json.dumps([self.code, self.field, self.expected, self.found])
        return hashlib.sha256(text.encode()).hexdigest()[:GROUP_DIGITS]


def fault_of(code: str, field: str | None, expected: str | None, found: str | None) -> Fault:
    """Return what is wrong with a line that is set aside, wherever in the line it is."""
    found = None if found is None else _AT_COLUMN.sub("", found)
    return Fault(code, None if field is None else any_element(field), expected, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """Which lines an operator means: those of groups, and those of source files; or all of them."""

    everything: bool = False
    groups: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    """The keys of source files."""

    def takes(self, group: str, source: str) -> bool:
        """Whether a line is meant, by its group and the key of its source file."""
        return self.everything or group in self.groups or source in self.sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Lines of a quarantine file that are to be read again."""

    file: QuarantineFile
    meant: Meant
    skips: Mapping[str, SkipRule] = field(default_factory=dict)
    """Which records are passed over, by the names of the sources that have such a rule."""
