"""Looking without touching: what there is to do, what a batch would do, what lies in the queue.

Everything here is handed readers only, so it cannot write.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from blizzard import dlq
from blizzard.admission import admit
from blizzard.discovery import Finding, decide, is_source_file, list_source
from blizzard.eventtime import RowPartitions, from_path, row_partitions
from blizzard.flow import Known, Location, WorkUnit
from blizzard.history import History, read_entries, read_history
from blizzard.journal import Identity
from blizzard.plan import plan
from blizzard.protocol import require_handoff
from blizzard.reasons import Passed, passed_over
from blizzard.settings import PipelineSettings, SourceSettings
from lake.clock import Clock
from lake.errors import JournalLost, LakeError, ObjectMissing, ProtocolConflict
from lake.partition import table_schema
from lake.storage import ObjectFacts, Reader

OpenReader = Callable[[Location], Reader]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a batch would do now, and what a start would refuse."""

    pipeline: str
    table_uri: str
    entry: int
    findings: Mapping[str, Finding]
    units: tuple[WorkUnit, ...]
    passed: Mapping[str, tuple[Passed, ...]] = field(default_factory=dict)
    """By source, the files that are not taken, each with its reason."""
    refusal: LakeError | None = None
    """Why a start would not get as far as this batch."""


def explain(
    settings: PipelineSettings,
    open_reader: OpenReader,
    *,
    parallelism: int,
    clock: Clock,
    log_knows_pipeline: Callable[[], bool] = lambda: False,
) -> Explanation:
    """Say what a batch would do now. It is handed readers only, so it cannot write."""
    history, refusal = _history(settings, open_reader, log_knows_pipeline)
    findings: dict[str, Finding] = {}
    passed: dict[str, tuple[Passed, ...]] = {}
    known = history.known.get
    for source in settings.sources:
        listed = sorted(open_reader(source_location(source)).objects(), key=lambda one: one.path)
        ours = [facts for facts in listed if is_source_file(facts.path)]
        found = findings[source.name] = _decide(
            settings, source, ours, known=known, tried=frozenset(), clock=clock
        )
        passed[source.name] = tuple(passed_over(listed, found, source=source.name, known=known))
    files = [file for finding in findings.values() for file in finding.take]
    return Explanation(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        entry=max(history.sequence, 0) + 1,
        findings=findings,
        units=plan(files, parallelism=parallelism),
        passed=passed,
        refusal=refusal,
    )


def _history(
    settings: PipelineSettings, open_reader: OpenReader, log_knows_pipeline: Callable[[], bool]
) -> tuple[History, LakeError | None]:
    """Read the journal, and find out what a start would refuse."""
    try:
        store = open_reader(sink_location(settings))
    except ObjectMissing:
        return History(), None  # The table's folder does not exist yet, so neither does a journal.
    history = read_history(store, settings.name)
    try:
        require_handoff(store, settings.sink.handoff)
        admit(
            store,
            pipeline=settings.name,
            source_uris={source.name: source.uri for source in settings.sources},
            history=history,
            log_knows_pipeline=log_knows_pipeline,
        )
    except (JournalLost, ProtocolConflict) as refusal:
        return history, refusal
    return history, None


def look(
    settings: PipelineSettings,
    open_source: OpenReader,
    *,
    known: Callable[[str], Known | None],
    tried: frozenset[str],
    clock: Clock,
) -> dict[str, Finding]:
    """Look at every source and say what there is to do."""
    return {
        source.name: look_at(settings, source, open_source, known=known, tried=tried, clock=clock)
        for source in settings.sources
    }


def look_at(
    settings: PipelineSettings,
    source: SourceSettings,
    open_source: OpenReader,
    *,
    known: Callable[[str], Known | None],
    tried: frozenset[str],
    clock: Clock,
) -> Finding:
    """Look at one source and say what there is to do."""
    listed = list_source(open_source(source_location(source)))
    return _decide(settings, source, listed, known=known, tried=tried, clock=clock)


def _decide(
    settings: PipelineSettings,
    source: SourceSettings,
    listed: list[ObjectFacts],
    *,
    known: Callable[[str], Known | None],
    tried: frozenset[str],
    clock: Clock,
) -> Finding:
    sink = settings.sink
    schema = table_schema(settings.schema, sink.template)
    return decide(
        listed,
        source=source,
        template=from_path(sink.template, settings.schema, sink.timestamp_field),
        partition_fields={column.name: column for column in schema.fields},
        known=known,
        tried=tried,
        now=clock.now(),
    )


def identity_of(settings: PipelineSettings, run_id: str) -> Identity:
    """Say who writes the entries, from which sources, with which schema."""
    template = settings.sink.template
    return Identity(
        pipeline=settings.name,
        run=run_id,
        handoff=settings.sink.handoff,
        source_uris={source.name: source.uri for source in settings.sources},
        table_schema=table_schema(settings.schema, template).delta(),
        partition_columns=template.keys if template else (),
    )


def row_partitions_of(settings: PipelineSettings) -> RowPartitions | None:
    """Say how rows give their partition; None where the source path alone does."""
    sink = settings.sink
    return row_partitions(sink.template, settings.schema, sink.timestamp_field)


def source_location(source: SourceSettings) -> Location:
    """Say where a source is."""
    return Location(uri=source.uri, options=source.storage_options)


def sink_location(settings: PipelineSettings) -> Location:
    """Say where the table's directory is."""
    return Location(uri=settings.sink.table_uri, options=settings.sink.storage_options)


def dlq_place(settings: PipelineSettings) -> dlq.Place:
    """Say where the pipeline's dead letters go."""
    return dlq.place(settings.name, sink=sink_location(settings), configured=settings.dlq_path)


def dead_letter_queue(settings: PipelineSettings, open_reader: OpenReader) -> dlq.Queue:
    """Read a pipeline's dead letter queue. It is handed readers only, so it cannot write."""
    sink = sink_location(settings)
    try:
        entries = [entry for entry, _body in read_entries(open_reader(sink), settings.name)]
    except ObjectMissing:
        entries = []  # The table's folder does not exist yet.
    return dlq.read(
        entries,
        pipeline=settings.name,
        open_folder=lambda uri: open_reader(dlq.beside(sink, uri)),
    )
