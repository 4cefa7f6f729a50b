"""Whether what blizzard reads and writes is where something else would pick it up.

Dead letters are NDJSON: below a source they would be read as data, fail, and produce more dead
letters. To a VACUUM, a source below a table is untracked data.
"""

import os
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from blizzard.model.source.glob import Pattern, is_hidden
from lakebed.config.faults import Fault
from lakebed.config.models import Document, KeyPath, Source
from lakebed.storage.store import local_path

Place = Callable[[str], tuple[str, Pattern | None]]
"""Divides the path of a source into its folder and the names that are meant below it."""

ALIASES = {"s3a": "s3", "azure": "az", "adl": "abfss", "abfs": "abfss"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    key: KeyPath
    name: str
    folder: str
    pattern: Pattern | None


def normal(uri: str) -> str:
    """Return the canonical form of a location, in which nesting can be seen.

    On a local disk that is where it is, whatever links lead there.
    """
    local = local_path(uri)
    if local is not None:
        return os.path.realpath(local)
    scheme, _, rest = uri.partition("://")
    host, _, path = rest.partition("/")
    inner = posixpath.normpath(f"/{path}").strip("/")
    return f"{ALIASES.get(scheme, scheme)}://{host}/{inner}".rstrip("/")


def below(place: str, folder: str) -> str | None:
    """Return the path of a place below a folder, empty where it is the folder; None if outside."""
    if place == folder:
        return ""
    start = f"{folder.rstrip('/')}/"
    return place.removeprefix(start) if place.startswith(start) else None


def faults(document: Document, place: Place) -> Iterator[Fault]:
    """Yield a fault for each dead letter queue in a source, and each source in a table."""
    sources = list(_sources(document, place))
    for path, name, pipeline in document.named_pipelines():
        queue = pipeline.error_handling.dlq_path
        if queue is not None:
            yield from _queue_in_source((*path, "error_handling", "dlq_path"), queue, sources)
        if pipeline.sink is not None and pipeline.sink.uri is not None:
            yield from _source_in_table(f"pipeline {name}", pipeline.sink.uri, sources)
            yield from _table_in_source((*path, "sink"), pipeline.sink.uri, sources)
    written = {
        normal(pipeline.sink.uri)
        for _, _, pipeline in document.named_pipelines()
        if pipeline.sink is not None and pipeline.sink.uri is not None
    }
    for name, table in document.tables.items():
        if normal(table.table_uri) not in written:
            yield from _source_in_table(f"tables.{name}", table.table_uri, sources)


def _sources(document: Document, place: Place) -> Iterator[_Source]:
    for path, _name, pipeline in document.named_pipelines():
        for inner, name, source in pipeline.named_sources():
            folder, pattern = _placed(source, place)
            key = (*path, *inner, "path")
            yield _Source(key=key, name=name, folder=normal(folder), pattern=pattern)


def _placed(source: Source, place: Place) -> tuple[str, Pattern | None]:
    try:
        return place(source.path)
    except ValueError:
        return source.path, None  # That is a fault of its own.


def _queue_in_source(key: KeyPath, queue: str, sources: list[_Source]) -> Iterator[Fault]:
    for source in sources:
        inner = below(normal(queue), source.folder)
        if inner is None or _is_passed_over(inner, source.pattern):
            continue
        yield Fault(
            key,
            f"is inside source {source.name}, where the records of failed files would be read as "
            "data; move it elsewhere, or into a folder whose name starts with _",
        )


def _table_in_source(key: KeyPath, table: str, sources: list[_Source]) -> Iterator[Fault]:
    """Refuse a table whose data files match the source's pattern; others are not NDJSON."""
    for source in sources:
        inner = below(normal(table), source.folder)
        pattern = source.pattern
        if inner is None or pattern is None or is_hidden(inner):
            continue
        data = f"{inner}/x.parquet".lstrip("/")
        if pattern.names_file(data) and pattern.compiled().fullmatch(data):
            yield Fault(
                key, f"is inside source {source.name}, whose pattern matches its data files"
            )


def _source_in_table(whose: str, table: str, sources: list[_Source]) -> Iterator[Fault]:
    for source in sources:
        inner = below(source.folder, normal(table))
        if inner is None or (inner[:1] in ("_", ".") and inner.partition("/")[0] not in OURS):
            continue
        yield Fault(
            source.key,
            f"is inside the table of {whose}, where a VACUUM deletes every file that the table "
            "does not reference; move it elsewhere",
        )


def _is_passed_over(inner: str, pattern: Pattern | None) -> bool:
    """Whether no dead letter in a folder below a source would ever be taken."""
    if inner:
        return is_hidden(inner) or (pattern is not None and not pattern.may_hold(inner))
    start = "" if pattern is None else pattern.start
    return not (LETTERS.startswith(start) or start.startswith(LETTERS))


LETTERS = "failures-"
"""How the names of dead letters begin."""
OURS = ("_blizzard", "_delta_log", "_staging")
"""Folders of a table that are written by the programs themselves."""
