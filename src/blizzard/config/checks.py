"""Check blizzard's sections of the configuration for consistency. Pure."""

import difflib
from collections.abc import Iterator, Sequence
from itertools import permutations

from blizzard.config import queues
from blizzard.config.columns import format_faults, id_faults, schema_of
from blizzard.model import event_time
from blizzard.model.source.form import SourcePattern, literally, split
from lakebed.columns.schema import Field, walk
from lakebed.config.checks import window_faults
from lakebed.config.faults import ConfigFault
from lakebed.config.models import (
    Document,
    ErrorHandling,
    KeyPath,
    PartitionBy,
    PipelineSection,
    Sink,
    Source,
    place_in,
)
from lakebed.config.schema import DeclaredSchema
from lakebed.locations import place_of
from lakebed.partition import PARTITION_TYPES, Template
from lakebed.storage.remote import local_path
from lakebed.types import OnBadRecord, Provenance, SourceFormat
from lakebed.units import mebibytes

SMALLEST_PART_ON_S3 = mebibytes(5)

NO_PIPELINE = """\
no pipeline is configured: blizzard needs sections like
source:
  path: s3://my-bucket/events
sink:
  path: s3://my-bucket/delta-tables/events
# blizzard init URI reads samples of your data and writes such a file"""


def check(document: Document) -> Iterator[ConfigFault]:
    """Yield the faults of a document whose sections are each valid by themselves."""
    pipelines = list(document.named_pipelines())
    if not pipelines:
        yield ConfigFault((), NO_PIPELINE)
    for path, _, pipeline in pipelines:
        for name_path, _, source in pipeline.named_sources():
            yield from _check_source((*path, *name_path), source, pipeline.sink)
            yield from _check_form((*path, *name_path), source)
            yield from queues.faults((*path, *name_path), source)
        yield from _check_overlap(path, pipeline)
        if pipeline.sink:
            yield from _check_parts(path, pipeline.sink)
        if pipeline.sink and pipeline.sink.partition_by:
            by, schema = pipeline.sink.partition_by, pipeline.schema_
            yield from _check_partitions(path, by, schema_of(schema).fields if schema else ())
        if pipeline.schema_:
            yield from _check_schema(path, pipeline.schema_)
            yield from _check_provenance(path, pipeline.schema_, pipeline.sink)
        yield from _check_quarantine(path, pipeline.error_handling)
        yield from _check_queue(path, pipeline.error_handling)
    yield from queues.shared_faults(document)


def _check_schema(path: KeyPath, schema: DeclaredSchema) -> Iterator[ConfigFault]:
    """Refuse `fields` together with `infer`, and invalid time formats."""
    here = (*path, "schema")
    if schema.infer and schema.fields_:
        yield ConfigFault(
            (*here, "infer"),
            "cannot be combined with fields; move the known columns to hints, or remove infer",
        )
    if schema.hints and not schema.is_inferred:
        yield ConfigFault(
            (*here, "hints"), "belongs to infer: true; these columns are declared: fields"
        )
    yield from format_faults((*here, "fields"), schema.fields_)
    yield from format_faults((*here, "hints"), schema.hints)
    yield from id_faults(
        (*here, "fields"), schema_of(schema).with_provenance(dict.fromkeys(schema.provenance))
    )


def _check_quarantine(path: KeyPath, handling: ErrorHandling) -> Iterator[ConfigFault]:
    """Refuse quarantine limits without a quarantine, where every bad line fails its file."""
    if handling.on_bad_record is OnBadRecord.QUARANTINE:
        return
    for key in ("max_bad_records", "max_bad_ratio"):
        if getattr(handling, key) is not None:
            yield ConfigFault(
                (*path, "error_handling", key),
                "belongs to on_bad_record: quarantine; without it one bad line fails its file",
            )


def _check_queue(path: KeyPath, handling: ErrorHandling) -> Iterator[ConfigFault]:
    """Refuse queue options without `dlq_path`: the table directory has options of its own."""
    if handling.dlq_storage_options and handling.dlq_path is None:
        yield ConfigFault(
            (*path, "error_handling", "dlq_storage_options"),
            "belongs to dlq_path; without it the queue is in the table directory, and uses the "
            "sink's storage_options",
        )


def _check_overlap(path: KeyPath, pipeline: PipelineSection) -> Iterator[ConfigFault]:
    """Refuse a source that contains another one's files: they would be ingested twice."""
    places = [
        (name_path, name, place_in(folder_and_pattern(source)[0], source.storage_options))
        for name_path, name, source in pipeline.named_sources()
    ]
    for (here, name, outer), (_there, other, inner) in permutations(places, 2):
        if outer.holds(inner) and (not inner.holds(outer) or name < other):
            yield ConfigFault(
                (*path, *here, "path"),
                f"contains the files of source {other}, which would be ingested twice",
            )


def _check_source(path: KeyPath, source: Source, sink: Sink | None) -> Iterator[ConfigFault]:
    """Refuse an invalid pattern or template, and a horizon without effect."""
    try:
        place(source.path)
    except ValueError as wrong:
        yield ConfigFault((*path, "path"), str(wrong))
    by = sink.partition_by if sink else None
    yield from window_faults(path, source, by, divided_by="sink.partition_by")


def place(path: str) -> tuple[str, SourcePattern | None]:
    """Return the folder of a source, and the pattern of the names below it.

    On a local disk, the path of an existing folder or file is taken literally.
    """
    local = local_path(path)
    if local is not None and local.is_dir():
        return path, None
    if local is not None and local.is_file():
        folder, _, name = path.rpartition("/")
        return folder or ("/" if path.startswith("/") else "."), literally(name)
    return split(path)


def folder_and_pattern(source: Source) -> tuple[str, SourcePattern | None]:
    """Return the place of a source, or the path itself if it is invalid, which is a fault."""
    try:
        return place(source.path)
    except ValueError:
        return source.path, None


def _check_parts(path: KeyPath, sink: Sink) -> Iterator[ConfigFault]:
    """Refuse a part size that S3 rejects, which would fail the first upload of two parts."""
    on_s3 = sink.uri is not None and place_of(sink.uri).scheme == "s3"
    if on_s3 and mebibytes(sink.part_size_mb) < SMALLEST_PART_ON_S3:
        yield ConfigFault(
            (*path, "sink", "part_size_mb"),
            "must be at least 5: S3 refuses parts smaller than 5 MB, other than the last one",
        )


def _check_form(path: KeyPath, source: Source) -> Iterator[ConfigFault]:
    """Refuse an invalid path to records, and an empty `skip_records` rule."""
    here = (*path, "records")
    if source.records is not None and source.format is not SourceFormat.JSON:
        yield ConfigFault(here, "is the path to the records of a document; it needs format: json")
    elif source.records is not None and not all(source.records.split(".")):
        yield ConfigFault(here, "must be keys separated by dots, as in result.items")
    rule = source.skip_records
    if rule is not None and not (rule.only_key or rule.with_key or rule.without_key):
        yield ConfigFault(
            (*path, "skip_records"),
            "is empty; it needs only_key, with_key or without_key, each a list of keys",
        )


def _check_provenance(
    path: KeyPath, schema: DeclaredSchema, sink: Sink | None
) -> Iterator[ConfigFault]:
    """Yield the provenance columns that are listed twice, or whose names are taken."""
    here = (*path, "schema", "provenance")
    wanted = dict.fromkeys(schema.provenance)
    if len(wanted) < len(schema.provenance):
        yield ConfigFault(here, "names a column twice")
    names = {which.column for which in Provenance}
    for key, fields in (("fields", schema.fields_), ("hints", schema.hints)):
        for index, one in enumerate(fields):
            if one.name.casefold() in names:
                yield ConfigFault(
                    (*path, "schema", key, index, "name"),
                    f"{one.name} is a provenance column; give this one another name, and add "
                    f"from: [{one.name!r}] to read the field",
                )
    for key in sink.template.keys if sink and sink.template else ():
        if key.casefold() in {which.column for which in wanted}:
            yield ConfigFault(here, f"adds the column {key}, which is also a partition column")


def _check_partitions(
    path: KeyPath, by: PartitionBy, fields: Sequence[Field]
) -> Iterator[ConfigFault]:
    """Yield the faults of a template, and of its timestamp field."""
    here = (*path, "sink", "partition_by")
    if by.timestamp_field is not None:
        yield from _check_timestamp(path, by.prefix_template, by.timestamp_field, fields)
    keys = Template.parse(by.prefix_template).keys
    declared = {field.name: field.type for field in fields}
    written = {name.casefold(): name for name in declared}
    for key in keys:
        if key in declared and declared[key] not in PARTITION_TYPES:
            yield ConfigFault(
                (*here, "prefix_template"),
                f"{key} is declared as {declared[key]}, which cannot be a partition column; "
                f"it must be {', '.join(PARTITION_TYPES)}",
            )
        if key not in declared and key.casefold() in written:
            yield ConfigFault(
                (*here, "prefix_template"),
                f"{key} is declared as {written[key.casefold()]}; "
                "Delta does not distinguish upper and lower case",
            )
    if declared and set(declared) <= set(keys):
        yield ConfigFault(
            (*path, "schema", "fields"),
            "every field is a partition column, so the data files would have no columns",
        )


def _check_timestamp(
    path: KeyPath, template: str, name: str, fields: Sequence[Field]
) -> Iterator[ConfigFault]:
    """Refuse a field that is not a time, and a template that it cannot fill."""
    here = (*path, "sink", "partition_by")
    place = (*here, "timestamp_field")
    found = event_time.find_timestamp(fields, name)
    if found is None:
        yield ConfigFault(place, _unknown(name, fields))
        return
    field = found[1]
    if field.type not in event_time.TIME_TYPES:
        names = ", ".join(event_time.TIME_TYPES[:-1])
        yield ConfigFault(
            place,
            f"{name} is declared as {field.type}; it must be "
            f"{names} or {event_time.TIME_TYPES[-1]}",
        )
        return
    for fault in event_time.faults(Template.parse(template), field, tuple(fields)):
        yield ConfigFault((*here, "prefix_template"), fault)


def _unknown(name: str, fields: Sequence[Field]) -> str:
    """Return the fault of a field that is not declared, or is inside a list."""
    declared = dict(walk(fields))
    if any(path.replace("[]", "") == name for path in declared):
        return f"{name} is inside a list or a map, so a row may have several values or none"
    close = difflib.get_close_matches(name, declared, n=1)
    hint = (
        f"did you mean {close[0]}?" if close else f"the declared fields are {', '.join(declared)}"
    )
    return f"{name} is not a declared field; {hint}"
