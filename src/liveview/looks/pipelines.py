"""A pipeline as its journal tells it: read once, and then what is new."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from blizzard.answers.refusal import refusal_of
from blizzard.answers.source_status import SourceStatus
from blizzard.answers.status import PipelineStatus, pipeline_status
from blizzard.handoff.held_rows import read_aside
from blizzard.journal.ledger import Ledger
from blizzard.log_questions import asks_fates, asks_the_log, open_reader
from blizzard.model.locations import OpenReader, sink_location
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.errors import LakeError, ObjectMissing, StoreUnavailable
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader
from liveview.looks.kept import ANEW, Fresh, Kept
from liveview.looks.window import Window
from liveview.views.entries import EntryFacts, facts_of

TRIES = 3

Learned = TypeVar("Learned")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineView:
    """What one look has found."""

    status: PipelineStatus
    entries: tuple[EntryFacts, ...]
    """Those of the span that was asked for, the oldest first, as far as they are known."""
    since: float | None
    """From when on all entries are known; None where that is the whole span."""
    unreadable: tuple[int, ...] = ()
    """Entries of the span that could not be read."""
    held: frozenset[int | None] = frozenset()
    """Entries with files that penguin holds."""
    refusal: LakeError | None = None
    """Why a start would be refused, where there is no journal that it could go on with."""


class PipelineLook:
    """Repeated looks at one pipeline."""

    def __init__(
        self,
        settings: PipelineSettings,
        *,
        clock: Clock,
        opening: OpenReader = open_reader,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._open = opening
        self._lock = threading.Lock()
        self._ledger = Ledger()
        self._window: Window[EntryFacts] = Window()
        self._journal: str | None = None
        self._kept: Kept[PipelineView] = Kept(seconds)
        self.unfinished = True
        """Whether the next look goes on with what the last one had no time for."""
        self._listing = threading.Lock()
        self._listed_ledger = Ledger()

    def view(self, *, since: float, fresh: Fresh = ANEW) -> PipelineView:
        """Look at the journal, unless the last look does; the sources are not listed."""
        with self._lock:
            known = self._kept.does(fresh, since)
            if known is not None:
                return known
            self._kept.begin(fresh, since)
            status = self._status(self._fast)
            if status.journal != self._journal:
                self._window, self._journal = Window(), status.journal
            store = self.store()
            if store is not None and status.last_entry is not None:
                journal = JournalReader(store, self.settings.name)
                self._window.look(
                    lambda number: _facts(journal, number), status.last_entry, since=since
                )
                self._window.trim()
            entries = tuple(self._window.since(since))
            covered = self._window.covered or status.last_entry is None
            self.unfinished = self._window.out_of_time
            first = entries[0].at if entries else self._clock.seconds()
            view = PipelineView(
                status=status,
                entries=entries,
                since=None if covered else first,
                unreadable=tuple(sorted(self._window.missing)),
                held=self._held(store) if status.held_files else frozenset(),
                refusal=self._refusal(store, status),
            )
            # A look whose time was up is gone on with by the next one.
            return view if self.unfinished else self._kept.keep(view)

    def sources(self) -> tuple[SourceStatus, ...]:
        """List the sources, as a run does that has just started."""
        with self._listing:
            return self._status(self._slow).sources

    def history(self) -> Ledger:
        """Return what the last look at the journal has learned; it must not be changed."""
        with self._lock:
            return self._ledger

    def learned(self, take: Callable[[Ledger], Learned]) -> Learned:
        """Return what is taken of the history while no look changes it."""
        with self._lock:
            return take(self._ledger)

    def known(self, number: int) -> EntryFacts | None:
        """Return an entry that was read before."""
        return self._window.documents.get(number)

    def store(self) -> Reader | None:
        """Open the table's directory; None where there is none yet."""
        try:
            return self._open(sink_location(self.settings))
        except ObjectMissing:
            return None

    def _refusal(self, store: Reader | None, status: PipelineStatus) -> LakeError | None:
        """Return why a start would be refused; a journal that can be gone on with is not asked.

        A pipeline whose name was changed has none: that of its old name is still there.
        """
        history = self._ledger
        if store is None or (status.last_entry is not None and history.heir is None):
            return None
        return refusal_of(
            self.settings, store, history, asks_the_log(self.settings), check_schema=lambda: None
        )

    def _held(self, store: Reader | None) -> frozenset[int | None]:
        if store is None:
            return frozenset()
        aside = read_aside(store, self.settings.name, asks_fates(self.settings))
        return frozenset(meta.entry for meta in aside.held)

    def _fast(self) -> PipelineStatus:
        ledger, self._ledger = self._ledger, Ledger()
        found = self._look(ledger, listed=False)
        # After an error nothing is kept: what was learned may be of another journal.
        self._ledger = ledger
        return found

    def _slow(self) -> PipelineStatus:
        ledger, self._listed_ledger = self._listed_ledger, Ledger()
        found = self._look(ledger, listed=True)
        self._listed_ledger = ledger
        return found

    def _look(self, ledger: Ledger, *, listed: bool) -> PipelineStatus:
        return pipeline_status(
            self.settings,
            self._open,
            clock=self._clock,
            ledger=ledger,
            fates=asks_fates(self.settings),
            listed=listed,
        )

    def _status(self, look: Callable[[], PipelineStatus]) -> PipelineStatus:
        """Look, and once more where objects vanish under the look: a batch ends."""
        for _ in range(TRIES - 1):
            try:
                return look()
            except StoreUnavailable:
                continue
        return look()


def _facts(journal: JournalReader, number: int) -> EntryFacts | None:
    try:
        entry = journal.entry(number)
    except LakeError:
        return None
    return None if entry is None else facts_of(entry)
