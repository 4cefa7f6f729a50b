"""One table's step: discover, plan, commit, upkeep. `explain` stops after the plan."""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from lakebed.clock import Clock
from lakebed.documents.entry import encode
from lakebed.documents.pending_meta import HeldMeta
from lakebed.layout import log_version, protocol, receipt
from lakebed.storage.create_only import probe
from lakebed.storage.document_cache import Documents
from lakebed.storage.store import Reader, Store, local_path
from lakebed.telemetry.events import Emit
from penguin.announcer import Crier
from penguin.backlog.look import Sight, look
from penguin.backlog.pending_metas import Pending, delete_metas
from penguin.backlog.redo_conflicts import discarded, given_up
from penguin.committer import AlreadyCommitted, Committed, Committer, Superseded
from penguin.delta.log_cache import Memory
from penguin.delta.maintenance import Upkeep
from penguin.delta.on_disk import OnDisk
from penguin.delta.table import Log, LogReader, Snapshot
from penguin.delta.unused import is_unused
from penguin.events import (
    FEW,
    CommittedByOther,
    EntriesCommitted,
    FilesUnnamed,
    LateFilesCommitted,
    PlanSuperseded,
    TableWaiting,
)
from penguin.foreign.ignored import why_ignored
from penguin.foreign.listing import unnamed
from penguin.foreign.search import Found, Search
from penguin.held import HeldFile, releasable
from penguin.model.commit import (
    Backlog,
    CommitPlan,
    Planned,
    Releasable,
    Stopped,
    TableFacts,
    Waiting,
)
from penguin.model.errors import CommitFailed
from penguin.model.foreign_file import LeftOut
from penguin.model.overtaken import Overtaken
from penguin.model.retention import Danger
from penguin.model.settings import TableSettings
from penguin.plan.draft import draft_commit, join_others


@dataclass(slots=True, kw_only=True)
class Totals:
    """What was done for one table since the start."""

    version: int | None = None
    commits: int = 0
    entries: int = 0
    files: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What the next commit would do, or why it would not."""

    version: int | None
    planned: Planned
    backlogs: tuple[Backlog, ...] = ()
    """All that was read of the journals, also what the next commit leaves for later."""
    held: tuple[HeldFile, ...] = ()
    """The files that are set aside now."""
    discarded: tuple[HeldFile, ...] = ()
    """The files that were given up, and whose sources were not read again."""
    others: Found = field(default_factory=Found)
    """What was found of other programs' files."""
    left_out: tuple[LeftOut, ...] = ()
    """Those of them that are not committed."""
    danger: Danger | None = None
    """Files have waited for so long that a VACUUM comes near."""
    ignored_for: str | None = None
    """Why files of other programs are not searched for; None where they are."""


def commit_table(
    settings: TableSettings,
    store: Store,
    emit: Emit,
    clock: Clock,
    *,
    pipeline: str | None = None,
) -> int:
    """Commit everything that waits for one table, and give the number of commits.

    A pipeline that cannot go on is raised after the others are done: the one that is named, or
    any where none is.
    """
    run = TableRun(settings=settings, emit=emit, clock=clock, open_store=lambda: store)
    return commit_all(run, pipeline)


def commit_all(run: "TableRun", pipeline: str | None) -> int:
    """Do the same for a table that has been worked on before, and knows what it has told."""
    before = run.totals.commits
    while run.step():
        pass
    for stopped in run.stopped.values():
        if pipeline in (None, stopped.pipeline):
            raise stopped.error
    return run.totals.commits - before


def open_store(settings: TableSettings) -> Store | None:
    """Open a table's directory; None where it is still to be made."""
    return Store(settings.table_uri, settings.storage_options) if _is_there(settings) else None


def open_reader(settings: TableSettings) -> Reader | None:
    """Open a table's directory to look only."""
    return Reader(settings.table_uri, settings.storage_options) if _is_there(settings) else None


def explain(
    settings: TableSettings,
    store: Reader,
    *,
    everything: bool = False,
    clock: Clock | None = None,
) -> Explanation:
    """Say what the next commit would do. What it is handed cannot write.

    With `everything` the journals are read to their ends, not only up to a commit's worth.
    """
    bound = sys.maxsize if everything else settings.max_files_per_commit
    clock = clock or Clock()
    search = Search(settings=settings, clock=clock)
    sight = look(
        replace(settings, max_files_per_commit=bound), store, LogReader(store), search=search
    )
    facts = None if sight.table is None else sight.table.facts
    planned = draft_commit(
        settings,
        facts,
        sight.backlogs,
        store,
        _may_go_in(store, sight, sight.aside.held),
        transactions=sight.transactions,
        unused=_unused(store, facts),
    )
    joined = join_others(
        settings, facts, planned.commit, sight.others, store, unused=_unused(store, facts)
    )
    left_out = (*sight.others.left_out, *joined.left_out)
    return Explanation(
        version=None if sight.table is None else sight.table.version,
        planned=Planned(
            commit=joined.commit,
            stopped=(*sight.stopped, *planned.stopped),
            waiting=(*sight.waiting, *planned.waiting),
        ),
        backlogs=sight.backlogs,
        held=sight.aside.held,
        discarded=discarded(store, sight.transactions) if everything else (),
        others=sight.others,
        left_out=left_out,
        danger=sight.danger(left_out, clock.now()),
        ignored_for=(
            None if sight.searched else why_ignored(sight.handoff, declared=sight.declared)
        ),
    )


@dataclass(slots=True, kw_only=True)
class TableRun:
    """One table over many steps: its totals, and the pipelines that are stopped."""

    settings: TableSettings
    emit: Emit
    clock: Clock
    open_store: Callable[[], Store | None]
    open_log: Callable[[Store, Memory], Log] = Log
    pause: Callable[[float], object] = time.sleep
    totals: Totals = field(default_factory=Totals)
    held: tuple[HeldFile, ...] = ()
    """The files that the last look found set aside."""
    _memory: Memory = field(default_factory=Memory)
    _metas: Documents[Pending] = field(default_factory=Documents)
    _held: Documents[HeldMeta] = field(default_factory=Documents)
    _protocol: int | None = None
    _judged: tuple[object, frozenset[tuple[str, str]]] = (None, frozenset())
    """The table's shape, and the held files that were tried by it: their names, since when held."""
    _probed: bool = False
    _search: Search | None = None
    _overtaken: Overtaken = field(default_factory=Overtaken)
    _on_disk: OnDisk = field(default_factory=OnDisk)
    _unnamed: bool = False
    """Whether files of blizzard's that nobody names have been told of."""
    _crier: Crier = field(init=False)
    _upkeep: Upkeep = field(init=False)

    def __post_init__(self) -> None:
        self._crier = Crier(table=self.settings.name, emit=self.emit, clock=self.clock)
        self._upkeep = Upkeep(
            table=self.settings.name,
            checkpoint_interval=self.settings.checkpoint_interval,
            emit=self.emit,
            clock=self.clock,
            on_disk=self._on_disk,
        )

    @property
    def stopped(self) -> Mapping[str, Stopped]:
        """Give the pipelines that cannot go on."""
        return self._crier.stopped

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """Give the entries that are not handed off yet."""
        return self._crier.waiting

    def step(self) -> bool:
        """Make the next commit, if there is one, and say whether there was work.

        A pipeline that cannot go on is named and left; the others are committed. An error of it
        that time may mend is raised once there is nothing else to do.
        """
        store = self.open_store()
        if store is None:
            self._wait()
            return False
        log = self.open_log(store, self._memory)
        search = self._search = self._search or Search(
            settings=self.settings, clock=self.clock, looked=self._crier.looked
        )
        sight = look(
            self.settings,
            store,
            log,
            known=self._metas,
            known_held=self._held,
            known_protocol=self._protocol,
            search=search,
        )
        self.held = sight.aside.held
        self._protocol = sight.protocol
        self._crier.strays(sight.strays)
        self._crier.bounds(self.settings, sight)
        self._name_unnamed(store, sight)
        self._crier.backlog(sight)
        if not sight.backlogs and not sight.stopped and sight.others.is_empty:
            self._crier.left_out(sight.others.left_out)
            self._crier.watch(sight, sight.others.left_out)
            self._wait()
            return False
        table = sight.table
        self._tidy(store, sight)
        if table is not None:
            self.totals.version = table.version
        untried = _may_go_in(store, sight, self._untried(sight))
        facts = None if table is None else table.facts
        planned = draft_commit(
            self.settings,
            facts,
            sight.backlogs,
            store,
            untried,
            transactions=sight.transactions,
            unused=_unused(store, facts),
            looked=self._crier.looked,
        )
        self._crier.halts((*sight.stopped, *planned.stopped))
        self._crier.waits((*sight.waiting, *planned.waiting))
        joined = join_others(
            self.settings, facts, planned.commit, sight.others, store, unused=_unused(store, facts)
        )
        search.refuse(joined.left_out, facts)
        left_out = (*sight.others.left_out, *joined.left_out)
        self._crier.left_out(left_out)
        if _is_unsettled(planned.commit, untried, self.settings.max_files_per_commit):
            self._judged = (None, frozenset())
        if joined.commit is not None:
            self._probe(store, table)
        worked = joined.commit is not None and self._commit(joined.commit, log, store, table)
        # Files that do not fit have used up a commit's worth of reading: others come next.
        worked = worked or bool(joined.left_out and sight.others.more)
        if self.totals.version is not None:
            self._upkeep.see_to(log, store, self.totals.version)
        if not worked:
            self._crier.watch(sight, left_out)
            for stopped in self.stopped.values():
                if stopped.error.retryable:
                    raise stopped.error
        return worked

    def _untried(self, sight: Sight) -> tuple[HeldFile, ...]:
        """Give the held files that are worth a look: new ones, or all where the table changed."""
        shape = None if sight.table is None else sight.table.facts.shape()
        known_shape, tried = self._judged
        held = {(one.name, one.meta.held_at): one for one in sight.aside.held}
        self._judged = (shape, frozenset(held))
        return tuple(one for key, one in held.items() if shape != known_shape or key not in tried)

    def _probe(self, store: Store, table: Snapshot | None) -> None:
        """Before the first commit see that the store refuses to write a version twice."""
        last = [] if table is None else [log_version(table.version)]
        self._probed = self._probed or any(probe(store, path) for path in (*last, protocol(1)))

    def _wait(self) -> None:
        self.emit(TableWaiting(table=self.settings.name, table_uri=self.settings.table_uri))

    def _name_unnamed(self, store: Store, sight: Sight) -> None:
        """Tell of files of blizzard's that no entry names, once: a dead attempt left them."""
        if self._unnamed or not sight.others.ours or sight.stopped:
            return
        self._unnamed = True
        left = sorted(unnamed(store, sight.others.ours))
        if left:
            self.emit(
                FilesUnnamed(table=self.settings.name, files=len(left), some=tuple(left[:FEW]))
            )

    def _tidy(self, store: Store, sight: Sight) -> None:
        """Make up for what a crash right after a commit left: receipts unwritten, metas in place.

        The log is put on disk first. Whoever made that commit may have died before he did, or may
        never do it, and after a power cut nothing else would tell of the files.
        """
        done = (*sight.settled, *sight.aside.stale, *sight.others.settled)
        overdue = [one for one in sight.backlogs if one.overdue_receipt is not None]
        if sight.table is not None and (done or overdue):
            self._on_disk.up_to(store, sight.table.version)
        for backlog in overdue:
            if backlog.overdue_receipt is not None and sight.table is not None:
                store.replace(receipt(backlog.pipeline), encode(backlog.overdue_receipt))
        delete_metas(store, done)

    def _commit(
        self, plan: CommitPlan, log: Log, store: Store, planned_for: Snapshot | None
    ) -> bool:
        if planned_for is not None:
            planned_for.let_go()  # The commit opens the table for itself.
        committer = Committer(
            log=log, store=store, clock=self.clock, pause=self.pause, on_disk=self._on_disk
        )
        started = self.clock.seconds()
        outcome = committer.carry_out(plan)
        table = self.settings.name
        match outcome:
            case Committed(version):
                self.totals.version = version
                self.totals.commits += 1
                self.totals.entries += plan.entries
                self.totals.files += len(plan.adds)
                self.totals.rows += plan.rows
                self.emit(
                    EntriesCommitted(
                        table=table,
                        version=version,
                        entries=plan.entries,
                        files=len(plan.adds),
                        rows=plan.rows,
                        columns_added=plan.changes.added,
                        columns_dropped=plan.changes.dropped,
                        columns_widened=plan.changes.widened,
                        seconds=self.clock.seconds() - started,
                        released=len(plan.released),
                        discarded=len(plan.discarded),
                    )
                )
                self._crier.held(plan)
                if plan.others is not None and plan.others.late:
                    late = plan.others.late
                    self.emit(LateFilesCommitted(table=table, files=len(late), some=late[:FEW]))
            case AlreadyCommitted(version):
                self.totals.version = version
                self.emit(CommittedByOther(table=table, version=version, entries=plan.entries))
            case Superseded():
                self.emit(PlanSuperseded(table=table))
                self._look_afresh(plan.table.version)
                return True
            case _:
                assert_never(outcome)
        self._overtaken = Overtaken()
        return True

    def _look_afresh(self, version: int | None) -> None:
        """See that a plan which was overtaken is not made again in the same way, without an end."""
        self._overtaken = self._overtaken.again(version)
        if self._overtaken.calls_for_a_fresh_look:
            self._search, self._memory = None, Memory()
        if self._overtaken.is_hopeless:
            self._overtaken = Overtaken()
            raise CommitFailed(
                "the table is not as it was read a moment ago, again and again",
                table=self.settings.table_uri,
                version=version,
            )


def _unused(store: Reader, facts: TableFacts | None) -> Callable[[], bool]:
    """Return how to ask whether a table never had a row; the log is read when it is asked."""
    return lambda: facts is not None and is_unused(store, facts.version or 0)


def _may_go_in(store: Reader, sight: Sight, held: tuple[HeldFile, ...]) -> tuple[Releasable, ...]:
    """Find the entries of held files, but those that an entry which waits gives up."""
    lost = given_up(store, held, sight.transactions)
    return releasable(store, tuple(one for one in held if one.name not in lost))


def _is_unsettled(commit: CommitPlan | None, tried: tuple[Releasable, ...], max_files: int) -> bool:
    """Say whether held files must be tried again: a commit may fail, or be too full for some."""
    return commit is not None and (
        bool(commit.released)
        or any(len(commit.adds) + len(unit.files) > max_files for unit in tried)
    )


def _is_there(settings: TableSettings) -> bool:
    folder = local_path(settings.table_uri)
    return folder is None or folder.exists()
