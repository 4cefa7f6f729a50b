"""Read-only views: what there is to do, what a batch would do, what is in the queue.

Everything here is handed readers only, so it cannot write.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from blizzard.answers.refusal import refusal_of
from blizzard.discover.finding import Finding
from blizzard.discover.lister import source_listers
from blizzard.discover.scan import DiscoveryContext
from blizzard.handoff.commit_lag import check_commits
from blizzard.journal.checkpoint import read_ledger, reread
from blizzard.journal.checks import refuse_beside
from blizzard.journal.ledger import Ledger
from blizzard.journal.standings import PassedOver, nothing_decided
from blizzard.journal.start_note import started_before
from blizzard.model.files import WorkUnit
from blizzard.model.locations import OpenReader, sink_location, source_location, source_uris_of
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.model.source.forecast import Forecast
from blizzard.plan.trigger import learned
from blizzard.proposal import View, propose
from lakebed.clock import Clock
from lakebed.documents.entry import Started
from lakebed.errors import JournalLost, LakeError, ObjectMissing
from lakebed.storage.store import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a batch would do now, and what a start would refuse."""

    pipeline: str
    table_uri: str
    entry: int
    findings: Mapping[str, Finding]
    units: tuple[WorkUnit, ...]
    refusal: LakeError | None = None
    """Why a start would not get as far as this batch."""
    looks_at: int = 0
    """How many bytes of the files are looked at first, to find the columns."""


def explain(
    settings: PipelineSettings,
    open_reader: OpenReader,
    *,
    parallelism: int,
    clock: Clock,
    log_knows_pipeline: Callable[[], bool] = lambda: False,
    passed_over: PassedOver = nothing_decided,
    beside: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    check_schema: Callable[[], None] = lambda: None,
    retention: Callable[[], timedelta] = lambda: timedelta.max,
) -> Explanation:
    """Return what a batch would do now. It is handed readers only, so it cannot write.

    `beside` are the sources of other pipelines that are started with this one, on the same table.
    """
    store = _reader(settings, open_reader)
    history, refusal = _history(settings, store, passed_over, log_knows_pipeline, check_schema)
    if refusal is None and history.sequence < 0:
        try:
            refuse_beside(settings.name, source_uris_of(settings), beside)
        except JournalLost as taken:
            refusal = taken
    journal = _ReadJournal(settings, store, history, clock)

    def findings() -> dict[str, Finding]:
        return {
            source.name: look_at(settings, source, open_reader, history, clock=clock)
            for source in settings.sources
        }

    proposal = propose(
        View(
            settings=settings,
            open_source=open_reader,
            parallelism=parallelism,
            clock=clock,
            look=findings,
            rebuild=lambda broken: reread(history, broken),
            check=lambda: journal.check_commits(retention) if refusal is None else None,
            started_before=journal.started_before,
            forecast=learned(Forecast(), history.last, settings),
        )
    )
    return Explanation(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        entry=journal.next_entry,
        findings=proposal.findings,
        units=proposal.units,
        refusal=refusal or proposal.refusal,
        looks_at=_looked_at(settings, history, proposal.units),
    )


def _looked_at(settings: PipelineSettings, history: Ledger, units: tuple[WorkUnit, ...]) -> int:
    """Return how many bytes a batch looks at before it is read. Pure."""
    if not settings.infer or history.columns is not None:
        return 0
    return min(settings.infer_max_bytes, sum(unit.to_read for unit in units))


@dataclass(slots=True)
class _ReadJournal:
    """What a run would ask its journal, answered by what can be read of it."""

    settings: PipelineSettings
    store: Reader | None
    history: Ledger
    clock: Clock

    @property
    def next_entry(self) -> int:
        """Return the number of the entry that the batch would have."""
        return max(self.history.sequence, 0) + 1

    def started_before(self) -> Started:
        """Return how often the batch was started by processes that died with it."""
        if self.store is None:
            return Started()
        return started_before(self.store, self.settings.name, self.next_entry)

    def check_commits(self, retention: Callable[[], timedelta]) -> None:
        """Raise where files wait so long for their commit that a run would take no new work."""
        last = self.history.last
        if self.store is not None and last is not None:
            check_commits(
                self.store,
                self.settings.name,
                last=last.sequence,
                now=self.clock.now(),
                retention=retention,
            )


def _reader(settings: PipelineSettings, open_reader: OpenReader) -> Reader | None:
    try:
        return open_reader(sink_location(settings))
    except ObjectMissing:
        return None  # The table's folder does not exist yet, so neither does a journal.


def _history(
    settings: PipelineSettings,
    store: Reader | None,
    passed_over: PassedOver,
    log_knows_pipeline: Callable[[], bool],
    check_schema: Callable[[], None],
) -> tuple[Ledger, LakeError | None]:
    """Read the journal, and find out what a start would refuse."""
    if store is None:
        return Ledger(), None
    history = read_ledger(store, settings.name, passed_over=passed_over)
    return history, refusal_of(settings, store, history, log_knows_pipeline, check_schema)


def look_at(
    settings: PipelineSettings,
    source: SourceSettings,
    open_source: OpenReader,
    history: Ledger,
    *,
    clock: Clock,
) -> Finding:
    """Look at one source, all of it, as a run does that has just started."""
    now = clock.now()
    lister = next(each for each in source_listers(settings) if each.source is source)
    context = DiscoveryContext(
        store=open_source(source_location(source)),
        lookup=history.lookup(),
        unfinished=history.unfinished,
        since=None if source.lookback is None else history.first_read(source.name, now=now),
        now=now,
    )
    return lister.look(context, whole=True)
