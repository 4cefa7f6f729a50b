"""Resolve names of source objects that operators type, for every command.

A name is a URI, a local path, a path below a source, `source:path`, or part of a name that matches
one file only. It may be typed as printed, escaped or shortened with `…`. A full name takes
precedence over a partial one, in all searched pipelines.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from blizzard.journal.checkpoint import reread
from blizzard.journal.ledger import Ledger
from blizzard.journal.segments import SegmentBroken
from blizzard.model.settings import PipelineSettings
from blizzard.model.source.file import UNKNOWN, Recorded
from blizzard.model.stores import OpenReader, source_location
from lakebed.errors import LakeError, NameUnusable, ObjectMissing, Whose, printable
from lakebed.listing.sort import ListingRules
from lakebed.locations import below
from lakebed.storage.options import ObjectFacts
from lakebed.storage.remote import is_there
from lakebed.storage.store import Reader
from lakebed.units import typed

FEW = 10
"""How many candidates an ambiguous name lists."""
SHORTENED = "…"


class FileUnknown(LakeError, code="file_unknown", whose=Whose.USER):
    """No known file or source object has this name."""


class FileAmbiguous(LakeError, code="file_ambiguous", whose=Whose.USER):
    """A name matches several files."""


class KnownSources:
    """The source files that a ledger knows; a damaged segment makes it reload."""

    def __init__(self, history: Ledger) -> None:
        self.history = history
        self._lookup = history.lookup()

    def __call__(self, key: str) -> Recorded:
        """Look up a source file."""
        try:
            return self._lookup(key)
        except SegmentBroken as broken:
            reread(self.history, broken)
            return self._lookup(key)

    def with_text(self, text: str) -> Iterator[str]:
        """Yield the keys that contain a text, possibly with repeats."""
        try:
            yield from self._with_text(text)
        except SegmentBroken as broken:
            reread(self.history, broken)
            yield from self._with_text(text)

    def _with_text(self, text: str) -> Iterator[str]:
        history = self.history
        here = (history.unfinished, history.recent, history.undecided.files)
        yield from (key for known in here for key in known if text in key)
        yield from (name.key for one in history.segments for name in one.with_text(text))


class NameScope(Protocol):
    """A pipeline to search for names."""

    @property
    def settings(self) -> PipelineSettings:
        """Return the settings of the pipeline."""

    @property
    def known(self) -> KnownSources:
        """Return the source files that its journal knows."""

    @property
    def open_reader(self) -> OpenReader:
        """Return the function that opens a source."""


Scope = TypeVar("Scope", bound=NameScope)


def named_files(
    name: str, scopes: Sequence[Scope], *, parts: bool = True, listing: bool = False
) -> list[tuple[Scope, str]]:
    """Return the source objects that a name means, as pipeline and `source:path`.

    Several if sources or pipelines share a path; none for a location outside all sources. `parts`
    accepts part of a name that matches one file in the journal; `listing` also searches the
    sources.
    """
    found = files_in_full(name, scopes)
    if found or is_place(name):
        return found
    if not parts:
        raise FileUnknown(f"no source file is called {name!r}; write the whole path, or its URI")
    return [_by_part(name, scopes, listing=listing)]


def files_meant(
    name: str, scopes: Sequence[Scope], *, parts: bool = True, listing: bool = False
) -> list[tuple[Scope, str]]:
    """Return the source objects that a name means; raise if it means two of one pipeline."""
    found = named_files(name, scopes, parts=parts, listing=listing)
    if len(found) > len({scope.settings.name for scope, _key in found}):
        raise ambiguous(f"{name!r} matches several files; name one", found)
    return found


def the_key(name: str, scope: NameScope, *, listing: bool = False) -> str:
    """Return the one source object of a pipeline that a name means, as `source:path`."""
    found = files_meant(name, [scope], listing=listing)
    if not found:
        roots = ", ".join(printable(uri) for uri in dict(_roots(scope)).values())
        raise FileUnknown(f"{name} is in no source of pipeline {scope.settings.name}: {roots}")
    return found[0][1]


def is_place(name: str) -> bool:
    """Whether a name is a URI or an absolute path. Pure."""
    return "://" in name or name.startswith(("/", "~"))


def files_in_full(name: str, scopes: Sequence[Scope]) -> list[tuple[Scope, str]]:
    """Return the source objects with this full name; an unescaped match takes precedence."""
    printed = typed(name)
    if printed is None:
        return _in_full(name, scopes, sure=True)
    return _in_full(name, scopes, sure=False) or _in_full(printed, scopes, sure=True)


def _in_full(name: str, scopes: Sequence[Scope], *, sure: bool) -> list[tuple[Scope, str]]:
    """Return matches by location, then by path; unless `sure`, only existing ones."""
    placed = [(scope, key) for scope in scopes for key in _keys_below(name, scope)]
    if sure and is_place(name):
        return placed
    # Within a source's folder any text is a path below it, so check that the file exists.
    found = [one for one in placed if _exists(*one)]
    if found or is_place(name):
        return found
    for scope in scopes:
        sources = dict(_roots(scope))
        if ":" in name and name.partition(":")[0] in sources:
            found += [(scope, name)] if sure or _exists(scope, name) else []
        else:
            keys = (f"{source}:{name}" for source in sources)
            found += [(scope, key) for key in keys if _exists(scope, key)]
    return found


def _keys_below(name: str, scope: NameScope) -> Iterable[str]:
    """Return the distinct keys of a pipeline's sources for a location."""
    paths = ((source, below(uri, name)) for source, uri in _roots(scope))
    return dict.fromkeys(f"{source}:{path}" for source, path in paths if path)


def _roots(scope: NameScope) -> Iterator[tuple[str, str]]:
    """Yield the sources with their present and recorded locations."""
    for source in scope.settings.sources:
        yield source.name, source.uri
    history = scope.known.history
    yield from history.source_uris.items()
    for waiting in history.books.waiting_files():
        yield from waiting.source_uris.items()


def _exists(scope: NameScope, key: str) -> bool:
    """Whether a file is in the journal or in its source."""
    if scope.known(key) != UNKNOWN:
        return True
    name, _, path = key.partition(":")
    for source in scope.settings.sources:
        if source.name == name:
            try:
                return scope.open_reader(source_location(source)).head(path) is not None
            except ObjectMissing:
                return False  # The source's folder does not exist.
    return False


def _by_part(name: str, scopes: Sequence[Scope], *, listing: bool) -> tuple[Scope, str]:
    """Return the only file whose name contains a text: a known one, else a listed one."""
    texts = [text for text in dict.fromkeys((name, typed(name) or name)) if text.strip(SHORTENED)]
    for search in (_known, _listed) if listing else (_known,):
        found = {
            (scope.settings.name, key): (scope, key)
            for scope in scopes
            for text in texts
            for key in islice(_distinct(search(scope, text)), FEW + 1)
        }
        if len(found) > 1:
            raise ambiguous(
                f"{name!r} is in the names of several files; write more of the path",
                found.values(),
            )
        if found:
            return next(iter(found.values()))
    where = "known to the journal, or in a source" if listing else "known to the journal"
    if listing and (missing := ", ".join(_missing(scopes))):
        raise FileUnknown(
            f"no file with {name!r} in its name is known to the journal, and {missing}"
        )
    raise FileUnknown(
        f"no file with {name!r} in its name is {where}; blizzard --dry-run shows which files are "
        "seen"
    )


def _distinct(keys: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for key in keys:
        if key not in seen:
            seen.add(key)
            yield key


def ambiguous(what: str, found: Iterable[tuple[NameScope, str]]) -> FileAmbiguous:
    """Return the error for a name of several files, which lists them."""
    keys = sorted({printable(key) for _scope, key in found})
    more = ", ..." if len(keys) > FEW else ""
    return FileAmbiguous(f"{what}: {', '.join(keys[:FEW])}{more}")


def _pattern(text: str) -> re.Pattern[str]:
    """Return a pattern for part of a path, with a wildcard for `…`. Pure."""
    return re.compile(".*".join(map(re.escape, text.split(SHORTENED))), re.DOTALL)


def _known(scope: NameScope, text: str) -> Iterator[str]:
    """Yield the known files whose names contain a text."""
    sources, pattern = dict(_roots(scope)), _pattern(text)
    for key in scope.known.with_text(max(text.split(SHORTENED), key=len)):
        source, _, path = key.partition(":")
        if source in sources and pattern.search(path):
            yield key


def _listed(scope: NameScope, text: str) -> Iterator[str]:
    """Yield the source objects whose names contain a text, listing entire sources."""
    pattern = _pattern(text)
    for source in scope.settings.sources:
        try:
            for facts in _objects(scope.open_reader(source_location(source))):
                if pattern.search(facts.path):
                    yield f"{source.name}:{facts.path}"
        except ObjectMissing:
            continue  # The source's folder does not exist.


def _missing(scopes: Iterable[NameScope]) -> Iterator[str]:
    """Yield the sources whose folders do not exist."""
    for source in (source for scope in scopes for source in scope.settings.sources):
        if not is_there(source.uri):
            yield f"source {source.name} cannot be listed: {source.uri} does not exist"


def _objects(place: Reader) -> Iterator[ObjectFacts]:
    """List every object, possibly with repeats; an unusable name does not stop the listing."""
    try:
        yield from place.objects()
    except NameUnusable:
        # Slower: a local disk lists such names too, other stores skip them.
        yield from place.in_order(guide=ListingRules(skip=lambda _path, _fault: None))
