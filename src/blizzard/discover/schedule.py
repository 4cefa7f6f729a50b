"""Schedule the listings of each source, and keep their findings.

Every source has its own interval. While a batch of a backlog runs, a listing ahead finds the files
of the next one, so that listing takes no extra time. An entry removes every file that it names from
the findings.

A copy of the source's lister does the listing. It replaces the original, and so the position of the
next listing, only on success: all sources answered and, for a listing ahead, every file of the
running batch was journaled.
"""

import math
import threading
from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, replace
from datetime import timedelta

from blizzard.discover.finding import Finding
from blizzard.discover.hinted import HintCheck
from blizzard.discover.lister import SourceLister, source_listers
from blizzard.discover.scan import DiscoveryContext, JournalLookup
from blizzard.journal.ledger import Ledger
from blizzard.model.notices import Hints
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.model.source.file import IngestedFile, Recorded, SourceFile, UnfinishedFile
from blizzard.model.stores import OpenReader, source_location
from lakebed.clock import Clock
from lakebed.documents.records import SourceRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceListing:
    """One listing of a source: its finding, and the lister that continues from there."""

    finding: Finding
    lister: SourceLister


class ListingAhead:
    """A read-only listing of the sources in a separate thread."""

    def __init__(
        self, run: Callable[[], dict[str, SourceListing]], *, begun: float, taken: frozenset[str]
    ) -> None:
        self.begun = begun
        self.taken = taken
        """The files of the running batch, assumed done."""
        self.found: dict[str, SourceListing] | None = None
        self.ended = threading.Event()
        self.journaled: set[str] = set()
        self._list = run
        threading.Thread(target=self._run, name="listing-ahead", daemon=True).start()

    def _run(self) -> None:
        try:
            self.found = self._list()
        except Exception:  # noqa: BLE001, S110 - the next step lists again and reports the error
            pass
        finally:
            self.ended.set()


THINK_AGAIN_SECS = 10.0
"""Waiting files are reconsidered at least this often, however rare the listings are."""
PATIENCE_SECS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often sources are listed; with `drain`, once unless a batch was filled."""

    drain: bool = False
    jitter: float = 0.0
    chance: Callable[[], float] = lambda: 0.0

    def first(self) -> float:
        """Draw the seconds before the first listing."""
        return 0.0 if self.drain else self.jitter * self.chance()

    def of(self, source: SourceSettings) -> SourceSettings:
        """Return the source settings to use: to drain a source, no sweep is restarted."""
        return replace(source, sweep_interval=math.inf) if self.drain else source

    def between(self, source: SourceSettings) -> float:
        """Draw the seconds between two listings of a source."""
        return math.inf if self.drain else source.poll_interval + self.jitter * self.chance()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The finding of the last listing of a source, its time and its validity."""

    finding: Finding
    at: float
    holds: float

    def is_due(self, now: float) -> bool:
        """Whether to list again: the finding has expired, or is used up and there is more."""
        spent = self.finding.has_more and not self.finding.has_work
        # A clock that was set back must not stop the listings.
        return spent or now < self.at or now >= self.at + self.holds


class Schedule:
    """The current findings of all sources of one pipeline."""

    def __init__(
        self,
        settings: PipelineSettings,
        open_source: OpenReader,
        *,
        clock: Clock,
        pace: Pace,
        pause: Callable[[float], object],
        ahead: Callable[[], timedelta] = timedelta,
        hints: Hints | None = None,
    ) -> None:
        self._hints = hints or Hints()
        self._settings = settings
        self._open_source = open_source
        self._clock = clock
        self._pace = pace
        self._pause = pause
        self._ahead_of_store = ahead
        self._listers = {each.source.name: each for each in source_listers(settings)}
        for lister in self._listers.values():
            lister.source = pace.of(lister.source)
        self._seen: dict[str, _Seen] = {}
        self._ahead: ListingAhead | None = None
        self._partly_read: set[str] = set()
        """Sources with a partly read file, to be listed again at once."""
        # A listing ahead reads the journal while the running batch is appended to it.
        self.journal_lock = threading.Lock()

    def findings(self, ledger: Ledger, tried: frozenset[str]) -> dict[str, Finding]:
        """List the sources that are due; return the findings of all sources.

        All listings must succeed before any of them counts.
        """
        fresh = self._take_ahead()
        now = self._clock.seconds()
        due = tuple(source for source in self._due(now) if source.name not in fresh)
        if due:
            open_work = self._open_work()
            listed = self._list(due, ledger, ledger.lookup, ledger.unfinished, tried, open_work)
            self._saw(listed, now)
            self._partly_read -= {source.name for source in due}
        self._follow_hints(ledger, tried)
        return {name: seen.finding for name, seen in self._seen.items()}

    def wait(self) -> float:
        """Return the seconds until the next step may have work."""
        until_due = min(self._until_due(), self._hints.until_due(self._clock.seconds()))
        if any(seen.finding.take for seen in self._seen.values()):
            return min(until_due, THINK_AGAIN_SECS)
        return until_due

    def list_ahead(
        self,
        ledger: Ledger,
        tried: frozenset[str],
        *,
        running: Collection[SourceFile],
        failed: Collection[SourceRecord],
    ) -> None:
        """Begin to list the files of the next batch while one with these files runs.

        Only sources with more files than a batch may hold are listed.
        """
        more = tuple(
            source for source in self._settings.sources if self._seen[source.name].finding.has_more
        )
        if not more:
            return
        taken = _as_done(running, failed)
        unfinished = {key: known for key, known in ledger.unfinished.items() if key not in taken}
        open_work = self._open_work(taken)

        def open_lookup() -> JournalLookup:
            with self.journal_lock:
                lookup = ledger.lookup()

            def ask(key: str) -> Recorded:
                if key in taken:
                    return Recorded(unfinished=None, finished=taken[key])
                with self.journal_lock:
                    return lookup(key)

            return ask

        def listing() -> dict[str, SourceListing]:
            found = self._list(more, ledger, open_lookup, unfinished, tried, open_work)
            return {name: _without_changed(name, listed, taken) for name, listed in found.items()}

        self._ahead = ListingAhead(listing, begun=self._clock.seconds(), taken=frozenset(taken))

    def journaled(self, keys: Collection[str], partly_read: Collection[str] = ()) -> None:
        """Remove files that an entry names from the findings, so that they are not taken again.

        Sources with files that the entry leaves `partly_read` are due at once.
        """
        self._partly_read |= set(partly_read)
        if self._ahead is not None:
            self._ahead.journaled |= set(keys)
        self._seen = {name: _without(seen, keys) for name, seen in self._seen.items()}
        self._hints.journaled(keys)

    def batch_failed(self) -> None:
        """Discard the listing ahead and, when draining, all findings."""
        self.drop_ahead()
        if self._pace.drain:
            self._seen = {}

    def drop_ahead(self) -> None:
        """Discard the listing ahead."""
        self._ahead = None

    def _take_ahead(self) -> frozenset[str]:
        """Use the finding of the listing ahead, if it succeeded and its batch was journaled.

        Return the sources that need not be listed again: when draining, their findings are used up
        first.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return frozenset()
        while not ahead.ended.wait(PATIENCE_SECS):
            if self._pause(0):
                return frozenset()  # A stop was asked for.
        found = ahead.found
        if found is None or not ahead.taken <= ahead.journaled:
            return frozenset()  # It skipped files that are not journaled after all.
        self._saw(found, ahead.begun)
        self.journaled(ahead.journaled)
        if not self._pace.drain:
            return frozenset()
        return frozenset(name for name in found if self._seen[name].finding.has_work)

    def _until_due(self) -> float:
        now = self._clock.seconds()
        holds = (seen.at + seen.holds - now for seen in self._seen.values())
        return max(0.0, min(holds, default=0.0))

    def _due(self, now: float) -> tuple[SourceSettings, ...]:
        return tuple(
            source
            for source in self._settings.sources
            if source.name not in self._seen
            or source.name in self._partly_read
            or self._seen[source.name].is_due(now)
        )

    def _list(
        self,
        sources: tuple[SourceSettings, ...],
        ledger: Ledger,
        open_lookup: Callable[[], JournalLookup],
        unfinished: Mapping[str, UnfinishedFile],
        tried: frozenset[str],
        open_work: Mapping[str, Collection[str]],
    ) -> dict[str, SourceListing]:
        listed = {}
        for source in sources:
            lister = copy(self._listers[source.name])
            context = self._context(source, ledger, open_lookup(), unfinished, tried)
            finding = lister.discover(context, open_work=open_work.get(source.name))
            listed[source.name] = SourceListing(finding=finding, lister=lister)
        return listed

    def _context(
        self,
        source: SourceSettings,
        ledger: Ledger,
        lookup: JournalLookup,
        unfinished: Mapping[str, UnfinishedFile],
        tried: frozenset[str],
    ) -> DiscoveryContext:
        now, since = self._clock.now(), None
        if source.lookback is not None:
            since = ledger.first_read(source.name, now=now)
        return DiscoveryContext(
            store=self._open_source(source_location(source)),
            lookup=lookup,
            unfinished=unfinished,
            since=since,
            tried=tried,
            now=now,
            ahead=self._ahead_of_store() if source.min_age else timedelta(0),
        )

    def _open_work(self, running: Collection[str] = ()) -> dict[str, frozenset[str]]:
        """Return by source the files that were found and are neither journaled nor running."""
        return {
            name: frozenset(key for key in seen.finding.work if key not in running)
            for name, seen in self._seen.items()
        }

    def _follow_hints(self, ledger: Ledger, tried: frozenset[str]) -> None:
        """Check the files named by notifications, and add new ones to the findings."""
        for source in self._settings.sources:
            seen = self._seen.get(source.name)
            hints = self._hints.due(source.name, self._clock.seconds())
            if not hints or seen is None:
                continue
            context = self._context(source, ledger, ledger.lookup(), ledger.unfinished, tried)
            check = HintCheck(lister=self._listers[source.name], context=context)
            finding, followed = check.follow(hints, seen.finding)
            self._seen[source.name] = replace(seen, finding=finding)
            self._hints.followed(followed)

    def _saw(self, listings: Mapping[str, SourceListing], at: float) -> None:
        for source in self._settings.sources:
            if source.name in listings:
                before = self._seen.get(source.name)
                listed = _with_noticed(listings[source.name], before)
                self._listers[source.name] = listed.lister
                # Files of a backlog are read before the next listing, even if the last batch took
                # long: a new sweep would begin with other files.
                more = listed.finding.has_more or (before is not None and before.finding.has_more)
                self._seen[source.name] = _Seen(
                    finding=listed.finding,
                    at=self._clock.seconds() if more else at,
                    holds=self._pace.between(source),
                )


def _as_done(
    running: Collection[SourceFile], failed: Collection[SourceRecord]
) -> dict[str, IngestedFile]:
    """Return the files of a running batch as ingested, so that no listing finds them again."""
    files = [(file.key, file.size, file.etag) for file in running]
    files += [(record.key, record.size, record.etag) for record in failed]
    return {key: IngestedFile(key=key, size=size, etag=etag) for key, size, etag in files}


def _without_changed(name: str, listed: SourceListing, taken: Collection[str]) -> SourceListing:
    """Ignore changed files of the running batch, which reports them itself."""
    changed = tuple(
        facts for facts in listed.finding.changed if f"{name}:{facts.path}" not in taken
    )
    return replace(listed, finding=replace(listed.finding, changed=changed))


def _with_noticed(listed: SourceListing, before: _Seen | None) -> SourceListing:
    """Keep track of files that a notification found before the listing did."""
    if before is None or not before.finding.noticed:
        return listed
    noticed = before.finding.noticed & {file.key for file in listed.finding.take}
    return replace(listed, finding=replace(listed.finding, noticed=noticed))


def _without(seen: _Seen, keys: Collection[str]) -> _Seen:
    finding = seen.finding
    return replace(
        seen,
        finding=replace(
            finding,
            take=tuple(file for file in finding.take if file.key not in keys),
            misplaced=tuple(record for record in finding.misplaced if record.key not in keys),
            gone=tuple(record for record in finding.gone if record.key not in keys),
        ),
    )
