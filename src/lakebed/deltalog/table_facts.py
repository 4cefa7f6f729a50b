"""What a table is: schema, partition columns, properties and features."""

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
