"""The locations of a pipeline's stores, and functions that open them."""

from collections.abc import Callable
from typing import TypeVar

from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.errors import ObjectMissing
from lakebed.locations import written_out
from lakebed.storage.options import Location
from lakebed.storage.store import Reader, Store

OpenReader = Callable[[Location], Reader]
OpenStore = Callable[[Location], Store]
R = TypeVar("R", bound=Reader)


def open_reader(location: Location) -> Reader:
    """Open a store for reading only."""
    return Reader(location.uri, location.options)


def open_store(location: Location) -> Store:
    """Open a store for reading and writing."""
    return Store(location.uri, location.options)


def open_table(settings: PipelineSettings, opening: Callable[[Location], R]) -> R | None:
    """Open the table's directory; None if it, and so the journal, does not exist yet."""
    try:
        return opening(sink_location(settings))
    except ObjectMissing:
        return None


def source_uris_of(settings: PipelineSettings) -> dict[str, str]:
    """Return the URIs of the sources by name, as the journal records them."""
    return {source.name: written_out(source.uri) for source in settings.sources}


def source_location(source: SourceSettings) -> Location:
    """Return the location of a source."""
    return Location(uri=source.uri, options=source.storage_options)


def sink_location(settings: PipelineSettings) -> Location:
    """Return the location of the table's directory."""
    return Location(uri=settings.sink.table_uri, options=settings.sink.storage_options)
