"""The files that a journal knows to be done, in the order of their names. Read-only."""

from collections.abc import Iterator
from dataclasses import replace
from heapq import merge
from itertools import takewhile

from blizzard.answers.lifecycle import last_entry
from blizzard.journal.ledger import Ledger
from blizzard.journal.segments import merged
from blizzard.model.files import IngestedFile
from lakebed.storage.store import Reader

FIRST_OF_ALL, LAST_OF_ALL = -1, 2
"""The ages of what counts whatever else is known of a name, and only where nothing else is."""


def known_between(
    store: Reader | None, pipeline: str, history: Ledger, start: str, end: str
) -> Iterator[IngestedFile]:
    """Yield the files that are done, between two keys, each as what it is in the table."""
    recent = (history.recent[key] for key in sorted(history.recent) if key >= start)
    kept: Iterator[IngestedFile] = iter(())
    if store is not None:
        kept = map(IngestedFile.of, merged(store, pipeline, history.segments, start))
    every = merge(
        ((one, 0) for one in recent),
        ((one, 1) for one in kept),
        _undecided(history, start),
        key=_order,
    )
    last = None
    for one, _age in takewhile(lambda each: each[0].key < end, every):
        if one.key >= start and one.key != last:
            yield one
        last = one.key


def _undecided(history: Ledger, start: str) -> Iterator[tuple[IngestedFile, int]]:
    """Yield files as retractions have them: new content before all else.

    Rows that only leave are there until that is decided, so what was known before comes first.
    """
    for key in sorted(key for key in history.undecided.files if key >= start):
        one = history.undecided.of(key)
        if one is None:
            continue
        if not one.passed_over and not one.after.retracted:
            yield one.after, FIRST_OF_ALL
        elif one.left is None:
            yield one.after, LAST_OF_ALL
        elif not one.passed_over:
            yield replace(one.after, entry=last_entry(one.left), retracted=False), LAST_OF_ALL


def _order(each: tuple[IngestedFile, int]) -> tuple[str, int]:
    # What is in memory was learned after the segments were written, so it comes first and counts.
    return each[0].key, each[1]
