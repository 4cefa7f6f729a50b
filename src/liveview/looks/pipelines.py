"""A pipeline as its journal describes it: read once, and then what is new."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from blizzard.answers.progress import refusal_without_journal
from blizzard.answers.source_status import SourceStatus
from blizzard.answers.status import PipelineStatus, pipeline_status
from blizzard.handoff.held_rows import Aside, read_aside
from blizzard.journal.ledger import Ledger
from blizzard.model.locations import OpenReader, open_reader, sink_location
from blizzard.model.settings import PipelineSettings
from blizzard.pipeline_log import PipelineLog
from lakebed.clock import Clock
from lakebed.errors import LakeError, ObjectMissing, StoreUnavailable
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader
from liveview.looks.window import DocumentWindow
from liveview.views.entries import EntryFacts, facts_of
from liveview.views.over_time import DAY_SECS

TRIES = 3

Learned = TypeVar("Learned")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineView:
    """The result of one look."""

    status: PipelineStatus
    entries: tuple[EntryFacts, ...]
    """Those of the span, the oldest first, as far as they are known."""
    since: float | None
    """From when on all entries are known; None if that is the whole span."""
    unreadable: tuple[int, ...] = ()
    """Entries of the span that could not be read."""
    aside: Aside = field(default_factory=Aside)
    """Files that penguin holds."""
    refusal: LakeError | None = None
    """Why a start would be refused, if there is no journal that it could go on with."""

    @property
    def held(self) -> frozenset[int | None]:
        """Return the entries with files that penguin holds."""
        return frozenset(meta.entry for meta in self.aside.held)


class PipelineLook:
    """Repeated looks at one pipeline."""

    def __init__(
        self, settings: PipelineSettings, *, clock: Clock, opening: OpenReader = open_reader
    ) -> None:
        self.settings = settings
        self.span_secs = DAY_SECS
        """How far back a look goes: as far as any request did."""
        self.unfinished = True
        """Whether the next look goes on with what the last one had no time for."""
        self._clock = clock
        self._open = opening
        self._log = PipelineLog(settings, opening)
        self._locks = {listed: threading.Lock() for listed in (False, True)}
        self._ledgers = {listed: Ledger() for listed in (False, True)}
        """A listing runs beside other looks, so it has a ledger of its own."""
        self._window = _window()
        self._journal: str | None = None

    def view(self) -> PipelineView:
        """Look at the journal, without listing the sources."""
        with self._locks[False]:
            since = self._clock.seconds() - self.span_secs
            status = self._status(listed=False)
            if status.journal != self._journal:
                self._window, self._journal = _window(), status.journal
            store = self.store()
            if store is not None and status.last_entry is not None:
                journal = JournalReader(store, self.settings.name)
                self._window.look(
                    lambda number: _facts(journal, number), status.last_entry, since=since
                )
            entries = tuple(self._window.since(since))
            covered = self._window.covered or status.last_entry is None
            self.unfinished = self._window.out_of_time
            first = entries[0].at if entries else self._clock.seconds()
            return PipelineView(
                status=status,
                entries=entries,
                since=None if covered else first,
                unreadable=tuple(sorted(self._window.missing)),
                aside=self._aside(store) if status.held_files else Aside(),
                refusal=refusal_without_journal(
                    self.settings, store, self._ledgers[False], self._log
                ),
            )

    def sources(self) -> tuple[SourceStatus, ...]:
        """List the sources, as a run does that has just started."""
        with self._locks[True]:
            return self._status(listed=True).sources

    def history(self) -> Ledger:
        """Return the ledger of the last look; it must not be changed."""
        return self.learned(lambda ledger: ledger)

    def learned(self, take: Callable[[Ledger], Learned]) -> Learned:
        """Return a value of the ledger that is taken while no look changes it."""
        with self._locks[False]:
            return take(self._ledgers[False])

    def known(self, number: int) -> EntryFacts | None:
        """Return an entry that was read before."""
        return self._window.documents.get(number)

    def store(self) -> Reader | None:
        """Open the table's directory; None if there is none yet."""
        try:
            return self._open(sink_location(self.settings))
        except ObjectMissing:
            return None

    def _aside(self, store: Reader | None) -> Aside:
        if store is None:
            return Aside()
        return read_aside(store, self.settings.name, self._log.fates)

    def _status(self, *, listed: bool) -> PipelineStatus:
        """Return the status; look again if objects vanish meanwhile because a batch ends."""
        for attempt in range(TRIES):
            # After an error nothing is kept: the ledger may be of another journal.
            ledger, self._ledgers[listed] = self._ledgers[listed], Ledger()
            try:
                status = pipeline_status(
                    self.settings,
                    self._open,
                    clock=self._clock,
                    ledger=ledger,
                    log=PipelineLog(self.settings, self._open) if listed else self._log,
                    listed=listed,
                )
            except StoreUnavailable:
                if attempt == TRIES - 1:
                    raise
            else:
                self._ledgers[listed] = ledger
                return status
        raise AssertionError("unreachable")


def _window() -> DocumentWindow[EntryFacts]:
    return DocumentWindow(lambda entry: entry.at)


def _facts(journal: JournalReader, number: int) -> EntryFacts | None:
    try:
        entry = journal.entry(number)
    except LakeError:
        return None
    return None if entry is None else facts_of(entry)
