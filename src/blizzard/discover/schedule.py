"""When each source is listed next, and what is known of it until then.

Every source has a pace of its own. What a listing has found is used until the journal names it: an
entry makes the schedule forget every file in it.

A copy of a source's lister makes each listing. The copy, and with it where the next listing begins,
replaces the original only once all sources have answered.
"""

import math
from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, replace
from datetime import timedelta

from blizzard.discover.finding import Finding
from blizzard.discover.hinted import HintedLook
from blizzard.discover.lister import SourceLister, source_listers
from blizzard.discover.scan import DiscoveryContext
from blizzard.journal.ledger import Ledger
from blizzard.model.locations import OpenReader, source_location
from blizzard.model.notices import Hints
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """One look at a source: what it found, and the lister that goes on from there."""

    finding: Finding
    lister: SourceLister


THINK_AGAIN_SECS = 10.0
"""Files that wait for their batch are thought of this often, however rare the looks are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often sources are looked at. With `drain` once, if that finds all there is to read."""

    drain: bool = False
    jitter: float = 0.0
    chance: Callable[[], float] = lambda: 0.0

    def first(self) -> float:
        """Draw the seconds before the first look."""
        return 0.0 if self.drain else self.jitter * self.chance()

    def of(self, source: SourceSettings) -> SourceSettings:
        """Return a source as it is looked at: to drain it, a sweep comes to its end at last."""
        return replace(source, sweep_interval=math.inf) if self.drain else source

    def between(self, source: SourceSettings) -> float:
        """Draw the seconds from one look at a source to the next."""
        return math.inf if self.drain else source.poll_interval + self.jitter * self.chance()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the last look at a source has found, when it was, and how long it holds."""

    finding: Finding
    at: float
    holds: float

    def is_due(self, now: float) -> bool:
        """Whether to look again: it is time, or the next files are beyond what was found."""
        spent = self.finding.has_more and not self.finding.has_work
        # A clock that was set back must not stop the looks.
        return spent or now < self.at or now >= self.at + self.holds


class Schedule:
    """What is known of the sources of one pipeline between two looks."""

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
        self._part_way: set[str] = set()
        """Sources with a file whose rest is unread: it is found by the next look."""

    def findings(self, ledger: Ledger, tried: frozenset[str]) -> dict[str, Finding]:
        """Look at the sources that are due; return what is known of all of them.

        All looks must succeed before any of them counts: a listing that breaks off fails them all.
        """
        now = self._clock.seconds()
        due = self._due(now)
        if due:
            self._saw(self._look(due, ledger, tried), now)
            self._part_way -= {source.name for source in due}
        self._follow_hints(ledger, tried)
        return {name: seen.finding for name, seen in self._seen.items()}

    def wait(self) -> float:
        """Return how many seconds to wait before the next step has anything to do."""
        until_due = min(self._until_due(), self._hints.until_due(self._clock.seconds()))
        if any(seen.finding.take for seen in self._seen.values()):
            return min(until_due, THINK_AGAIN_SECS)
        return until_due

    def journaled(self, keys: Collection[str], part_way: Collection[str] = ()) -> None:
        """Forget files that an entry names: they must not be taken once more.

        The sources in which an entry has left files `part_way` are due at once.
        """
        self._part_way |= set(part_way)
        self._seen = {name: _without(seen, keys) for name, seen in self._seen.items()}
        self._hints.journaled(keys)

    def batch_failed(self) -> None:
        """List the sources again for the next step; a run that polls does so in time."""
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
            or source.name in self._part_way
            or self._seen[source.name].is_due(now)
        )

    def _look(
        self, sources: tuple[SourceSettings, ...], ledger: Ledger, tried: frozenset[str]
    ) -> dict[str, Looked]:
        looked = {}
        for source in sources:
            lister = copy(self._listers[source.name])
            seen = self._seen.get(source.name)
            open_work = None if seen is None else frozenset(seen.finding.work)
            finding = lister.look(self._context(source, ledger, tried), open_work=open_work)
            looked[source.name] = Looked(finding=finding, lister=lister)
        return looked

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
        """Look at the files that messages name; what is new joins what the last look has found."""
        for source in self._settings.sources:
            seen = self._seen.get(source.name)
            hints = self._hints.due(source.name, self._clock.seconds())
            if not hints or seen is None:
                continue
            context = self._context(source, ledger, tried)
            look = HintedLook(lister=self._listers[source.name], context=context)
            finding, followed = look.follow(hints, seen.finding)
            self._seen[source.name] = replace(seen, finding=finding)
            self._hints.followed(followed)

    def _saw(self, looks: Mapping[str, Looked], at: float) -> None:
        for source in self._settings.sources:
            if source.name in looks:
                before = self._seen.get(source.name)
                looked = _with_noticed(looks[source.name], before)
                self._listers[source.name] = looked.lister
                # What is found of a backlog is read before the next look, however long the batch
                # before it ran: a new sweep would begin with other files.
                more = looked.finding.has_more or (before is not None and before.finding.has_more)
                self._seen[source.name] = _Seen(
                    finding=looked.finding,
                    at=self._clock.seconds() if more else at,
                    holds=self._pace.between(source),
                )


def _with_noticed(looked: Looked, before: _Seen | None) -> Looked:
    """Keep in mind which files a message brought first, though a listing has them by now."""
    if before is None or not before.finding.noticed:
        return looked
    noticed = before.finding.noticed & {file.key for file in looked.finding.take}
    return replace(looked, finding=replace(looked.finding, noticed=noticed))


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
