"""What a question about a file is answered from."""

from collections.abc import Callable
from dataclasses import dataclass

from blizzard.answers.evidence import Table
from blizzard.answers.table_log import TableLog
from blizzard.discover.lister import source_listers
from blizzard.discover.scan import DiscoveryContext
from blizzard.discover.spot_check import SpotCheck
from blizzard.journal.ledger import Ledger
from blizzard.journal.source_names import KnownSources
from blizzard.model.locations import OpenReader, source_location
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.clock import Clock
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One pipeline, and all that a question about its files is answered from."""

    settings: PipelineSettings
    store: Reader | None
    """The table's directory; None where there is none yet."""
    known: KnownSources
    log: TableLog
    open_reader: OpenReader
    clock: Clock
    parallelism: int
    refusal: Callable[[], LakeError | None] = lambda: None
    """Asks why a start of the pipeline would be refused; None where it would not."""
    most_names: int | None = 5000
    """Names of a source that are listed to count the files that wait; None for all."""

    @property
    def history(self) -> Ledger:
        """Return what the journal says up to now."""
        return self.known.history

    def spot_check(self, source: SourceSettings) -> SpotCheck:
        """Return the way to look at parts of a source, as a sweep does."""
        now, since = self.clock.now(), None
        if source.lookback is not None:
            since = self.history.first_read(source.name, now=now)
        return SpotCheck(
            lister=next(each for each in source_listers(self.settings) if each.source is source),
            context=DiscoveryContext(
                store=self.open_reader(source_location(source)),
                lookup=self.known,
                unfinished=self.history.unfinished,
                since=since,
                now=now,
            ),
        )

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
