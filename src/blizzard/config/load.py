"""Sources, sinks and pipelines as written in YAML, made into settings."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import TypeVar

from blizzard.config import (
    compacting,
    forms,
    overlaps,
    partitions,
    provenance,
    queues,
    reachability,
)
from blizzard.config.columns import format_faults, id_faults, schema_of
from blizzard.model.bad_lines import QuarantineLimits
from blizzard.model.settings import (
    BlizzardSettings,
    PipelineSettings,
    RollingPolicy,
    SinkSettings,
    SourceSettings,
    SparkSettings,
    UploadSettings,
)
from blizzard.model.source.glob import Pattern, literally, split
from lakebed.config.addresses import metrics_address
from lakebed.config.checks import filter_fault
from lakebed.config.faults import Fault
from lakebed.config.files import Given
from lakebed.config.loader import load_document
from lakebed.config.models import (
    Document,
    ErrorHandling,
    KeyPath,
    Pipeline,
    Sink,
    Source,
    place_in,
    plain,
)
from lakebed.config.profiles import options_at
from lakebed.config.schema import DeclaredSchema
from lakebed.listing.lookback import Window
from lakebed.locations import ByPlace, place_of
from lakebed.partition import Template
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import local_path
from lakebed.types import OnBadRecord
from lakebed.units import mebibytes

SMALLEST_PART_ON_S3 = mebibytes(5)

NO_PIPELINE = """\
no pipeline is configured: blizzard needs sections like
source:
  path: s3://my-bucket/events
sink:
  path: s3://my-bucket/delta-tables/events
# blizzard init URI writes such a file after a look at your data"""


def load(
    files: Sequence[Given],
    folders: Sequence[Path],
    environment: Mapping[str, str],
    *,
    master: str | None = None,
) -> BlizzardSettings:
    """Read a configuration; ConfigInvalid carries every fault of it.

    `master` is that of a session that the caller has: executors of its must reach all places.
    """

    def check(document: Document) -> Iterator[Fault]:
        yield from _check(document)
        yield from reachability.faults(document, master)
        yield from overlaps.faults(document, place)

    document = load_document(files, folders, environment, check)
    pipelines = tuple(
        _pipeline(document, path, name, found) for path, name, found in document.named_pipelines()
    )
    metrics = metrics_address(document, "blizzard")
    tables: ByPlace[str] = ByPlace()
    for name, table in document.tables.items():
        tables.setdefault(place_in(table.table_uri, table.storage_options), name)
    return BlizzardSettings(
        pipelines=pipelines,
        spark=SparkSettings(
            master=document.spark.master,
            conf=plain(document.spark.conf),
            most_tasks=document.global_.total_concurrency,
            shared_paths=tuple(document.spark.shared_paths),
            line_port=document.spark.line_port,
        ),
        total_concurrency=document.global_.total_concurrency,
        poll_jitter=document.global_.poll_jitter_secs,
        tables={
            name: table_name
            for _, name, pipeline in document.named_pipelines()
            if (sink := pipeline.sink) is not None
            and (table_name := tables.get(place_in(sink.uri or "", sink.storage_options)))
        },
        metrics_address=metrics.address if document.metrics.enabled else None,
        metrics_key=metrics.key,
        metrics_guard=document.metrics.guard(),
        metrics_page=document.metrics.page,
        export=document.telemetry.settings(),
    )


def _check(document: Document) -> Iterator[Fault]:
    pipelines = list(document.named_pipelines())
    if not pipelines:
        near = ("pipelines", "source", "sink", "schema", "error_handling")
        yield Fault((), NO_PIPELINE, near=tuple((key,) for key in near))
    for path, _, pipeline in pipelines:
        for name_path, _, source in pipeline.named_sources():
            yield from _check_source((*path, *name_path), source, pipeline.sink)
            yield from forms.faults((*path, *name_path), source)
            yield from queues.faults((*path, *name_path), source)
        yield from _check_overlap(path, pipeline)
        if pipeline.sink:
            yield from _check_parts(path, pipeline.sink)
            yield from compacting.faults(path, pipeline.sink, pipeline.schema_)
        if pipeline.sink and pipeline.sink.partition_by:
            by, schema = pipeline.sink.partition_by, pipeline.schema_
            yield from partitions.faults(path, by, schema_of(schema).fields if schema else ())
        if pipeline.schema_:
            yield from _check_schema(path, pipeline.schema_)
            yield from provenance.faults(path, pipeline.schema_, pipeline.sink)
        yield from _check_quarantine(path, pipeline.error_handling)
        yield from _check_queue(path, pipeline.error_handling)
    yield from queues.shared_faults(document)


def _check_schema(path: KeyPath, schema: DeclaredSchema) -> Iterator[Fault]:
    """Refuse columns that are declared and to be found at once, and formats that are none."""
    here = (*path, "schema")
    if schema.infer and schema.fields_:
        yield Fault(
            (*here, "infer"),
            "stands beside fields; move the columns that are known to hints, or remove infer",
        )
    if schema.hints and not schema.is_inferred:
        yield Fault((*here, "hints"), "belongs to infer: true; these columns are declared: fields")
    yield from format_faults((*here, "fields"), schema.fields_)
    yield from format_faults((*here, "hints"), schema.hints)
    yield from id_faults(
        (*here, "fields"), schema_of(schema).with_provenance(dict.fromkeys(schema.provenance))
    )


def _check_quarantine(path: KeyPath, handling: ErrorHandling) -> Iterator[Fault]:
    """Refuse limits of a quarantine that there is not: every bad line fails its file."""
    if handling.on_bad_record is OnBadRecord.QUARANTINE:
        return
    for key in ("max_bad_records", "max_bad_ratio"):
        if getattr(handling, key) is not None:
            yield Fault(
                (*path, "error_handling", key),
                "belongs to on_bad_record: quarantine; without it one bad line fails its file",
            )


def _check_queue(path: KeyPath, handling: ErrorHandling) -> Iterator[Fault]:
    """Refuse options of a queue that lies in the table directory, which has options of its own."""
    if handling.dlq_storage_options and handling.dlq_path is None:
        yield Fault(
            (*path, "error_handling", "dlq_storage_options"),
            "belongs to dlq_path; without it the queue is in the table directory, and is reached "
            "with the sink's storage_options",
        )


def _check_overlap(path: KeyPath, pipeline: Pipeline) -> Iterator[Fault]:
    """Refuse sources of which one holds the other's files: they would be ingested twice."""
    places = [
        (name_path, name, place_in(_folder(source), source.storage_options))
        for name_path, name, source in pipeline.named_sources()
    ]
    for (here, name, outer), (_there, other, inner) in permutations(places, 2):
        if outer.holds(inner) and (not inner.holds(outer) or name < other):
            yield Fault(
                (*path, *here, "path"),
                f"contains the files of source {other}, which would be ingested twice",
            )


def _check_source(path: KeyPath, source: Source, sink: Sink | None) -> Iterator[Fault]:
    """Refuse a pattern or a template that cannot be read, and a horizon that counts nothing."""
    try:
        place(source.path)
    except ValueError as wrong:
        yield Fault((*path, "path"), str(wrong))
    if (fault := filter_fault(path, source)) is not None:
        yield fault
        return
    if source.sweep_horizon is None:
        return
    template = _time_template(source, sink)
    if template is None:
        yield Fault(
            (*path, "sweep_horizon"),
            "counts folders of partition_filter.prefix_template or of "
            "sink.partition_by.prefix_template, but neither is set",
        )
        return
    try:
        Window.parse(template, source.sweep_horizon)
    except ValueError as wrong:
        yield Fault((*path, "sweep_horizon"), f"counts the folders of a template, but {wrong}")


def place(path: str) -> tuple[str, Pattern | None]:
    """Return the folder of a source, and the names that are meant below it.

    On a local disk a folder that is there is a folder, and a file is that file, whatever
    characters their names have.
    """
    local = local_path(path)
    if local is not None and local.is_dir():
        return path, None
    if local is not None and local.is_file():
        folder, _, name = path.rpartition("/")
        return folder or ("/" if path.startswith("/") else "."), literally(name)
    return split(path)


def _folder(source: Source) -> str:
    try:
        return place(source.path)[0]
    except ValueError:
        return source.path


def _time_template(source: Source, sink: Sink | None) -> str | None:
    """Return the template whose folders a horizon counts."""
    if source.partition_filter is not None:
        return source.partition_filter.prefix_template
    return sink.partition_by.prefix_template if sink and sink.partition_by else None


def _check_parts(path: KeyPath, sink: Sink) -> Iterator[Fault]:
    """Refuse parts that S3 would refuse, at the end of the first upload that has two of them."""
    on_s3 = sink.uri is not None and place_of(sink.uri).scheme == "s3"
    if on_s3 and mebibytes(sink.part_size_mb) < SMALLEST_PART_ON_S3:
        yield Fault(
            (*path, "sink", "part_size_mb"),
            "must be at least 5: S3 refuses parts smaller than 5 MB, other than the last one",
        )


def _pipeline(document: Document, path: KeyPath, name: str, pipeline: Pipeline) -> PipelineSettings:
    sink = _checked(pipeline.sink)
    handling = pipeline.error_handling
    declared = pipeline.schema_ or DeclaredSchema()
    return PipelineSettings(
        name=name,
        sources=tuple(
            _source(
                called,
                source,
                sink,
                options_at(document, (*path, *below), source.storage_options, place="path"),
            )
            for below, called, source in pipeline.named_sources()
        ),
        sink=_sink(
            sink,
            options_at(
                document,
                (*path, "sink"),
                sink.storage_options,
                place="path" if sink.table_uri is None else "table_uri",
            ),
        ),
        schema=schema_of(declared),
        infer=declared.is_inferred,
        infer_max_bytes=declared.infer_max_bytes,
        unknown_fields=declared.unknown,
        on_mismatch=declared.mismatch,
        provenance=tuple(declared.provenance),
        quarantine=_quarantine(handling),
        max_failures=handling.max_failures or None,
        dlq_path=handling.dlq_path,
        dlq_options=options_at(
            document,
            (*path, "error_handling"),
            handling.dlq_storage_options,
            place="dlq_path",
            named="dlq_storage_options",
        ),
        show_values=handling.show_values,
    )


def _quarantine(handling: ErrorHandling) -> QuarantineLimits | None:
    if handling.on_bad_record is OnBadRecord.FAIL:
        return None
    return QuarantineLimits(max_records=handling.max_bad_records, max_ratio=handling.max_bad_ratio)


def _source(name: str, source: Source, sink: Sink, options: StorageOptions) -> SourceSettings:
    folder, pattern = place(source.path)
    by, horizon = source.partition_filter, source.sweep_horizon
    template = _time_template(source, sink)
    return SourceSettings(
        name=name,
        uri=folder,
        storage_options=options,
        compression=source.compression,
        form=forms.form_of(source),
        max_concurrent_files=source.max_concurrent_files,
        batch_size=source.batch_size,
        poll_interval=source.poll_interval_secs,
        max_files_per_batch=source.max_files_per_batch,
        max_bytes_per_batch=source.max_bytes_per_batch,
        pattern=pattern,
        min_age=source.min_age_secs,
        on_change=source.on_change,
        late_window=source.late_window_secs,
        sweep_interval=source.sweep_interval_secs,
        horizon=Window.parse(template, horizon) if template and horizon else None,
        lookback=Window.parse(by.prefix_template, by.lookback) if by else None,
        notifications=queues.queue_of(source),
    )


def _sink(sink: Sink, options: StorageOptions) -> SinkSettings:
    return SinkSettings(
        table_uri=_checked(sink.uri),
        storage_options=options,
        rolling=RollingPolicy(
            file_size=mebibytes(sink.file_size_mb),
            row_group_size=sink.row_group_size_bytes,
            rollover=sink.rollover_timeout_secs,
            inactivity=sink.inactivity_timeout_secs,
            codec=sink.compression,
        ),
        upload=UploadSettings(
            part_size=mebibytes(sink.part_size_mb),
            min_multipart_size=mebibytes(sink.min_multipart_size_mb),
            max_concurrent_parts=sink.max_concurrent_parts,
            max_concurrent_uploads=sink.max_concurrent_uploads,
        ),
        handoff=sink.handoff,
        commit=sink.commit,
        template=Template.parse(sink.partition_by.prefix_template) if sink.partition_by else None,
        timestamp_field=sink.partition_by.timestamp_field if sink.partition_by else None,
        compact=compacting.settings_of(sink.compact),
    )


Value = TypeVar("Value")


def _checked(value: Value | None) -> Value:
    """Return a value that a document without faults has."""
    if value is None:
        raise AssertionError("a required section is missing from a checked document")
    return value
