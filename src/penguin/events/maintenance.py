"""The upkeep of a table, as events: checkpoints, removed versions, and its entry in a catalog."""

from collections.abc import Iterable
from typing import ClassVar

from lakebed.telemetry.events import Level
from lakebed.telemetry.measures import Count, Measure, Reading
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

    says = (
        "{table}: not registered in {catalog} as {name}, and commits go on; tried again in "
        "{next_secs:.0f} s: {error}"
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

    says = "{table}: checkpoint of version {version} written"


class CheckpointFailed(TableEvent, level=Level.WARN):
    """A Delta checkpoint could not be written; commits are not affected."""

    counter: ClassVar[str] = "penguin_checkpoints_failed_total"
    version: int
    error: str

    says = (
        "{table}: the checkpoint of version {version} could not be written; the next step tries "
        "again: {error}"
    )


class LogCleanedUp(TableEvent):
    """Expired versions of the Delta log were removed."""

    first: int
    removed: int

    says = (
        "{table}: {removed:#version} of the log removed, as delta.logRetentionDuration requires; "
        "the log now begins at version {first}"
    )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield Count("penguin_log_versions_removed_total", self.removed, {"table": self.table})


class LogCleanUpFailed(TableEvent, level=Level.WARN):
    """Expired versions could not be removed; commits are not affected."""

    counter: ClassVar[str] = "penguin_log_clean_ups_failed_total"
    error: str

    says = (
        "{table}: old versions of the log could not be removed; the next checkpoint tries again: "
        "{error}"
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
