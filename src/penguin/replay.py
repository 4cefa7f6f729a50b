"""What an operator orders where the log no longer has what was committed to it.

A log that was put back from a backup, or a dropped table, is behind the receipts. A RESTORE
takes out what was committed after some version. In both cases the rows can be committed again, or
be left out for good; which of them is wanted nobody but the operator can say.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lake.clock import Clock
from lake.entry import Receipt, digest_number, encode
from lake.errors import JournalLost
from lake.layout import HELD_TRANSACTIONS, file_name, held_meta
from lake.layout import receipt as receipt_path
from lake.meta import EntryName
from lake.storage import Store
from penguin import evolution
from penguin.actions import read_log
from penguin.committer import Committer, Superseded, missing_files
from penguin.discovery import survey
from penguin.drafting import new_table
from penguin.errors import CommitFailed, JournalBroken, SchemaRefused
from penguin.flow import (
    Add,
    Advance,
    Changes,
    CommitPlan,
    Evolves,
    Fate,
    Fits,
    Hold,
    HoldCode,
    Mark,
    Position,
    ReadyEntry,
    Refused,
)
from penguin.held import read_entry, set_aside
from penguin.settings import Evolution, TableSettings
from penguin.table import Log, Table
from penguin.undone import NoRestore, NothingToReplay, Undone, find_undone


@dataclass(frozen=True, slots=True, kw_only=True)
class Setback:
    """A pipeline whose entries were committed to a log that no longer knows of them."""

    position: Position
    """Where the log says it stands."""
    receipt: Receipt
    """What was committed last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Settles what the log of one table has lost."""

    settings: TableSettings
    store: Store
    clock: Clock
    pause: Callable[[float], object]
    open_log: Callable[[Store], Log] = field(default=Log)

    def setbacks(self) -> tuple[Setback, ...]:
        """Give the pipelines whose receipt is ahead of the log; one that is torn is an error."""
        table = self.open_log(self.store).open()
        found = survey(self.store, self.settings.discovery)
        for unreadable in found.stopped:
            raise unreadable.error
        behind = []
        for pipeline, receipt in found.receipts.items():
            if receipt is None:
                continue
            position = Position.read(
                pipeline, receipt.journal, _no_log if table is None else table.transaction
            )
            if receipt.sequence > (position.sequence or 0):
                behind.append(Setback(position=position, receipt=receipt))
        return tuple(behind)

    def replay_lost(self, setback: Setback) -> None:
        """Let the entries that the log has lost be committed again: the next poll does."""
        position = setback.position
        # With entry 0 the receipt still says that this journal is wanted, and no earlier one.
        committed = self._entry(position.pipeline, position.journal, position.sequence or 0)
        if position.sequence is not None and digest_number(committed.digest) != position.digest:
            raise JournalBroken(
                f"entry {position.sequence} is not the one that is committed: its digest is "
                "another; put the journal back from a backup",
                pipeline=position.pipeline,
                path=committed.path,
            )
        self.store.replace(receipt_path(position.pipeline), encode(committed.receipt()))

    def unlisted(self) -> tuple[Hold, ...]:
        """Give the files that are held and of which no meta says so: the log lost their release."""
        table = self.open_log(self.store).open()
        if table is None:
            return ()
        known = read_log(self.store, table)
        names = [
            app_id.removeprefix(HELD_TRANSACTIONS)
            for app_id, fate in known.transactions.items()
            if app_id.startswith(HELD_TRANSACTIONS) and fate == Fate.HELD
        ]
        lost = {name for name in names if self.store.head(held_meta(name)) is None}
        return tuple(self._holds(lost, table)) if lost else ()

    def _holds(self, names: set[str], table: Table) -> Iterator[Hold]:
        """Find files in the journals, by their names."""
        for pipeline, receipt in survey(self.store, self.settings.discovery).receipts.items():
            journal = "" if receipt is None else receipt.journal
            position = Position.read(pipeline, journal, table.transaction)
            for sequence in range(1, (position.sequence or 0) + 1):
                for file in self._entry(pipeline, journal, sequence).entry.files:
                    if file_name(file.filename) in names:
                        yield Hold(
                            file=file,
                            entry=EntryName(pipeline, journal, sequence),
                            code=HoldCode.DOCUMENT_UNREADABLE,
                            reasons=("the log has lost what became of it",),
                        )

    def list_again(self, holds: tuple[Hold, ...]) -> None:
        """Write the metas of held files anew: the next poll looks at them as at all others."""
        set_aside(self.store, holds, self.clock.now())

    def forget_lost(self, setback: Setback) -> int:
        """Go on after the entries that the log has lost, without their rows; give the version."""
        position, receipt = setback.position, setback.receipt
        last = self._entry(position.pipeline, receipt.journal, receipt.sequence)
        if last.digest != receipt.digest:
            raise JournalBroken(
                f"entry {receipt.sequence} is not the one that the receipt names; "
                "put the journal back from a backup",
                pipeline=position.pipeline,
                path=last.path,
            )
        table = self.open_log(self.store).open()
        facts = new_table(last.entry, self.settings) if table is None else table.facts
        first = (position.sequence or 0) + 1
        plan = CommitPlan(
            table=facts,
            after=facts,
            changes=Changes(),
            adds=(),
            advances=(Advance(before=position, entries=(last,)),),
            note={"forgotten": {position.pipeline: [first, receipt.sequence]}},
        )
        outcome = self._committer().carry_out(plan)
        if isinstance(outcome, Superseded):
            raise CommitFailed("the table changed meanwhile; try again", table=self.store.uri)
        return outcome.version

    def undone(self) -> tuple[Undone, tuple[Add, ...]]:
        """Say what the last RESTORE took out and is not back yet."""
        table = self._table()
        undone = find_undone(self.store, table.version)
        since = table.transaction(undone.app_id) or undone.restored_to
        adds = [add for version, files in undone.commits if version > since for add in files]
        return undone, tuple(adds)

    def replay_undone(self) -> int | None:
        """Add again what the last RESTORE took out of penguin's commits, once."""
        table = self._table()
        undone, adds = self.undone()
        if not adds:
            return None
        before = table.transaction(undone.app_id)
        decision = evolution.decide(
            Evolution.MERGE,
            table.facts,
            self.open_log(self.store).schema_at(undone.restored_by - 1),
            table.facts.partition_columns,
        )
        match decision:
            case Refused(reasons):
                raise SchemaRefused(undone.restored_by, reasons, table=self.store.uri)
            case Evolves(after, changes):
                pass
            case Fits():
                after, changes = table.facts, Changes()
        plan = CommitPlan(
            table=table.facts,
            after=after,
            changes=changes,
            adds=adds,
            moved=(Mark(app_id=undone.app_id, before=before, after=undone.commits[-1][0]),),
            note={"replayed": {"restore": undone.restored_by}},
        )
        gone = missing_files(self.store, plan).gone
        if gone:
            path, why = min(gone.items())
            raise NothingToReplay(
                f"{len(gone)} of {len(adds)} files cannot be put back, {path} among them: {why}",
                table=self.store.uri,
            )
        outcome = self._committer().carry_out(plan)
        if isinstance(outcome, Superseded):
            raise CommitFailed("the table changed meanwhile; try again", table=self.store.uri)
        return outcome.version

    def _table(self) -> Table:
        table = self.open_log(self.store).open()
        if table is None:
            raise NoRestore("there is no Delta table here", table=self.store.uri)
        return table

    def _committer(self) -> Committer:
        return Committer(
            log=self.open_log(self.store), store=self.store, clock=self.clock, pause=self.pause
        )

    def _entry(self, pipeline: str, journal: str, sequence: int) -> ReadyEntry:
        ready = read_entry(self.store, EntryName(pipeline, journal, sequence))
        if ready is None:
            raise JournalLost(
                f"entry {sequence} of journal {journal} is not there or cannot be read; put the "
                "journal back from a backup",
                pipeline=pipeline,
            )
        return ready


def _no_log(_app_id: str) -> int | None:
    return None
