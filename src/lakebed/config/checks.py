"""Checks across sections of a configuration, the same for both programs."""

from collections.abc import Iterator

from lakebed.config.addresses import address_faults
from lakebed.config.faults import Fault, dotted
from lakebed.config.models import Document, KeyPath, Pipeline, Sink, same_place


def check_sections(document: Document) -> Iterator[Fault]:
    """Yield the faults of a document whose sections have none."""
    if document.has_single_form and document.pipelines:
        yield Fault(
            ("pipelines",),
            "cannot be combined with a pipeline at the top level of the document; move that one "
            "under pipelines",
            near=(),
        )
    yield from (Fault(path, message) for path, message in address_faults(document))
    sinks: dict[str, tuple[KeyPath, Sink]] = {}
    times: dict[str, set[str | None]] = {}
    for path, _, pipeline in document.named_pipelines():
        yield from _check_pipeline(path, pipeline)
        if pipeline.sink is not None and pipeline.sink.uri is not None:
            found = ((*path, "sink"), pipeline.sink)
            first = sinks.setdefault(same_place(pipeline.sink.uri), found)
            times.setdefault(same_place(pipeline.sink.uri), set()).add(_time(pipeline.sink))
            yield from _check_shared_table(first, found)
    names: dict[str, str] = {}
    for name, table in document.tables.items():
        place, here = same_place(table.table_uri), ("tables", name)
        if names.setdefault(place, name) != name:
            yield Fault((*here, "table_uri"), f"is the same table as tables.{names[place]}")
        if place in sinks and table.partition_by:
            path, sink = sinks[place]
            if _template(sink) != table.partition_by.prefix_template:
                yield _disagreement((*here, "partition_by"), (*path, "partition_by"))
            elif table.partition_by.timestamp_field not in {None, *times[place]}:
                key = ("partition_by", "timestamp_field")
                yield _disagreement((*here, *key), (*path, *key))


def _check_pipeline(path: KeyPath, pipeline: Pipeline) -> Iterator[Fault]:
    if pipeline.source is not None and pipeline.sources:
        yield Fault(
            (*path, "source"),
            "cannot be combined with sources; give it a name and move it there",
            near=(),
        )
    if pipeline.source is None and not pipeline.sources:
        yield Fault((*path, "source"), "is required", near=((*path, "source"), (*path, "sources")))
    sink, schema = pipeline.sink, pipeline.schema_
    if sink is None:
        yield Fault((*path, "sink"), "is required")
    elif sink.uri is None:
        near = ((*path, "sink", "path"), (*path, "sink", "table_uri"))
        yield Fault((*path, "sink", "path"), "is required", near=near)
    elif sink.path and sink.table_uri and same_place(sink.path) != same_place(sink.table_uri):
        yield Fault((*path, "sink", "path"), "means the same as table_uri, but the two differ")
    yield from _check_names(path, [item.name for item in schema.fields_] if schema else [])


def _check_names(path: KeyPath, names: list[str]) -> Iterator[Fault]:
    """Refuse fields that Delta would take for one."""
    spellings: dict[str, list[str]] = {}
    for name in names:
        spellings.setdefault(name.casefold(), []).append(name)
    for _name, given in sorted(spellings.items()):
        if len(given) > 1:
            yield Fault((*path, "schema", "fields"), _given_twice(given), near=())


def _given_twice(given: list[str]) -> str:
    """Return what can be done about a field that is declared twice."""
    if len(set(given)) == 1:
        return f"the name {given[0]} is given twice"
    return (
        f"{' and '.join(dict.fromkeys(given))} differ only in case, and Delta column names are "
        "case-insensitive; declare the one to keep (values of the other are left out and "
        "counted), and rename one in the data to keep both"
    )


def _check_shared_table(
    first: tuple[KeyPath, Sink], second: tuple[KeyPath, Sink]
) -> Iterator[Fault]:
    if first[1].handoff != second[1].handoff:
        yield _disagreement((*second[0], "handoff"), (*first[0], "handoff"))
    if _template(first[1]) != _template(second[1]):
        yield _disagreement((*second[0], "partition_by"), (*first[0], "partition_by"))


def _disagreement(path: KeyPath, other: KeyPath) -> Fault:
    return Fault(
        path,
        f"differs from {dotted(other)}, although both are for the same table",
        near=(path, other),
    )


def _template(sink: Sink) -> str | None:
    return sink.partition_by.prefix_template if sink.partition_by else None


def _time(sink: Sink) -> str | None:
    return sink.partition_by.timestamp_field if sink.partition_by else None
