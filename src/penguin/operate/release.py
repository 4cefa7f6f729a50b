"""An operator's commands on held files: commit them, or give them up for good.

Each order is one commit like any other: the log at that moment decides, and repeating it changes
nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakebed.clock import Clock
from lakebed.deltalog.versions import is_unused
from lakebed.documents.pending_meta import HeldMeta, HeldState
from lakebed.errors import CommitUnconfirmed, LakeError, Whose
from lakebed.layout import held_meta, taken_out_transaction
from lakebed.storage.store import Store
from penguin.backlog.journals import read_pipelines
from penguin.backlog.redo_conflicts import (
    ContestedFile,
    FileRewritten,
    contested,
    given_up,
    why_not_taken_out,
)
from penguin.backlog.table_view import delete_metas
from penguin.committer import Committer, PlanOutdated
from penguin.delta.table import Log, WritableTable
from penguin.held import HeldFiles, read_held, record_discarded, releasable, sort_out
from penguin.model.commit import CommitPlan, TransactionUpdate
from penguin.model.settings import TableSettings
from penguin.plan.commit import PlanQuestions
from penguin.proposal import draft_commit


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOperation:
    """An order that inspects one table and commits to it."""

    settings: TableSettings
    store: Store
    clock: Clock
    pause: Callable[[float], object]
    """Waits some seconds between two attempts."""
    open_log: Callable[[Store], Log] = field(default=Log)

    def committer(self) -> Committer:
        """Return the committer of the order."""
        return Committer(
            log=self.open_log(self.store), store=self.store, clock=self.clock, pause=self.pause
        )


MOST_TRIES = 5
"""Attempts before an order gives up on a table that keeps changing."""


class NotHeld(LakeError, code="not_held", whose=Whose.USER):
    """No held file has the given name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Outcome of a command for the files that it names."""

    version: int | None = None
    """The version that was committed; None if nothing was."""
    done: tuple[HeldMeta, ...] = ()
    left: tuple[HeldMeta, ...] = ()
    """Files that stay held."""
    taken_out: tuple[ContestedFile, ...] = ()
    """Contested files that are given up."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Why files must stay held, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFileOperations(TableOperation):
    """Carries out an operator's commands on one table."""

    def held(self) -> frozenset[str]:
        """Name the files that are held now."""
        return frozenset(one.name for one in self._read_table()[1].held)

    def release(self, names: frozenset[str] | None) -> Settlement:
        """Commit held files, all or the named ones, as far as the table can hold them.

        The other files of a file's work unit are committed with it: they stand or fall together.
        """
        why: dict[str, str] = {}

        def plan(table: WritableTable, held: tuple[HeldMeta, ...]) -> CommitPlan | None:
            chosen = _choose(held, names)
            why.clear()
            why.update(given_up(self.store, chosen, table.transaction))
            units = releasable(self.store, (one for one in chosen if one.name not in why))
            return draft_commit(
                self.settings,
                table.facts,
                (),
                self.store,
                units,
                asked=True,
                questions=PlanQuestions(
                    transactions=table.transaction,
                    unused=lambda: is_unused(self.store, table.version),
                ),
            ).commit

        plan_made, version, held = self._settle(plan)
        chosen = _choose(held, names)
        done = frozenset(plan_made.released) if plan_made else frozenset()
        return Settlement(
            version=version,
            done=tuple(one for one in chosen if one.name in done),
            left=tuple(one for one in chosen if one.name not in done),
            why=why,
        )

    def contested(self) -> tuple[ContestedFile, ...]:
        """Return the files in the table whose sources an entry reads again."""
        table = self.open_log(self.store).open()
        return () if table is None else self._contested(table)

    def discard(self, names: frozenset[str], *, rows_deleted: bool = False) -> Settlement:
        """Discard files for good: they will never be in the table, and the log says so.

        The same commit removes contested files from the table. If one was rewritten and cannot be
        removed, its rows must have been deleted before.
        """
        out: list[ContestedFile] = []

        def plan(table: WritableTable, held: tuple[HeldMeta, ...]) -> CommitPlan | None:
            known = {one.name for one in held}
            there = self._contested(table) if names - known else ()
            disputed = {one.name: one for one in there if one.name in names}
            _check_known(names, known | disputed.keys())
            removes = []
            for one in disputed.values():
                trouble = why_not_taken_out(one, table)
                if trouble is None:
                    removes.append(one.file)
                elif not rows_deleted:
                    raise FileRewritten(
                        f"{one.name} cannot be removed: {trouble}. Delete its rows from the "
                        "table, then pass --rows-deleted",
                        file=one.file.filename,
                        table=self.settings.table_uri,
                    )
            out[:] = disputed.values()
            back = [one for one in out if one.state is HeldState.GONE]
            marks: dict[str, HeldState | None] = dict.fromkeys(names & known, HeldState.HELD)
            return CommitPlan(
                table=table.facts,
                after=table.facts,
                discarded=marks | {one.name: one.state for one in out if one not in back},
                removes={file.filename: file for file in removes},
                moved=tuple(_taken_out_again(one.name, table) for one in out),
            )

        _, version, held = self._settle(plan, before=self._note_discarded)
        return Settlement(
            version=version,
            done=tuple(one for one in held if one.name in names),
            taken_out=tuple(out),
        )

    def _note_discarded(self, plan: CommitPlan, held: tuple[HeldMeta, ...]) -> None:
        """Record the discarded files, so that their rows can be reported and read again."""
        record_discarded(self.store, (one for one in held if one.name in plan.discarded))

    def _contested(self, table: WritableTable) -> tuple[ContestedFile, ...]:
        pipelines = read_pipelines(self.store, self.settings.discovery).receipts
        return contested(self.store, pipelines, table.transaction)

    def _read_table(self) -> tuple[WritableTable | None, HeldFiles]:
        """Read the metas of held files, then the log, which decides what they mean."""
        metas = read_held(self.store)
        table = self.open_log(self.store).open()
        return table, HeldFiles() if table is None else sort_out(metas, table.transaction)

    def _settle(
        self,
        plan_of: Callable[[WritableTable, tuple[HeldMeta, ...]], CommitPlan | None],
        before: Callable[[CommitPlan, tuple[HeldMeta, ...]], None] = lambda _plan, _held: None,
    ) -> tuple[CommitPlan | None, int | None, tuple[HeldMeta, ...]]:
        """Plan and commit; return the plan, its version, and the files held before."""
        committer = self.committer()
        for _ in range(MOST_TRIES):
            table, held_files = self._read_table()
            plan = None if table is None else plan_of(table, held_files.held)
            delete_metas(self.store, held_files.stale)
            if plan is None:
                return None, None, held_files.held
            before(plan, held_files.held)
            try:
                version = committer.carry_out(plan).version
            except PlanOutdated:
                continue
            settled = {*plan.released, *plan.discarded}
            delete_metas(self.store, tuple(held_meta(name) for name in settled))
            return plan, version, held_files.held
        raise CommitUnconfirmed(
            f"the table changed {MOST_TRIES} times while it was read; try again",
            table=self.settings.table_uri,
        )


def _taken_out_again(name: str, table: WritableTable) -> TransactionUpdate:
    """Return the update of the transaction that counts removals of a file by order."""
    app_id = taken_out_transaction(name)
    before = table.transaction(app_id)
    return TransactionUpdate(app_id=app_id, before=before, after=(before or 0) + 1)


def _choose(held: tuple[HeldMeta, ...], names: frozenset[str] | None) -> tuple[HeldMeta, ...]:
    """Return the named held files and all others of their work units."""
    if names is None:
        return held
    _check_known(names, {one.name for one in held})
    wanted = {_unit(one) for one in held if one.name in names}
    return tuple(one for one in held if _unit(one) in wanted)


def _check_known(names: frozenset[str], known: set[str]) -> None:
    if unknown := names - known:
        raise NotHeld(
            f"{', '.join(sorted(unknown))}: no such file is held; `penguin held` shows which are"
        )


def _unit(held: HeldMeta) -> tuple[object, ...]:
    return held.pipeline, held.journal, held.entry, held.unit
