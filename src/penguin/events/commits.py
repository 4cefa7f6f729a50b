"""What becomes of a planned commit."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.measures import Count, Measure, Observe
from lakebed.units import plural
from penguin.events.backlog import TableEvent, first_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """One entry that a commit has settled; no event by itself."""

    pipeline: str
    journal: str
    entry: int
    waited: float
    """Seconds from its being journaled to the commit."""
    delays: tuple[float, ...] = ()
    """Seconds from the arrival of each of its source files to the commit."""


class EntriesCommitted(TableEvent):
    """We committed entries to the Delta log."""

    version: int
    entries: int
    files: int
    rows: int
    columns_added: tuple[str, ...]
    columns_dropped: tuple[str, ...] = ()
    columns_widened: tuple[str, ...] = ()
    seconds: float = 0.0
    released: int = 0
    """How many of the files had been set aside."""
    discarded: int = 0
    """How many files that had been set aside never will be added."""
    settled: tuple[Settled, ...] = ()
    """The entries."""

    def facts(self) -> dict[str, object]:
        """Return the fields; of the entries, how long the first of them had waited."""
        told = Event.facts(self)
        del told["settled"]
        waited = max((entry.waited for entry in self.settled), default=0.0)
        delays = (delay for entry in self.settled for delay in entry.delays)
        return {
            **told,
            "longest_wait": round(waited, 3),
            "longest_delay": round(max(delays, default=0.0), 3),
        }

    def sentence(self) -> str:
        """Report what became visible, and what no longer is."""
        columns = (
            ("new", self.columns_added),
            ("dropped", self.columns_dropped),
            ("wider", self.columns_widened),
        )
        changed = "".join(f", {how} columns: {', '.join(names)}" for how, names in columns if names)
        released = f" ({self.released} that had been held)" if self.released else ""
        discarded = f", {plural(self.discarded, 'held file')} discarded" if self.discarded else ""
        return (
            f"{self.table}: version {self.version}: {plural(self.entries, 'entry', 'entries')}, "
            f"{plural(self.files, 'file')}{released}, {plural(self.rows, 'row')}"
            f"{changed}{discarded}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count what became visible."""
        labels = {"table": self.table}
        yield Count("penguin_commits_total", 1, labels)
        yield Observe("penguin_commit_duration_seconds", self.seconds, labels)
        for entry in self.settled:
            yield Observe("penguin_commit_delay_seconds", entry.waited, labels)
            for delay in entry.delays:
                yield Observe("penguin_visible_delay_seconds", delay, labels)
        yield Count("penguin_entries_committed_total", self.entries, labels)
        yield Count("penguin_files_committed_total", self.files, labels)
        yield Count("penguin_rows_committed_total", self.rows, labels)
        yield Count("penguin_columns_added_total", len(self.columns_added), labels)
        yield Count("penguin_files_released_total", self.released, labels)
        if self.columns_added or self.columns_dropped or self.columns_widened:
            yield Count("penguin_schema_changes_total", 1, labels)


class FilesHeld(TableEvent, level=Level.ERROR):
    """Files of an entry are set aside: the table does not have their rows."""

    pipeline: str
    entry: int
    code: str
    reasons: tuple[str, ...]
    paths: tuple[str, ...]
    rows: int

    def sentence(self) -> str:
        """Name them, and say why and what to do."""
        return (
            f"{self.table}: held: {plural(len(self.paths), 'file')} with "
            f"{plural(self.rows, 'row')} of entry {self.entry} of pipeline {self.pipeline}: "
            f"{'; '.join(self.reasons)} [{self.code}]; "
            f"`penguin held` shows them: {first_of(self.paths)}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        labels = {"table": self.table, "code": self.code}
        yield Count("penguin_files_held_total", len(self.paths), labels)


class EntryRejected(TableEvent):
    """An entry that replaces files was settled without effect."""

    pipeline: str
    entry: int
    reasons: tuple[str, ...]


class PromotionPassedOver(EntryRejected, level=Level.WARN):
    """A promotion was settled without effect: the table is as it was, and so are its rows."""

    counter: ClassVar[str] = "penguin_promotions_passed_over_total"

    def sentence(self) -> str:
        """Report why, and what to do."""
        return (
            f"{self.table}: the promotion in entry {self.entry} of pipeline {self.pipeline} was "
            f"not applied: {'; '.join(self.reasons)}; no row changed, run blizzard schema promote "
            "again"
        )


class RetractionPassedOver(EntryRejected, level=Level.WARN):
    """A retraction or erasure was settled without effect: it removed no row."""

    counter: ClassVar[str] = "penguin_retractions_passed_over_total"
    kind: str = "retract"
    """The command that is to be run again."""

    def sentence(self) -> str:
        """Report why, and what to do."""
        what, again = "erasure", "; run blizzard erase again"
        if self.kind == "retract":
            what = "retraction"
            again = (
                " and added none; run blizzard retract again for the source "
                f"files that blizzard journal show {self.entry} names; it refuses if another "
                "program has rewritten the rows and they have no column _file"
            )
        return (
            f"{self.table}: the {what} in entry {self.entry} of pipeline {self.pipeline} was not "
            f"applied: {'; '.join(self.reasons)}; it removed no row{again}"
        )


class CompactionPassedOver(EntryRejected):
    """A compaction gave way to another writer: the table is as it was, and so are its rows."""

    counter: ClassVar[str] = "penguin_compactions_passed_over_total"

    def sentence(self) -> str:
        """Report why; nothing has to be done."""
        return (
            f"{self.table}: the compaction in entry {self.entry} of pipeline {self.pipeline} gave "
            f"way: {'; '.join(self.reasons)}; no file changed, the next compaction tries again"
        )


class CommittedByOther(TableEvent):
    """Somebody else committed the entries that were planned."""

    version: int
    entries: int

    says = (
        "{table}: another penguin has committed {entries:#entry|entries}; the table is at version"
        " {version}"
    )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        labels = {"table": self.table, "outcome": "committed_by_other"}
        yield Count("penguin_conflicts_total", 1, labels)


class PlanSuperseded(TableEvent, level=Level.DEBUG):
    """The table changed after the plan was made."""

    says = "{table}: the table changed in the meantime; looking again"

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("penguin_conflicts_total", 1, {"table": self.table, "outcome": "superseded"})
