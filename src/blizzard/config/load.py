"""Convert the sources, sinks and pipelines of a YAML document into settings."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import SecretStr

from blizzard.config import overlaps, queues
from blizzard.config.checks import check, place
from blizzard.config.columns import schema_of
from blizzard.model.settings import (
    BlizzardSettings,
    CompactSettings,
    PipelineSettings,
    QuarantineLimits,
    RollingPolicy,
    SinkSettings,
    SourceSettings,
    SparkSettings,
    UploadSettings,
)
from blizzard.model.source.form import Form, SkipRule
from lakebed.config.checks import program_settings, windows_of
from lakebed.config.faults import ConfigFault, options_at
from lakebed.config.files import Given
from lakebed.config.loader import load_document
from lakebed.config.models import (
    Compact,
    Document,
    ErrorHandling,
    KeyPath,
    PipelineSection,
    Sink,
    Source,
    TableSection,
    place_in,
)
from lakebed.config.schema import DeclaredSchema
from lakebed.config.section import settings_of
from lakebed.locations import ByPlace
from lakebed.storage.options import StorageOptions
from lakebed.types import OnBadRecord
from lakebed.units import mebibytes


def load(
    files: Sequence[Given],
    folders: Sequence[Path],
    environment: Mapping[str, str],
    *,
    master: str | None = None,
) -> BlizzardSettings:
    """Read a configuration; raise ConfigInvalid with all faults.

    `master` is the master of the caller's session, whose executors must reach all places.
    """

    def faults(document: Document) -> Iterator[ConfigFault]:
        yield from check(document)
        yield from overlaps.unreachable(document, master)
        yield from overlaps.faults(document)

    document = load_document(files, folders, environment, faults)
    tables: ByPlace[str] = ByPlace()
    for name, table in document.tables.items():
        tables.setdefault(place_in(table.table_uri, table.storage_options), name)
    table_of = {
        name: table_name
        for _, name, pipeline in document.named_pipelines()
        if (sink := pipeline.sink) is not None
        and (table_name := tables.get(place_in(sink.uri or "", sink.storage_options)))
    }
    pipelines = tuple(
        _pipeline(document, path, name, found, document.tables.get(table_of.get(name, "")))
        for path, name, found in document.named_pipelines()
    )
    return BlizzardSettings(
        pipelines=pipelines,
        spark=settings_of(
            SparkSettings, document.spark, most_tasks=document.global_.total_concurrency
        ),
        total_concurrency=document.global_.total_concurrency,
        poll_jitter=document.global_.poll_jitter_secs,
        tables=table_of,
        **program_settings(document, "blizzard"),
    )


def _pipeline(
    document: Document,
    path: KeyPath,
    name: str,
    pipeline: PipelineSection,
    table: TableSection | None,
) -> PipelineSettings:
    sink = _checked(pipeline.sink)
    handling = pipeline.error_handling
    declared = pipeline.schema_ or DeclaredSchema()

    def options(
        section: tuple[str | int, ...], of: Mapping[str, SecretStr], **keys: str
    ) -> StorageOptions:
        return options_at(document, (*path, *section), of, **keys)

    return settings_of(
        PipelineSettings,
        declared,
        name=name,
        sources=tuple(
            _source(called, source, sink, options(below, source.storage_options, place="path"))
            for below, called, source in pipeline.named_sources()
        ),
        sink=_sink(
            sink,
            options(
                ("sink",),
                sink.storage_options,
                place="path" if sink.table_uri is None else "table_uri",
            ),
            table,
        ),
        schema=schema_of(declared),
        infer=declared.is_inferred,
        unknown_fields=declared.unknown,
        on_mismatch=declared.mismatch,
        quarantine=_quarantine(handling),
        max_failures=handling.max_failures or None,
        dlq_path=handling.dlq_path,
        dlq_options=options(
            ("error_handling",),
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
    lookback, horizon = windows_of(source, sink.partition_by)
    return settings_of(
        SourceSettings,
        source,
        name=name,
        uri=folder,
        storage_options=options,
        form=_form(source),
        pattern=pattern,
        horizon=horizon,
        lookback=lookback,
        notifications=queues.queue_of(source),
    )


def _sink(sink: Sink, options: StorageOptions, table: TableSection | None) -> SinkSettings:
    compact = sink.compact or Compact()
    return settings_of(
        SinkSettings,
        sink,
        table_uri=_checked(sink.uri),
        storage_options=options,
        rolling=settings_of(
            RollingPolicy,
            sink,
            rollover=sink.rollover_timeout_secs,
            inactivity=sink.inactivity_timeout_secs,
            codec=sink.compression,
        ),
        upload=settings_of(UploadSettings, sink),
        template=sink.template,
        timestamp_field=sink.partition_by.timestamp_field if sink.partition_by else None,
        **({} if table is None else {"commit_poll": table.poll_interval_secs}),
        compact=settings_of(CompactSettings, compact, max_bytes=mebibytes(compact.max_mb)),
    )


def _form(source: Source) -> Form:
    """Return the form of the files of a source."""
    rule = source.skip_records
    return Form(
        format=source.format,
        records=tuple(source.records.split(".")) if source.records else (),
        skip=settings_of(SkipRule, rule) if rule else None,
    )


Value = TypeVar("Value")


def _checked(value: Value | None) -> Value:
    """Return a value that every document without faults has."""
    if value is None:
        raise AssertionError("a required section is missing from a checked document")
    return value
