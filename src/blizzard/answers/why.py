"""Why a file is not in the table, or how it came there: one answer for each file that is meant."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from blizzard.answers.answer import Answer, State
from blizzard.answers.asked import Asked
from blizzard.answers.data_file import why_data_file
from blizzard.answers.source_file import why_source_file
from blizzard.journal.source_names import FileUnknown, files_in_full, is_place, named_files
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


NOT_TAKEN = (State.SKIPPED, State.MISSING)


def why(name: str, pipelines: Sequence[PipelineSettings], ask: Ask) -> list[Answer]:
    """Return the answers about the files that a name means, nearly always one.

    Several pipelines may read the same folder, each with a pattern of its own: one that takes the
    file answers for it, and only where none does, each says why not.
    """
    found = subjects(name, pipelines, ask)
    if not found:
        return [
            Answer(
                kind="source",
                state=State.ELSEWHERE,
                uri=name,
                answer="It lies in no source and no table of this configuration, so no pipeline "
                "reads it.",
                next=("blizzard status shows where each pipeline reads from",),
            )
        ]
    answers = [answer for answer in map(_answer, found) if answer is not None]
    if not answers:
        raise FileUnknown(f"no entry of a journal names the data file {name!r}")
    return [each for each in answers if each.state not in NOT_TAKEN] or answers


def _answer(subject: Subject) -> Answer | None:
    asked, source = subject.asked, subject.source
    if source is not None:
        return why_source_file(asked, source, subject.path)
    return None if asked.store is None else why_data_file(asked, asked.store, subject.path)
