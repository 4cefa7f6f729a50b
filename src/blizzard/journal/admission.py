"""Admit a pipeline to its journal and its sources, or say why it may not start. Read-only.

A file in the sources of two pipelines would be in the table twice. Folders are compared rather than
patterns, because a journal does not record which pattern found a file.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.checks import (
    NEW_JOURNAL,
    redirected,
    refuse_moved,
    refuse_other_names,
    refuse_rolled_back,
    refuse_unfinished,
    unread,
)
from blizzard.journal.lease import Life, life_of, read_lease, this_machine
from blizzard.journal.ledger import Ledger
from lakebed import layout
from lakebed.documents.entry import Entry
from lakebed.errors import JournalLost, SourceContested
from lakebed.locations import place_of
from lakebed.storage.store import Reader


class SourceTaken(JournalLost):
    """Another pipeline of the table reads the files of a source."""


def admit(
    history: Ledger, source_uris: Mapping[str, str], log_knows_pipeline: Callable[[], bool]
) -> None:
    """Refuse a lost, rolled back or renamed journal, and sources that contradict it.

    A journal is started only if there is no trace of an earlier one: otherwise every source file
    would be ingested a second time.
    """
    refuse_rolled_back(history)
    refuse_unfinished(history)
    elsewhere = redirected(source_uris, history)
    known_as = {uri: name for uri, name in history.source_names.items() if name not in elsewhere}
    known_at = {name: uri for name, uri in history.source_uris.items() if name not in elsewhere}
    refuse_other_names(history.place, source_uris, known_as)
    refuse_moved(history.place, source_uris, known_at)
    # Read entry 0 again: a run that began meanwhile wrote it before its commit.
    if history.sequence < 0 and log_knows_pipeline() and history.reader.body(0) is None:
        raise JournalLost(
            "the Delta log holds commits of this pipeline, but its journal is gone; restore the "
            f"folder from a backup, write to a new table, {NEW_JOURNAL}",
            path=history.place,
        )
    ours = unconfirmed(history)
    fresh = source_uris if ours is not None else unread(source_uris, history)
    # An entry 0 that names other locations gives no precedence here.
    refuse_rivals(history, fresh, None if elsewhere else ours)


def refuse_rivals(history: Ledger, source_uris: Mapping[str, str], ours: Entry | None) -> None:
    """Refuse to start if another pipeline of the table reads our sources, even under an old name.

    `ours` is entry 0 of our journal, or None if other entries follow it.
    """
    pipeline = history.pipeline
    for rival in rivals(history, source_uris):
        path = rival.place
        match precedence(ours, rival):
            case Precedence.OURS:
                continue
            case Precedence.UNKNOWN:
                raise SourceContested(
                    f"pipeline {rival.pipeline!r} of this table started reading {rival.uri} at "
                    f"the same moment as {pipeline!r}; one of them withdraws and tries again. Let "
                    "only one of the two read it",
                    path=path,
                )
            case Precedence.THEIRS if rival.same:
                raise SourceTaken(
                    f"pipeline {rival.pipeline!r} of this table already reads {rival.uri}, so "
                    f"{pipeline!r} would ingest it a second time; rename the pipeline to "
                    f"{rival.pipeline!r}, write to another table, or take over its journal with "
                    f"blizzard journal new --from {rival.pipeline}",
                    path=path,
                )
            case Precedence.THEIRS:
                raise SourceTaken(
                    f"pipeline {rival.pipeline!r} of this table already reads {rival.uri}, and "
                    f"source {rival.source!r} is {source_uris[rival.source]}: files in both "
                    "would be ingested twice, regardless of the patterns. Let one pipeline read "
                    "the outer folder, choose folders that do not overlap, or write to another "
                    "table",
                    path=path,
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompetingJournal:
    """Another pipeline's journal that knows files of one of our sources."""

    pipeline: str
    place: str
    """Its folder, for error messages."""
    source: str
    """Our source."""
    uri: str
    """The location that the other pipeline reads or has read."""
    same: bool
    """Whether both read the same folder; otherwise one contains the other."""
    opening: Entry | None
    """Its entry 0, if that is its only entry: then it has read nothing yet."""
    is_written: bool
    """Whether its writer may be alive."""


class Precedence(Enum):
    """Which of two pipelines reads a folder that both claim."""

    OURS = auto()
    """Ours: the other has read nothing, does not run, and will see ours when it starts."""
    THEIRS = auto()
    UNKNOWN = auto()
    """Ours is first, but the other runs and may not have seen it: it may yield or read."""


def precedence(ours: Entry | None, rival: CompetingJournal) -> Precedence:
    """Decide which pipeline continues, given our entry 0 if nothing follows it. Pure.

    Either both check after both entries exist, or one had no rival when it checked. So a pipeline
    that has read something wins. If neither has, the one begun first wins; wrong clocks are
    harmless, since both come to the same decision.
    """
    if ours is None or rival.opening is None:
        return Precedence.THEIRS
    if (rival.opening.created, rival.opening.journal) < (ours.created, ours.journal):
        return Precedence.THEIRS
    return Precedence.UNKNOWN if rival.is_written else Precedence.OURS


def rivals(history: Ledger, source_uris: Mapping[str, str]) -> Iterator[CompetingJournal]:
    """Find the other pipelines of a table whose journals know folders that overlap ours."""
    store, pipeline = history.store, history.pipeline
    if not source_uris or store is None:
        return
    ours = {name: place_of(uri) for name, uri in source_uris.items()}
    for other in layout.pipelines(store.folders(layout.OURS)):
        if other == pipeline:
            continue
        theirs = read_ledger(store, other)
        # Ours may be named as its heir before it has inherited the knowledge.
        heir = theirs.heir
        reader = other if heir is None or heir == pipeline else heir
        for uri in theirs.source_names:
            place = place_of(uri)
            for name, mine in ours.items():
                if mine.meets(place):
                    yield CompetingJournal(
                        pipeline=reader,
                        place=store.describe(layout.journal_folder(reader)),
                        source=name,
                        uri=uri,
                        same=mine.same(place),
                        opening=unconfirmed(theirs),
                        is_written=_is_written(store, other),
                    )


def unconfirmed(history: Ledger) -> Entry | None:
    """Return entry 0 of a journal that has read nothing; None for any other. Pure.

    A journal begun by an operator inherits or has a receipt, so its sources were settled then.
    """
    if history.sequence != 0 or history.receipt is not None:
        return None
    opening = history.last
    return opening if opening is not None and opening.inherits is None else None


def _is_written(store: Reader, pipeline: str) -> bool:
    note = read_lease(store, pipeline)
    return note is not None and life_of(note, this_machine()) in (Life.ALIVE, Life.UNKNOWN)


def refuse_beside(
    pipeline: str, source_uris: Mapping[str, str], beside: Mapping[str, Mapping[str, str]]
) -> None:
    """Refuse other pipelines of the same configuration and table with the same sources.

    Neither may have a journal yet; at their start one of them would be refused.
    """
    for other, theirs in beside.items():
        for name, uri in source_uris.items():
            met = next(
                (each for each in theirs.values() if place_of(each).meets(place_of(uri))), None
            )
            if other != pipeline and met is not None:
                raise SourceTaken(
                    f"pipeline {other!r} of the same table is configured to read {met}, and "
                    f"source {name!r} is {uri}: files in both would be ingested twice, and one "
                    "of the two pipelines is refused. Choose folders that do not overlap, or "
                    "write to another table",
                    pipeline=other,
                )
