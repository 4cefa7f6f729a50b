"""A look at every file of a source, and at those that are no longer there. Read-only.

The listing and the names that the journal knows come in the same order, so they are gone through
side by side: each file is met once, and neither of the two is held in memory.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from blizzard.answers.known_names import known_between
from blizzard.answers.lifecycle import (
    NOT_APPLIED,
    DayOf,
    FileStanding,
    FileState,
    Lifecycle,
    Progress,
)
from blizzard.discover.filter import Decision
from blizzard.discover.lister import SourceLister
from blizzard.discover.names import PartitionUnknown, partition_of, why_not_ours
from blizzard.discover.scan import DiscoveryContext, Scan
from blizzard.discover.skip_reason import SkipSummary
from blizzard.journal.ledger import Before, Ledger
from blizzard.model.files import IngestedFile
from blizzard.model.locations import OpenReader, source_location
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.clock import Clock
from lakebed.listing.incremental import ListingPlan
from lakebed.listing.sort import LAST, Guide, Oddity
from lakebed.partition import folder
from lakebed.storage.store import ObjectFacts, Reader
from lakebed.types import OnChange

ByFile = Mapping[str, Mapping[int, int]]
"""How many bad lines of files wait, by key and by the entry that read them."""


@dataclass(slots=True)
class WaitingLines:
    """Tells bad lines once, as objects are met in the order in which they were read."""

    waiting: ByFile = field(default_factory=dict)
    _told: set[tuple[str, int]] = field(default_factory=set)

    def of(self, one: FileStanding) -> dict[int, int]:
        """Return those of an object by entry: all up to its own that are of no earlier object."""
        found = {
            entry: lines
            for entry, lines in self.waiting.get(one.key, {}).items()
            if (one.entry is None or entry <= one.entry) and (one.key, entry) not in self._told
        }
        self._told |= {(one.key, entry) for entry in found}
        return found


class Collector(Protocol):
    """What is told of each file."""

    def add(self, one: FileStanding, /) -> object:
        """Take notice of a file."""
        ...


Collected = TypeVar("Collected", bound=Collector)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """All that a look at the files of a pipeline is made from."""

    settings: PipelineSettings
    listers: Mapping[str, SourceLister]
    """By the names of their sources."""
    open_reader: OpenReader
    store: Reader | None
    """The table's directory; None where there is none yet."""
    history: Ledger
    progress: Progress
    clock: Clock
    written: DayOf
    """Files that are deleted or overwritten since are counted by when they were read."""
    quarantined: ByFile = field(default_factory=dict)
    """How many bad lines of files wait in quarantine, by key and by the entry that read them."""

    def over(
        self, source: SourceSettings, prefix: str, collect: Callable[[], Collected]
    ) -> tuple[Collected, tuple[SkipSummary, ...]]:
        """Tell a collector of every file of a source whose path begins with a prefix.

        Also return the names that cannot be read. If the store turns out to list names in no
        order, all is told once more, to another collector.
        """
        lister = self.listers[source.name]
        place = self.open_reader(source_location(source))

        def look() -> tuple[Collected, tuple[SkipSummary, ...]]:
            collected = collect()
            scan = self._scan(lister, place)
            lines = WaitingLines(self.quarantined)
            life = Lifecycle(
                source=source,
                ledger=self.history,
                progress=self.progress,
                partition=partitions_of(lister),
                written=self.written,
            )
            walk = _Walk(
                survey=self, lister=lister, scan=scan, life=life, prefix=prefix, lines=lines
            )
            for one in walk.files(place):
                collected.add(one)
            return collected, scan.finding(()).unread

        return lister.lister.attempt(look)

    def _scan(self, lister: SourceLister, place: Reader) -> Scan:
        now, name = self.clock.now(), lister.source.name
        since = None
        if lister.source.lookback is not None and self.store is not None:
            since = self.history.first_read(name, now=now)
        context = DiscoveryContext(
            store=place,
            lookup=lambda _key: Before(),
            unfinished=self.history.unfinished,
            since=since,
            now=now,
        )
        return lister.scan(context, sweep=True)


@dataclass(slots=True, kw_only=True)
class _Walk:
    """One look at one source."""

    survey: Survey
    lister: SourceLister
    scan: Scan
    life: Lifecycle
    prefix: str
    lines: WaitingLines
    odd: list[str] = field(default_factory=list)
    """Names that could not be read: what is below them is not known to be gone."""
    sought: set[str] = field(default_factory=set)
    """Keys of files that are not done and were not listed so far."""
    told: set[str] = field(default_factory=set)
    """Keys of files whose earlier objects were told."""

    def files(self, place: Reader) -> Iterator[FileStanding]:
        """Yield how each file stands, after what was read under its name before."""
        history = self.survey.history
        for one in self._now(place):
            key = one.key
            has_more = key in history.earlier or key in history.undecided.files
            if has_more and key not in self.told:
                self.told.add(key)
                yield from (self._with_bad_lines(each) for each in self.life.earlier(key))
            yield self._with_bad_lines(one)

    def _with_bad_lines(self, one: FileStanding) -> FileStanding:
        lines = self.lines.of(one)
        return replace(one, quarantined_lines=sum(lines.values())) if lines else one

    def _now(self, place: Reader) -> Iterator[FileStanding]:
        """Yield how each file stands, those that are no longer there in between."""
        plan = self._plan()
        start = f"{self.lister.source.name}:{self.prefix}"
        unfinished = self.survey.history.unfinished
        self.sought = {key for key in unfinished if key.startswith(start)}
        survey = self.survey
        known = known_between(
            survey.store, survey.settings.name, survey.history, start, start + LAST
        )
        known_next = next(known, None)
        listing = self.lister.lister.files(place, plan, self._guide(), left_out=lambda _facts: None)
        for facts in listing:
            if not facts.path.startswith(self.prefix):
                continue
            key = f"{self.lister.source.name}:{facts.path}"
            while known_next is not None and known_next.key < key:
                yield from self._gone(known_next, plan)
                known_next = next(known, None)
            done = None
            if known_next is not None and known_next.key == key:
                done, known_next = known_next, next(known, None)
            yield from self._listed(facts, key, done)
        while known_next is not None:
            yield from self._gone(known_next, plan)
            known_next = next(known, None)
        yield from self._unfinished(plan)

    def _plan(self) -> ListingPlan:
        plan = self.lister.sweep_plan(self.scan.context.now)
        if not self.prefix:
            return plan
        (whole,) = plan.ranges("")
        below = replace(whole, after=max(whole.after, self.prefix[:-1]), until=self.prefix + LAST)
        return replace(plan, ranges=lambda _root: [below])

    def _guide(self) -> Guide:
        guide = self.scan.guide()

        def passes(path: str, oddity: Oddity) -> None:
            guide.passes(path, oddity)
            self.odd.append(path)

        return replace(guide, passes=passes)

    def _listed(
        self, facts: ObjectFacts, key: str, done: IngestedFile | None
    ) -> Iterator[FileStanding]:
        """Yield the standing of a listed file, if it is one of the source's."""
        self.sought.discard(key)
        files = self.scan.file_filter
        if not files.is_ours(facts):
            return
        before = self.life.before(key, done)
        decision = files.consider(facts, before)
        if decision is Decision.NO_FILE:
            return
        known = before.unfinished
        loses_rest = known is not None and files.loses_rest(facts, known)
        for one in self.life.listed(facts, before, decision, loses_rest=loses_rest):
            is_ignored = self.lister.source.on_change is OnChange.IGNORE and known is None
            if one.state is FileState.CHANGED and is_ignored and one.reason != NOT_APPLIED:
                continue  # The object that has its name now is not counted.
            yield one

    def _gone(self, done: IngestedFile, plan: ListingPlan) -> Iterator[FileStanding]:
        """Yield a file that is done and was not listed, unless the listing left it out."""
        if self.life.before(done.key, done).finished is not None and self._would_be_listed(
            done.key.partition(":")[2], plan
        ):
            yield from self.life.done_and_gone(done)

    def _unfinished(self, plan: ListingPlan) -> Iterator[FileStanding]:
        """Yield the files that are not done and were not listed."""
        for key in sorted(self.sought):
            known = self.survey.history.unfinished[key]
            if self._would_be_listed(known.record.path, plan):
                yield self.life.unfinished_and_gone(known)

    def _would_be_listed(self, path: str, plan: ListingPlan) -> bool:
        since = self.scan.file_filter.since
        return (
            why_not_ours(path, self.lister.source) is None
            and plan.wanted(path)
            and (since is None or since.holds(path, self.scan.context.now))
            and not any(path.startswith(one) for one in self.odd)
        )


def partitions_of(lister: SourceLister) -> Callable[[str], str | None]:
    """Return the question which partition a path names; None if it names none."""

    def ask(path: str) -> str | None:
        try:
            values = partition_of(path, lister.template, lister.partition_fields)
        except PartitionUnknown:
            return None
        return folder(values) or None

    return ask
