"""Which file is meant: a URI, a path below a source or a table, a UUID, or a part of a name."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from blizzard.inspect.why.asked import Asked
from blizzard.journal.state import UNKNOWN
from blizzard.model.locations import source_location
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed import layout
from lakebed.dataclass import dataclass
from lakebed.errors import LakeError, NameUnusable, ObjectMissing, Whose
from lakebed.listing.sort import Guide
from lakebed.locations import below, place_of
from lakebed.shown import printable, typed
from lakebed.storage.store import ObjectFacts, Reader

FEW = 10
"""How many names are given where a part of a name means several."""

Ask = Callable[[PipelineSettings], Asked]
"""Opens what questions about a pipeline's files are answered from, once."""


class FileUnknown(LakeError):
    """No file of this name is known, or in a source."""

    code = "file_unknown"
    whose = Whose.USER


class FileAmbiguous(LakeError):
    """A part of a name means several files."""

    code = "file_ambiguous"
    whose = Whose.USER


@dataclass(frozen=True, slots=True)
class Subject:
    """A file that may be meant: of a source, or a data file of the table where none is named."""

    asked: Asked
    source: SourceSettings | None
    path: str


def subjects(name: str, pipelines: Sequence[PipelineSettings], ask: Ask) -> list[Subject]:
    """Return the files that a name means; none where it is a place that nobody reads.

    Raise where no file has this name, or several have it in theirs. A name may be typed as it was
    printed; a file that is really called so comes first.
    """
    printed = typed(name)
    if printed is None:
        return _meant(name, pipelines, ask)
    named = (*_by_place(name, pipelines, ask), *_by_path(name, pipelines, ask))
    return list(filter(_is_known, named)) or _meant(printed, pipelines, ask)


def _meant(name: str, pipelines: Sequence[PipelineSettings], ask: Ask) -> list[Subject]:
    found = list(_by_place(name, pipelines, ask))
    if "://" in name or name.startswith(("/", "~")):
        return found
    # In the folder of a source, any text is a path below it: it counts where there is such a file.
    return (
        list(filter(_is_known, found))
        or list(_data_files(name, pipelines, ask))
        or list(_by_path(name, pipelines, ask))
        or [_by_part(name, pipelines, ask)]
    )


def _by_place(name: str, pipelines: Sequence[PipelineSettings], ask: Ask) -> Iterator[Subject]:
    """Yield the files that a URI, or a path of this machine, means."""
    for settings in pipelines:
        path = below(settings.sink.table_uri, name)
        if path is not None and layout.is_parquet(path):
            yield Subject(ask(settings), None, path)
            return
        for source in settings.sources:
            path = below(source.uri, name)
            if path:
                yield Subject(ask(settings), source, path)


def _data_files(name: str, pipelines: Sequence[PipelineSettings], ask: Ask) -> Iterator[Subject]:
    """Yield the data file of each table that a path below it, or a UUID, may mean."""
    bare = f"{name.removesuffix(layout.PARQUET_SUFFIX)}{layout.PARQUET_SUFFIX}"
    if "://" in name or layout.file_id(bare) is None:
        return
    tables = {place_of(each.sink.table_uri): each for each in reversed(pipelines)}
    for settings in tables.values():
        yield Subject(ask(settings), None, name)


def _by_path(name: str, pipelines: Sequence[PipelineSettings], ask: Ask) -> Iterator[Subject]:
    """Yield the files whose path below a source, or whose key, this is."""
    for settings in pipelines:
        for source in settings.sources:
            path = name.removeprefix(f"{source.name}:")
            is_key = path != name
            subject = Subject(ask(settings), source, path)
            if is_key or _is_known(subject):
                yield subject


def _is_known(subject: Subject) -> bool:
    """Whether the journal knows a file, or it is there."""
    asked, source, path = subject.asked, subject.source, subject.path
    if source is None:
        return asked.store is not None and asked.store.head(path) is not None
    if asked.known(f"{source.name}:{path}") != UNKNOWN:
        return True
    try:
        return asked.open_reader(source_location(source)).head(path) is not None
    except ObjectMissing:
        return False  # The source's folder is not there.


def _by_part(text: str, pipelines: Sequence[PipelineSettings], ask: Ask) -> Subject:
    """Return the one file with a text in its name: of those that are known, else of the others."""
    for search in (_known, _listed):
        found: dict[tuple[str, str], Subject] = {}
        for settings in pipelines:
            asked = ask(settings)
            for source, path in islice(search(asked, text), FEW + 1):
                found[asked.settings.name, f"{source.name}:{path}"] = Subject(asked, source, path)
        if len(found) > 1:
            names = ", ".join(sorted(printable(key) for _pipeline, key in found)[:FEW])
            more = ", ..." if len(found) > FEW else ""
            raise FileAmbiguous(
                f"{text!r} is in the names of several files; write more of the path: {names}{more}"
            )
        if found:
            return next(iter(found.values()))
    raise FileUnknown(
        f"no file with {text!r} in its name is known to the journal, or in a source; "
        "blizzard --dry-run shows which files are seen"
    )


def _known(asked: Asked, text: str) -> Iterator[tuple[SourceSettings, str]]:
    """Yield the files with a text in their names that the journal knows."""
    sources = {each.name: each for each in asked.settings.sources}
    for key in asked.known.with_text(text, FEW + 1):
        name, _, path = key.partition(":")
        if name in sources and text in path:
            yield sources[name], path


def _listed(asked: Asked, text: str) -> Iterator[tuple[SourceSettings, str]]:
    """Yield the files with a text in their names that are in a source; all of it is listed."""
    for source in asked.settings.sources:
        try:
            for facts in _objects(asked.open_reader(source_location(source))):
                if text in facts.path or text in printable(facts.path):
                    yield source, facts.path
        except ObjectMissing:
            continue  # The source's folder is not there.


def _objects(place: Reader) -> Iterator[ObjectFacts]:
    """List every object, perhaps some of them twice; one name does not fail the others."""
    try:
        yield from place.objects()
    except NameUnusable:
        # Slower: a local disk lists such a name as well, any other store goes around it.
        yield from place.in_order(guide=Guide(passes=lambda _path, _oddity: None))
