"""Why a file is not in the table, or how it came there: one answer for each file that is meant."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from blizzard.answers.answer import Answer
from blizzard.answers.asked import Asked
from blizzard.answers.data_file import why_data_file
from blizzard.answers.lifecycle import FileState
from blizzard.answers.source_file import why_source_file
from blizzard.journal.source_names import (
    FileAmbiguous,
    FileUnknown,
    files_in_full,
    is_place,
    named_files,
)
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed import layout
from lakebed.errors import LakeError
from lakebed.locations import below, place_of

Ask = Callable[[PipelineSettings], Asked]
"""Opens what questions about a pipeline's files are answered from, once."""
Search = Callable[[Sequence[Asked]], list[tuple[Asked, str]]]
"""Returns the source files of some pipelines that a name means."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A file that may be meant: of a source, or a data file of the table where none is named."""

    asked: Asked
    source: SourceSettings | None
    path: str


@dataclass(frozen=True, slots=True)
class Pipelines:
    """The pipelines that a question may be about; one that cannot be read hides no other."""

    settings: Sequence[PipelineSettings]
    ask: Ask
    unread: dict[str, LakeError] = field(default_factory=dict)
    """Why pipelines were not asked, by name."""

    def opened(self, settings: Iterable[PipelineSettings]) -> Iterator[Asked]:
        """Open pipelines, except those that cannot be read."""
        for one in settings:
            with self.sparing(one):
                yield self.ask(one)

    @contextmanager
    def sparing(self, of: PipelineSettings) -> Iterator[None]:
        """Note that a pipeline cannot be read, and go on."""
        try:
            yield
        except (FileUnknown, FileAmbiguous):
            raise
        except LakeError as trouble:
            self.unread[of.name] = trouble

    def find(self, scopes: Sequence[Asked], search: Search) -> list[tuple[Asked, str]]:
        """Search pipelines; if that fails, only those whose sources can be read."""
        try:
            return search(scopes)
        except (FileUnknown, FileAmbiguous):
            raise
        except LakeError:
            return search([scope for scope in scopes if self._is_readable(scope, search)])

    def _is_readable(self, scope: Asked, search: Search) -> bool:
        with suppress(FileUnknown, FileAmbiguous), self.sparing(scope.settings):
            search([scope])
        return scope.settings.name not in self.unread


def subjects(name: str, pipelines: Pipelines) -> list[Subject]:
    """Return the files that a name means; none where it is a place that nobody reads.

    Raise where no file has this name, or several have it in theirs.
    """
    data_file = next(_placed_data_file(name, pipelines), None)
    if data_file is not None:
        return [data_file]
    scopes = list(pipelines.opened(pipelines.settings))
    found = list(_of_sources(pipelines.find(scopes, lambda each: files_in_full(name, each))))
    if found or is_place(name):
        return found
    return list(_data_files(name, pipelines)) or list(
        _of_sources(pipelines.find(scopes, lambda each: named_files(name, each, listing=True)))
    )


def _of_sources(found: Sequence[tuple[Asked, str]]) -> Iterator[Subject]:
    for asked, key in found:
        name, _, path = key.partition(":")
        for source in asked.settings.sources:
            if source.name == name:
                yield Subject(asked, source, path)


def _placed_data_file(name: str, pipelines: Pipelines) -> Iterator[Subject]:
    """Yield the data file that a URI, or a path of this machine, means."""
    for settings in pipelines.settings:
        path = below(settings.sink.table_uri, name)
        if path is not None and layout.is_parquet(path):
            asked = pipelines.ask(settings)
            there = asked.store is not None and asked.store.head(path) is not None
            if is_place(name) or there:
                yield Subject(asked, None, path)


def _data_files(name: str, pipelines: Pipelines) -> Iterator[Subject]:
    """Yield the data file of each table that a path below it, or a UUID, may mean."""
    bare = f"{name.removesuffix(layout.PARQUET_SUFFIX)}{layout.PARQUET_SUFFIX}"
    if layout.file_id(bare) is None:
        return
    tables = {place_of(each.sink.table_uri): each for each in reversed(pipelines.settings)}
    for asked in pipelines.opened(tables.values()):
        yield Subject(asked, None, name)


NOT_TAKEN = (FileState.SKIPPED, FileState.MISSING)


def why(name: str, pipelines: Pipelines) -> list[Answer]:
    """Return the answers about the files that a name means, nearly always one.

    Several pipelines may read the same folder, each with a pattern of its own: one that takes the
    file answers for it, and only where none does, each says why not. Pipelines that cannot be read
    are in `pipelines.unread`; without an answer, their errors are raised.
    """
    try:
        found = subjects(name, pipelines)
        answers = []
        for each in found:
            with pipelines.sparing(each.asked.settings):
                answers.append(_answer(each))
    except FileUnknown:
        _raise_unread(pipelines)
        raise
    if not answers:
        _raise_unread(pipelines)
        return [
            Answer(
                kind="source",
                state=FileState.ELSEWHERE,
                uri=name,
                answer="It lies in no source and no table of this configuration, so no pipeline "
                "reads it.",
                next=("blizzard status shows where each pipeline reads from",),
            )
        ]
    told = [each for each in answers if each is not None]
    if not told:
        raise FileUnknown(f"no entry of a journal names the data file {name!r}")
    return [each for each in told if each.state not in NOT_TAKEN] or told


def _raise_unread(pipelines: Pipelines) -> None:
    """Raise the first reason why a pipeline could not be asked, if any."""
    for trouble in pipelines.unread.values():
        raise trouble


def _answer(subject: Subject) -> Answer | None:
    asked, source = subject.asked, subject.source
    if source is not None:
        return why_source_file(asked, source, subject.path)
    return None if asked.store is None else why_data_file(asked, asked.store, subject.path)
