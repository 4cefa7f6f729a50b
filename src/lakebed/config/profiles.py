"""Storage profiles: options by the beginning of a location, so that no section repeats them. Pure.

The profile with the longest prefix is used for a place. What a section sets itself wins over it,
option by option, in whatever spelling.
"""

from collections.abc import Mapping

from pydantic import SecretStr

from lakebed.config.faults import dotted
from lakebed.config.models import (
    Document,
    ErrorHandling,
    KeyPath,
    Pipeline,
    Sink,
    Source,
    StorageProfile,
    Table,
    place_in,
    plain,
)
from lakebed.locations import Place
from lakebed.storage.options import Origin, StorageOptions
from lakebed.storage.settings import meant

Options = Mapping[str, SecretStr]


def with_profiles(document: Document) -> Document:
    """Return the document in which every section has the options that are meant for its place."""
    profiles = document.storage
    if not profiles:
        return document
    return document.model_copy(
        update={
            "source": _source(profiles, document.source),
            "sink": _sink(profiles, document.sink),
            "error_handling": _handling(profiles, document.error_handling),
            "pipelines": {
                name: _pipeline(profiles, each) for name, each in document.pipelines.items()
            },
            "tables": {name: _table(profiles, each) for name, each in document.tables.items()},
        }
    )


def options_at(
    document: Document,
    section: KeyPath,
    options: Options,
    *,
    place: str,
    named: str = "storage_options",
) -> StorageOptions:
    """Return the options of a section, which know by which keys they were set.

    `place` is the key of the section's location, `named` that of its options.
    """
    keys = {name: dotted(key_path(document, (*section, named), name, options)) for name in options}
    origin = Origin(place=dotted((*section, place)), section=dotted((*section, named)), keys=keys)
    return StorageOptions(plain(options), origin)


def key_path(document: Document, section: KeyPath, name: str, options: Options) -> KeyPath:
    """Return where an option of a section was written: there, or in a profile."""
    for index, profile in enumerate(document.storage):
        # The very value, not one like it: the section may have repeated it.
        if profile.options.get(name) is options[name]:
            return ("storage", index, "options", name)
    return (*section, name)


def _pipeline(profiles: list[StorageProfile], pipeline: Pipeline) -> Pipeline:
    return pipeline.model_copy(
        update={
            "source": _source(profiles, pipeline.source),
            "sources": {name: _source(profiles, each) for name, each in pipeline.sources.items()},
            "sink": _sink(profiles, pipeline.sink),
            "error_handling": _handling(profiles, pipeline.error_handling),
        }
    )


def _source(profiles: list[StorageProfile], source: Source | None) -> Source | None:
    if source is None:
        return None
    options = _merged(profiles, source.path, source.storage_options)
    return source.model_copy(update={"storage_options": options})


def _sink(profiles: list[StorageProfile], sink: Sink | None) -> Sink | None:
    if sink is None or sink.uri is None:
        return sink
    options = _merged(profiles, sink.uri, sink.storage_options)
    return sink.model_copy(update={"storage_options": options})


def _table(profiles: list[StorageProfile], table: Table) -> Table:
    options = _merged(profiles, table.table_uri, table.storage_options)
    return table.model_copy(update={"storage_options": options})


def _handling(
    profiles: list[StorageProfile], handling: ErrorHandling | None
) -> ErrorHandling | None:
    if handling is None or handling.dlq_path is None:
        return handling
    options = _merged(profiles, handling.dlq_path, handling.dlq_storage_options)
    return handling.model_copy(update={"dlq_storage_options": options})


def _merged(profiles: list[StorageProfile], uri: str, own: Options) -> dict[str, SecretStr]:
    place = place_in(uri, own)
    fitting = [profile for profile in profiles if _fits(profile, place)]
    if not fitting:
        return dict(own)
    given = {meant(name) for name in own}
    longest = max(fitting, key=lambda profile: _length(profile.prefix))
    shared = {name: value for name, value in longest.options.items() if meant(name) not in given}
    return {**shared, **own}


def _fits(profile: StorageProfile, place: Place) -> bool:
    outer = place_in(profile.prefix, profile.options)
    if not outer.bucket:
        return outer.scheme == place.scheme
    return outer.holds(place)


def _length(prefix: str) -> tuple[bool, int]:
    place = place_in(prefix, {})
    return (bool(place.bucket), len(place.folders))
