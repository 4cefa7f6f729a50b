"""What an operator orders of files that are held: they go in, or are given up for good.

Each order is one commit, made as every other: what the log says at that moment decides, and doing
it again changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from lake.clock import Clock
from lake.errors import LakeError, Whose
from lake.layout import held_meta
from lake.storage import Store
from penguin.committer import Committer, Superseded
from penguin.drafting import draft_commit
from penguin.errors import CommitFailed
from penguin.flow import Changes, CommitPlan
from penguin.held import Aside, HeldFile, read_held, releasable, sort_out
from penguin.metas import delete_metas
from penguin.settings import TableSettings
from penguin.table import Log, Table

LOOKS = 5
"""How often the table may change between the look and the commit."""


class NotHeld(LakeError):
    """A name was given that no held file has."""

    code = "not_held"
    whose = Whose.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What became of the files that an order named."""

    version: int | None = None
    """The version that has it; None where nothing was committed."""
    done: tuple[HeldFile, ...] = ()
    left: tuple[HeldFile, ...] = ()
    """Those that stay held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Carries out orders on one table."""

    settings: TableSettings
    store: Store
    clock: Clock
    pause: Callable[[float], object]
    open_log: Callable[[Store], Log] = field(default=Log)

    def held(self) -> frozenset[str]:
        """Name the files that are held now."""
        metas = read_held(self.store, {})
        table = self.open_log(self.store).open()
        aside = Aside() if table is None else sort_out(metas, table.transaction)
        return frozenset(one.name for one in aside.held)

    def release(self, names: frozenset[str] | None) -> Settlement:
        """Commit held files, all or those that are named, as far as the table can hold them.

        With a file the others of its work unit go in: they stand or fall together.
        """

        def plan(table: Table, chosen: tuple[HeldFile, ...]) -> CommitPlan | None:
            units = releasable(self.store, chosen)
            return draft_commit(
                self.settings, table.facts, (), self.store, units, asked=True
            ).commit

        return self._settle(names, plan, whole_units=True)

    def discard(self, names: frozenset[str]) -> Settlement:
        """Give held files up for good: they never will be in the table. The log says so."""

        def plan(table: Table, chosen: tuple[HeldFile, ...]) -> CommitPlan | None:
            return CommitPlan(
                table=table.facts,
                after=table.facts,
                changes=Changes(),
                adds=(),
                discarded=tuple(one.name for one in chosen),
            )

        return self._settle(names, plan, whole_units=False)

    def _settle(
        self,
        names: frozenset[str] | None,
        plan_of: Callable[[Table, tuple[HeldFile, ...]], CommitPlan | None],
        *,
        whole_units: bool,
    ) -> Settlement:
        committer = Committer(
            log=self.open_log(self.store), store=self.store, clock=self.clock, pause=self.pause
        )
        for _ in range(LOOKS):
            metas = read_held(self.store, {})
            table = self.open_log(self.store).open()
            aside = Aside() if table is None else sort_out(metas, table.transaction)
            chosen = _choose(aside.held, names, whole_units=whole_units)
            delete_metas(self.store, aside.stale)
            plan = plan_of(table, chosen) if table is not None and chosen else None
            if plan is None:
                return Settlement(left=chosen)
            outcome = committer.carry_out(plan)
            if isinstance(outcome, Superseded):
                continue
            settled = {*plan.released, *plan.discarded}
            delete_metas(self.store, tuple(held_meta(name) for name in settled))
            return Settlement(
                version=outcome.version,
                done=tuple(one for one in chosen if one.name in settled),
                left=tuple(one for one in chosen if one.name not in settled),
            )
        raise CommitFailed(
            f"the table changed {LOOKS} times while it was looked at; try again",
            table=self.settings.table_uri,
        )


def _choose(
    held: tuple[HeldFile, ...], names: frozenset[str] | None, *, whole_units: bool
) -> tuple[HeldFile, ...]:
    """Pick the held files that are named, with those that were written together with them."""
    if names is None:
        return held
    unknown = names - {one.name for one in held}
    if unknown:
        raise NotHeld(
            f"{', '.join(sorted(unknown))}: no such file is held; `penguin held` shows which are"
        )
    if not whole_units:
        return tuple(one for one in held if one.name in names)
    wanted = {_unit(one) for one in held if one.name in names}
    return tuple(one for one in held if _unit(one) in wanted)


def _unit(held: HeldFile) -> tuple[object, ...]:
    meta = held.meta
    return meta.pipeline, meta.journal, meta.entry, meta.unit
