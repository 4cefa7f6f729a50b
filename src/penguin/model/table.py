"""What a table becomes so that files fit."""

from dataclasses import dataclass

from lakebed.deltalog.delta_types import TableFacts


@dataclass(frozen=True, slots=True)
class Fits:
    """The table can hold the entry's files as it is."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What becomes of a table's columns, each named with the structs it is in."""

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Those that readers no longer see; their files still hold them."""
    widened: tuple[str, ...] = ()
    """Those that get a wider type, or may be null from now on."""

    def then(self, later: "Changes") -> "Changes":
        """Put two steps together; what the second undoes of the first is left out."""
        added = dict.fromkeys((*self.added, *later.added))
        dropped = dict.fromkeys((*self.dropped, *later.dropped))
        return Changes(
            added=tuple(name for name in added if name not in later.dropped),
            dropped=tuple(name for name in dropped if name not in later.added),
            widened=tuple(dict.fromkeys((*self.widened, *later.widened))),
        )


@dataclass(frozen=True, slots=True)
class Evolves:
    """The table can hold the entry's files once it is this one."""

    table: TableFacts
    changes: Changes


@dataclass(frozen=True, slots=True)
class Refused:
    """The table cannot hold the entry's files, for each of these reasons."""

    reasons: tuple[str, ...]


Decision = Fits | Evolves | Refused
