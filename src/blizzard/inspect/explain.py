"""Looking without touching: what there is to do, what a batch would do, what lies in the queue.

Everything here is handed readers only, so it cannot write.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from blizzard.discover.filter import Finding
from blizzard.discover.lister import source_listers
from blizzard.journal.checks import admit, refuse_beside
from blizzard.journal.ingested import KnownBroken
from blizzard.journal.protocol import require_handoff
from blizzard.journal.state import UNKNOWN, History, read_history, rebuild
from blizzard.model.files import WorkUnit
from blizzard.model.locations import OpenReader, sink_location, source_location, source_uris_of
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.plan.recognise import planned
from lakebed.clock import Clock
from lakebed.errors import JournalLost, LakeError, ObjectMissing, ProtocolConflict, SourceContested
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


def explain(
    settings: PipelineSettings,
    open_reader: OpenReader,
    *,
    parallelism: int,
    clock: Clock,
    log_knows_pipeline: Callable[[], bool] = lambda: False,
    beside: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    check_schema: Callable[[], None] = lambda: None,
) -> Explanation:
    """Say what a batch would do now. It is handed readers only, so it cannot write.

    `beside` are the sources of other pipelines that are started with this one, on the same table.
    """
    store = _reader(settings, open_reader)
    history, refusal = _history(settings, store, log_knows_pipeline, check_schema)
    if refusal is None and history.sequence < 0:
        try:
            refuse_beside(settings.name, source_uris_of(settings), beside)
        except JournalLost as taken:
            refusal = taken

    def look() -> dict[str, Finding]:
        return {
            source.name: look_at(settings, source, open_reader, history, store, clock=clock)
            for source in settings.sources
        }

    try:
        findings = look()
    except KnownBroken as broken:
        if store is None:
            raise
        history = rebuild(store, settings.name, receipt=history.receipt, why=str(broken))
        findings = look()
    files = [file for finding in findings.values() for file in finding.take]
    return Explanation(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        entry=max(history.sequence, 0) + 1,
        findings=findings,
        units=planned(settings, files, open_reader, parallelism=parallelism),
        refusal=refusal,
    )


def _reader(settings: PipelineSettings, open_reader: OpenReader) -> Reader | None:
    try:
        return open_reader(sink_location(settings))
    except ObjectMissing:
        return None  # The table's folder does not exist yet, so neither does a journal.


def _history(
    settings: PipelineSettings,
    store: Reader | None,
    log_knows_pipeline: Callable[[], bool],
    check_schema: Callable[[], None],
) -> tuple[History, LakeError | None]:
    """Read the journal, and find out what a start would refuse."""
    if store is None:
        return History(), None
    history = read_history(store, settings.name)
    try:
        require_handoff(store, settings.sink.handoff)
        check_schema()
        admit(
            store,
            pipeline=settings.name,
            source_uris=source_uris_of(settings),
            history=history,
            log_knows_pipeline=log_knows_pipeline,
        )
    except (JournalLost, ProtocolConflict, SourceContested) as refusal:
        return history, refusal
    return history, None


def look_at(
    settings: PipelineSettings,
    source: SourceSettings,
    open_source: OpenReader,
    history: History,
    store: Reader | None,
    *,
    clock: Clock,
) -> Finding:
    """Look at one source, all of it, as a run does that has just started."""
    lister = next(each for each in source_listers(settings) if each.source is source)
    now = clock.now()
    since = None
    if source.lookback is not None and store is not None:
        since = history.first_read(store, settings.name, source.name, now=now)
    return lister.look(
        open_source(source_location(source)),
        history.lookup(store, settings.name) if store is not None else lambda _key: UNKNOWN,
        unfinished=history.unfinished,
        since=since,
        tried=frozenset(),
        now=now,
    )
