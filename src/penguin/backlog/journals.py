"""Backlogs: per pipeline, the journal entries after the last committed one.

Receipts are read first, then the log, then the journals. Each is written later than the one read
after it, so a later read must know of everything an earlier read saw. If the log is behind a
receipt, or a journal behind the log, it was rolled back, and nothing more of that pipeline is
committed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from lakebed import errors
from lakebed.documents.entry import (
    DirectoryProtocol,
    Entry,
    Receipt,
    decode,
    decode_entry,
    digest,
    digest_number,
)
from lakebed.journal import JournalReader, latest_protocol_number, replaced_journals
from lakebed.layout import (
    OURS,
    PIPELINE_NAME,
    PROTOCOL,
    journal_entry,
    journal_folder,
    pipeline_transaction,
    pipelines,
    protocol,
)
from lakebed.storage.store import Reader
from lakebed.types import DiscoverBy, Handoff
from penguin.model.backlog import PipelineBacklog, Position, ReadyEntry, Stopped, Transactions
from penguin.model.settings import JournalBroken, LogRolledBack

NEW_JOURNAL = "or start a new one with blizzard journal new"

HANDOFF_OF = {
    DiscoverBy.JOURNAL: Handoff.JOURNAL,
    DiscoverBy.STAGING: Handoff.STAGING,
    DiscoverBy.WATERMARK: Handoff.DIRECT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePipelines:
    """The pipelines of a table directory and their receipts, read before the log."""

    receipts: Mapping[str, Receipt | None]
    handoff: Handoff = Handoff.JOURNAL
    declared: bool = True
    """Whether blizzard has declared its hand-off; if not, it has written no file either."""
    protocol: int | None = None
    """The number of the document that declares it."""
    stopped: tuple[Stopped, ...] = ()


def read_pipelines(
    store: Reader, wish: DiscoverBy = DiscoverBy.AUTO, *, known_protocol: int | None = None
) -> TablePipelines:
    """List the pipelines, then read the protocol, then the receipts."""
    names = [name for name in pipelines(store.folders(OURS)) if PIPELINE_NAME.fullmatch(name)]
    number, said = read_protocol(store, known_protocol)
    handoff = handoff_in_force(store, said, wish)
    receipts: dict[str, Receipt | None] = {}
    stopped = []
    for name in names:
        try:
            receipts[name] = JournalReader(store, name, full_paths=True).receipt()
        except errors.LakeError as error:
            stopped.append(Stopped(pipeline=name, error=error))
    return TablePipelines(
        receipts=receipts,
        handoff=handoff,
        declared=said is not None,
        protocol=number,
        stopped=tuple(stopped),
    )


def handoff_in_force(store: Reader, said: DirectoryProtocol | None, wish: DiscoverBy) -> Handoff:
    """Return how files are handed off: the table directory decides, and settings must agree."""
    wanted = HANDOFF_OF.get(wish)
    if said is None:
        return wanted or Handoff.JOURNAL
    if wanted not in (None, said.handoff):
        fitting = next(one for one, handoff in HANDOFF_OF.items() if handoff is said.handoff)
        raise errors.ProtocolConflict(
            f"this table's hand-off is {said.handoff.value!r}, and discovery: {wish.value} does "
            f"not find such files; set it to auto or {fitting.value}",
            path=store.describe(PROTOCOL),
        )
    return said.handoff


def read_protocol(
    store: Reader, known: int | None = None
) -> tuple[int, DirectoryProtocol] | tuple[None, None]:
    """Read the protocol document with the highest number; None before blizzard wrote one.

    Numbers are consecutive, so while the known document exists and the next does not, nothing needs
    listing.
    """
    number, body = known, None
    if known is not None and store.head(protocol(known + 1)) is None:
        body = store.get(protocol(known))
    if body is None:
        number = latest_protocol_number(store)
        body = None if number is None else store.get(protocol(number))
    if number is None:
        return None, None
    path = store.describe(protocol(number))
    if body is None:
        raise errors.ObjectMissing("the protocol document has disappeared", path=path)
    return number, decode(DirectoryProtocol, body, path)


def all_journals(store: Reader) -> Iterator[tuple[JournalReader, bool]]:
    """Yield every journal of a table, and whether a newer journal has replaced it."""
    for pipeline in pipelines(store.folders(OURS)):
        for folder in (None, *replaced_journals(store, pipeline)):
            yield JournalReader(store, pipeline, folder=folder, full_paths=True), folder is not None


def read_journals(
    store: Reader, found: TablePipelines, transactions: Transactions, *, max_files: int
) -> tuple[tuple[PipelineBacklog, ...], tuple[Stopped, ...]]:
    """Read each journal's uncommitted entries, up to a commit's worth of files.

    Return the backlogs, and the stopped pipelines.
    """
    backlogs = []
    stopped = list(found.stopped)
    for pipeline, last_receipt in found.receipts.items():
        journal = _CheckedJournal(store, pipeline, last_receipt, transactions)
        try:
            backlog = journal.backlog(max_files)
        except errors.LakeError as error:
            stopped.append(Stopped(pipeline=pipeline, error=error))
            continue
        if backlog is not None:
            backlogs.append(backlog)
    return tuple(backlogs), tuple(stopped)


@lru_cache(maxsize=8)
def _decoded(body: bytes, where: str) -> tuple[Entry, str]:
    """Decode an entry and its digest, cached: every poll reads the last committed entry again."""
    return decode_entry(body, where), digest(body)


@dataclass(frozen=True, slots=True)
class _CheckedJournal:
    """One pipeline's journal, checked against its receipt and the log."""

    store: Reader
    pipeline: str
    receipt: Receipt | None
    transactions: Transactions

    @property
    def reader(self) -> JournalReader:
        return JournalReader(self.store, self.pipeline, full_paths=True)

    def backlog(self, max_files: int) -> PipelineBacklog | None:
        """Check the committed past and read the entries after it; None without a journal."""
        opening = self._read(0)
        if opening is None:
            self._check_never_used()
            return None
        position = Position.read(self.pipeline, opening.entry.journal, self.transactions)
        self._check_receipt(position)
        last = opening if position.sequence is None else self._committed(position)
        return PipelineBacklog(
            position=position,
            entries=tuple(self._following(last, max_files)),
            overdue_receipt=(
                None
                if last.entry.sequence == 0 or self.receipt == last.receipt()
                else last.receipt()
            ),
        )

    def _check_never_used(self) -> None:
        known = self.transactions(pipeline_transaction(self.pipeline))
        if known is not None or self.receipt is not None:
            raise errors.JournalLost(
                "entries of this pipeline are committed, but its journal is gone; restore the "
                f"journal from a backup, {NEW_JOURNAL}",
                pipeline=self.pipeline,
                journal=self.store.describe(journal_folder(self.pipeline)),
            )
        self._check_no_gap(0)

    def _check_receipt(self, position: Position) -> None:
        """Check the journal and the log against the receipt.

        A journal that replaces a committed one must be intended: its first run writes a receipt
        that names it with entry 0. Any other journal than the receipt's is taken for a mistake.
        """
        ours = self.receipt is not None and self.receipt.journal == position.journal
        known = self.transactions(pipeline_transaction(self.pipeline))
        if (self.receipt is not None and not ours) or (
            position.sequence is None and known is not None and not ours
        ):
            raise errors.JournalLost(
                "entries of another journal of this pipeline are committed; restore that "
                f"journal from a backup, {NEW_JOURNAL}",
                pipeline=self.pipeline,
                found=position.journal,
                committed=self.receipt.journal if self.receipt else "unknown",
            )
        if self.receipt is not None and self.receipt.sequence > (position.sequence or 0):
            known_as = "none is" if position.sequence is None else f"entry {position.sequence}"
            raise LogRolledBack(
                f"the receipt says that entry {self.receipt.sequence} is committed, but the "
                f"Delta log says {known_as}: the log was rolled back, the "
                "table was replaced, or its transactions were dropped; `penguin replay` shows "
                "which and commits again only what was lost, `penguin forget` continues without "
                "it",
                pipeline=self.pipeline,
            )

    def _committed(self, position: Position) -> ReadyEntry:
        """Read the entry that the log says is committed, and verify that it is that one."""
        assert position.sequence is not None  # noqa: S101 - the caller checked
        ready = self._read(position.sequence)
        if ready is None:
            raise errors.JournalLost(
                f"the Delta log says that entry {position.sequence} is committed, but the "
                f"journal does not have it; restore the journal from a backup, {NEW_JOURNAL}",
                pipeline=self.pipeline,
            )
        self._check_journal(ready, position.journal)
        if position.digest != digest_number(ready.digest):
            raise JournalBroken(
                f"entry {position.sequence} is not the one that was committed: its digest is "
                f"different; restore the journal from a backup, {NEW_JOURNAL}",
                pipeline=self.pipeline,
                path=ready.path,
            )
        if (
            self.receipt is not None
            and self.receipt.sequence == position.sequence
            and self.receipt.digest != ready.digest
        ):
            raise JournalBroken(
                f"entry {position.sequence} is not the one that the receipt names",
                pipeline=self.pipeline,
                path=ready.path,
            )
        return ready

    def _following(self, last: ReadyEntry, max_files: int) -> Iterator[ReadyEntry]:
        files = 0
        while files < max_files:
            sequence = last.entry.sequence + 1
            try:
                ready = self._read(sequence)
            except errors.DocumentUnreadable:
                if files:
                    return  # Commit what comes before it first.
                raise
            if ready is None:
                self._check_no_gap(sequence)
                return
            self._check_journal(ready, last.entry.journal)
            if ready.entry.previous != last.digest:
                raise JournalBroken(
                    f"entry {sequence} does not follow entry {sequence - 1}: it names a "
                    "different digest; the journal was changed after it was written",
                    pipeline=self.pipeline,
                    path=ready.path,
                )
            yield ready
            last = ready
            # An entry without files costs a read as well.
            files += max(1, len(ready.entry.data_files))

    def _read(self, sequence: int) -> ReadyEntry | None:
        body = self.reader.body(sequence)
        if body is None:
            return None
        where = self.reader.where(sequence)
        entry, fingerprint = _decoded(body, where)
        self._check_place(entry, sequence, where)
        return ReadyEntry(entry=entry, digest=fingerprint, path=where)

    def _check_place(self, entry: Entry, sequence: int, where: str) -> None:
        fits = (entry.kind == "open") == (sequence == 0)
        if (entry.pipeline, entry.sequence, fits) != (self.pipeline, sequence, True):
            raise JournalBroken(
                f"this is entry {entry.sequence} ({entry.kind}) of pipeline {entry.pipeline}, "
                f"not entry {sequence} of {self.pipeline}",
                path=where,
            )
        may_add = entry.operation in ("append", "overwrite")
        may_rewrite = entry.operation in ("overwrite", "rewrite")
        if (entry.files and not may_add) or (entry.rewrites and not may_rewrite):
            verb = "rewrites" if may_add else "names"
            raise JournalBroken(
                f"entry {sequence} ({entry.kind}) {verb} data files, which no entry of its kind "
                "does",
                path=where,
            )

    def _check_journal(self, ready: ReadyEntry, journal: str) -> None:
        if ready.entry.journal != journal:
            raise JournalBroken(
                f"entry {ready.entry.sequence} belongs to another journal",
                pipeline=self.pipeline,
                found=ready.entry.journal,
                expected=journal,
                path=ready.path,
            )

    def _check_no_gap(self, sequence: int) -> None:
        """Raise if there is anything beyond the first missing entry."""
        beyond = self.reader.numbers(sequence)
        # Between the read and the listing blizzard may have written the missing one and more.
        if beyond and self.store.head(journal_entry(self.pipeline, sequence)) is None:
            raise JournalBroken(
                f"entry {sequence} is missing, but entry {beyond[0]} exists; restore the missing "
                "one from a backup",
                pipeline=self.pipeline,
            )
