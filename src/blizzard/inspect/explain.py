"""Looking without touching: what there is to do, what a batch would do, what lies in the queue.

Everything here is handed readers only, so it cannot write.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from blizzard.discover.filter import Finding
from blizzard.discover.lister import Lookout
from blizzard.handoff import dead_letters
from blizzard.journal.checks import admit, refuse_beside
from blizzard.journal.ingested import KnownBroken
from blizzard.journal.journal import Identity
from blizzard.journal.protocol import require_handoff
from blizzard.journal.state import UNKNOWN, History, read_entries, read_history, rebuild
from blizzard.model.event_time import RowPartitions, from_path, row_partitions
from blizzard.model.failure_basis import bases_of
from blizzard.model.files import Location, SourceFile, WorkUnit
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.plan.units import plan, to_recognise
from blizzard.worker.compression import FIRST_BYTES, codec_in
from lakebed.clock import Clock
from lakebed.errors import JournalLost, LakeError, ObjectMissing, ProtocolConflict, SourceContested
from lakebed.locations import written_out
from lakebed.partition import table_schema
from lakebed.storage.store import Reader

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


def planned(
    settings: PipelineSettings,
    files: Sequence[SourceFile],
    open_source: OpenReader,
    *,
    parallelism: int,
) -> tuple[WorkUnit, ...]:
    """Plan files into units, once it is known which of the large ones are plain.

    A file is cut into byte ranges before anybody has read it, so the few that would be cut are
    asked for their first bytes. One that does not answer is left whole: whoever reads it will see.
    """
    how = {"parallelism": parallelism, "file_size": settings.sink.rolling.file_size}
    sources = {source.name: source for source in settings.sources}
    sure: dict[str, SourceFile] = {}
    for file in to_recognise(files, **how):
        try:
            store = open_source(source_location(sources[file.source]))
            first = store.part(file.path, 0, min(FIRST_BYTES, file.size), etag=file.etag)
        except LakeError:
            continue
        sure[file.key] = replace(file, codec=codec_in(first, file.codec), by_content=False)
    return plan([sure.get(file.key, file) for file in files], **how)


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
    lookout = next(each for each in lookouts(settings) if each.source is source)
    now = clock.now()
    since = None
    if source.lookback is not None and store is not None:
        since = history.first_read(store, settings.name, source.name, now=now)
    return lookout.look(
        open_source(source_location(source)),
        history.lookup(store, settings.name) if store is not None else lambda _key: UNKNOWN,
        unfinished=history.unfinished,
        since=since,
        tried=frozenset(),
        now=now,
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
        source_uris=source_uris_of(settings),
        table_schema=table_schema(settings.schema, template).delta(),
        partition_columns=template.keys if template else (),
    )


def source_uris_of(settings: PipelineSettings) -> dict[str, str]:
    """Return where the sources are, by their names, as the journal remembers it."""
    return {source.name: written_out(source.uri) for source in settings.sources}


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


def dlq_place(settings: PipelineSettings) -> dead_letters.Place:
    """Say where the pipeline's dead letters go."""
    return dead_letters.place(
        settings.name, sink=sink_location(settings), configured=settings.dlq_path
    )


def dead_letter_queue(settings: PipelineSettings, open_reader: OpenReader) -> dead_letters.Queue:
    """Read a pipeline's dead letter queue. It is handed readers only, so it cannot write."""
    sink = sink_location(settings)
    try:
        entries = [entry for entry, _body in read_entries(open_reader(sink), settings.name)]
    except ObjectMissing:
        entries = []  # The table's folder does not exist yet.
    return dead_letters.read(
        entries,
        pipeline=settings.name,
        open_folder=lambda uri: open_reader(dead_letters.beside(sink, uri)),
    )
