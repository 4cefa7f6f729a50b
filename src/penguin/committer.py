"""Carry out one commit. The log decides what happened, not the exception.

A commit may have been made although an error was raised: its response was lost. So after any error
the table is opened again and its transactions decide whether to retry.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakebed.clock import Clock
from lakebed.deltalog.files import touched_since
from lakebed.deltalog.segment import fetch_actions
from lakebed.deltalog.versions import brought_back
from lakebed.documents.entry import encode
from lakebed.documents.pending_meta import EntryName
from lakebed.errors import CommitUnconfirmed, LakeError
from lakebed.layout import file_name, receipt
from lakebed.retry import Backoff
from lakebed.storage.objects import ahead
from lakebed.storage.store import Reader, Store
from penguin.delta.maintenance import OnDisk
from penguin.delta.table import Log, WritableTable
from penguin.held import record_holds
from penguin.model.backlog import Position, WaitingEntry
from penguin.model.commit import Add, CommitPlan
from penguin.model.settings import TableExists

MAX_ATTEMPTS = 8
BACKOFF = Backoff(first_secs=0.05, limit_secs=5.0)
TOKEN_RANDOM_BITS = 16

NOT_MOVED = "blizzard has not moved its files out of the outbox yet"


@dataclass(frozen=True, slots=True)
class CommitMade:
    """The plan is committed, in this version."""

    version: int
    by_other: bool = False
    """Whether another writer committed it."""


class PlanOutdated(CommitUnconfirmed):
    """The table changed since it was planned: plan again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFiles:
    """Files of a plan that are missing or differ from what was written."""

    gone: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with each, by its path."""
    waiting: tuple[WaitingEntry, ...] = ()
    """The first entry of each pipeline with files that blizzard has yet to move."""


def missing_files(store: Reader, plan: CommitPlan) -> MissingFiles:
    """Check every file of a plan; files of an entry that is not moved yet may still come.

    An entry with held files is waited for, too: blizzard moves no file of a settled entry. Files
    held before are not waited for.
    """
    found: list[tuple[Add, str]] = []
    released = set(plan.released)
    unmoved: dict[str, int] = {}

    def waits_for(one: EntryName | Add) -> None:
        unmoved[one.pipeline] = min(one.sequence, unmoved.get(one.pipeline, one.sequence))

    held = (hold for hold in plan.holds if hold.outbox is not None)
    for hold, why in ahead(
        lambda hold: _trouble(store, hold.file.filename, hold.file.size, hold.outbox), held
    ):
        if why == NOT_MOVED:
            waits_for(hold.entry)
    answers = ahead(lambda add: _trouble(store, add.path, add.size, add.outbox), plan.adds.values())
    for add, why in answers:
        if why is not None:
            found.append((add, why))
        if why == NOT_MOVED and file_name(add.path) not in released:
            waits_for(add)
    return MissingFiles(
        gone={
            str(add.path): why
            for add, why in found
            if add.pipeline not in unmoved or add.sequence < unmoved[add.pipeline]
        },
        waiting=tuple(
            WaitingEntry(pipeline=pipeline, sequence=sequence, reason=NOT_MOVED)
            for pipeline, sequence in unmoved.items()
        ),
    )


def _trouble(store: Reader, path: str, size: int, waits_in: str | None) -> str | None:
    facts = store.head(path)
    if facts is None and waits_in is not None:
        if store.head(waits_in) is not None:
            return NOT_MOVED
        facts = store.head(path)  # It may have been moved in between.
    if facts is None:
        return "the file is gone"
    if facts.size != size:
        return f"the file has {facts.size} bytes, but was written with {size}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """Makes commits to one table."""

    log: Log
    store: Store
    clock: Clock
    pause: Callable[[float], object]
    """Waits some seconds between two attempts."""
    on_disk: OnDisk = field(default_factory=OnDisk)

    def carry_out(self, plan: CommitPlan) -> CommitMade:
        """Commit exactly once despite other writers and lost responses, or raise PlanOutdated.

        Held files are recorded before the commit, with reasons; the commit is synced to disk before
        the receipts are written.
        """
        record_holds(self.store, plan.holds, self.clock.now())
        made = self._decide(plan)
        self._settle(plan, made.version)
        return made

    def _decide(self, plan: CommitPlan) -> CommitMade:
        token = str(self.clock.fresh_id())
        failed: LakeError | None = None
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                table = self.log.open()
                if table is None:
                    self._create(plan, token)
                    continue
                made = self._already_in(plan, table, token)
                if made is not None:
                    return made
                if table.facts.shape() != plan.after.shape():
                    if plan.replaces and table.version != plan.table.version:
                        raise self._overtaken()  # Rows may have been written meanwhile.
                    step = _metadata("columns", token, attempt)
                    table.evolve(plan.after, plan.current_transactions(), step, self.clock.now())
                    continue
                step = _metadata("commit", token, attempt) | plan.metadata()
                at = self.clock.now()
                table.commit(
                    tuple(plan.adds.values()),
                    plan.transactions(),
                    step,
                    at,
                    removes=tuple(plan.removes.values()),
                    rearranges=plan.rearranges,
                    next_version=plan.goes_by_paths,
                )
            except PlanOutdated:
                raise
            except CommitUnconfirmed as error:
                failed = error
                self.pause(BACKOFF.wait(attempt, self._random))
                continue
            # It succeeded. The next iteration confirms it by the log.
            failed = None
        raise CommitUnconfirmed(
            f"the commit could not be made in {MAX_ATTEMPTS} attempts",
            last_error=failed.message if failed else "none",
        ) from failed

    def _create(self, plan: CommitPlan, token: str) -> None:
        try:
            self.log.create(plan.table, _metadata("create", token, 1))
        except TableExists:
            # Another writer was first; use its table if the plan fits it.
            return

    def _overtaken(self) -> PlanOutdated:
        return PlanOutdated("the table changed in the meantime; try again", table=self.store.uri)

    def _already_in(self, plan: CommitPlan, table: WritableTable, token: str) -> CommitMade | None:
        """Return the commit that the log already has; None while the plan can still be made."""
        updates = plan.transaction_updates()
        now = (
            [
                Position.read(part.before.pipeline, part.before.journal, table.transaction)
                for part in plan.advances
            ],
            [table.transaction(update.app_id) for update in updates],
        )
        done = ([part.after for part in plan.advances], [update.after for update in updates])
        if now == done:
            ours = self._version_of(token, plan, table)
            if ours is not None:
                return CommitMade(ours)
            # Another writer's scan commit advances the counter like ours, with other files perhaps.
            if plan.others is None:
                return CommitMade(table.version, by_other=True)
            raise self._overtaken()
        same_table = table.facts.shape() in (plan.table.shape(), plan.after.shape())
        before = ([part.before for part in plan.advances], [update.before for update in updates])
        if (
            (plan.removes and table.changed(plan.removes.values()))
            or (plan.goes_by_paths and self._is_overtaken(plan, table))
            or now != before
            or not same_table
        ):
            raise self._overtaken()
        return None

    def _is_overtaken(self, plan: CommitPlan, table: WritableTable) -> bool:
        """Whether one of the files was added or removed since the plan was made.

        So is a superseded file that came back. Writers other than penguin leave no transaction, and
        a file that was added and then rewritten by OPTIMIZE is no longer in the table, but its rows
        are.
        """
        oldest = -1 if plan.table.version is None else plan.table.version
        touched = touched_since(self.store, oldest, table.version)
        if touched is None or not touched.isdisjoint(plan.adds):
            return True
        if not plan.supersedes or not plan.supersedes.isdisjoint(map(file_name, touched)):
            return bool(plan.supersedes)
        return brought_back(self.store, plan.supersedes, oldest, table.version) is not None

    def _version_of(self, token: str, plan: CommitPlan, table: WritableTable) -> int | None:
        """Find the version with our token among those since the plan was made."""
        oldest = -1 if plan.table.version is None else plan.table.version
        versions = fetch_actions(
            self.store, range(table.version, oldest, -1), only=lambda line: b'"commitInfo"' in line
        )
        for actions in versions:
            if (
                actions is not None
                and {"step": "commit", "token": token}.items() <= actions.info.note.items()
            ):
                return actions.version
        return None

    def _settle(self, plan: CommitPlan, version: int) -> None:
        """Sync the log if it is on a local disk, then write the receipts."""
        self.on_disk.up_to(self.store, version)
        for part in plan.advances:
            self.store.replace(receipt(part.before.pipeline), encode(part.entries[-1].receipt()))

    def _random(self) -> float:
        drawn = int.from_bytes(self.clock.randomness(TOKEN_RANDOM_BITS // 8), "big")
        return drawn / (1 << TOKEN_RANDOM_BITS)


def _metadata(step: str, token: str, attempt: int) -> dict[str, object]:
    return {"step": step, "token": token, "attempt": attempt}
