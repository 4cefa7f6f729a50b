"""What the next batch of a pipeline would do, and what a start would refuse. Read-only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from blizzard.answers.progress import PipelineEvidence
from blizzard.discover.finding import Finding
from blizzard.handoff.publish import CommitsBehind, check_commits
from blizzard.journal.checkpoint import past_damage
from blizzard.journal.checks import refuse_beside
from blizzard.journal.fence import started_before
from blizzard.model.settings import PipelineSettings
from blizzard.model.source.forecast import Forecast
from blizzard.model.stores import OpenReader, source_uris_of
from blizzard.model.work import WorkUnit
from blizzard.plan.trigger import learned
from blizzard.proposal import BatchProposal, plan_batch
from lakebed.clock import Clock
from lakebed.documents.entry import Started
from lakebed.errors import JournalLost, LakeError


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBatch:
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
    beside: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    check_schema: Callable[[], None] = lambda: None,
) -> NextBatch:
    """Return what a batch would do now. It is handed readers only, so it cannot write.

    `beside` are the sources of other pipelines that are started with this one, on the same table.
    """
    evidence = PipelineEvidence.read(settings, clock, check_schema, opening=open_reader)
    store, history, refusal = evidence.store, evidence.history, evidence.refusal()
    if refusal is None and history.sequence < 0:
        try:
            refuse_beside(settings.name, source_uris_of(settings), beside)
        except JournalLost as taken:
            refusal = taken
    number, last = max(history.sequence, 0) + 1, history.last

    found = past_damage(
        history,
        lambda: BatchProposal.of({one.name: evidence.swept(one) for one in settings.sources}),
    )
    units: tuple[WorkUnit, ...] = ()
    try:
        if not found.is_empty and refusal is None and store is not None and last is not None:
            check_commits(
                store,
                settings.name,
                last=last.sequence,
                now=clock.now(),
                retention=evidence.log.retention,
            )
    except CommitsBehind as behind:
        refusal = behind
    else:
        units = plan_batch(
            found,
            settings,
            open_reader,
            parallelism=parallelism,
            clock=clock,
            started=lambda: (
                Started() if store is None else started_before(store, settings.name, number)
            ),
            forecast=learned(Forecast(), last, settings),
        ).units
    return NextBatch(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        entry=number,
        findings=found.findings,
        units=units,
        refusal=refusal,
    )
