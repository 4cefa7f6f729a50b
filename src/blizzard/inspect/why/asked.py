"""What a question about a file is answered from."""

from dataclasses import dataclass

from blizzard.inspect.why.standing import Table
from blizzard.inspect.why.table_log import TableLog
from blizzard.journal.ingested import SegmentBroken
from blizzard.journal.state import Before, History, rebuild
from blizzard.model.locations import OpenReader
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One pipeline, and all that a question about its files is answered from."""

    settings: PipelineSettings
    store: Reader | None
    """The table's directory; None where there is none yet."""
    history: History
    log: TableLog
    open_reader: OpenReader
    clock: Clock
    parallelism: int

    def before(self, key: str) -> Before:
        """Return what the journal says of a source file; damaged names are not believed."""
        if self.store is None:
            return Before()
        try:
            return self.history.lookup(self.store, self.settings.name)(key)
        except SegmentBroken as broken:
            receipt = self.history.receipt
            fresh = rebuild(self.store, self.settings.name, receipt=receipt, why=str(broken))
            return fresh.lookup(self.store, self.settings.name)(key)

    @property
    def table(self) -> Table | None:
        """Return the pipeline's part of the table; None where there is none yet."""
        if self.store is None:
            return None
        return Table(
            store=self.store,
            pipeline=self.settings.name,
            journal=JournalReader(self.store, self.settings.name),
            last=self.history.sequence,
            log=self.log,
        )
