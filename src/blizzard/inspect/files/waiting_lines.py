"""Bad lines of source files that wait in quarantine, told with the objects they are of. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from blizzard.inspect.files.standing import FileStanding

ByFile = Mapping[str, Mapping[int, int]]
"""How many bad lines of files wait, by key and by the entry that read them."""


@dataclass(slots=True)
class WaitingLines:
    """Tells bad lines once, as objects are met in the order in which they were read."""

    waiting: ByFile = field(default_factory=dict)
    _told: set[tuple[str, int]] = field(default_factory=set)

    def of(self, one: FileStanding) -> dict[int, int]:
        """Return those of an object by entry: all up to its own that are of no earlier object."""
        found = {
            entry: lines
            for entry, lines in self.waiting.get(one.key, {}).items()
            if (one.entry is None or entry <= one.entry) and (one.key, entry) not in self._told
        }
        self._told |= {(one.key, entry) for entry in found}
        return found
