"""Looking without touching: what there is to do, what a batch would do, what lies in the queue.

Everything here is handed readers only, so it cannot write.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from blizzard import dlq
from blizzard.discovery import Finding, decide, list_source
from blizzard.eventtime import RowPartitions, from_path, row_partitions
from blizzard.flow import Known, Location, WorkUnit
from blizzard.history import History, read_entries, read_history
from blizzard.journal import Identity
from blizzard.plan import plan
from blizzard.settings import PipelineSettings, SourceSettings
from lake.clock import Clock
from lake.errors import ObjectMissing
from lake.partition import table_schema
from lake.storage import Reader

OpenReader = Callable[[Location], Reader]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a batch would do now."""

    pipeline: str
    table_uri: str
    entry: int
    findings: Mapping[str, Finding]
    units: tuple[WorkUnit, ...]


def explain(
    settings: PipelineSettings, open_reader: OpenReader, *, parallelism: int, clock: Clock
) -> Explanation:
    """Say what a batch would do now. It is handed readers only, so it cannot write."""
    try:
        history = read_history(open_reader(sink_location(settings)), settings.name)
    except ObjectMissing:
        history = History()  # The table's folder does not exist yet, so neither does a journal.
    findings = look(settings, open_reader, known=history.known.get, tried=frozenset(), clock=clock)
    files = [file for finding in findings.values() for file in finding.take]
    return Explanation(
        pipeline=settings.name,
        table_uri=settings.sink.table_uri,
        entry=max(history.sequence, 0) + 1,
        findings=findings,
        units=plan(files, parallelism=parallelism),
    )


def look(
    settings: PipelineSettings,
    open_source: OpenReader,
    *,
    known: Callable[[str], Known | None],
    tried: frozenset[str],
    clock: Clock,
) -> dict[str, Finding]:
    """Look at every source and say what there is to do."""
    sink = settings.sink
    template = from_path(sink.template, settings.schema, sink.timestamp_field)
    schema = table_schema(settings.schema, sink.template)
    fields = {column.name: column for column in schema.fields}
    return {
        source.name: decide(
            list_source(open_source(source_location(source))),
            source=source,
            template=template,
            partition_fields=fields,
            known=known,
            tried=tried,
            now=clock.now(),
        )
        for source in settings.sources
    }


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
