"""The upkeep of a table, as events: checkpoints, removed versions, and its entry in a catalog."""

from collections.abc import Iterable
from typing import ClassVar

from lakebed.telemetry.events import Level
from lakebed.telemetry.measures import Count, Measure, Reading
from lakebed.units import plural
from penguin.events.backlog import TableEvent


class TableRegistered(TableEvent):
    """A catalog says of a table what it should."""

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


class TableNotRegistered(TableEvent, level=Level.WARN):
    """A table could not be registered in its catalog; commits are not affected."""

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


class CheckpointWritten(TableEvent, level=Level.DEBUG):
    """A Delta checkpoint was written."""

    counter: ClassVar[str] = "penguin_checkpoints_written_total"
    version: int
    seconds: float = 0.0

    def sentence(self) -> str:
        """Report for which version."""
        return f"{self.table}: checkpoint of version {self.version} written"


class CheckpointFailed(TableEvent, level=Level.WARN):
    """A Delta checkpoint could not be written; commits are not affected."""

    counter: ClassVar[str] = "penguin_checkpoints_failed_total"
    version: int
    error: str

    def sentence(self) -> str:
        """Report that it will be tried again."""
        return (
            f"{self.table}: the checkpoint of version {self.version} could not be written; the "
            f"next step tries again: {self.error}"
        )


class LogCleanedUp(TableEvent):
    """Expired versions of the Delta log were removed."""

    first: int
    removed: int

    def sentence(self) -> str:
        """Report how far back the log reaches now."""
        return (
            f"{self.table}: {plural(self.removed, 'version')} of the log removed, as "
            f"delta.logRetentionDuration requires; the log now begins at version {self.first}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield Count("penguin_log_versions_removed_total", self.removed, {"table": self.table})


class LogCleanUpFailed(TableEvent, level=Level.WARN):
    """Expired versions could not be removed; commits are not affected."""

    counter: ClassVar[str] = "penguin_log_clean_ups_failed_total"
    error: str

    def sentence(self) -> str:
        """Report that it will be tried again."""
        return (
            f"{self.table}: old versions of the log could not be removed; the next checkpoint "
            f"tries again: {self.error}"
        )


class LogKept(TableEvent, level=Level.WARN):
    """Nothing of the Delta log is removed: the table's retention cannot be read."""

    counter: ClassVar[str] = "penguin_log_clean_ups_failed_total"
    name: str
    value: str

    def sentence(self) -> str:
        """Report what is kept, and what to set."""
        return (
            f"{self.table}: old versions of the log are kept: {self.name} is {self.value!r}, "
            "which is not an interval that Delta understands; set it to one such as `interval "
            "30 days`"
        )
