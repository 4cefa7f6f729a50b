"""The evidence about one pipeline's files: journal, log and sources. Read-only.

`why`, `files`, `status`, `dlq`, `--dry-run` and the live page share it, so their answers agree.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from blizzard.answers.answer import CommandPrefix, FileProgress
from blizzard.answers.evidence import JournalEvidence
from blizzard.discover.finding import Finding
from blizzard.discover.lister import SourceLister, SpotCheck, source_listers
from blizzard.discover.scan import DiscoveryContext, JournalLookup
from blizzard.handoff.held_rows import WithheldFiles, read_withheld, rejection_lookup
from blizzard.journal.admission import admit
from blizzard.journal.checkpoint import read_ledger, refresh
from blizzard.journal.checks import (
    has,
    redirected,
    refuse_moved,
    refuse_other_names,
    require_handoff,
)
from blizzard.journal.ledger import Ledger
from blizzard.journal.source_names import KnownSources
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.model.source.file import IngestedFile
from blizzard.model.stores import (
    OpenReader,
    open_reader,
    open_table,
    source_location,
    source_uris_of,
)
from blizzard.pipeline_log import PipelineLog
from lakebed.clock import Clock
from lakebed.documents.pending_meta import HeldMeta
from lakebed.errors import JournalLost, LakeError, ProtocolConflict
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader


@dataclass(frozen=True, slots=True)
class LastCommitted:
    """The last committed entry, and why that may be wrong."""

    entry: int | None = None
    unsure: str | None = None
    receipt_fits: bool = True
    lost: int | None = None
    """The last committed entry by the receipt, if the log has lost its version."""


@dataclass(frozen=True, kw_only=True)
class PipelineEvidence:
    """Everything that answers about one pipeline's files are based on."""

    settings: PipelineSettings
    clock: Clock
    log: PipelineLog
    store: Reader | None = None
    """The table's directory; None if it does not exist yet."""
    history: Ledger = field(default_factory=Ledger)
    """The ledger of the journal so far."""
    open_reader: OpenReader = open_reader
    check_schema: Callable[[], None] = lambda: None
    """Raises if penguin would hold every file with the declared fields."""
    cli: CommandPrefix = field(default_factory=CommandPrefix)
    """The prefix of commands about the pipeline."""

    @classmethod
    def read(
        cls,
        settings: PipelineSettings,
        clock: Clock,
        check_schema: Callable[[], None] = lambda: None,
        *,
        opening: OpenReader = open_reader,
        ledger: Ledger | None = None,
        log: PipelineLog | None = None,
        cli: CommandPrefix | None = None,
    ) -> "PipelineEvidence":
        """Read the journal of a pipeline, or bring a given ledger up to date."""
        store, log = open_table(settings, opening), log or PipelineLog(settings, opening)
        history = Ledger() if ledger is None else ledger
        if store is not None and ledger is not None:
            refresh(ledger, store, settings.name)
        elif store is not None:
            history = read_ledger(store, settings.name, rejections=log.rejections)
        return cls(
            settings=settings,
            clock=clock,
            log=log,
            store=store,
            history=history,
            open_reader=opening,
            check_schema=check_schema,
            cli=cli or CommandPrefix(),
        )

    @cached_property
    def known(self) -> KnownSources:
        """Return what the journal knows of source files."""
        return KnownSources(self.history)

    @cached_property
    def table(self) -> JournalEvidence | None:
        """The journal with the newest version of the log; None without a table."""
        if self.store is None:
            return None
        name = self.settings.name
        return JournalEvidence(
            store=self.store,
            pipeline=name,
            journal=JournalReader(self.store, name),
            last=self.history.sequence,
            log=self.log.search(),
        )

    @cached_property
    def withheld(self) -> WithheldFiles:
        """The files that penguin holds or that were given up, by the log."""
        if self.store is None:
            return WithheldFiles()
        return read_withheld(self.store, self.settings.name, self.log.fates)

    def lister(self, source: SourceSettings) -> SourceLister:
        """Return a new lister of a source."""
        return next(each for each in source_listers(self.settings) if each.source is source)

    def context(self, source: SourceSettings, lookup: JournalLookup) -> DiscoveryContext:
        """Return the context for discovering files of a source."""
        now, since = self.clock.now(), None
        if source.lookback is not None:
            since = self.history.first_read(source.name, now=now)
        return DiscoveryContext(
            store=self.open_reader(source_location(source)),
            lookup=lookup,
            unfinished=self.history.unfinished,
            since=since,
            now=now,
        )

    def spot_check(self, source: SourceSettings) -> SpotCheck:
        """Return a check of single paths of a source, equivalent to a sweep."""
        return SpotCheck(lister=self.lister(source), context=self.context(source, self.known))

    def swept(self, source: SourceSettings) -> Finding:
        """List all of a source, as a newly started run would."""
        context = self.context(source, self.history.lookup())
        return self.lister(source).discover(context, whole=True)

    def refusal(self) -> LakeError | None:
        """Return why a start of the pipeline would be refused; None if it would not."""
        if self.store is None:
            return None
        try:
            require_handoff(self.store, self.settings.sink.handoff)
            self.check_schema()
            admit(self.history, source_uris_of(self.settings), self.log.knows_pipeline)
        except (JournalLost, ProtocolConflict) as refusal:
            return refusal
        return None

    def refusal_without_journal(self) -> LakeError | None:
        """Return why a start would be refused, if there is no journal to continue.

        That includes a renamed pipeline, whose journal is still under the old name.
        """
        has_journal = self.history.sequence >= 0 and self.history.heir is None
        return None if has_journal else self.refusal()

    def refuse_other_source(self, source: SourceSettings) -> None:
        """Refuse to list a source whose files the journal knows elsewhere or by other names.

        A start would not read it, so nothing there counts as waiting.
        """
        if self.store is None:
            return
        history, uris = self.history, source_uris_of(self.settings)
        at, elsewhere = {source.name: uris[source.name]}, redirected(uris, history)
        known = {
            uri: other for uri, other in history.source_names.items() if other not in elsewhere
        }
        refuse_other_names(history.place, at, known)
        if source.name not in elsewhere:
            refuse_moved(history.place, at, history.source_uris)

    def last_committed(self, committed: Callable[[str, str], int | None]) -> LastCommitted:
        """Return the last committed entry, given a lookup in the log.

        The log decides, since versions may have been lost after penguin wrote its receipt. The
        receipt is used if the log is unreadable or the journal is not the one that it names.
        """
        history, receipt = self.history, self.history.receipt
        if self.store is None:
            return LastCommitted()
        if receipt is not None and not has(history, receipt):
            number = receipt.sequence
            unsure = f"entry {number} is committed, but the journal does not have it as it was"
            return LastCommitted(number, unsure, receipt_fits=False)
        try:
            journal, name = history.journal, self.settings.name
            last = None if journal is None else committed(name, journal)
            is_lost = receipt is not None and receipt.sequence > (last or 0)
            return LastCommitted(last, lost=receipt.sequence if receipt and is_lost else None)
        except LakeError as unread:
            return LastCommitted(None if receipt is None else receipt.sequence, str(unread))

    def progress(self) -> tuple[FileProgress, tuple[str, ...]]:
        """Return how far read files have come, and why that may be wrong.

        All facts are of one version of the log, without changes by other writers.
        """
        table, history = self.table, self.history
        if table is None:
            return FileProgress(committed=None), ()
        last = self.last_committed(table.log.committed)
        committed, unsure = last.entry, last.unsure
        if history.awaits and unsure is None:
            # Inherited knowledge was committed by the earlier journal.
            committed = max(committed or 0, history.awaits)
        if committed is None:
            unknown = () if unsure is None else (unsure,)
            return FileProgress(committed=None, lost=last.lost), unknown
        withheld = read_withheld(table.store, self.settings.name, table.log.fates)
        errors = [withheld.error, unsure]
        repaired: dict[str, int] = {}
        try:
            history.settle(rejection_lookup(table.log.fates, lambda _journal: committed))
            repaired = table.repaired_sources()
        except LakeError as trouble:
            errors.append(str(trouble))
        progress = FileProgress(
            committed=committed,
            lost=last.lost,
            held=_entries_of(withheld.held),
            discarded=_entries_of(withheld.discarded),
            is_of=self._is_of,
            rejected=frozenset(one.entry for one in history.undecided.rejected),
            repaired=repaired,
        )
        return progress, tuple(one for one in dict.fromkeys(errors) if one is not None)

    def _is_of(self, done: IngestedFile, entry: int) -> bool:
        """Whether an entry wrote rows of this content, not of another one of the same name."""
        if done.entry in (None, entry) or self.table is None:
            return True
        earlier = (each.file.entry for each in self.history.earlier.get(done.key, ()))
        ends = [number for number in earlier if number is not None]
        newest = self.table.journal.entry(done.entry)
        if newest is not None and newest.kind == "retract":
            ends.append(done.entry - 1)  # A replacement is read with one entry.
        first = max((number for number in ends if number < done.entry), default=-1)
        last = min((number for number in ends if number >= done.entry), default=entry)
        return first < entry <= last


def _entries_of(metas: Iterable[HeldMeta]) -> dict[str, list[int]]:
    """Return the entries of data files by the keys of the source files with rows in them."""
    found: dict[str, list[int]] = {}
    for meta in metas:
        for key in meta.source_files:
            found.setdefault(key, []).append(meta.entry or 0)
    return found
