"""An operator's commands for a log that lost commits.

A log restored from a backup, or a dropped table, is behind the receipts. A RESTORE removes what was
committed after some version. In both cases the rows can be committed again or left out for good;
only the operator can decide which.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from lakebed.deltalog.actions import moment
from lakebed.deltalog.files import read_back, read_log
from lakebed.deltalog.log_contents import LONG_AGO, LogContents
from lakebed.deltalog.snapshot import Snapshot
from lakebed.documents.entry import Entry, Receipt, digest_number, encode
from lakebed.documents.losses import Repair, TakenOut
from lakebed.documents.pending_meta import EntryName, HeldState, entry_named_by
from lakebed.documents.reading import encode_document
from lakebed.documents.records import FinishedFile
from lakebed.errors import JournalLost, LakeError, Whose
from lakebed.layout import HELD_TRANSACTIONS, file_name, held_meta, held_transaction, repaired
from lakebed.layout import receipt as receipt_path
from lakebed.listing.watermark import named_at
from lakebed.storage.store import Reader
from lakebed.types import Evolution
from penguin.backlog.journals import read_pipelines
from penguin.backlog.redo_conflicts import Supersessions
from penguin.committer import missing_files
from penguin.delta.restore import NoRestore, NothingToReplay, Restore, find_restore
from penguin.delta.table import WritableTable
from penguin.held import read_entry, read_held, record_holds
from penguin.model.backlog import Position, ReadyEntry
from penguin.model.commit import (
    Add,
    Advance,
    CommitPlan,
    EntryRefused,
    Hold,
    HoldCode,
    RejectedEntry,
    TransactionUpdate,
    held_update,
)
from penguin.model.settings import JournalBroken, SchemaRefused
from penguin.operate.release import TableOperation
from penguin.plan import evolution
from penguin.plan.evolution import created_as


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitEvidence:
    """Evidence in a log for entries whose transactions it has lost."""

    up_to: int | None = None
    """The last entry with a file in the log; None without one."""
    doubtful: tuple[int, int] | None = None
    """The first and last later entry whose files the log may have forgotten."""


def find_evidence(
    store: Reader, table: Snapshot, entries: tuple[ReadyEntry, ...]
) -> CommitEvidence:
    """Find the evidence that a log still has for entries."""
    known = read_log(store, table)
    written = [written_at(file) for ready in entries for file in ready.entry.files]
    if written:
        read_back(store, known, min(written))
    since = known.stated_since or LONG_AGO
    up_to: int | None = None
    doubtful: list[int] = []
    for ready in entries:
        files = ready.entry.files
        if any(_knows(known, file) for file in files):
            up_to, doubtful = ready.entry.sequence, []
        elif any(written_at(file) < since for file in files):
            doubtful.append(ready.entry.sequence)
    return CommitEvidence(
        up_to=up_to, doubtful=(min(doubtful), max(doubtful)) if doubtful else None
    )


def written_at(file: FinishedFile) -> datetime:
    """Return when a file was opened, by its writer's clock."""
    named = named_at(file.filename)
    at = file.modification_time if named is None else named
    return moment(at) or LONG_AGO


def _knows(known: LogContents, file: FinishedFile) -> bool:
    return (
        file.filename in known.paths
        or known.transaction(held_transaction(file_name(file.filename))) is not None
    )


class RowsUncertain(LakeError, code="rows_uncertain", whose=Whose.USER):
    """The log cannot tell whether rows are in the table; a person must check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBackPipeline:
    """A pipeline with committed entries that the log no longer knows."""

    position: Position
    """Its position by the log."""
    receipt: Receipt
    """The last committed entry."""
    evidence: CommitEvidence = field(default_factory=CommitEvidence)
    """The evidence that the log has for the entries in between."""

    @property
    def first(self) -> int:
        """Return the first entry whose transaction the log has lost."""
        return (self.position.sequence or 0) + 1

    @property
    def first_lost(self) -> int:
        """Return the first entry whose files are gone from the log, too."""
        return max(self.first, (self.evidence.up_to or 0) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReplay(TableOperation):
    """Settles the entries that one table's log has lost."""

    def rolled_back(self) -> tuple[RolledBackPipeline, ...]:
        """Return the pipelines whose receipts are ahead of the log; an unreadable one raises."""
        # Receipts first: the log, read later, knows every commit that they record.
        found = read_pipelines(self.store, self.settings.discovery)
        table = self.open_log(self.store).open()
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
                found_of = self._evidence(position, receipt, table)
                behind.append(
                    RolledBackPipeline(position=position, receipt=receipt, evidence=found_of)
                )
        return tuple(behind)

    def _evidence(
        self, position: Position, receipt: Receipt, table: WritableTable | None
    ) -> CommitEvidence:
        if table is None:
            return CommitEvidence()
        names = (
            EntryName(position.pipeline, receipt.journal, sequence)
            for sequence in range((position.sequence or 0) + 1, receipt.sequence + 1)
        )
        entries = (read_entry(self.store, name) for name in names)
        there = tuple(ready for ready in entries if ready is not None)
        return find_evidence(self.store, table, there)

    def replay_lost(self, rolled_back: RolledBackPipeline, *, rows_missing: bool = False) -> None:
        """Have the next poll commit the lost entries again.

        For entries whose files the log still has, only the transactions are written again, and no
        row is added. `rows_missing` confirms that the rows are missing where the log cannot tell.
        """
        position, doubtful = rolled_back.position, rolled_back.evidence.doubtful
        if doubtful is not None and not rows_missing:
            raise RowsUncertain(
                "the log no longer has the versions that would show whether the files of "
                f"entries {doubtful[0]} to {doubtful[1]} were committed: their rows may be in "
                "the table. Check that; then pass --rows-missing to commit the entries "
                "again, or run `penguin forget` to continue without them",
                pipeline=position.pipeline,
            )
        if rolled_back.evidence.up_to is not None:
            self._settle(rolled_back, rolled_back.evidence.up_to)
            return
        # With entry 0 the receipt still names this journal.
        committed = self._entry(position.pipeline, position.journal, position.sequence or 0)
        if position.sequence is not None and digest_number(committed.digest) != position.digest:
            raise JournalBroken(
                f"entry {position.sequence} is not the one that is committed: its digest is "
                "different; restore the journal from a backup",
                pipeline=position.pipeline,
                path=committed.path,
            )
        self.store.replace(receipt_path(position.pipeline), encode(committed.receipt()))

    def unlisted(self) -> tuple[Hold, ...]:
        """Return held files without a meta: the log has lost their release."""
        table = self.open_log(self.store).open()
        if table is None:
            return ()
        known = read_log(self.store, table)
        names = [
            app_id.removeprefix(HELD_TRANSACTIONS)
            for app_id, state in known.transactions.items()
            if app_id.startswith(HELD_TRANSACTIONS) and state == HeldState.HELD
        ]
        lost = {name for name in names if self.store.head(held_meta(name)) is None}
        # A meta is deleted after the release is logged: a file released meanwhile is not lost.
        now = self.open_log(self.store).open() if lost else None
        if now is None:
            return ()
        held = {one for one in lost if now.transaction(held_transaction(one)) == HeldState.HELD}
        return tuple(self._holds(held, now))

    def _holds(self, names: set[str], table: WritableTable) -> Iterator[Hold]:
        """Yield holds for files of the journals, by name."""
        for pipeline, receipt in read_pipelines(
            self.store, self.settings.discovery
        ).receipts.items():
            journal = "" if receipt is None else receipt.journal
            position = Position.read(pipeline, journal, table.transaction)
            for sequence in range(1, (position.sequence or 0) + 1):
                for file in self._entry(pipeline, journal, sequence).entry.files:
                    if file_name(file.filename) in names:
                        yield Hold(
                            file=file,
                            entry=EntryName(pipeline, journal, sequence),
                            code=HoldCode.DOCUMENT_UNREADABLE,
                            reasons=("the log has lost the decision on it",),
                        )

    def list_again(self, holds: tuple[Hold, ...]) -> None:
        """Write the metas of held files again; the next poll handles them as all others."""
        record_holds(self.store, holds, self.clock.now())

    def forget_lost(self, rolled_back: RolledBackPipeline) -> int:
        """Skip the lost entries for good, without their rows."""
        position, receipt = rolled_back.position, rolled_back.receipt
        last = self._entry(position.pipeline, receipt.journal, receipt.sequence)
        if last.digest != receipt.digest:
            raise JournalBroken(
                f"entry {receipt.sequence} is not the one that the receipt names; restore the "
                "journal from a backup",
                pipeline=position.pipeline,
                path=last.path,
            )
        return self._settle(rolled_back, receipt.sequence)

    def _settle(self, rolled_back: RolledBackPipeline, sequence: int) -> int:
        """Record in the log that entries up to `sequence` are settled, without adding files.

        Held files of entries that the log remembers stay held: their marks are lost too, and a meta
        without a mark would be taken for stale.
        """
        position, kept = rolled_back.position, rolled_back.evidence.up_to
        last = self._entry(position.pipeline, rolled_back.receipt.journal, sequence)
        table = self.open_log(self.store).open()
        facts = (
            created_as(last.entry.table_schema, last.entry.partition_columns, self.settings)
            if table is None
            else table.facts
        )
        note = {}
        if kept is not None:
            note["remembered"] = {position.pipeline: [rolled_back.first, kept]}
        rejected: list[Entry] = []
        if sequence >= rolled_back.first_lost:
            note["forgotten"] = {position.pipeline: [rolled_back.first_lost, sequence]}
            version = 0 if table is None else table.version + 1
            numbers = range(rolled_back.first_lost, sequence + 1)
            journal = last.entry.journal
            lost = [self._entry(position.pipeline, journal, number).entry for number in numbers]
            self._record_losses([entry for entry in lost if not entry.replaces], version)
            rejected = [entry for entry in lost if entry.replaces and not _is_seen(entry, table)]
        plan = CommitPlan(
            table=facts,
            after=facts,
            advances=(Advance(before=position, entries=(last,)),),
            moved=() if table is None or kept is None else self._held_updates(table, last, kept),
            discarded={file_name(file.filename): None for one in rejected for file in one.files},
            rejected=[_rejected(entry) for entry in rejected],
            note=note,
        )
        return self.committer().carry_out(plan).version

    def _record_losses(self, lost: list[Entry], version: int) -> None:
        """Record which files are left out, as a repair does, for audits."""
        document = Repair(
            version=version,
            files=tuple(
                TakenOut(path=file.filename, pipeline=entry.pipeline, entry=entry.sequence)
                for entry in lost
                for file in entry.data_files
            ),
            created=self.clock.now().isoformat(),
        )
        if document.files:
            self.store.replace(repaired(version), encode_document(document))

    def _held_updates(
        self, table: WritableTable, last: ReadyEntry, kept: int
    ) -> tuple[TransactionUpdate, ...]:
        """Return the missing marks of held files."""
        known = read_log(self.store, table)
        position = last.position()
        names = [
            file_name(meta.filename)
            for meta in read_held(self.store).values()
            if (of := entry_named_by(meta)) is not None
            and (of.pipeline, of.journal) == (position.pipeline, position.journal)
            and of.sequence <= kept
            and meta.filename not in known.paths
        ]
        return tuple(
            held_update(name, None, HeldState.HELD)
            for name in names
            if table.transaction(held_transaction(name)) is None
        )

    def undone(self) -> tuple[Restore, tuple[Add, ...]] | None:
        """Return what the last RESTORE removed and is not back yet; None if nothing is.

        Files superseded since stay out: their rows are in other files of the table.
        """
        table = self.open_log(self.store).open()
        if table is None:
            return None
        try:
            restore = find_restore(self.store, table.version)
        except NoRestore:
            return None
        since = table.transaction(restore.app_id) or restore.restored_to
        adds = [add for version, files in restore.commits if version > since for add in files]
        if not adds:
            return None
        since_read = Supersessions.read(self.store, table.transaction)
        adds = [add for add in adds if file_name(add.path) not in since_read.names]
        names = {file_name(add.path) for add in adds}
        why = since_read.why_not_added(self.store, names, table.transaction)
        if why is not None:
            raise NothingToReplay(f"nothing was put back: {why}", table=self.store.uri)
        return (restore, tuple(adds)) if adds else None

    def replay_undone(self) -> int | None:
        """Add again, once, the files of penguin's commits that the last RESTORE removed."""
        table, undone = self.open_log(self.store).open(), self.undone()
        if table is None or undone is None:
            return None
        restore, adds = undone
        before = table.transaction(restore.app_id)
        decision = evolution.decide(
            Evolution.MERGE,
            table.facts,
            self.open_log(self.store).at(restore.restored_by - 1).facts.schema,
            table.facts.partition_columns,
        )
        if isinstance(decision, EntryRefused):
            raise SchemaRefused(restore.restored_by, decision.reasons, table=self.store.uri)
        plan = CommitPlan(
            table=table.facts,
            after=decision.table,
            changes=decision.changes,
            adds={str(add.path): add for add in adds},
            moved=(
                TransactionUpdate(
                    app_id=restore.app_id, before=before, after=restore.commits[-1][0]
                ),
            ),
            note={"replayed": {"restore": restore.restored_by}},
        )
        gone = missing_files(self.store, plan).gone
        if gone:
            path, why = min(gone.items())
            raise NothingToReplay(
                f"{len(gone)} of {len(adds)} files cannot be put back, {path} among them: {why}; "
                "restore them from a backup, or accept the loss of all rows that the RESTORE took "
                f"out: blizzard audit --accept {restore.restored_by} --reason TEXT",
                table=self.store.uri,
            )
        return self.committer().carry_out(plan).version

    def _entry(self, pipeline: str, journal: str, sequence: int) -> ReadyEntry:
        ready = read_entry(self.store, EntryName(pipeline, journal, sequence))
        if ready is None:
            raise JournalLost(
                f"entry {sequence} of journal {journal} is missing or cannot be read; restore "
                "the journal from a backup",
                pipeline=pipeline,
            )
        return ready


def _rejected(entry: Entry) -> RejectedEntry:
    """Return a lost entry that replaces files as rejected: the rows of those stay in the table."""
    return RejectedEntry(
        entry=EntryName(entry.pipeline, entry.journal, entry.sequence),
        kind=entry.kind,
        reasons=("penguin forget left it out",),
        mark=entry.replacement_mark,
    )


def _is_seen(entry: Entry, table: WritableTable | None) -> bool:
    """Whether a log without the transaction of an entry shows that files left with it."""
    if table is None:
        return False
    gone = set(table.changed(entry.outgoing))
    return not gone.isdisjoint(read_log(table.store, table).paths)


def _no_log(_app_id: str) -> int | None:
    return None
