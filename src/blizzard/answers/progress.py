"""How far the source files of a pipeline have come, and what a start would refuse. Read-only.

`why`, `files`, `status`, `dlq` and the live page ask here, so that they give the same answer.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from blizzard.answers.evidence import JournalEvidence
from blizzard.answers.lifecycle import FileProgress, FileState, state_by_data_files
from blizzard.discover.lister import source_listers
from blizzard.discover.scan import DiscoveryContext
from blizzard.discover.spot_check import SpotCheck
from blizzard.handoff.held_rows import passed_over, read_aside
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.checks import (
    admit,
    has,
    redirected,
    refuse_moved,
    refuse_other_names,
    require_handoff,
)
from blizzard.journal.ledger import Ledger
from blizzard.journal.source_names import KnownSources
from blizzard.model.locations import (
    OpenReader,
    open_reader,
    open_table,
    source_location,
    source_uris_of,
)
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.pipeline_log import PipelineLog
from lakebed.clock import Clock
from lakebed.documents.pending_meta import HeldMeta
from lakebed.errors import JournalLost, LakeError, ProtocolConflict, SourceContested
from lakebed.journal import JournalReader
from lakebed.locations import written_out
from lakebed.storage.store import Reader


@dataclass(frozen=True, kw_only=True)
class PipelineEvidence:
    """One pipeline, and all that questions about its files are answered from."""

    settings: PipelineSettings
    store: Reader | None
    """The table's directory; None where there is none yet."""
    known: KnownSources
    log: PipelineLog
    open_reader: OpenReader
    clock: Clock
    check_schema: Callable[[], None] = lambda: None
    """Raise where penguin would hold every file with the declared fields."""
    most_names: int | None = 5000
    """Names of a source that are listed to count the files that wait; None for all."""

    @classmethod
    def read(
        cls,
        settings: PipelineSettings,
        clock: Clock,
        check_schema: Callable[[], None] = lambda: None,
        *,
        opening: OpenReader = open_reader,
        most_names: int | None = 5000,
    ) -> "PipelineEvidence":
        """Read the journal of a pipeline."""
        store, log = open_table(settings, opening), PipelineLog(settings, opening)
        history = Ledger()
        if store is not None:
            history = read_ledger(store, settings.name, passed_over=log.passed_over)
        return cls(
            settings=settings,
            store=store,
            known=KnownSources(history),
            log=log,
            open_reader=opening,
            clock=clock,
            check_schema=check_schema,
            most_names=most_names,
        )

    @property
    def history(self) -> Ledger:
        """Return what the journal says up to now."""
        return self.known.history

    @cached_property
    def table(self) -> JournalEvidence | None:
        """Return the pipeline's part of the table; None where there is none yet."""
        if self.store is None:
            return None
        return journal_evidence(self.store, self.settings.name, self.history, self.log)

    def refusal(self) -> LakeError | None:
        """Return why a start of the pipeline would be refused; None where it would not."""
        if self.store is None:
            return None
        return refusal_of(self.settings, self.store, self.history, self.log, self.check_schema)

    def spot_check(self, source: SourceSettings) -> SpotCheck:
        """Return the way to list parts of a source, as a sweep does."""
        now, since = self.clock.now(), None
        if source.lookback is not None:
            since = self.history.first_read(source.name, now=now)
        return SpotCheck(
            lister=next(each for each in source_listers(self.settings) if each.source is source),
            context=DiscoveryContext(
                store=self.open_reader(source_location(source)),
                lookup=self.known,
                unfinished=self.history.unfinished,
                since=since,
                now=now,
            ),
        )


def journal_evidence(
    store: Reader, pipeline: str, history: Ledger, log: PipelineLog
) -> JournalEvidence:
    """Return a pipeline's journal, and the newest version of its table's log."""
    journal = JournalReader(store, pipeline)
    return JournalEvidence(
        store=store, pipeline=pipeline, journal=journal, last=history.sequence, log=log.search()
    )


@dataclass(frozen=True, slots=True)
class LastCommitted:
    """The last entry that is in the table, and why that is not known for sure."""

    entry: int | None = None
    unsure: str | None = None
    receipt_fits: bool = True


def last_committed(
    store: Reader | None,
    pipeline: str,
    history: Ledger,
    committed: Callable[[str, str], int | None],
) -> LastCommitted:
    """Return the last entry that is in the table.

    The log decides: versions may have been lost since penguin wrote its receipt. The receipt
    answers where the log cannot be read, and where the journal is not the one that it names.
    """
    receipt = history.receipt
    if store is None:
        return LastCommitted()
    if receipt is not None and not has(history, receipt):
        number = receipt.sequence
        unsure = f"entry {number} is committed, but the journal does not have it as it was"
        return LastCommitted(number, unsure, receipt_fits=False)
    try:
        journal = history.journal
        return LastCommitted(None if journal is None else committed(pipeline, journal))
    except LakeError as unread:
        return LastCommitted(None if receipt is None else receipt.sequence, str(unread))


def progress_of(
    settings: PipelineSettings,
    table: JournalEvidence | None,
    history: Ledger,
    *,
    of_others: bool = True,
) -> tuple[FileProgress, tuple[str, ...]]:
    """Return how far files that were read have come, and why that is not known for sure.

    All answers are of one version of the log. With `of_others` they include what other writers
    have done to the rows of every source file.
    """
    if table is None:
        return FileProgress(committed=None), ()
    log, name = table.log, settings.name
    last = last_committed(table.store, name, history, log.committed)
    committed, unsure = last.entry, last.unsure
    if history.awaits and unsure is None:
        # What a journal inherits was committed by the earlier one, or it would not be here.
        committed = max(committed or 0, history.awaits)
    if committed is None:
        return FileProgress(committed=None), () if unsure is None else (unsure,)
    aside = read_aside(table.store, name, log.fates)
    errors = [aside.error, unsure]
    repaired: dict[str, int] = {}
    altered: dict[tuple[str, int], FileState] = {}
    try:
        history.settle(passed_over(log.fates, lambda _journal: committed))
        repaired = table.repaired_sources()
        altered = dict(_altered(table, history)) if of_others else {}
    except LakeError as trouble:
        errors.append(str(trouble))
    keys = _Keys(settings, history)
    progress = FileProgress(
        committed=committed,
        held=keys.of(aside.held),
        discarded=keys.of(aside.discarded),
        passed_over=frozenset(one.entry for one in history.undecided.passed_over),
        repaired=repaired,
        altered=altered,
    )
    return progress, tuple(one for one in dict.fromkeys(errors) if one is not None)


def _altered(
    table: JournalEvidence, history: Ledger
) -> Iterator[tuple[tuple[str, int], FileState]]:
    """Yield what other writers have made of the rows of source files, by key and entry."""
    lookup = history.lookup()
    for key in sorted(table.altered_sources()):
        earlier = (each.file for each in history.earlier.get(key, ()))
        for done in (lookup(key).finished, *earlier):
            entry = None if done is None else done.entry
            # Rows of bad lines that were replayed later are in files of their own.
            if entry is None or f"{entry}:{key}" in history.books.replayed:
                continue
            state = state_by_data_files(table.states_of(key, entry))
            if state in (FileState.REMOVED, FileState.ALTERED, FileState.DISCARDED):
                yield (key, entry), state


def refusal_of(
    settings: PipelineSettings,
    store: Reader,
    history: Ledger,
    log: PipelineLog,
    check_schema: Callable[[], None] = lambda: None,
) -> LakeError | None:
    """Return why a start of the pipeline would be refused; None where it would not."""
    try:
        require_handoff(store, settings.sink.handoff)
        check_schema()
        admit(history, source_uris_of(settings), log.knows_pipeline)
    except (JournalLost, ProtocolConflict, SourceContested) as refusal:
        return refusal
    return None


def refusal_without_journal(
    settings: PipelineSettings, store: Reader | None, history: Ledger, log: PipelineLog
) -> LakeError | None:
    """Return why a start would be refused, where there is no journal that it could go on with.

    A pipeline whose name was changed has none: that of its old name is still there.
    """
    if store is None or (history.sequence >= 0 and history.heir is None):
        return None
    return refusal_of(settings, store, history, log)


def refuse_other_source(
    store: Reader | None, settings: PipelineSettings, source: SourceSettings, history: Ledger
) -> None:
    """Refuse to list a source whose files the journal knows at another place, or by other names.

    Nothing there is known to wait: a start would not read it.
    """
    if store is None:
        return
    uris = source_uris_of(settings)
    at, elsewhere = {source.name: uris[source.name]}, redirected(uris, history)
    known_as = {uri: name for uri, name in history.source_names.items() if name not in elsewhere}
    refuse_other_names(history.place, at, known_as)
    if source.name not in elsewhere:
        refuse_moved(history.place, at, history.source_uris)


class _Keys:
    """Finds the keys of source files by what notes have: a URI, or the key itself."""

    def __init__(self, settings: PipelineSettings, history: Ledger) -> None:
        roots = dict(history.source_names)
        roots |= {uri: name for name, uri in history.source_uris.items()}
        roots |= {source.uri: source.name for source in settings.sources}
        self._roots = {f"{root.rstrip('/')}/": name for root, name in roots.items()}
        self._roots |= {f"{written_out(root).rstrip('/')}/": name for root, name in roots.items()}

    def of(self, metas: Iterable[HeldMeta]) -> frozenset[str]:
        """Return the keys of all source files with rows in some data files.

        penguin notes them as the entry names them; of a file that several share that is all there
        is. Of a file with one source there is its URI as well.
        """
        named = {name for meta in metas for name in (*meta.source_files, meta.source_file) if name}
        return frozenset(key for name in named for key in self._keys(name))

    def _keys(self, name: str) -> Iterator[str]:
        below = [root for root in self._roots if name.startswith(root)]
        yield from (f"{self._roots[root]}:{name.removeprefix(root)}" for root in below)
        if not below:
            yield name
