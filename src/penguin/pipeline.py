"""One table's step: inspect, propose, commit, maintain."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from lakebed.clock import Clock
from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.segment import has_log
from lakebed.deltalog.snapshot import LogCache, Snapshot
from lakebed.documents.entry import encode
from lakebed.documents.pending_meta import HeldMeta
from lakebed.errors import CommitUnconfirmed
from lakebed.layout import CREATE_ONLY_PROOF, OURS, log_version, protocol, receipt
from lakebed.storage.options import StorageOptions
from lakebed.storage.remote import is_there
from lakebed.storage.store import Reader, Store, probe, prove
from lakebed.telemetry.events import Emit
from penguin.announcer import Announcer
from penguin.backlog.table_view import InspectionCache, TableView, delete_metas, inspect
from penguin.committer import Committer, PlanOutdated
from penguin.delta.maintenance import Begin, Maintenance, OnDisk, at_once, beside
from penguin.delta.table import Log
from penguin.events.commits import CommittedByOther, EntriesCommitted, PlanSuperseded, SettledEntry
from penguin.foreign.search import ForeignSearch
from penguin.model.backlog import Stopped, WaitingEntry
from penguin.model.commit import CommitPlan
from penguin.model.settings import TableMissing, TableSettings
from penguin.proposal import propose

if TYPE_CHECKING:
    from penguin.catalog.catalog import OpenCatalog, Registrar

SomeReader = TypeVar("SomeReader", bound=Reader)
MOST_CONFLICTS = 3
"""The most plans in a row that may be overtaken at the same version."""


@dataclass(slots=True, kw_only=True)
class TableTotals:
    """Totals of one table since the start."""

    version: int | None = None
    commits: int = 0
    entries: int = 0
    files: int = 0
    rows: int = 0


def commit_all(run: "TableRun", pipeline: str | None) -> int:
    """Commit everything that waits for one table; return the number of commits.

    Once the others are done, raise the error of a stopped pipeline: the named one, or any.
    """
    before = run.totals.commits
    while run.step():
        pass
    for stopped in run.stopped.values():
        if pipeline in (None, stopped.pipeline):
            raise stopped.error
    return run.totals.commits - before


def open_store(settings: TableSettings) -> Store | None:
    """Open a table's directory; None if it does not exist yet."""
    uri = settings.table_uri
    return Store(uri, settings.storage_options) if is_there(uri) else None


def open_reader(settings: TableSettings) -> Reader | None:
    """Open a table's directory read-only."""
    uri = settings.table_uri
    return Reader(uri, settings.storage_options) if is_there(uri) else None


def is_missing(store: Reader | None) -> bool:
    """Whether a location has neither a table nor a journal: a typo, or blizzard has not begun."""
    return store is None or not (has_log(store) or any(store.folders(OURS)))


def written(settings: TableSettings, store: SomeReader | None) -> SomeReader:
    """Return the store of a table; raise TableMissing if nothing has been written to it."""
    if store is None or is_missing(store):
        raise TableMissing(nothing_at(settings))
    return store


def nothing_at(settings: TableSettings) -> str:
    """Return a message that a location has neither a table nor a journal."""
    return f"there is no table and no journal at {settings.table_uri}"


@dataclass(slots=True, kw_only=True)
class TableRun:
    """The run of one table over many steps: its totals and its stopped pipelines."""

    settings: TableSettings
    emit: Emit
    clock: Clock
    open_store: Callable[[], Store | None]
    open_log: Callable[[Store, LogCache], Log] = Log
    open_catalog: "OpenCatalog | None" = None
    """Opens the table's catalog; None for the one in its settings."""
    pause: Callable[[float], object] = time.sleep
    begin: Begin = at_once
    """Starts maintenance work, perhaps in a thread."""
    totals: TableTotals = field(default_factory=TableTotals)
    _log_cache: LogCache = field(default_factory=LogCache)
    _inspected: InspectionCache = field(default_factory=InspectionCache)
    _judged: tuple[object, frozenset[tuple[str, str]]] = (None, frozenset())
    """The table's shape and the held files tried with it, by name and time of the hold."""
    _probed: bool = False
    _search: ForeignSearch | None = None
    _conflicts: tuple[int | None, int] = (None, 0)
    """The version at which plans were last overtaken, and how often in a row."""
    _on_disk: OnDisk = field(default_factory=OnDisk)
    _facts: TableFacts | None = None
    """The table as last seen."""
    _registrar: "Registrar | None" = None
    _announcer: Announcer = field(init=False)
    _maintenance: Maintenance = field(init=False)

    def __post_init__(self) -> None:
        self._announcer = Announcer(table=self.settings.name, emit=self.emit, clock=self.clock)
        self._maintenance = Maintenance(
            table=self.settings.name,
            checkpoint_interval=self.settings.checkpoint_interval,
            emit=self.emit,
            clock=self.clock,
            begin=self.begin,
        )
        if self.settings.catalog is not None:
            from penguin.catalog.catalog import Registrar  # noqa: PLC0415 - few tables have one

            self._registrar = Registrar(
                table=self.settings.name,
                table_uri=self.settings.table_uri,
                settings=self.settings.catalog,
                open_catalog=self.open_catalog,
                emit=self.emit,
                clock=self.clock,
            )

    def finish(self) -> None:
        """Wait for maintenance in progress, and update the catalog, for some seconds at most."""
        self._maintenance.finish()
        if self._registrar is not None:
            self._registrar.finish(self._facts)

    @property
    def is_missing(self) -> bool:
        """Whether the last inspection found neither a table nor a journal."""
        return self._announcer.is_missing

    @property
    def stopped(self) -> Mapping[str, Stopped]:
        """Return the stopped pipelines."""
        return self._announcer.stopped

    @property
    def waiting(self) -> tuple[WaitingEntry, ...]:
        """Return the entries that are not handed off yet."""
        return self._announcer.waiting

    @property
    def held(self) -> tuple[HeldMeta, ...]:
        """Return the held files that the last inspection found."""
        return self._announcer.held_files

    def step(self) -> bool:
        """Make the next commit, if there is one, and return whether there was work.

        A stopped pipeline is announced and skipped. Once there is nothing else to do, a retryable
        error of one is raised.
        """
        began = self.clock.seconds()
        store = self.open_store()
        if store is None:
            self._announcer.missing(self.settings.table_uri, missing=True)
            return False
        log = self.open_log(store, self._log_cache)
        search = self._search = self._search or ForeignSearch(
            settings=self.settings, clock=self.clock
        )
        view = inspect(self.settings, store, log, cache=self._inspected, search=search)
        if view.version is not None:
            self.totals.version = view.version
        self._show_catalog(view.facts)
        self._announcer.strays(view.strays)
        self._announcer.backlog(view, self.clock.seconds() - began)
        if view.is_idle:
            self._announcer.left_out(view.others.left_out)
            self._announcer.watch(view, view.others.left_out)
            missing = view.version is None and is_missing(store)
            self._announcer.missing(self.settings.table_uri, missing=missing)
            return False
        self._tidy(store, view)
        proposal = propose(self.settings, store, view, retry=self._untried(view))
        self._announcer.halts(proposal.stopped)
        self._announcer.waits(proposal.waiting)
        search.refuse(proposal.unfit, view.facts)
        self._announcer.left_out(proposal.left_out)
        if proposal.is_unsettled(self.settings.max_files_per_commit):
            self._judged = (None, frozenset())
        if proposal.commit is not None:
            self._probe(store, view.version)
            self._commit(proposal.commit, log, store, view.table)
        # Files that do not fit used up this step's reading; others come next.
        worked = proposal.commit is not None or bool(proposal.unfit and view.others.more)
        if self.totals.version is not None:
            self._maintenance.start_if_due(log, store, self.totals.version)
        if not worked:
            self._announcer.watch(view, proposal.left_out)
            for stopped in self.stopped.values():
                if stopped.error.retryable:
                    raise stopped.error
        return worked

    def _show_catalog(self, facts: TableFacts | None) -> None:
        """Update the table's entry in the catalog, in a thread of its own."""
        self._facts = facts or self._facts
        if self._registrar is not None and facts is not None:
            self._registrar.see(facts)

    def _untried(self, view: TableView) -> tuple[HeldMeta, ...]:
        """Return the held files to try again: new ones, or all after the table changed."""
        shape = None if view.facts is None else view.facts.shape()
        known_shape, tried = self._judged
        held = {(file.name, file.held_at): file for file in view.held}
        self._judged = (shape, frozenset(held))
        return tuple(file for key, file in held.items() if shape != known_shape or key not in tried)

    def _probe(self, store: Store, version: int | None) -> None:
        """Before the first commit, check that the store has create-only writes.

        A table yet to be created from foreign files has no object to check them with.
        """
        last = [] if version is None else [log_version(version)]
        if self._probed or any(probe(store, path) for path in (*last, protocol(1))):
            self._probed = True
            return
        prove(store, CREATE_ONLY_PROOF)
        self._probed = True

    def _tidy(self, store: Store, view: TableView) -> None:
        """Clean up after a crash right after a commit: write receipts, delete metas.

        The log is synced first: the process that made that commit may have died before it did, and
        after a power cut nothing else would name the files.
        """
        done = (*view.settled, *view.held_files.stale, *view.others.settled)
        overdue = [
            (backlog.pipeline, backlog.overdue_receipt)
            for backlog in view.backlogs
            if backlog.overdue_receipt is not None
        ]
        if view.version is not None and (done or overdue):
            self._on_disk.up_to(store, view.version)
            for pipeline, overdue_receipt in overdue:
                store.replace(receipt(pipeline), encode(overdue_receipt))
        delete_metas(store, done)

    def _commit(
        self, plan: CommitPlan, log: Log, store: Store, planned_for: Snapshot | None
    ) -> None:
        if planned_for is not None:
            planned_for.release_files()  # The commit opens the table itself.
        committer = Committer(
            log=log, store=store, clock=self.clock, pause=self.pause, on_disk=self._on_disk
        )
        started = self.clock.seconds()
        table = self.settings.name
        try:
            made = committer.carry_out(plan)
        except PlanOutdated:
            self.emit(PlanSuperseded(table=table))
            self._count_overtaken(plan.table.version)
            return
        self._conflicts = (None, 0)
        self.totals.version = version = made.version
        if made.by_other:
            self.emit(CommittedByOther(table=table, version=version, entries=plan.entries))
            return
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
                settled=self._settled(plan),
            )
        )
        self._announcer.held(plan)
        self._announcer.rejected(plan)

    def _settled(self, plan: CommitPlan) -> tuple[SettledEntry, ...]:
        """Return the settled entries of a commit made just now."""
        now = self.clock.seconds()
        # Source file names are unique only within a pipeline.
        held = {(hold.entry.pipeline, key) for hold in plan.holds for key in hold.file.source_files}
        return tuple(
            SettledEntry(
                pipeline=ready.entry.pipeline,
                journal=ready.entry.journal,
                entry=ready.entry.sequence,
                waited=max(0.0, now - datetime.fromisoformat(ready.entry.created).timestamp()),
                delays=tuple(
                    max(0.0, now - record.modified / 1000)
                    for record in ready.entry.readings
                    if record.modified is not None
                    and record.rows
                    and record.complete
                    and (ready.entry.pipeline, record.key) not in held
                ),
            )
            for advance in plan.advances
            for ready in advance.entries
        )

    def _count_overtaken(self, version: int | None) -> None:
        """Count overtaken plans: drop caches after two at one version, raise after too many."""
        known, times = self._conflicts
        times = times + 1 if version == known else 1
        self._conflicts = (version, times)
        if times > 1:  # The table is the same, so the caches must be wrong.
            self._search, self._log_cache = None, LogCache()
        if times > MOST_CONFLICTS:
            self._conflicts = (None, 0)
            raise CommitUnconfirmed(
                "the table keeps changing while it is being read",
                table=self.settings.table_uri,
                version=version,
            )


@dataclass(frozen=True, slots=True)
class InlineCommitter:
    """Commits what waits for a table inside blizzard, and keeps its catalog current."""

    run: TableRun
    """Kept from batch to batch, so that a pipeline that continues is reported."""
    pipeline: str | None = None
    """The pipeline whose errors are raised, not only reported; None for all of the table."""

    @classmethod
    def of(
        cls,
        table: TableSettings | None,
        table_uri: str,
        options: StorageOptions,
        *,
        emit: Emit,
        clock: Clock,
        pipeline: str | None = None,
    ) -> "InlineCommitter":
        """Return a committer for a table, which need not have a `tables:` entry."""
        unnamed = TableSettings(name=table_uri, table_uri=table_uri, storage_options=options)
        settings = table or unnamed
        opening = cache(partial(Store, settings.table_uri, settings.storage_options))
        run = TableRun(settings=settings, emit=emit, clock=clock, open_store=opening, begin=beside)
        return cls(run, pipeline)

    def __call__(self) -> int:
        """Commit everything that waits; return the number of commits."""
        return commit_all(self.run, self.pipeline)

    def finish(self) -> None:
        """Wait for checkpoints and catalog updates in progress, for some seconds at most."""
        self.run.finish()
