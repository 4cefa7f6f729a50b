"""The registration of tables in catalogs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.measures import Count, Measure, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRegistered(Event):
    """A catalog says of a table what it should."""

    level: ClassVar[Level] = Level.INFO
    table: str
    catalog: str
    name: str
    changed: bool

    def sentence(self) -> str:
        """Report what was done."""
        what = "registered or updated" if self.changed else "registered already"
        return f"{self.table}: {what} in {self.catalog} as {self.name}"

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        labels = {"table": self.table}
        yield Reading("penguin_catalog_registered", 1, labels)
        if self.changed:
            yield Count("penguin_catalog_updates_total", 1, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNotRegistered(Event):
    """A table could not be registered in its catalog; commits are not affected."""

    level: ClassVar[Level] = Level.WARN
    table: str
    catalog: str
    name: str
    code: str
    error: str
    next_secs: float

    def sentence(self) -> str:
        """Report why, and when it is tried again."""
        return (
            f"{self.table}: not registered in {self.catalog} as {self.name}, and commits go on; "
            f"tried again in {self.next_secs:.0f} s: {self.error}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Reading("penguin_catalog_registered", 0, {"table": self.table})
        yield Count("penguin_catalog_failures_total", 1, {"table": self.table, "code": self.code})
