"""One table's step: discover, plan, commit, checkpoint. `explain` stops after the plan."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import assert_never

from lake.clock import Clock
from lake.datafile import FinishedFile
from lake.entry import Entry, Handoff, encode
from lake.errors import LakeError
from lake.layout import LAST_CHECKPOINT, log_version, receipt
from lake.storage import Reader, Store, local_path
from lake.telemetry.events import Emit, code_of
from penguin import evolution, stats
from penguin.committer import (
    AlreadyCommitted,
    Committed,
    Committer,
    Lacking,
    Superseded,
    missing_files,
)
from penguin.events import (
    FEW,
    BacklogSeen,
    CheckpointFailed,
    CheckpointWritten,
    CommittedByOther,
    EntriesCommitted,
    EntryNotHandedOff,
    FilesUnnamed,
    MetasLeftAlone,
    PipelineMended,
    PipelineStopped,
    PlanSuperseded,
    TableWaiting,
)
from penguin.flow import (
    Backlog,
    CommitPlan,
    Decision,
    Evolves,
    Planned,
    Stopped,
    TableFacts,
    Waiting,
)
from penguin.metas import Metas, delete_metas
from penguin.plan import Rules, plan_commit, without
from penguin.scan import unnamed_files
from penguin.settings import TableSettings
from penguin.sight import Sight, look
from penguin.table import Log, LogReader, Snapshot

CREATED_WITH = {
    # penguin writes checkpoints itself, as a step of its own. This keeps the hooks of other
    # writers from doing so at every tenth commit, and still bounds the log if penguin is away.
    "delta.checkpointInterval": "100",
    # A file may wait this long for its commit before somebody's VACUUM may take it.
    "delta.deletedFileRetentionDuration": "interval 14 days",
}


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


def explain(settings: TableSettings, store: Reader, *, everything: bool = False) -> Explanation:
    """Say what the next commit would do. What it is handed cannot write.

    With `everything` the journals are read to their ends, not only up to a commit's worth.
    """
    bound = sys.maxsize if everything else settings.max_files_per_commit
    sight = look(replace(settings, max_files_per_commit=bound), store, LogReader(store))
    planned = _plan(settings, sight.table, sight.backlogs, store)
    return Explanation(
        version=None if sight.table is None else sight.table.version,
        planned=Planned(
            commit=planned.commit,
            stopped=(*sight.stopped, *planned.stopped),
            waiting=(*sight.waiting, *planned.waiting),
        ),
        backlogs=sight.backlogs,
    )


@dataclass(slots=True, kw_only=True)
class TableRun:
    """One table over many steps: its totals, and the pipelines that are stopped."""

    settings: TableSettings
    emit: Emit
    clock: Clock
    open_store: Callable[[], Store | None]
    open_log: Callable[[Store], Log] = Log
    pause: Callable[[float], object] = time.sleep
    totals: Totals = field(default_factory=Totals)
    stopped: dict[str, Stopped] = field(default_factory=dict)
    waiting: tuple[Waiting, ...] = ()
    _metas: Metas | None = None
    _told: set[str] = field(default_factory=set)
    _scanned: bool = False

    def step(self) -> bool:
        """Make the next commit, if there is one, and say whether there was work.

        A pipeline that cannot go on is named and left; the others are committed. An error of it
        that time may mend is raised once there is nothing else to do.
        """
        store = self.open_store()
        if store is None:
            self._wait()
            return False
        log = self.open_log(store)
        sight = look(self.settings, store, log, known=self._metas)
        self._metas = sight.metas
        self._name_strays(sight.strays)
        self._name_unnamed(store, sight)
        self._tell_backlog(sight)
        if not sight.backlogs and not sight.stopped:
            self._wait()
            return False
        table = sight.table
        self._heal_receipts(store, sight.backlogs, table)
        delete_metas(store, sight.settled)
        if table is not None:
            self.totals.version = table.version
        planned = _plan(self.settings, table, sight.backlogs, store)
        self._name_stopped((*sight.stopped, *planned.stopped))
        self._name_waiting((*sight.waiting, *planned.waiting))
        worked = planned.commit is not None and self._commit(planned.commit, log, store)
        self._checkpoint(log, store)
        if not worked:
            for stopped in self.stopped.values():
                if stopped.error.retryable:
                    raise stopped.error
        return worked

    def _wait(self) -> None:
        self.emit(TableWaiting(table=self.settings.name, table_uri=self.settings.table_uri))

    def _tell_backlog(self, sight: Sight) -> None:
        """Say how much waits, and since when."""
        waiting = [ready.entry for backlog in sight.backlogs for ready in backlog.entries]
        journaled = (datetime.fromisoformat(entry.created).timestamp() for entry in waiting)
        self.emit(
            BacklogSeen(
                table=self.settings.name,
                version=None if sight.table is None else sight.table.version,
                entries=len(waiting),
                files=sum(len(entry.files) for entry in waiting),
                oldest=min(journaled, default=None),
            )
        )

    def _name_unnamed(self, store: Store, sight: Sight) -> None:
        """Tell of data files that no entry names, once, where a scan is how files are found."""
        if self._scanned or sight.handoff is not Handoff.DIRECT or sight.stopped:
            return
        self._scanned = True
        left = sorted(unnamed_files(store))
        if left:
            self.emit(
                FilesUnnamed(table=self.settings.name, files=len(left), some=tuple(left[:FEW]))
            )

    def _name_strays(self, strays: Mapping[str, str]) -> None:
        """Tell of metas that are left alone once, those with the same reason together."""
        by_reason: dict[str, list[str]] = {}
        for path, reason in sorted(strays.items()):
            if path not in self._told:
                by_reason.setdefault(reason, []).append(path)
        for reason, paths in by_reason.items():
            self.emit(MetasLeftAlone(table=self.settings.name, reason=reason, paths=tuple(paths)))
        self._told = set(strays)

    def _name_waiting(self, now: tuple[Waiting, ...]) -> None:
        """Tell of an entry that is not handed off yet, once."""
        for one in now:
            if one not in self.waiting:
                self.emit(
                    EntryNotHandedOff(
                        table=self.settings.name,
                        pipeline=one.pipeline,
                        entry=one.sequence,
                        reason=one.reason,
                    )
                )
        self.waiting = now

    def _heal_receipts(
        self, store: Store, backlogs: tuple[Backlog, ...], table: Snapshot | None
    ) -> None:
        """Write the receipts that a crash right after a commit left unwritten."""
        for backlog in backlogs:
            if backlog.overdue_receipt is not None and table is not None:
                if store.head(log_version(table.version)) is not None:
                    store.sync(log_version(table.version))
                store.replace(receipt(backlog.pipeline), encode(backlog.overdue_receipt))

    def _name_stopped(self, now: tuple[Stopped, ...]) -> None:
        """Tell of a stopped pipeline once, not at every poll, and of one that goes on again."""
        table = self.settings.name
        before, self.stopped = self.stopped, {one.pipeline: one for one in now}
        for one in now:
            known = before.get(one.pipeline)
            if known is None or str(known.error) != str(one.error):
                self.emit(
                    PipelineStopped(
                        table=table,
                        pipeline=one.pipeline,
                        code=code_of(one.error),
                        error=str(one.error),
                        code_before=None if known is None else code_of(known.error),
                    )
                )
        for pipeline in before.keys() - self.stopped.keys():
            code = code_of(before[pipeline].error)
            self.emit(PipelineMended(table=table, pipeline=pipeline, code=code))

    def _commit(self, plan: CommitPlan, log: Log, store: Store) -> bool:
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
                    )
                )
            case AlreadyCommitted(version):
                self.totals.version = version
                self.emit(CommittedByOther(table=table, version=version, entries=plan.entries))
            case Superseded():
                self.emit(PlanSuperseded(table=table))
            case _:
                assert_never(outcome)
        return True

    def _checkpoint(self, log: Log, store: Store) -> None:
        """Write a checkpoint when one is due; its failure never colours a commit."""
        version, name = self.totals.version, self.settings.name
        if version is None:
            return
        try:
            if version - _last_checkpoint(store) < self.settings.checkpoint_interval:
                return
            table = log.open()
            if table is None:
                return
            table.checkpoint()
        except LakeError as error:
            self.emit(CheckpointFailed(table=name, version=version, error=str(error)))
        else:
            self.emit(CheckpointWritten(table=name, version=table.version))


def _is_there(settings: TableSettings) -> bool:
    folder = local_path(settings.table_uri)
    return folder is None or folder.exists()


def _plan(
    settings: TableSettings,
    table: Snapshot | None,
    backlogs: tuple[Backlog, ...],
    store: Reader,
) -> Planned:
    """Plan the next commit of files that are all there."""
    rules = Rules(
        decide=lambda table, entry: decide(table, entry, settings),
        new_table=lambda entry: new_table(entry, settings),
        statistics=file_statistics,
        partition_columns=settings.partition_columns,
        max_files=settings.max_files_per_commit,
    )
    stopped: tuple[Stopped, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    while True:
        planned = plan_commit(None if table is None else table.facts, backlogs, rules)
        stopped += planned.stopped
        backlogs = without(backlogs, planned.stopped)
        lacking = missing_files(store, planned.commit) if planned.commit is not None else Lacking()
        if not lacking.gone and not lacking.waiting:
            return Planned(commit=planned.commit, stopped=stopped, waiting=waiting)
        # What an earlier entry lacks comes before whatever was found of a later one.
        cut = {stop.pipeline for stop in lacking.gone} | {one.pipeline for one in lacking.waiting}
        stopped = (*(one for one in stopped if one.pipeline not in cut), *lacking.gone)
        waiting = (*(one for one in waiting if one.pipeline not in cut), *lacking.waiting)
        backlogs = without(without(backlogs, lacking.gone), lacking.waiting)


def new_table(entry: Entry, settings: TableSettings) -> TableFacts:
    """Say what a table is created as, from its first entry and the settings."""
    bounded = stats.columns_with_bounds(entry.table_schema, entry.partition_columns)
    return TableFacts(
        version=None,
        schema=entry.table_schema,
        partition_columns=entry.partition_columns,
        configuration={
            **CREATED_WITH,
            stats.SKIPPING_PROPERTY: stats.format_columns(bounded),
            **settings.properties,
        },
    )


def decide(table: TableFacts, entry: Entry, settings: TableSettings) -> Decision:
    """Say whether a table can hold an entry's files, and what it must be for that."""
    found = evolution.decide(settings.evolution, table, entry.table_schema, entry.partition_columns)
    if not isinstance(found, Evolves):
        return found
    shown = stats.only_shown(found.table.configuration, found.table.schema)
    return replace(found, table=replace(found.table, configuration=shown))


def file_statistics(file: FinishedFile, entry: Entry, table: TableFacts) -> str:
    """Write a file's statistics for the columns that its table lists."""
    listed = stats.parse_columns(table.configuration.get(stats.SKIPPING_PROPERTY))
    names = {one["name"] for one in table.schema["fields"]}
    return stats.delta_statistics(
        file,
        columns=frozenset(one["name"] for one in entry.table_schema["fields"]),
        listed=None if listed is None else tuple(name for name in listed if name in names),
    )


def _last_checkpoint(store: Reader) -> int:
    """Give the version of the last checkpoint, -1 where there is none or its note is torn.

    The note only helps readers to start; a new checkpoint mends it.
    """
    body = store.get(LAST_CHECKPOINT)
    try:
        return -1 if body is None else int(json.loads(body)["version"])
    except (ValueError, KeyError, TypeError):
        return -1
