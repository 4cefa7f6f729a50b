"""Events about planned commits, and about a table's upkeep beside them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakebed.telemetry.events import Level
from lakebed.telemetry.measures import Measure
from lakebed.units import plural
from penguin.events.backlog import TableEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledEntry:
    """One entry that a commit has settled; no event by itself."""

    pipeline: str
    journal: str
    entry: int
    waited: float
    """Seconds from journal entry to commit."""
    delays: tuple[float, ...] = ()
    """Seconds from arrival to commit, for each of its source files."""


class EntriesCommitted(TableEvent):
    """Entries were committed to the Delta log."""

    version: int
    entries: int
    files: int
    rows: int
    columns_added: tuple[str, ...]
    columns_dropped: tuple[str, ...] = ()
    columns_widened: tuple[str, ...] = ()
    seconds: float = 0.0
    released: int = 0
    """How many of the files had been held."""
    discarded: int = 0
    """How many held files were discarded."""
    settled: tuple[SettledEntry, ...] = ()
    """The entries."""

    def facts(self) -> dict[str, object]:
        """Return the fields; of the entries, how long the first of them had waited."""
        facts = super().facts()
        del facts["settled"]
        waited = max((entry.waited for entry in self.settled), default=0.0)
        delays = (delay for entry in self.settled for delay in entry.delays)
        return {
            **facts,
            "longest_wait": round(waited, 3),
            "longest_delay": round(max(delays, default=0.0), 3),
        }

    def message(self) -> str:
        """Return what became visible, and what no longer is."""
        columns = (
            ("new", self.columns_added),
            ("dropped", self.columns_dropped),
            ("wider", self.columns_widened),
        )
        changed = "".join(f", {how} columns: {', '.join(names)}" for how, names in columns if names)
        released = f" ({self.released} that had been held)" if self.released else ""
        discarded = f", {plural(self.discarded, 'held file')} discarded" if self.discarded else ""
        return (
            f"version {self.version}: {plural(self.entries, 'entry', 'entries')}, "
            f"{plural(self.files, 'file')}{released}, {plural(self.rows, 'row')}"
            f"{changed}{discarded}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count what became visible."""
        yield self.count("penguin_commits_total")
        yield self.observe("penguin_commit_duration_seconds", self.seconds)
        for entry in self.settled:
            yield self.observe("penguin_commit_delay_seconds", entry.waited)
            for delay in entry.delays:
                yield self.observe("penguin_visible_delay_seconds", delay)
        yield self.count("penguin_entries_committed_total", self.entries)
        yield self.count("penguin_files_committed_total", self.files)
        yield self.count("penguin_rows_committed_total", self.rows)
        yield self.count("penguin_files_released_total", self.released)
        if self.columns_added or self.columns_dropped or self.columns_widened:
            yield self.count("penguin_schema_changes_total")


class FilesHeld(
    TableEvent,
    level=Level.ERROR,
    counts="penguin_files_held_total",
    amount="paths",
    labels=("code",),
    says="held: {paths:#file} with {rows:#row} of entry {entry} of pipeline {pipeline}: "
    "{reasons:why} [{code}]; `penguin held` shows them: {paths:some}",
):
    """Files of an entry are held: the table does not have their rows."""

    pipeline: str
    entry: int
    code: str
    reasons: tuple[str, ...]
    paths: tuple[str, ...]
    rows: int


class EntryRejected(
    TableEvent,
    level=Level.WARN,
    counts="penguin_entries_rejected_total",
    labels=("kind",),
    says="the {what} in entry {entry} of pipeline {pipeline} was not applied: {reasons:why}; no "
    "row changed, {way_out}",
):
    """An entry that replaces files was settled without effect: the table is unchanged."""

    pipeline: str
    entry: int
    reasons: tuple[str, ...]
    kind: str
    """The kind of the entry."""
    what: str
    way_out: str


REJECTED: Mapping[str, tuple[str, str]] = {
    "promote": ("promotion", "run blizzard schema promote again"),
    "compact": ("compaction", "the next compaction tries again"),
    "erase": ("erasure", "run blizzard erase again"),
    "retract": (
        "retraction",
        "run blizzard retract again for the source files that blizzard journal show names",
    ),
}
"""What is rejected, by the kind of its entry, and the way out."""


class CommittedByOther(
    TableEvent,
    says="another penguin has committed {entries:#entry|entries}; the table is at version "
    "{version}",
):
    """Another writer committed the entries that were planned."""

    version: int
    entries: int

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield self.count("penguin_conflicts_total", outcome="committed_by_other")


class PlanSuperseded(
    TableEvent, level=Level.DEBUG, says="the table changed in the meantime; planning again"
):
    """The table changed after the plan was made."""

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield self.count("penguin_conflicts_total", outcome="superseded")


class TableRegistered(TableEvent):
    """A table is registered in its catalog."""

    catalog: str
    name: str
    changed: bool

    def message(self) -> str:
        """Return what was done."""
        what = "registered or updated" if self.changed else "registered already"
        return f"{what} in {self.catalog} as {self.name}"

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield self.reading("penguin_catalog_registered", 1)
        if self.changed:
            yield self.count("penguin_catalog_updates_total")


class TableNotRegistered(
    TableEvent,
    level=Level.WARN,
    says="not registered in {catalog} as {name}, and commits go on; tried again in "
    "{next_secs:.0f} s: {error}",
):
    """A table could not be registered in its catalog; commits are not affected."""

    catalog: str
    name: str
    code: str
    error: str
    next_secs: float

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield self.reading("penguin_catalog_registered", 0)
        yield self.count("penguin_catalog_failures_total", code=self.code)


class CheckpointWritten(
    TableEvent,
    level=Level.DEBUG,
    counts="penguin_checkpoints_written_total",
    says="checkpoint of version {version} written",
):
    """A Delta checkpoint was written."""

    version: int
    seconds: float = 0.0


class CheckpointFailed(
    TableEvent,
    level=Level.WARN,
    counts="penguin_checkpoints_failed_total",
    says="the checkpoint of version {version} could not be written; the next step tries again: "
    "{error}",
):
    """A Delta checkpoint could not be written; commits are not affected."""

    version: int
    error: str


class LogCleanUpFailed(
    TableEvent,
    level=Level.WARN,
    counts="penguin_log_clean_ups_failed_total",
    says="old versions of the log could not be removed; the next checkpoint tries again: {error}",
):
    """Expired versions could not be removed; commits are not affected."""

    error: str
