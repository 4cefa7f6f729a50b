"""One transaction for every command that changes data files of the table.

A command selects files and rows, which makes a `RewritePlan`; rewrites them under fresh names; and
appends one entry that names the files to supersede. Before the entry, nothing has happened, and the
new files are garbage like those of any attempt that died. After it, penguin applies the entry in
one version or, if one of the files has left the table, rejects it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from blizzard.config.columns import columns_from
from blizzard.execute.runner import Rewriter
from blizzard.handoff.held_rows import passed_over
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.checks import last_entry
from blizzard.journal.fence import append_what_is_found, refuse_collected_since
from blizzard.journal.ledger import Ledger
from blizzard.journal.standings import PassedOver, nothing_decided
from blizzard.model.locations import sink_location
from blizzard.model.rewriting import (
    ActiveFile,
    FileGroup,
    RewriteFailed,
    Rewriting,
    Rewritten,
    Transform,
)
from blizzard.model.settings import PipelineSettings
from lakebed import layout
from lakebed.clock import Clock
from lakebed.columns.column_mapping import ColumnMapping
from lakebed.columns.row_tracking import RowColumns
from lakebed.columns.schema import Schema
from lakebed.deltalog.lineage import Lineage
from lakebed.deltalog.snapshot import Snapshot
from lakebed.documents.data_file import FinishedFile, Replacement, Run
from lakebed.documents.entry import Entry, Kind
from lakebed.errors import JournalConflict, LakeError, ObjectMissing, Whose
from lakebed.journal import JournalReader, entries_in, journals_aside
from lakebed.storage.store import Reader, Store

P = ParamSpec("P")
Done = TypeVar("Done")
Plan = TypeVar("Plan", bound="RewritePlan")

TRIES = 3
"""Attempts of a command that other writers overtake."""
WAIT_SECS = 2.0
MOST_WAITS = 30
NOUNS = {
    "promote": "promotion",
    "retract": "retraction",
    "erase": "erasure",
    "compact": "compaction",
}


class PromotionWaits(LakeError):
    """An earlier promotion, retraction or erasure is not committed yet."""

    code = "promotion_waits"
    whose = Whose.USER
    retryable = True


class NothingCommitted(ObjectMissing):
    """There is no table whose files could be rewritten."""


class Overtaken(JournalConflict):
    """Another writer has changed, or is about to change, the same files; nothing was done."""


class NotRewritten(LakeError):
    """A data file could not be rewritten, so nothing was changed."""

    code = "file_not_rewritten"
    whose = Whose.EXTERNAL
    retryable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNow:
    """One version of the table: all answers are of it, whatever is committed meanwhile."""

    snapshot: Snapshot
    files: Mapping[str, ActiveFile]
    """Its data files by their names."""

    @property
    def schema(self) -> dict[str, Any]:
        """Return the schema, as Delta writes it."""
        return self.snapshot.facts.schema

    @property
    def mapping(self) -> ColumnMapping | None:
        """Return how files hold its columns; None where it maps none."""
        return self.snapshot.mapping

    @property
    def row_columns(self) -> RowColumns | None:
        """Return the columns in which rows keep their ids; None where it tracks no rows."""
        return self.snapshot.row_columns

    def committed(self, pipeline: str, journal: str) -> int:
        """Return the last entry of a journal that this version has; 0 where it has none."""
        return self.snapshot.committed(pipeline, journal) or 0

    def fates(self, names: Iterable[str]) -> Mapping[str, int | None]:
        """Return what is decided of held files, and of entries without effect."""
        return self.snapshot.fates(names)

    def passed_over(self, pipeline: str) -> PassedOver:
        """Return the way to ask which entries of a pipeline had no effect."""
        return passed_over(self.fates, partial(self.committed, pipeline))

    @property
    def columns(self) -> Schema:
        """Return its columns as blizzard declares them; none where they cannot be read."""
        return columns_from(self.schema) or Schema(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """Where the rows of a data file came from, as the journal has it that named it first."""

    source_files: tuple[str, ...]
    uris: tuple[str, ...]
    """Where each of them was."""
    runs: tuple[Run, ...]


OriginsOf = Callable[[Collection[str]], Mapping[str, Origins]]
"""Returns the origins of the rows of data files, those left out that no journal names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLog:
    """What is asked of the table's log, which blizzard does not read itself."""

    now: Callable[[], TableNow | None]
    """Returns the table; None where there is none."""
    origins: OriginsOf
    """Asks the journals of the table, of whichever pipeline."""
    check: Callable[[dict[str, Any], tuple[str, ...]], None] = lambda _schema, _partitions: None
    """Raises where the table would not take this schema and these partition columns."""
    lineage: Callable[[int], Lineage] = lambda _version: Lineage()
    """Returns which data files hold the rows of which earlier ones, up to a version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A version of the table, and the journal as it was read after it."""

    last: Entry
    history: Ledger
    table: TableNow

    @property
    def committed(self) -> int:
        """Return the last entry of the journal that the table has; 0 without any."""
        return self.table.committed(self.last.pipeline, self.last.journal)

    def columns(self, store: Reader) -> Schema:
        """Return the columns of the table; raise if they cannot be read."""
        columns = columns_from(self.table.schema)
        if columns is None:
            raise ObjectMissing("the columns of the table cannot be read", path=store.uri)
        return columns

    def next_entry(self, kind: Kind, clock: Clock) -> Entry:
        """Return the next entry of the journal, with the columns that the table has."""
        return self.last.successor(
            kind,
            previous=self.history.digest,
            run=str(clock.fresh_id()),
            created=clock.now().isoformat(),
            table_schema=dict(self.table.schema),
            columns=self.history.columns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePlan:
    """The files and rows that a command selects, and the state that it selects them from."""

    state: TableState

    @property
    def requires(self) -> object:
        """Facts that the entry relies on, beside the files that it supersedes."""
        return None


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
            except Overtaken:
                overtaken += 1
                if overtaken == TRIES:
                    raise
            except PromotionWaits:
                if not overtaken or waited == MOST_WAITS:
                    raise
                waited += 1
                clock.sleep(WAIT_SECS)

    return tried


def table_state(store: Reader, pipeline: str, log: TableLog) -> TableState:
    """Read the table, then the journal; raise if there is no table, or the journal is closed.

    Each data file that the table has is named by an entry that was written before; an entry that
    this version of the table does not have is pending.
    """
    table = log.now()
    passed = nothing_decided if table is None else table.passed_over(pipeline)
    history = read_ledger(store, pipeline, passed_over=passed)
    if history.sequence < 0 or table is None:
        raise NothingCommitted(
            "there is no table yet: nothing was committed; run penguin first", path=store.uri
        )
    return TableState(last=last_entry(store, pipeline, history), history=history, table=table)


def refuse_waiting(store: Reader, settings: PipelineSettings, state: TableState) -> None:
    """Raise while an earlier entry of the pipeline is still to supersede files."""
    for entry in JournalReader(store, settings.name).entries(state.committed):
        if entry.outgoing:
            raise PromotionWaits(
                f"the {NOUNS[entry.kind]} in entry {entry.sequence} is not committed yet; run "
                f"{settings.sink.committer} first, then this again",
                entry=entry.sequence,
            )


def refuse_contested(
    store: Reader, settings: PipelineSettings, state: TableState, files: Iterable[ActiveFile]
) -> None:
    """Raise while an entry of another pipeline is to supersede one of the files.

    penguin would reject the later of the two entries, after all the rewriting.
    """
    wanted = {file.path for file in files}
    for entry in waiting_entries(store, state.table):
        outgoing = {one.filename for one in entry.outgoing}
        if entry.pipeline != settings.name and not wanted.isdisjoint(outgoing):
            raise PromotionWaits(
                f"the {NOUNS[entry.kind]} in entry {entry.sequence} of pipeline {entry.pipeline} "
                "replaces the same files and is not committed yet; run penguin first, then this "
                "again",
                entry=entry.sequence,
            )


def waiting_entries(store: Reader, table: TableNow) -> tuple[Entry, ...]:
    """Return the entries of all journals in use that the table does not have yet."""
    found: list[Entry] = []
    for pipeline in layout.pipelines(store.folders(layout.OURS)):
        journal = read_ledger(store, pipeline).journal
        if journal is not None:
            found += JournalReader(store, pipeline).entries(table.committed(pipeline, journal))
    return tuple(found)


def entries_of_table(store: Reader, first: str = "") -> Iterator[tuple[Entry, bool]]:
    """Yield every entry of every journal of a table, and whether its journal is in use.

    Those of the journal in use of one pipeline come first.
    """
    pipelines = layout.pipelines(store.folders(layout.OURS))
    for pipeline in sorted(pipelines, key=lambda name: (name != first, name)):
        aside = journals_aside(store, pipeline)
        for folder in (layout.journal_folder(pipeline), *aside):
            for stored in entries_in(store, pipeline, folder):
                yield stored.entry, folder not in aside


def rewriting_of(
    settings: PipelineSettings, state: TableState, transform: Transform, clock: Clock
) -> Rewriting:
    """Return the work that applies a transform to files of the table."""
    return Rewriting(
        sink=sink_location(settings),
        codec=settings.sink.rolling.codec,
        upload=settings.sink.upload,
        marks={"pipeline": settings.name, "journal": state.last.journal},
        clock=clock,
        transform=transform,
        columns=state.table.columns,
        mapping=state.table.mapping,
        row_columns=state.table.row_columns,
    )


def rewrite_each(
    rewriter: Rewriter, files: Sequence[ActiveFile], work: Rewriting
) -> tuple[Rewritten, ...]:
    """Rewrite every file by itself; raise if one of them fails, since nothing is changed then."""
    groups = [FileGroup(files=(file,)) for file in files]
    outcomes = rewriter.rewrite(groups, work) if groups else []
    for outcome in outcomes:
        if isinstance(outcome, RewriteFailed):
            raise NotRewritten(
                f"{outcome.message} [{outcome.code}]; nothing was changed, try again",
                file=outcome.group.file.path,
            )
    return tuple(one for one in outcomes if isinstance(one, Rewritten))


def superseded(
    old: ActiveFile, new: Sequence[FinishedFile] = (), *, left_out: int = 0
) -> Replacement:
    """Return how an entry says that a file leaves the table, and which one comes instead. Pure."""
    return Replacement(
        old=old.path,
        old_size=old.size,
        new=next(iter(new), None),
        left_out=left_out,
        partition_values={} if new else old.partition_values,
        vector=old.vector_key,
        deleted=old.deleted,
    )


def commit(
    store: Store,
    plan: Plan,
    staged: Iterable[FinishedFile],
    *,
    replan: Callable[[], Plan],
    entry: Callable[[Plan], Entry | None],
) -> tuple[Plan, int | None]:
    """Append the entry of a plan; return the newest plan and the number of the entry.

    `replan` plans once more by the newest journal and table, and `entry` makes the entry of that
    plan. If the entry cannot be appended, the staged files are deleted: no entry names them.
    """

    def validated() -> tuple[Plan, Entry | None]:
        now = replan()
        _refuse_renamed(store, plan.state, now.state)
        following = entry(now)
        if following is not None:
            _refuse_overtaken(store, plan, now, following)
        return now, following

    try:
        newest, appended = append_what_is_found(store, plan.state.last.pipeline, validated)
    except (PromotionWaits, JournalConflict) as conflict:
        drop(store, staged)
        if isinstance(conflict, JournalConflict):
            raise
        raise Overtaken(conflict.message, pipeline=plan.state.last.pipeline) from conflict
    return newest, None if appended is None else appended.sequence


def drop(store: Store, staged: Iterable[FinishedFile]) -> None:
    """Delete files that no entry names; `blizzard gc` finds what is left behind."""
    for file in staged:
        try:
            store.delete(file.filename)
        except LakeError:
            return


def _refuse_renamed(store: Reader, before: TableState, now: TableState) -> None:
    """Raise if files were rewritten with other column names than the table has now."""
    if before.table.mapping is not None and before.table.mapping != now.table.mapping:
        raise Overtaken(
            "columns of the table were renamed, added or dropped meanwhile; nothing was done, try "
            "again",
            table=store.uri,
        )


def _refuse_overtaken(store: Reader, before: RewritePlan, now: RewritePlan, entry: Entry) -> None:
    """Raise if the rewritten files are not those to supersede any more, or were collected."""
    path = store.describe(layout.journal_folder(entry.pipeline))
    there = {file.path: (file.size, file.vector_key) for file in now.state.table.files.values()}
    gone = any(there.get(one.old) != (one.old_size, one.vector) for one in entry.replaced) or any(
        there.get(old.path) != (old.size, old.vector) for one in entry.merged for old in one.old
    )
    same_journal = before.state.last.journal == now.state.last.journal
    if gone or not same_journal or before.requires != now.requires:
        raise Overtaken(
            "another writer changed these files, rows or columns meanwhile; nothing was done, try "
            "again",
            path=path,
        )
    refuse_collected_since(store, before.state.last.sequence, entry)
