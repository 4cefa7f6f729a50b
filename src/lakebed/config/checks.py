"""Checks across sections of a configuration, the same for both programs."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Literal

from lakebed.config.faults import ConfigFault, dotted
from lakebed.config.models import (
    Discovering,
    Document,
    KeyPath,
    PartitionBy,
    PipelineSection,
    Sink,
    place_in,
)
from lakebed.config.schema import DeclaredField, DeclaredType
from lakebed.config.section import settings_of
from lakebed.layout import PIPELINE_NAME, PROTOCOL
from lakebed.listing.lookback import Window
from lakebed.locations import ByPlace, place_of
from lakebed.partition import Template
from lakebed.telemetry.settings import ExportSettings, Guard
from lakebed.types import DEEPEST_COLUMN, FORBIDDEN_IN_NAMES, RESCUED


def check_fields(
    path: KeyPath, fields: Sequence[DeclaredField], above: str = ""
) -> Iterator[ConfigFault]:
    """Yield the faults of fields, and of the fields inside them."""
    spellings: dict[str, list[str]] = {}
    for index, one in enumerate(fields):
        spellings.setdefault(one.name.casefold(), []).append(one.name)
        yield from _check_name((*path, index, "name"), one, above)
        yield from _check_inside((*path, index), one, f"{above}{one.name}")
        if not above and _depth(one) > DEEPEST_COLUMN:
            yield ConfigFault(
                (*path, index),
                f"is nested deeper than {DEEPEST_COLUMN} levels, which readers of Delta tables do "
                "not support; declare deeper fields as json",
            )
    for _name, given in sorted(spellings.items()):
        if len(given) > 1:
            yield ConfigFault(path, _given_twice([f"{above}{name}" for name in given]))


def _depth(one: DeclaredType) -> int:
    inner = [*one.fields_, *(each for each in (one.items, one.values) if each is not None)]
    return 1 + max((_depth(each) for each in inner), default=0)


def _check_inside(path: KeyPath, one: DeclaredType, shown: str) -> Iterator[ConfigFault]:
    yield from check_fields((*path, "fields"), one.fields_, f"{shown}.")
    if one.items is not None:
        yield from _check_inside((*path, "items"), one.items, f"{shown}[]")
    if one.values is not None:
        yield from _check_inside((*path, "values"), one.values, f"{shown}[]")


def _check_name(path: KeyPath, one: DeclaredField, above: str) -> Iterator[ConfigFault]:
    if set(one.name) & FORBIDDEN_IN_NAMES:
        yield ConfigFault(
            path,
            "Delta column names cannot have spaces, control characters or any of ,;{}()= in them; "
            f"name the column {allowed_name(one.name)}, say, and read the field by from: "
            f"[{one.name!r}], a key of schema.fields",
        )
    if not above and one.name.casefold() == RESCUED:
        yield ConfigFault(path, f"{RESCUED} is the column of rescued values")


def allowed_name(name: str) -> str:
    """Return a name with an underscore for each character that Delta forbids in column names."""
    return "".join("_" if letter in FORBIDDEN_IN_NAMES else letter for letter in name)


def _given_twice(given: list[str]) -> str:
    """Return what to do about a field that is declared twice."""
    if len(set(given)) == 1:
        return f"the name {given[0]} is given twice"
    return (
        f"{' and '.join(dict.fromkeys(given))} differ only in case, and Delta column names "
        "are case-insensitive; declare the one to keep (values of the other are left out and "
        "counted), and rename one in the data to keep both"
    )


NO_NAME = (
    "a name must start with a letter or digit and consist of at most 100 letters, digits, _, . or -"
)
SINGLE_FORM = ("source", "sink", "schema", "error_handling")
"""The sections of a pipeline at the top level of the document."""


def _name_faults(document: Document) -> Iterator[ConfigFault]:
    """Yield faults of the names of pipelines and sources.

    Pipelines name folders, and the journal names sources: neither may contain a slash or colon.
    """
    for name, pipeline in document.pipelines.items():
        path = ("pipelines", name)
        if not PIPELINE_NAME.fullmatch(name):
            yield ConfigFault(path, NO_NAME)
        if name.casefold() == PROTOCOL.rpartition("/")[2]:
            yield ConfigFault(
                path, "this name is reserved for the table directory itself; choose another"
            )
        for source in pipeline.sources:
            if not PIPELINE_NAME.fullmatch(source):
                yield ConfigFault((*path, "sources", source), NO_NAME)


def check_sections(document: Document) -> Iterator[ConfigFault]:
    """Yield the faults between sections of a document that are valid by themselves."""
    yield from _name_faults(document)
    yield from _guard_faults(document)
    yield from _check_profiles(document)
    if document.pipelines and document.has_single_form:
        given = [key for key in SINGLE_FORM if getattr(document, key.replace("schema", "schema_"))]
        yield ConfigFault(
            ("pipelines",),
            "cannot be combined with a pipeline at the top level of the document, which has "
            f"{' and '.join(given)}; move that one under pipelines",
        )
        return
    sinks: ByPlace[tuple[KeyPath, Sink]] = ByPlace()
    times: ByPlace[set[str | None]] = ByPlace()
    for path, _, pipeline in document.named_pipelines():
        yield from _check_pipeline(path, pipeline)
        if pipeline.sink is not None and pipeline.sink.uri is not None:
            found = ((*path, "sink"), pipeline.sink)
            place = place_in(pipeline.sink.uri, pipeline.sink.storage_options)
            first = sinks.setdefault(place, found)
            times.setdefault(place, set()).add(_time(pipeline.sink))
            yield from _check_shared_table(first, found)
    names: ByPlace[str] = ByPlace()
    for name, table in document.tables.items():
        place, here = place_in(table.table_uri, table.storage_options), ("tables", name)
        if (other := names.setdefault(place, name)) != name:
            yield ConfigFault((*here, "table_uri"), f"is the same table as tables.{other}")
        written = sinks.get(place)
        if written is not None and table.partition_by:
            path, sink = written
            if sink.template != Template.parse(table.partition_by.prefix_template):
                yield _disagreement((*here, "partition_by"), (*path, "partition_by"))
            elif table.partition_by.timestamp_field not in {None, *(times.get(place) or ())}:
                key = ("partition_by", "timestamp_field")
                yield _disagreement((*here, *key), (*path, *key))


def _check_profiles(document: Document) -> Iterator[ConfigFault]:
    """Refuse two profiles with the same prefix."""
    known: ByPlace[int] = ByPlace()
    for index, profile in enumerate(document.storage):
        first = known.setdefault(place_in(profile.prefix, profile.options), index)
        if first != index:
            yield ConfigFault(
                ("storage", index, "prefix"),
                "is the same as that of an earlier profile; put their options together",
            )


def package_faults(path: KeyPath, module: str, package: str, extra: str) -> Iterator[ConfigFault]:
    """Yield a fault if a required package is not installed; name the extra that installs it."""
    try:
        is_installed = find_spec(module) is not None
    except ModuleNotFoundError:
        is_installed = False  # Its parent package is missing.
    if not is_installed:
        message = f"needs the package {package}: pip install 'blizzard-penguin[{extra}]'"
        yield ConfigFault(path, message)


def window_faults(
    path: KeyPath, section: Discovering, by: PartitionBy | None, *, divided_by: str
) -> Iterator[ConfigFault]:
    """Yield the faults of a folder filter and of a sweep horizon."""
    given, holder = section.partition_filter, section.partition_filter or by
    if given is not None:
        try:
            Window.parse(given.prefix_template, given.lookback)
        except ValueError as wrong:
            yield ConfigFault((*path, "partition_filter", "prefix_template"), str(wrong))
            return
    if section.sweep_horizon is None:
        return
    message = (
        "counts folders of partition_filter.prefix_template or of "
        f"{divided_by}.prefix_template, but neither is set"
    )
    try:
        if holder is not None:
            Window.parse(holder.prefix_template, section.sweep_horizon)
            return
    except ValueError as wrong:
        message = f"counts the folders of a template, but {wrong}"
    yield ConfigFault((*path, "sweep_horizon"), message)


def windows_of(section: Discovering, by: PartitionBy | None) -> tuple[Window | None, Window | None]:
    """Return the windows of a first listing and of a sweep; None for all folders.

    A horizon counts the folders of the filter's template, else of the partitions'.
    """
    given, holder = section.partition_filter, section.partition_filter or by
    horizon = section.sweep_horizon
    return (
        Window.parse(given.prefix_template, given.lookback) if given else None,
        Window.parse(holder.prefix_template, horizon) if holder and horizon else None,
    )


def _check_pipeline(path: KeyPath, pipeline: PipelineSection) -> Iterator[ConfigFault]:
    if pipeline.source is not None and pipeline.sources:
        yield ConfigFault(
            (*path, "source"),
            "cannot be combined with sources; give it a name and move it there",
        )
    if pipeline.source is None and not pipeline.sources:
        yield ConfigFault((*path, "source"), "is required")
    sink, schema = pipeline.sink, pipeline.schema_
    if sink is None:
        yield ConfigFault((*path, "sink"), "is required")
    elif sink.uri is None:
        yield ConfigFault((*path, "sink", "path"), "is required")
    elif sink.path and sink.table_uri and not place_of(sink.path).same(place_of(sink.table_uri)):
        yield ConfigFault(
            (*path, "sink", "path"), "means the same as table_uri, but the two differ"
        )
    if schema is not None:
        yield from check_fields((*path, "schema", "fields"), schema.fields_)
        yield from check_fields((*path, "schema", "hints"), schema.hints)


def _check_shared_table(
    first: tuple[KeyPath, Sink], second: tuple[KeyPath, Sink]
) -> Iterator[ConfigFault]:
    if first[1].handoff != second[1].handoff:
        yield _disagreement((*second[0], "handoff"), (*first[0], "handoff"))
    if first[1].template != second[1].template:
        yield _disagreement((*second[0], "partition_by"), (*first[0], "partition_by"))


def _disagreement(path: KeyPath, other: KeyPath) -> ConfigFault:
    return ConfigFault(
        path,
        f"differs from {dotted(other)}, although both are for the same table",
    )


def _time(sink: Sink) -> str | None:
    return sink.partition_by.timestamp_field if sink.partition_by else None


Program = Literal["blizzard", "penguin"]

DEFAULTS: dict[Program, str] = {"blizzard": "127.0.0.1:9090", "penguin": "127.0.0.1:9091"}


def program_settings(document: Document, program: Program) -> dict[str, Any]:
    """Return the fields of `ProgramSettings`."""
    metrics = document.metrics
    own = metrics.blizzard_address if program == "blizzard" else metrics.penguin_address
    address, key = own or DEFAULTS[program], f"metrics.{program}_address"
    if own is None and metrics.address is not None:
        address = metrics.address
        if program == "blizzard" and _is_for_both(document):
            # One port below penguin's; port 0 means a free port for both.
            host, _colon, port = address.rpartition(":")
            address = f"{host}:{max(0, int(port) - 1)}"
        else:
            key = "metrics.address"
    return {
        "metrics_address": address if metrics.enabled else None,
        "metrics_key": key,
        "metrics_guard": settings_of(Guard, metrics),
        "metrics_page": metrics.page,
        "export": settings_of(ExportSettings, document.telemetry),
    }


def _is_for_both(document: Document) -> bool:
    """Whether a document is for both programs: it has tables, and pipelines that need penguin."""
    needs_penguin = any(
        pipeline.sink is None or pipeline.sink.commit == "penguin"
        for _, _, pipeline in document.named_pipelines()
    )
    return bool(document.tables) and needs_penguin


def _guard_faults(document: Document) -> Iterator[ConfigFault]:
    """Yield contradictions and gaps in the token and TLS settings of the metrics."""
    metrics = document.metrics
    if metrics.token is not None and metrics.token_file is not None:
        yield ConfigFault(("metrics", "token_file"), "means the same as token; keep one of them")
    keys = ("tls_cert_file", "tls_key_file")
    for given, other in (keys, keys[::-1]):
        if getattr(metrics, given) is not None and getattr(metrics, other) is None:
            message = f"needs {other} too: TLS takes a certificate and its key"
            yield ConfigFault(("metrics", given), message)
