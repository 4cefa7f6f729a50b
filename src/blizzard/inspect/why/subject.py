"""Which files a question is about: source objects, or data files by path or UUID."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from blizzard.inspect.why.asked import Asked
from blizzard.journal.source_names import files_in_full, is_place, named_files
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed import layout
from lakebed.locations import below, place_of

Ask = Callable[[PipelineSettings], Asked]
"""Opens what questions about a pipeline's files are answered from, once."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A file that may be meant: of a source, or a data file of the table where none is named."""

    asked: Asked
    source: SourceSettings | None
    path: str


def subjects(name: str, pipelines: Sequence[PipelineSettings], ask: Ask) -> list[Subject]:
    """Return the files that a name means; none where it is a place that nobody reads.

    Raise where no file has this name, or several have it in theirs.
    """
    data_file = next(_placed_data_file(name, pipelines, ask), None)
    if data_file is not None:
        return [data_file]
    scopes = [ask(settings) for settings in pipelines]
    found = list(_of_sources(files_in_full(name, scopes)))
    if found or is_place(name):
        return found
    return list(_data_files(name, pipelines, ask)) or list(
        _of_sources(named_files(name, scopes, listing=True))
    )


def _of_sources(found: Sequence[tuple[Asked, str]]) -> Iterator[Subject]:
    for asked, key in found:
        name, _, path = key.partition(":")
        for source in asked.settings.sources:
            if source.name == name:
                yield Subject(asked, source, path)


def _placed_data_file(
    name: str, pipelines: Sequence[PipelineSettings], ask: Ask
) -> Iterator[Subject]:
    """Yield the data file that a URI, or a path of this machine, means."""
    for settings in pipelines:
        path = below(settings.sink.table_uri, name)
        if path is not None and layout.is_parquet(path):
            asked = ask(settings)
            there = asked.store is not None and asked.store.head(path) is not None
            if is_place(name) or there:
                yield Subject(asked, None, path)


def _data_files(name: str, pipelines: Sequence[PipelineSettings], ask: Ask) -> Iterator[Subject]:
    """Yield the data file of each table that a path below it, or a UUID, may mean."""
    bare = f"{name.removesuffix(layout.PARQUET_SUFFIX)}{layout.PARQUET_SUFFIX}"
    if layout.file_id(bare) is None:
        return
    tables = {place_of(each.sink.table_uri): each for each in reversed(pipelines)}
    for settings in tables.values():
        yield Subject(ask(settings), None, name)
