"""One transaction for every command that changes data files of the table.

A command selects files and rows, which makes a `RewritePlan`; rewrites them under fresh names; and
appends one entry that names the files to supersede. Before the entry, nothing has happened, and the
new files are garbage like those of any attempt that died. After it, penguin applies the entry in
one version or, if one of the files has left the table, rejects it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Generic, ParamSpec, TypeVar, cast

from blizzard.config.columns import columns_from
from blizzard.execute.runner import Rewriter
from blizzard.handoff.held_rows import rejection_lookup
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.checks import last_entry
from blizzard.journal.fence import append_planned, refuse_collected_since
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
from lakebed.deltalog import tables
from lakebed.deltalog.delta_types import names_in_log
from lakebed.deltalog.file_names import is_elsewhere
from lakebed.deltalog.snapshot import Snapshot
from lakebed.documents.entry import Entry, Kind
from lakebed.documents.pending_meta import HeldState
from lakebed.documents.records import FinishedFile, OldFile, Rewrite, SourceRecord
from lakebed.errors import JournalConflict, LakeError, ObjectMissing, Whose
from lakebed.journal import JournalReader, StoredEntry, entries_in, replaced_journals
from lakebed.layout import TablePath
from lakebed.storage.store import Reader, Store

NOUNS = {
    "promote": "promotion",
    "retract": "retraction",
    "erase": "erasure",
    "compact": "compaction",
}


class PromotionPending(LakeError, code="promotion_pending", whose=Whose.USER, retryable=True):
    """An earlier promotion, retraction or erasure is not committed yet."""


class NotRewritten(LakeError, code="file_not_rewritten", whose=Whose.EXTERNAL, retryable=True):
    """A data file could not be rewritten, so nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A version of a pipeline's table, and the journal as read after it."""

    store: Reader
    settings: PipelineSettings
    snapshot: Snapshot
    files: Mapping[str, ActiveFile]
    """Its data files by name."""
    history: Ledger
    stored: StoredEntry
    """The last entry."""

    @property
    def last(self) -> Entry:
        """Return the last entry."""
        return self.stored.entry

    @property
    def committed(self) -> int:
        """The last entry of the journal that is in the table; 0 without any."""
        return self.snapshot.committed(self.last.pipeline, self.last.journal) or 0

    def has(self, entry: Entry) -> bool:
        """Whether an entry of any journal is committed in this version."""
        return entry.sequence <= (self.snapshot.committed(entry.pipeline, entry.journal) or 0)

    def has_rejected(self, entry: Entry) -> bool:
        """Whether an entry is committed and penguin rejected it."""
        mark = entry.replacement_mark
        return (
            entry.replaces
            and self.has(entry)
            and self.snapshot.fates([mark])[mark] == HeldState.GONE
        )

    @property
    def columns(self) -> Schema:
        """The table's columns as a blizzard schema; empty if unreadable."""
        return columns_from(self.snapshot.facts.schema) or Schema(())

    def require_columns(self) -> Schema:
        """Return the columns of the table; raise if they cannot be read."""
        if not self.columns.fields:
            raise ObjectMissing("the columns of the table cannot be read", path=self.store.uri)
        return self.columns

    def next_entry(self, kind: Kind, clock: Clock) -> Entry:
        """Return the next entry of the journal, with the table's columns."""
        following = self.stored.successor(kind, clock)
        found = self.history.columns
        columns = following.columns if found is None else found
        return replace(following, table_schema=dict(self.snapshot.facts.schema), columns=columns)

    def waiting_entries(self) -> tuple[Entry, ...]:
        """Return the entries of all journals in use that are not in this version."""
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
                raise PromotionPending(
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
        """Rewrite every file separately; raise if one fails, since nothing changes then."""
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


P = ParamSpec("P")
Done = TypeVar("Done")
Plan = TypeVar("Plan", bound="RewritePlan")

TRIES = 3
"""Attempts of a command that other writers overtake."""
WAIT_SECS = 2.0
MOST_WAITS = 30
NO_TABLE = "there is no table yet: nothing was committed; run penguin first"


class NothingCommitted(ObjectMissing):
    """There is no table whose files could be rewritten."""


class RewriteConflict(JournalConflict):
    """Another writer has changed, or is about to change, the same files; nothing was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePlan:
    """The files and rows that a command selects, and the state of the selection."""

    state: TableState

    @property
    def requires(self) -> object:
        """Facts that the entry relies on, beside the files that it supersedes."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteDone(Generic[Plan]):
    """What a command found and did."""

    found: Plan
    rewritten: tuple[Rewritten, ...] = ()
    replaced: tuple[Rewrite, ...] = ()
    """The files that the entry supersedes, with their replacements."""
    entry: int | None = None
    """The entry that it appended; None if nothing was changed."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """The number of rows that a retraction takes out of the table, by source object."""
    new: tuple[SourceRecord, ...] = ()
    """The source objects whose content supersedes those rows."""
    failed: tuple[RewriteFailed, ...] = ()
    """Groups of files that a compaction failed to rewrite."""
    conflict: str | None = None
    """The conflict with another writer for which a compaction was abandoned, if any."""


def tries_again(once: Callable[P, Done]) -> Callable[P, Done]:
    """Make a command plan and rewrite again when another writer overtakes it.

    A retry waits up to a minute for penguin to commit pending entries; the first attempt does not.
    """

    @wraps(once)
    def tried(*given: P.args, **named: P.kwargs) -> Done:
        clock = cast("Clock", named["clock"])
        overtaken = waited = 0
        while True:
            try:
                return once(*given, **named)
            except RewriteConflict:
                overtaken += 1
                if overtaken == TRIES:
                    raise
            except PromotionPending:
                if not overtaken or waited == MOST_WAITS:
                    raise
                waited += 1
                clock.sleep(WAIT_SECS)

    return tried


def active_files(snapshot: Snapshot) -> dict[str, ActiveFile]:
    """Return the data files in the table's directory, by their names.

    A table may have others: those of a shallow clone are in the directory of another table.
    """
    names = names_in_log(snapshot.facts)
    return {
        path: ActiveFile(
            path=TablePath(path),
            size=file.size or 0,
            rows=file.rows,
            partition_values={
                name: dict(file.partition_values).get(names.get(name, name))
                for name in snapshot.facts.partition_columns
            },
            first_row=file.first_row,
            vector=file.vector,
        )
        for path, file in snapshot.files.items()
        if not is_elsewhere(path)
    }


def table_state(store: Reader, settings: PipelineSettings) -> TableState:
    """Read the table, then the journal; raise if there is none, or an entry has to come first.

    Each data file in the table is named by an earlier entry; an entry that is not in this version
    of the table is pending.
    """
    sink, pipeline = settings.sink, settings.name
    snapshot = tables.replaceable(sink.table_uri, sink.storage_options)
    if snapshot is None:
        raise NothingCommitted(NO_TABLE, path=store.uri)
    files = active_files(snapshot)
    rejections = rejection_lookup(snapshot.fates, partial(snapshot.committed, pipeline))
    history = read_ledger(store, pipeline, rejections=rejections)
    if history.sequence < 0:
        raise NothingCommitted(NO_TABLE, path=store.uri)
    last = last_entry(history)
    state = TableState(
        store=store,
        settings=settings,
        snapshot=snapshot,
        files=files,
        history=history,
        stored=last,
    )
    _refuse_waiting(state)
    return state


def _refuse_waiting(state: TableState) -> None:
    """Raise while an earlier rewriting entry of the pipeline is not committed."""
    settings = state.settings
    for entry in JournalReader(state.store, settings.name).entries(state.committed):
        if entry.outgoing:
            raise PromotionPending(
                f"the {NOUNS[entry.kind]} in entry {entry.sequence} is not committed yet; run "
                f"{settings.sink.committer} first, then this again",
                entry=entry.sequence,
            )


def entries_of_table(store: Reader, first: str = "") -> Iterator[tuple[Entry, bool]]:
    """Yield every entry of every journal of a table, and whether its journal is in use.

    Those of the journal in use of one pipeline come first.
    """
    pipelines = layout.pipelines(store.folders(layout.OURS))
    for pipeline in sorted(pipelines, key=lambda name: (name != first, name)):
        replaced = replaced_journals(store, pipeline)
        for folder in (layout.journal_folder(pipeline), *replaced):
            for stored in entries_in(store, pipeline, folder):
                yield stored.entry, folder not in replaced


def superseded(old: ActiveFile, new: Sequence[FinishedFile] = (), *, left_out: int = 0) -> Rewrite:
    """Return the rewrite of one file, or its removal if there is no new one. Pure."""
    rows = left_out + sum(file.record_count for file in new)
    return Rewrite(
        old=(old_file(old, rows=rows, left_out=left_out),),
        new=tuple(new),
        partition_values={} if new else old.partition_values,
    )


def old_file(file: ActiveFile, *, rows: int, left_out: int = 0) -> OldFile:
    """Return a file for a rewrite that takes it out. Pure."""
    return OldFile(
        path=file.path,
        size=file.size,
        rows=rows,
        left_out=left_out,
        vector=file.vector_key,
        deleted=file.deleted,
    )


def commit(
    store: Store,
    plan: Plan,
    rewritten: Iterable[Rewritten],
    entry: Callable[[Plan], Entry | None],
    *,
    replan: Callable[[], Plan] | None = None,
) -> tuple[Plan, int | None]:
    """Append the entry of a plan; return the newest plan and the number of the entry.

    `replan` plans again from the newest journal and table; without it, only the plan's state is
    read again. `entry` makes the entry of that plan. If the entry cannot be appended, the new files
    are deleted, since no entry names them.
    """

    def validated() -> tuple[Plan, Entry | None]:
        now = replan() if replan else replace(plan, state=table_state(store, plan.state.settings))
        _refuse_renamed(plan.state, now.state)
        following = entry(now)
        if following is not None:
            _refuse_overtaken(plan, now, following)
        return now, following

    try:
        newest, appended = append_planned(store, plan.state.last.pipeline, validated)
    except (PromotionPending, JournalConflict) as conflict:
        drop(store, (file for one in rewritten for file in one.new))
        if isinstance(conflict, JournalConflict):
            raise
        raise RewriteConflict(conflict.message, pipeline=plan.state.last.pipeline) from conflict
    return newest, None if appended is None else appended.sequence


def drop(store: Store, staged: Iterable[FinishedFile]) -> None:
    """Delete files that no entry names; `blizzard gc` finds what is left behind."""
    for file in staged:
        try:
            store.delete(file.filename)
        except LakeError:
            return


def _refuse_renamed(before: TableState, now: TableState) -> None:
    """Raise if files were rewritten with other column names than the table has now."""
    if before.snapshot.mapping not in (None, now.snapshot.mapping):
        raise RewriteConflict(
            "columns of the table were renamed, added or dropped meanwhile; nothing was done, try "
            "again",
            table=now.store.uri,
        )


def _refuse_overtaken(before: RewritePlan, now: RewritePlan, entry: Entry) -> None:
    """Raise if the rewritten files are outdated, or if the new ones were garbage-collected."""
    store = now.state.store
    path = store.describe(layout.journal_folder(entry.pipeline))
    there = {file.path: (file.size, file.vector_key) for file in now.state.files.values()}
    gone = any(
        there.get(old.path) != (old.size, old.vector) for one in entry.rewrites for old in one.old
    )
    same_journal = before.state.last.journal == now.state.last.journal
    if gone or not same_journal or before.requires != now.requires:
        raise RewriteConflict(
            "another writer changed these files, rows or columns meanwhile; nothing was done, try "
            "again",
            path=path,
        )
    refuse_collected_since(store, before.state.last.sequence, entry)
