"""The books of a journal as they are looked at, again and again."""

from blizzard.journal.checkpoint import read_ledger, read_on, rebuild
from blizzard.journal.ledger import Ledger
from blizzard.journal.segments import SegmentBroken
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader


class Books:
    """What one journal says so far; asked again, only what is new is read."""

    def __init__(self) -> None:
        self.history = Ledger()

    def read(self, store: Reader, pipeline: str) -> None:
        """Read the receipt, then the newest snapshot and the entries after it, or since last."""
        if self.history.sequence < 0:
            self._hold(store, pipeline, read_ledger(store, pipeline))
        else:
            self.history.receipt = JournalReader(store, pipeline).receipt()
            read_on(store, pipeline, self.history)
            self._hold(store, pipeline, self.history)

    def read_again(self, store: Reader, pipeline: str, broken: SegmentBroken) -> None:
        """Read anew, because names that were derived from entries are damaged, or were replaced.

        If there is no newer snapshot with other names, every entry is read.
        """
        before = self.history.kept
        history = read_ledger(store, pipeline)
        if history.kept == before:
            history = rebuild(store, pipeline, history, why=str(broken))
        self._hold(store, pipeline, history)

    def _hold(self, store: Reader, pipeline: str, history: Ledger) -> None:
        history.books.settle(JournalReader(store, pipeline))
        self.history = history
