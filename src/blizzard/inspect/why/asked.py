"""What a question about a file is answered from."""

from collections.abc import Callable
from itertools import islice

from blizzard.discover.lister import source_listers
from blizzard.discover.spot_check import SpotCheck
from blizzard.inspect.why.standing import Table
from blizzard.inspect.why.table_log import TableLog
from blizzard.journal.ingested import SegmentBroken, names_with
from blizzard.journal.state import UNKNOWN, Before, History, rebuild
from blizzard.model.locations import OpenReader, source_location
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.clock import Clock
from lakebed.dataclass import dataclass
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader


class KnownFiles:
    """What a journal says of source files; names that turn out damaged are not believed."""

    def __init__(self, store: Reader | None, pipeline: str, history: History) -> None:
        self.history = history
        self._store = store
        self._pipeline = pipeline
        self._lookup = None if store is None else history.lookup(store, pipeline)

    def __call__(self, key: str) -> Before:
        """Return what is known of a source file."""
        if self._lookup is None:
            return UNKNOWN
        try:
            return self._lookup(key)
        except SegmentBroken as broken:
            self._rebuild(str(broken))
            return self._lookup(key)

    def with_text(self, text: str, most: int) -> list[str]:
        """Return keys in which a text stands, some more than so many where there are many."""
        if self._store is None:
            return []
        try:
            return self._with_text(self._store, text, most)
        except SegmentBroken as broken:
            self._rebuild(str(broken))
            return self._with_text(self._store, text, most)

    def _with_text(self, store: Reader, text: str, most: int) -> list[str]:
        history = self.history
        here = (history.unfinished, history.recent, history.undecided.files)
        found = [key for known in here for key in known if text in key]
        for segment in history.segments:
            names = names_with(store, self._pipeline, segment, text)
            found += [name.key for name in islice(names, most)]
        return list(dict.fromkeys(found))

    def _rebuild(self, why: str) -> None:
        if self._store is not None:
            self.history = rebuild(self._store, self._pipeline, self.history, why=why)
            self._lookup = self.history.lookup(self._store, self._pipeline)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One pipeline, and all that a question about its files is answered from."""

    settings: PipelineSettings
    store: Reader | None
    """The table's directory; None where there is none yet."""
    known: KnownFiles
    log: TableLog
    open_reader: OpenReader
    clock: Clock
    parallelism: int
    refusal: Callable[[], LakeError | None] = lambda: None
    """Asks why a start of the pipeline would be refused; None where it would not."""
    most_names: int | None = 5000
    """Names of a source that are listed to count the files that wait; None for all."""

    @property
    def history(self) -> History:
        """Return what the journal says up to now."""
        return self.known.history

    def spot_check(self, source: SourceSettings) -> SpotCheck:
        """Return the way to look at parts of a source, as a sweep does."""
        now, since = self.clock.now(), None
        if source.lookback is not None and self.store is not None:
            since = self.history.first_reads.of(
                self.store, self.settings.name, source.name, now=now
            )
        return SpotCheck(
            lister=next(each for each in source_listers(self.settings) if each.source is source),
            store=self.open_reader(source_location(source)),
            lookup=self.known,
            unfinished=self.history.unfinished,
            since=since,
            now=now,
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
