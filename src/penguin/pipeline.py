"""One table's step: discover, plan, commit, upkeep. `explain` stops after the plan."""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from lake.clock import Clock
from lake.entry import encode
from lake.exclusive import probe
from lake.layout import log_version, protocol, receipt
from lake.storage import Reader, Store, local_path
from lake.telemetry.events import Emit
from penguin.committer import AlreadyCommitted, Committed, Committer, Superseded
from penguin.contested import discarded, given_up
from penguin.crier import Crier
from penguin.drafting import draft_commit, join_others
from penguin.events import (
    FEW,
    CommittedByOther,
    EntriesCommitted,
    FilesUnnamed,
    LateFilesCommitted,
    PlanSuperseded,
    TableWaiting,
)
from penguin.flow import (
    Backlog,
    CommitPlan,
    Planned,
    Releasable,
    Stopped,
    Waiting,
)
from penguin.foreign import LeftOut
from penguin.held import HeldFile, HeldMetas, releasable
from penguin.metas import Metas, delete_metas
from penguin.patience import Danger
from penguin.recall import Memory
from penguin.scan import unnamed
from penguin.search import Found, Search
from penguin.settings import TableSettings
from penguin.sight import Sight, look
from penguin.table import Log, LogReader, Snapshot
from penguin.upkeep import Upkeep


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
    )
    joined = join_others(settings, facts, planned.commit, sight.others, store)
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
    _metas: Metas | None = None
    _held: HeldMetas = field(default_factory=dict)
    _protocol: int | None = None
    _judged: tuple[object, frozenset[str]] = (None, frozenset())
    """The held files that were tried, and the table's shape at that time."""
    _probed: bool = False
    _search: Search | None = None
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
        self._metas, self._held = sight.metas, sight.held_metas
        self.held = sight.aside.held
        self._protocol = sight.protocol
        self._crier.strays(sight.strays)
        self._name_unnamed(store, sight)
        self._crier.backlog(sight)
        if not sight.backlogs and not sight.stopped and sight.others.is_empty:
            self._crier.left_out(sight.others.left_out)
            self._crier.watch(sight, sight.others.left_out)
            self._wait()
            return False
        table = sight.table
        self._heal_receipts(store, sight.backlogs, table)
        delete_metas(store, (*sight.settled, *sight.aside.stale, *sight.others.settled))
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
            looked=self._crier.looked,
        )
        self._crier.halts((*sight.stopped, *planned.stopped))
        self._crier.waits((*sight.waiting, *planned.waiting))
        joined = join_others(self.settings, facts, planned.commit, sight.others, store)
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
        held = sight.aside.held
        self._judged = (shape, frozenset(one.name for one in held))
        return held if shape != known_shape else tuple(o for o in held if o.name not in tried)

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

    def _heal_receipts(
        self, store: Store, backlogs: tuple[Backlog, ...], table: Snapshot | None
    ) -> None:
        """Write the receipts that a crash right after a commit left unwritten."""
        for backlog in backlogs:
            if backlog.overdue_receipt is not None and table is not None:
                if store.head(log_version(table.version)) is not None:
                    store.sync(log_version(table.version))
                store.replace(receipt(backlog.pipeline), encode(backlog.overdue_receipt))

    def _commit(
        self, plan: CommitPlan, log: Log, store: Store, planned_for: Snapshot | None
    ) -> bool:
        if planned_for is not None:
            planned_for.let_go()  # The commit opens the table for itself.
        committer = Committer(log=log, store=store, clock=self.clock, pause=self.pause)
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
            case _:
                assert_never(outcome)
        return True


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
