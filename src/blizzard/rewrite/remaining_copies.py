"""Find what still holds rows that were or will be erased. Read-only.

They may be in data files outside the table, in quarantined lines, and in the source files. The
search uses the present condition only, since those of earlier erasures are not stored.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from urllib.parse import unquote

import pyarrow as pa

from blizzard.answers.bad_lines import LineSearch
from blizzard.answers.trace import named_by
from blizzard.discover.filter import is_same
from blizzard.discover.finding import why_not_below, why_not_ours
from blizzard.journal.source_names import KnownSources
from blizzard.model.columns import with_found
from blizzard.model.predicate import Predicate
from blizzard.model.rewriting import ActiveFile
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.model.source.file import Recorded
from blizzard.model.stores import OpenReader, source_location
from blizzard.rewrite.erase import ErasePlan, sources_of
from blizzard.worker.find_rows import RowsInFile, rows_in
from blizzard.worker.quarantine.reader import lines_of, read_table
from lakebed import layout
from lakebed.deltalog import tables
from lakebed.deltalog.search import LogSearch
from lakebed.deltalog.segment import fetch_actions, versions_in
from lakebed.documents.pending_meta import HeldState
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from lakebed.layout import TablePath, file_name
from lakebed.listing.sort import ListingRules, NameFault
from lakebed.listing.watermark import ListingPlan, Range
from lakebed.locations import written_out
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader

CHANGES = b'"cdc"'
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class CopyReason(StrEnum):
    """Why a data file with such rows exists outside the table."""

    ADDED = "added"
    """It was added to the table after the plan, so its rows are still there."""
    WAITING = "waiting"
    """It is in an entry that penguin has not committed yet."""
    HELD = "held"
    """penguin holds it."""
    REMOVED = "removed"
    """It was in the table, and time travel can still read it."""
    CHANGES = "changes"
    """It records the changes of a version, and the change data feed can still read it."""
    UNNAMED = "unnamed"
    """The log does not name it: it was removed long ago, or a failed attempt left it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherFile:
    """A data file with such rows that is not in the table."""

    path: str
    rows: int
    why: CopyReason
    deleted_from: datetime | None = None
    """The earliest time at which VACUUM may delete it; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingBadLines:
    """Lines of one source file in one quarantine file."""

    file: str
    source: str
    """The key of the source file."""
    lines: int
    """Lines for which the condition holds."""
    maybe: int
    """Lines that contain a value of the condition or cannot be read."""
    waits: bool
    """Whether they wait; otherwise they are resolved, and `blizzard gc` deletes the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingSource:
    """A source file of such rows, or of rows erased before."""

    uri: str
    rows: int
    is_there: bool | None
    """None if no configured source contains it."""


class WhyNotSearched(StrEnum):
    """Why the table does not show what a source file holds."""

    FAILED = "failed"
    """It failed: the rest of it arrives once it is read."""
    WAITING = "waiting"
    """It was not read, or only in part."""
    CHANGED = "changed"
    """It is another object than the one that was read."""
    RETRACTED = "retracted"
    """Its rows were retracted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsearchedSource:
    """A present source file that may hold such rows."""

    uri: str
    why: WhyNotSearched


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingCopies:
    """Everything that still holds such rows."""

    data_files: tuple[OtherFile, ...] = ()
    bad_lines: tuple[RemainingBadLines, ...] = ()
    sources: tuple[RemainingSource, ...] = ()
    sources_unknown: int = 0
    """Rows, found or erased before, of unknown origin: another program wrote the data files."""
    possible_sources: tuple[RemainingSource, ...] = ()
    """Candidate sources for those rows, from data files outside the table."""
    unread: tuple[str, ...] = ()
    """Unreadable files, which may hold such rows."""
    unlisted: tuple[str, ...] = ()
    """A sentence for each source that could not be listed and so was not checked."""
    not_searched: tuple[UnsearchedSource, ...] = ()
    """Source files whose rows are not all in the table."""

    @property
    def sources_there(self) -> tuple[RemainingSource, ...]:
        """Return the source files that exist or may exist."""
        return tuple(one for one in self.sources if one.is_there is not False)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is known to hold such rows."""
        found = self.data_files or self.bad_lines or self.sources_there or self.sources_unknown
        return not (found or self.unread or self.unlisted or self.not_searched)


def remaining_copies(
    store: Reader,
    settings: PipelineSettings,
    predicate: Predicate,
    found: ErasePlan,
    open_source: OpenReader,
) -> RemainingCopies:
    """Find what holds matching rows outside the table."""
    unread: list[str] = []
    others = _rows_of_others(store, predicate, found, unread)
    known = with_found(settings.schema, found.state.history.columns)
    search = LineSearch(predicate, known if known.fields else found.columns)
    lines, uris = _bad_lines(store, settings.name, search, found, unread)
    before, unknown = _erased_before(store, settings.name, found)
    rows, unknown = found.sources + before + uris, unknown + found.unknown
    possible: Counter[str] = Counter()
    if unknown:
        named = named_by(store, others.keys())
        for path, inside in others.items():
            possible.update(sources_of(inside, named.get(path)))
    maybe = {uri: count for uri, count in possible.items() if uri not in rows}
    not_searched: list[UnsearchedSource] = []
    unlisted: list[str] = []
    before_now = KnownSources(found.state.history)
    for source in settings.sources:
        try:
            not_searched += _not_searched(source, before_now, open_source, unread)
        except LakeError as error:
            unlisted.append(f"source {source.name} could not be listed: {error}")
    return RemainingCopies(
        data_files=_data_files(settings, others, found) if others else (),
        bad_lines=lines,
        sources=tuple(_sources(settings, rows, open_source)),
        sources_unknown=unknown,
        possible_sources=tuple(_sources(settings, maybe, open_source)),
        unread=tuple(unread),
        unlisted=tuple(unlisted),
        not_searched=tuple(not_searched),
    )


def _not_searched(
    source: SourceSettings,
    before: Callable[[str], Recorded],
    open_source: OpenReader,
    unread: list[str],
) -> list[UnsearchedSource]:
    """Return the files of a source whose rows are or were not all in the table.

    They are listed as for a batch. Unreadable names may hold rows too.
    """
    place, lister = open_source(source_location(source)), IncrementalLister()
    root = written_out(source.uri).rstrip("/")
    odd: dict[str, None] = {}

    def skip(path: str, fault: NameFault) -> None:
        is_folder = path.endswith("/")
        why_not = why_not_below(path[:-1], source) if is_folder else why_not_ours(path, source)
        if why_not is None and (is_folder or fault is not NameFault.LINK):
            odd[f"{root}/{path}"] = None

    plan, guide = ListingPlan(ranges=lambda _root: [Range(prefix="")]), ListingRules(skip=skip)
    listed = lister.attempt(lambda: [*lister.files(place, plan, guide)])
    unread.extend(odd)
    return [
        UnsearchedSource(uri=f"{root}/{facts.path}", why=why)
        for facts in listed
        if why_not_ours(facts.path, source) is None
        and (why := why_not_searched(before(f"{source.name}:{facts.path}"), facts)) is not None
    ]


def why_not_searched(before: Recorded, facts: ObjectFacts) -> WhyNotSearched | None:
    """Return why rows of a source file may be missing from data files; None if none are. Pure."""
    done, left = before.finished, before.unfinished
    if left is not None:
        return WhyNotSearched.WAITING if left.record.failure is None else WhyNotSearched.FAILED
    if done is None:
        return WhyNotSearched.WAITING
    if not is_same(done, facts):
        return WhyNotSearched.CHANGED
    return WhyNotSearched.RETRACTED if done.retracted else None


def _rows_of_others(
    store: Reader, predicate: Predicate, found: ErasePlan, unread: list[str]
) -> dict[str, RowsInFile]:
    """Search every data file in the table's directory that is not in the table now."""
    columns = frozenset(found.state.last.partition_columns)
    rows: dict[str, RowsInFile] = {}
    for path in _others(store, frozenset(found.state.files)):
        values = _partition(path, columns)
        file = ActiveFile(path=TablePath(path), size=0, rows=None, partition_values=values)
        try:
            inside = rows_in(store, file, predicate, found.columns, found.state.snapshot.mapping)
        except LakeError:
            unread.append(path)
            continue
        if inside is not None:
            rows[path] = inside
    return rows


def _data_files(
    settings: PipelineSettings, rows: Mapping[str, RowsInFile], found: ErasePlan
) -> tuple[OtherFile, ...]:
    """Return why each file with such rows exists.

    The rewrite may have taken long. Journals are read after the folders, and the log last, so a
    file written since is seen as waiting or as in the table.
    """
    snapshot = found.state.snapshot
    waiting = {
        file_name(file.filename)
        for entry in found.state.waiting_entries()
        for file in entry.data_files
    }
    fates = snapshot.fates(map(file_name, rows))
    uri, options = settings.sink.table_uri, settings.sink.storage_options
    keeps = tables.file_retention(uri, options)
    log = LogSearch(Reader(uri, options))
    lineage = log.follow(rows.keys())
    unnamed = rows.keys() - lineage.active.keys() - lineage.removed.keys()
    changes = _change_files(Reader(uri, options), frozenset(unnamed))

    def why(path: str) -> tuple[CopyReason, datetime | None]:
        name = file_name(path)
        if path in lineage.active:
            return CopyReason.ADDED, None
        if name in waiting:
            return CopyReason.WAITING, None
        if path in lineage.removed:
            return CopyReason.REMOVED, log.removed_at(path)
        if path in changes:
            return CopyReason.CHANGES, changes[path]
        return (CopyReason.HELD if fates[name] == HeldState.HELD else CopyReason.UNNAMED), None

    return tuple(
        OtherFile(
            path=path,
            rows=len(inside.places),
            why=reason,
            deleted_from=None if since is None else since + keeps,
        )
        for path, inside in rows.items()
        for reason, since in [why(path)]
    )


def _others(store: Reader, active: frozenset[str]) -> Iterator[str]:
    """Yield the data files in the table's directory that are not in the table."""
    folders, here = store.level("")
    outboxes = [
        f"{layout.OURS}/{name}/outbox" for name in layout.pipelines(store.folders(layout.OURS))
    ]
    ours = (layout.DELTA_LOG, layout.OURS, layout.STAGING)
    below = [one for one in folders if one.strip("/") not in ours] + outboxes
    paths = [facts.path for facts in here]
    for folder in below:
        paths += [facts.path for facts in store.objects(folder)]
    return (path for path in paths if layout.is_parquet(path) and path not in active)


def _partition(path: str, columns: frozenset[str]) -> dict[str, str | None]:
    """Return the partition values in a file's path. Pure."""
    found: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, is_said, value = part.partition("=")
        if is_said and unquote(name) in columns:
            found[unquote(name)] = None if value == NO_VALUE else unquote(value)
    return found


def _bad_lines(
    store: Reader, pipeline: str, search: LineSearch, found: ErasePlan, unread: list[str]
) -> tuple[tuple[RemainingBadLines, ...], Counter[str]]:
    """Search every quarantine file; count each line once, by source URI."""
    history = found.state.history
    waiting = {str(one.file.filename): one for one in history.books.waiting_files()}
    lines: list[RemainingBadLines] = []
    uris: defaultdict[str, set[object]] = defaultdict(set)
    for facts in store.objects(layout.quarantine_folder(pipeline)):
        if not layout.is_quarantine_file(pipeline, facts.path):
            continue
        try:
            counted = search.count(lines_of(read_table(store, facts.path)))
        except (LakeError, pa.ArrowException):
            unread.append(facts.path)
            continue
        waits = waiting.get(facts.path)
        roots = history.source_uris if waits is None else waits.source_uris
        for source, one in counted.items():
            left = RemainingBadLines(
                file=facts.path,
                source=source,
                lines=one.lines,
                maybe=one.maybe,
                waits=waits is not None,
            )
            lines.append(left)
            name, _, path = source.partition(":")
            uris[f"{roots.get(name, name).rstrip('/')}/{path}"] |= one.places
    return tuple(lines), Counter({uri: len(places) for uri, places in uris.items()})


def _erased_before(store: Reader, pipeline: str, found: ErasePlan) -> tuple[Counter[str], int]:
    """Count the rows of earlier erasures by source file, and those of unknown origin."""
    rows: Counter[str] = Counter()
    unknown = 0
    journal = JournalReader(store, pipeline)
    marks = {
        one.mark: (int(number), one.rows)
        for number, one in found.state.history.books.retractions.items()
        if one.erased
    }
    fates = found.state.snapshot.fates(marks.keys()) if marks else {}
    for mark, (number, taken) in marks.items():
        if fates.get(mark) == HeldState.GONE:
            continue
        entry = journal.entry(number)
        known: Mapping[str, int] = {} if entry is None else entry.erased
        rows.update(known)
        unknown += taken - sum(known.values())
    return rows, unknown


def _sources(
    settings: PipelineSettings, rows: Mapping[str, int], open_source: OpenReader
) -> Iterator[RemainingSource]:
    """Yield the source files, and whether they exist."""
    opened = cache(lambda source: open_source(source_location(source)))
    for uri, count in sorted(rows.items()):
        is_there: bool | None = None
        for source in settings.sources:
            for root in (f"{one.rstrip('/')}/" for one in (source.uri, written_out(source.uri))):
                # An unreadable source does not tell whether the file exists.
                with suppress(LakeError):
                    if is_there is None and uri.startswith(root):
                        is_there = opened(source).head(uri.removeprefix(root)) is not None
        yield RemainingSource(uri=uri, rows=count, is_there=is_there)


def _change_files(store: Reader, wanted: frozenset[str]) -> dict[str, datetime]:
    """Return, for each file of the change data feed, the store's time of the version naming it.

    Checkpoints do not list such files. Versions are read from the newest on until all are found.
    """
    versions = versions_in(store.level(layout.DELTA_LOG)[1]) if wanted else {}
    found: dict[str, datetime] = {}
    newest_first = sorted(versions, reverse=True)
    for actions in fetch_actions(store, newest_first, only=lambda line: CHANGES in line):
        if actions is not None:  # A clean-up may have removed it meanwhile.
            for path in wanted.intersection(actions.changes):
                found.setdefault(path, versions[actions.version].modified)
        if len(found) == len(wanted):
            break
    return found
