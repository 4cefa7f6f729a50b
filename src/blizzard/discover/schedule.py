"""Schedule the listings of each source, and keep their findings.

Every source has its own interval. An entry removes every file that it names from the findings.

A copy of the source's lister does the listing. It replaces the original, and so the position of the
next listing, only once all sources have answered.
"""

import math
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass, replace
from datetime import timedelta

from blizzard.discover.finding import Finding
from blizzard.discover.hinted import HintCheck
from blizzard.discover.lister import SourceLister, source_listers
from blizzard.discover.scan import DiscoveryContext
from blizzard.journal.ledger import Ledger
from blizzard.model.notices import Hints
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.model.stores import OpenReader, source_location
from lakebed.clock import Clock

THINK_AGAIN_SECS = 10.0
"""Waiting files are reconsidered at least this often, however rare the listings are."""


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
        ahead: Callable[[], timedelta] = timedelta,
        hints: Hints | None = None,
    ) -> None:
        self._hints = hints or Hints()
        self._settings = settings
        self._open_source = open_source
        self._clock = clock
        self._pace = pace
        self._ahead_of_store = ahead
        self._listers = {each.source.name: each for each in source_listers(settings)}
        for lister in self._listers.values():
            lister.source = pace.of(lister.source)
        self._seen: dict[str, _Seen] = {}
        self._partly_read: set[str] = set()
        """Sources with a partly read file, to be listed again at once."""

    def findings(self, ledger: Ledger, tried: frozenset[str]) -> dict[str, Finding]:
        """List the sources that are due; return the findings of all sources.

        All listings must succeed before any of them counts.
        """
        now = self._clock.seconds()
        listed = {source.name: self._list(source, ledger, tried) for source in self._due(now)}
        for name, (finding, lister) in listed.items():
            self._saw(name, finding, now)
            self._listers[name] = lister
        self._partly_read -= listed.keys()
        self._follow_hints(ledger, tried)
        return {name: seen.finding for name, seen in self._seen.items()}

    def wait(self) -> float:
        """Return the seconds until the next step may have work."""
        until_due = min(self._until_due(), self._hints.until_due(self._clock.seconds()))
        if any(seen.finding.take for seen in self._seen.values()):
            return min(until_due, THINK_AGAIN_SECS)
        return until_due

    def journaled(self, keys: Collection[str], partly_read: Collection[str] = ()) -> None:
        """Remove files that an entry names from the findings, so that they are not taken again.

        Sources with files that the entry leaves `partly_read` are due at once.
        """
        self._partly_read |= set(partly_read)
        self._seen = {name: _without(seen, keys) for name, seen in self._seen.items()}
        self._hints.journaled(keys)

    def batch_failed(self) -> None:
        """When draining, discard all findings."""
        if self._pace.drain:
            self._seen = {}

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
        self, source: SourceSettings, ledger: Ledger, tried: frozenset[str]
    ) -> tuple[Finding, SourceLister]:
        """List a source; return its finding, and the lister that continues from there."""
        lister, seen = copy(self._listers[source.name]), self._seen.get(source.name)
        open_work = None if seen is None else frozenset(seen.finding.work)
        return lister.discover(self._context(source, ledger, tried), open_work=open_work), lister

    def _context(
        self, source: SourceSettings, ledger: Ledger, tried: frozenset[str]
    ) -> DiscoveryContext:
        now, since = self._clock.now(), None
        if source.lookback is not None:
            since = ledger.first_read(source.name, now=now)
        return DiscoveryContext(
            store=self._open_source(source_location(source)),
            lookup=ledger.lookup(),
            unfinished=ledger.unfinished,
            since=since,
            tried=tried,
            now=now,
            ahead=self._ahead_of_store() if source.min_age else timedelta(0),
        )

    def _follow_hints(self, ledger: Ledger, tried: frozenset[str]) -> None:
        """Check the files named by notifications, and add new ones to the findings."""
        for source in self._settings.sources:
            seen = self._seen.get(source.name)
            hints = self._hints.due(source.name, self._clock.seconds())
            if not hints or seen is None:
                continue
            context = self._context(source, ledger, tried)
            check = HintCheck(lister=self._listers[source.name], context=context)
            finding, followed = check.follow(hints, seen.finding)
            self._seen[source.name] = replace(seen, finding=finding)
            self._hints.followed(followed)

    def _saw(self, name: str, finding: Finding, at: float) -> None:
        before = self._seen.get(name)
        # Files of a backlog are read before the next listing, even if the last batch took long: a
        # new sweep would begin with other files.
        more = finding.has_more or (before is not None and before.finding.has_more)
        self._seen[name] = _Seen(
            finding=finding,
            at=self._clock.seconds() if more else at,
            holds=self._pace.between(self._listers[name].source),
        )


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
