"""Looking without touching: what there is to do, what a batch would do, what lies in the queue.

Everything here is handed readers only, so it cannot write.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from blizzard import dlq
from blizzard.admission import admit
from blizzard.basis import bases_of
from blizzard.discovery import Finding
from blizzard.eventtime import RowPartitions, from_path, row_partitions
from blizzard.flow import Location, WorkUnit
from blizzard.history import UNKNOWN, History, read_entries, read_history, rebuild
from blizzard.journal import Identity
from blizzard.known import KnownBroken
from blizzard.lookout import Lookout
from blizzard.plan import plan
from blizzard.protocol import require_handoff
from blizzard.settings import PipelineSettings, SourceSettings
from lake.clock import Clock
from lake.errors import JournalLost, LakeError, ObjectMissing, ProtocolConflict
from lake.partition import table_schema
from lake.storage import Reader

OpenReader = Callable[[Location], Reader]


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
    check_schema: Callable[[], None] = lambda: None,
) -> Explanation:
    """Say what a batch would do now. It is handed readers only, so it cannot write."""
    store = _reader(settings, open_reader)
    history, refusal = _history(settings, store, log_knows_pipeline, check_schema)

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
        units=plan(files, parallelism=parallelism, file_size=settings.sink.rolling.file_size),
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
            source_uris={source.name: source.uri for source in settings.sources},
            history=history,
            log_knows_pipeline=log_knows_pipeline,
        )
    except (JournalLost, ProtocolConflict) as refusal:
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
    lookout = next(each for each in lookouts(settings) if each.source is source)
    return lookout.look(
        open_source(source_location(source)),
        history.lookup(store, settings.name) if store is not None else lambda _key: UNKNOWN,
        unfinished=history.unfinished,
        since=history.since.get(source.name),
        tried=frozenset(),
        now=clock.now(),
    )


def lookouts(settings: PipelineSettings) -> list[Lookout]:
    """Give one who looks at each source, in the order of the sources."""
    sink = settings.sink
    schema = table_schema(settings.schema, sink.template)
    fields = {column.name: column for column in schema.fields}
    template = from_path(sink.template, settings.schema, sink.timestamp_field)
    return [
        Lookout(
            source=source,
            template=template,
            partition_fields=fields,
            bases=bases_of(settings, source),
        )
        for source in settings.sources
    ]


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
