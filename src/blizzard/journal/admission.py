"""Admit a pipeline to its journal and its sources, or say why it may not start. Read-only.

A file in the sources of two pipelines would be in the table twice. Folders are compared rather than
patterns, because a journal does not record which pattern found a file.
"""

from collections.abc import Callable, Mapping

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
from blizzard.journal.ledger import Ledger
from lakebed import layout
from lakebed.documents.entry import Entry
from lakebed.errors import JournalLost
from lakebed.locations import place_of


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
    is_new = unconfirmed(history) is not None
    refuse_rivals(history, source_uris if is_new else unread(source_uris, history))


def refuse_rivals(history: Ledger, source_uris: Mapping[str, str]) -> None:
    """Refuse to start if another pipeline of the table reads our sources, even under an old name.

    Of two that start at the same moment, at least one is refused.
    """
    store, pipeline = history.store, history.pipeline
    if not source_uris or store is None:
        return
    ours = {name: place_of(uri) for name, uri in source_uris.items()}
    for other in layout.pipelines(store.folders(layout.OURS)):
        if other == pipeline:
            continue
        theirs = read_ledger(store, other)
        # Ours may be named as its heir before it has inherited the knowledge.
        reader = other if theirs.heir in (None, pipeline) else theirs.heir
        for uri in theirs.source_names:
            place = place_of(uri)
            for name in (name for name, mine in ours.items() if mine.meets(place)):
                way_out = (
                    f"so {pipeline!r} would ingest it a second time; rename the pipeline to "
                    f"{reader!r}, write to another table, or take over its journal with "
                    f"blizzard journal new --from {reader}"
                    if ours[name].same(place)
                    else f"and source {name!r} is {source_uris[name]}: files in both would be "
                    "ingested twice, regardless of the patterns. Let one pipeline read the outer "
                    "folder, choose folders that do not overlap, or write to another table"
                )
                raise SourceTaken(
                    f"pipeline {reader!r} of this table already reads {uri}, {way_out}",
                    path=store.describe(layout.journal_folder(reader)),
                )


def unconfirmed(history: Ledger) -> Entry | None:
    """Return entry 0 of a journal that has read nothing; None for any other. Pure.

    A journal begun by an operator inherits or has a receipt, so its sources were settled then.
    """
    if history.sequence != 0 or history.receipt is not None:
        return None
    opening = history.last
    return opening if opening is not None and opening.inherits is None else None


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
