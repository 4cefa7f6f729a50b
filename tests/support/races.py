"""Penguins and another writer on one table at the same time."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock

from lakebed.errors import CommitUnconfirmed
from lakebed.layout import DELTA_LOG
from tests.support.tables import EVENTS, Numbered, Penguin, TableDirectory

MOST_BATCHES, TRIES = 2, 16
"""Five penguins commit ten batches at most: whoever loses against each of them wins then."""
AGAINST_SPARK = frozenset(
    {
        "allowColumnDefaults", "domainMetadata", "clustering", "rowTracking", "inCommitTimestamp",
        "typeWidening", "typeWidening-preview", "checkpointProtection", "vacuumProtocolCheck",
    }
)  # fmt: skip
"""The features that deltalake does not write."""


class Race:
    """One table, what must be in it, and some penguins, each with a pipeline of its own."""

    def __init__(self, root: Path, penguins: int) -> None:
        self.table = TableDirectory(root)
        self.names: dict[int, str] = {}
        self._penguins = penguins
        self._lock = Lock()
        self._last = 100
        for one in range(penguins):
            self.table.journal(f"p{one}", partitions=(), schema=Numbered(EVENTS.fields))

    def against(self, other: Callable[[], object]) -> None:
        """Let another writer do something while all penguins commit."""
        done = Event()
        with ThreadPoolExecutor(self._penguins) as pool:
            racing = [pool.submit(self._commit, one, done) for one in range(self._penguins)]
            try:
                _tried(other)
            finally:
                done.set()
        for one in racing:
            one.result()

    def _commit(self, number: int, done: Event) -> None:
        journal = self.table.journal(f"p{number}")
        for _ in range(MOST_BATCHES):
            rows = [{"id": each, "name": f"n{each}", "date": None} for each in self._ids()]
            journal.batch(rows)
            self.drain()
            if done.is_set():
                return

    def _ids(self) -> Iterator[int]:
        with self._lock:
            self._last += 2
            fresh = (self._last - 1, self._last)
            self.names |= {each: f"n{each}" for each in fresh}
        return iter(fresh)

    def drain(self) -> None:
        """Let a penguin of its own commit whatever waits, of all pipelines."""
        for _ in range(TRIES):
            try:
                Penguin(self.table, options={"checkpoint_interval": 7}).drain()
            except CommitUnconfirmed:
                continue  # The others were faster each time; a service looks again, too.
            return
        raise AssertionError("a penguin never came through")


def _tried(other: Callable[[], object]) -> None:
    """Run what another writer does until it does not lose against an append any more."""
    for left in reversed(range(TRIES)):
        try:
            other()
        except Exception as lost:
            if "Concurrent" not in type(lost).__name__ + str(lost)[:200] or not left:
                raise
        else:
            return


def in_commit_timestamps(root: Path) -> list[int]:
    """Return what the versions of a log say of their time, in the order of the log."""
    files = sorted((root / DELTA_LOG).glob("*.json"))
    versions = (one for one in files if one.stem.isdigit())
    first = (json.loads(one.read_text().splitlines()[0]) for one in versions)
    return [one["commitInfo"]["inCommitTimestamp"] for one in first]
