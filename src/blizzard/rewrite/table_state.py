"""A version of a table with the journal beside it: what a command plans its rewriting on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from blizzard.config.columns import columns_from
from blizzard.execute.runner import Rewriter
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.ledger import Ledger
from blizzard.model.rewriting import (
    ActiveFile,
    FileGroup,
    RewriteFailed,
    Rewriting,
    Rewritten,
    Transform,
)
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import sink_location
from lakebed import layout
from lakebed.clock import Clock
from lakebed.columns.schema import Schema
from lakebed.deltalog.snapshot import Snapshot
from lakebed.documents.entry import Entry, Kind
from lakebed.documents.pending_meta import HeldState
from lakebed.errors import LakeError, ObjectMissing, Whose
from lakebed.journal import JournalReader, StoredEntry
from lakebed.storage.store import Reader

NOUNS = {
    "promote": "promotion",
    "retract": "retraction",
    "erase": "erasure",
    "compact": "compaction",
}


class PromotionWaits(LakeError, code="promotion_waits", whose=Whose.USER, retryable=True):
    """An earlier promotion, retraction or erasure is not committed yet."""


class NotRewritten(LakeError, code="file_not_rewritten", whose=Whose.EXTERNAL, retryable=True):
    """A data file could not be rewritten, so nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A version of a pipeline's table, and the journal as it was read after it."""

    store: Reader
    settings: PipelineSettings
    snapshot: Snapshot
    files: Mapping[str, ActiveFile]
    """Its data files by their names."""
    history: Ledger
    stored: StoredEntry
    """The last entry."""

    @property
    def last(self) -> Entry:
        """Return the last entry."""
        return self.stored.entry

    @property
    def committed(self) -> int:
        """Return the last entry of the journal that the table has; 0 without any."""
        return self.snapshot.committed(self.last.pipeline, self.last.journal) or 0

    def has(self, entry: Entry) -> bool:
        """Whether an entry of any journal is committed in this version."""
        return entry.sequence <= (self.snapshot.committed(entry.pipeline, entry.journal) or 0)

    def has_rejected(self, entry: Entry) -> bool:
        """Whether an entry is committed, and penguin did not replace the files that it names."""
        mark = entry.replacement_mark
        return (
            entry.replaces
            and self.has(entry)
            and self.snapshot.fates([mark])[mark] == HeldState.GONE
        )

    @property
    def columns(self) -> Schema:
        """Return the table's columns as blizzard declares them; none if they are unreadable."""
        return columns_from(self.snapshot.facts.schema) or Schema(())

    def require_columns(self) -> Schema:
        """Return the columns of the table; raise if they cannot be read."""
        if not self.columns.fields:
            raise ObjectMissing("the columns of the table cannot be read", path=self.store.uri)
        return self.columns

    def next_entry(self, kind: Kind, clock: Clock) -> Entry:
        """Return the next entry of the journal, with the columns that the table has."""
        following = self.stored.successor(kind, clock)
        found = self.history.columns
        columns = following.columns if found is None else found
        return replace(following, table_schema=dict(self.snapshot.facts.schema), columns=columns)

    def waiting_entries(self) -> tuple[Entry, ...]:
        """Return the entries of all journals in use that this version does not have yet."""
        found: list[Entry] = []
        for pipeline in layout.pipelines(self.store.folders(layout.OURS)):
            journal = read_ledger(self.store, pipeline).journal
            if journal is not None:
                committed = self.snapshot.committed(pipeline, journal) or 0
                found += JournalReader(self.store, pipeline).entries(committed)
        return tuple(found)

    def refuse_contested(self, files: Iterable[ActiveFile]) -> None:
        """Raise while an entry of another pipeline is to supersede one of the files.

        penguin would reject the later of the two entries, after all the rewriting.
        """
        wanted = {file.path for file in files}
        for entry in self.waiting_entries():
            outgoing = {file.filename for file in entry.outgoing}
            if entry.pipeline != self.last.pipeline and not wanted.isdisjoint(outgoing):
                raise PromotionWaits(
                    f"the {NOUNS[entry.kind]} in entry {entry.sequence} of pipeline "
                    f"{entry.pipeline} replaces the same files and is not committed yet; run "
                    "penguin first, then this again",
                    entry=entry.sequence,
                )

    def rewriting(self, transform: Transform, clock: Clock) -> Rewriting:
        """Return the work that applies a transform to files of the table."""
        sink = self.settings.sink
        return Rewriting(
            sink=sink_location(self.settings),
            codec=sink.rolling.codec,
            upload=sink.upload,
            marks={"pipeline": self.settings.name, "journal": self.last.journal},
            clock=clock,
            transform=transform,
            columns=self.columns,
            mapping=self.snapshot.mapping,
            row_columns=self.snapshot.row_columns,
        )

    def rewrite_each(
        self, rewriter: Rewriter, files: Iterable[ActiveFile], transform: Transform, clock: Clock
    ) -> tuple[Rewritten, ...]:
        """Rewrite every file by itself; raise if one of them fails, since nothing changes then."""
        groups = [FileGroup(files=(file,)) for file in files]
        work = self.rewriting(transform, clock)
        outcomes = rewriter.rewrite(groups, work) if groups else []
        for outcome in outcomes:
            if isinstance(outcome, RewriteFailed):
                again = ", try again" if outcome.retryable else ""
                raise NotRewritten(
                    f"{outcome.message} [{outcome.code}]; nothing was changed{again}",
                    file=outcome.group.file.path,
                )
        return tuple(outcome for outcome in outcomes if isinstance(outcome, Rewritten))
