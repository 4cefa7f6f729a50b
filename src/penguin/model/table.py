"""What a table is, and what it becomes so that files fit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DeltaSchema = dict[str, Any]
"""A schema as the Delta protocol writes it."""

DeltaField = dict[str, Any]
"""One field of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What one snapshot of a table says of itself; `version` is None before it is created."""

    version: int | None
    schema: DeltaSchema
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    features: frozenset[str] = frozenset()
    """The table features that readers and writers must support, by name."""

    def shape(self) -> tuple[object, ...]:
        """Return what a plan depends on, so that a plan for another shape is noticed."""
        return self.schema, self.partition_columns, dict(self.configuration)


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
