"""Journals that grow, and what a start knows from them."""

from typing import Any

from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from blizzard.journal.journal import Journal
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import SnapshotLimits
from lakebed import layout
from lakebed.clock import Clock
from lakebed.storage.store import Store
from tests.support.bucket import Bucket
from tests.support.builders import Hands, failure, finished_file, identity, record

OFTEN = SnapshotLimits(entries=10, names=20)
"""A snapshot is due after ten entries or twenty names."""


def opened(store: Store, *, run: str = "run-1", **given: Any) -> Journal:
    """Open a journal of which snapshots are written often."""
    writer = SnapshotWriter(store=store, pipeline="default", clock=Clock(), limits=OFTEN)
    history = read_ledger(store, "default", spill=writer.spill)
    who = identity(run=run, **given)
    journal = Journal(store, who, history, Hands().clock, limits=OFTEN)
    journal.open_with(lambda: False)
    return journal


def grow(journal: Journal, batches: int, *, files: int = 3) -> None:
    """Append batches as the pipeline does, with a snapshot whenever one is due."""
    for _ in range(batches):
        number = journal.sequence + 1
        done = [record(f"{number:06d}-{file}.ndjson") for file in range(files)]
        bad = record(f"bad-{number:06d}.ndjson", failure=failure(retryable=True))
        journal.append((*done, bad) if number % 7 == 0 else tuple(done), (finished_file(),))
        if journal.snapshot_is_due:
            journal.write_snapshot()


def state(history: Ledger, store: Store) -> dict[str, Any]:
    """Return all that a history knows, however it came to know it."""
    lookup = history.lookup()
    every = [f"default:{n:06d}-{f}.ndjson" for n in range(80) for f in range(3)]
    return {
        "journal": history.journal,
        "sequence": history.sequence,
        "digest": history.digest,
        "names": history.source_names,
        "uris": history.source_uris,
        "since": history.first_reads.since,
        "last": history.last,
        "unfinished": history.unfinished,
        "sums": history.books.sums,
        "finished": {key: lookup(key).finished for key in every},
    }


def from_entries(store: Bucket) -> dict[str, Any]:
    """Return what the entries alone say."""
    bare = Bucket()
    for name in store.names:
        if layout.entry_sequence(name) is not None:
            bare.replace(name, store.bodies[name])
    return state(read_ledger(bare, "default"), bare)
