"""Other pipelines of a table that read the files of our sources. Read-only.

A file that lies in the sources of two pipelines would be in the table twice. Folders are compared,
not patterns: which of them a journal's files were found by, it does not say.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from blizzard.journal.lease_record import Life, life_of, read_lease, this_machine
from blizzard.journal.ledger import Ledger, read_ledger
from blizzard.model.settings import PipelineSettings
from lakebed import layout
from lakebed.documents.entry import Entry
from lakebed.locations import place_of, written_out
from lakebed.storage.store import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A journal of another pipeline that knows files of a source of ours."""

    pipeline: str
    source: str
    """The source of ours."""
    uri: str
    """Where the other pipeline reads, or has read."""
    same: bool
    """Whether both read the same folder; otherwise one contains the other."""
    opening: Entry | None
    """Its entry 0, if nothing follows it: then it has read nothing yet."""
    is_written: bool
    """Whether a run that may be alive writes it."""


class Precedence(Enum):
    """Which of two pipelines reads a folder that both claim."""

    OURS = auto()
    """We do: the other has read nothing, does not run, and will find us when it starts."""
    THEIRS = auto()
    UNKNOWN = auto()
    """We come first, and the other runs and may not have seen us: it gives way, or it reads."""


def precedence(ours: Entry | None, rival: Rival) -> Precedence:
    """Decide which one continues, given our entry 0 if nothing follows it. Pure.

    Both look after both entries are there, or one of them had no rival when it looked. So whoever
    has read something comes first. If neither has, the one that was begun first does, whatever the
    clocks said: all that counts is that both decide alike.
    """
    if ours is None or rival.opening is None:
        return Precedence.THEIRS
    if (rival.opening.created, rival.opening.journal) < (ours.created, ours.journal):
        return Precedence.THEIRS
    return Precedence.UNKNOWN if rival.is_written else Precedence.OURS


def rivals(store: Reader, pipeline: str, source_uris: Mapping[str, str]) -> Iterator[Rival]:
    """Find the other pipelines of a table whose journals know of folders that meet ours."""
    if not source_uris:
        return
    ours = {name: place_of(uri) for name, uri in source_uris.items()}
    for other in layout.pipelines(store.folders(layout.OURS)):
        if other == pipeline:
            continue
        theirs = read_ledger(store, other)
        # Ours may be its heir by name, and not know yet what it knew.
        heir = theirs.heir
        reader = other if heir is None or heir == pipeline else heir
        for uri in theirs.source_names:
            place = place_of(uri)
            for name, mine in ours.items():
                if mine.meets(place):
                    yield Rival(
                        pipeline=reader,
                        source=name,
                        uri=uri,
                        same=mine.same(place),
                        opening=unconfirmed(theirs),
                        is_written=_is_written(store, other),
                    )


def unconfirmed(history: Ledger) -> Entry | None:
    """Return entry 0 of a journal that has read nothing; None for any other. Pure.

    One that an operator has begun inherits or has a receipt: who may read was settled then.
    """
    opening = history.opening
    if opening is None or history.sequence > 0 or history.receipt is not None:
        return None
    return opening if opening.inherits is None else None


def _is_written(store: Reader, pipeline: str) -> bool:
    note = read_lease(store, pipeline)
    return note is not None and life_of(note, this_machine()) in (Life.ALIVE, Life.UNKNOWN)


def uris_of(key: str, settings: PipelineSettings, history: Ledger) -> frozenset[str]:
    """Return every URI by which rows, or entries of other journals, may name a source file."""
    source, _, path = key.partition(":")
    roots = {uri for uri, name in history.source_names.items() if name == source}
    roots |= {one.uri for one in settings.sources if one.name == source}
    roots |= {uri for name, uri in history.source_uris.items() if name == source}
    # A line of a source that is not configured any more was replayed under this one.
    roots |= {written_out(uri) for uri in roots} | {f"{source}:"}
    return frozenset(f"{root.rstrip('/')}/{path}" for root in roots)
