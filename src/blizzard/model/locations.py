"""Where the stores of a pipeline are, and how they are opened."""

import os.path
from collections.abc import Callable

from blizzard.model.files import Location
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.locations import below, written_out
from lakebed.storage.store import Reader, Store

OpenReader = Callable[[Location], Reader]
OpenStore = Callable[[Location], Store]


def source_uris_of(settings: PipelineSettings) -> dict[str, str]:
    """Return where the sources are, by their names, as the journal remembers it."""
    return {source.name: written_out(source.uri) for source in settings.sources}


def source_location(source: SourceSettings) -> Location:
    """Return where a source is."""
    return Location(uri=source.uri, options=source.storage_options)


def sink_location(settings: PipelineSettings) -> Location:
    """Return where the table's directory is."""
    return Location(uri=settings.sink.table_uri, options=settings.sink.storage_options)


def as_key(name: str, settings: PipelineSettings) -> str:
    """Return `source:path` for a URI, or a path of this machine, that lies in a source.

    Any other name is returned as it is: a key, a path below a source, a group of bad lines. Where a
    relative path names a file that is here, that file is meant.
    """
    is_place = "://" in name or name.startswith(("/", "~"))
    if not is_place and not os.path.exists(name):  # noqa: PTH110 - a name may be any text
        return name
    paths = ((source.name, below(source.uri, name)) for source in settings.sources)
    return next((f"{source}:{path}" for source, path in paths if path), name)
