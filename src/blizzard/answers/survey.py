"""Every file of a source, present or gone. Read-only.

The listing and the names in the journal come in the same order and are merged in one pass, so
neither is held in memory.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import merge
from itertools import takewhile

from blizzard.answers.answer import NOT_APPLIED, DayOf, FileProgress, FileStanding, FileState
from blizzard.answers.lifecycle import Lifecycle, last_entry
from blizzard.answers.progress import PipelineEvidence
from blizzard.discover.filter import Decision
from blizzard.discover.finding import PartitionUnknown, partition_of, why_not_ours
from blizzard.discover.lister import SourceLister
from blizzard.discover.scan import Scan
from blizzard.journal.ledger import Ledger
from blizzard.journal.segments import merged
from blizzard.model.source.file import IngestedFile, Recorded
from lakebed.layout import folder
from lakebed.listing.sort import LAST, ListingRules, NameFault
from lakebed.listing.watermark import ListingPlan
from lakebed.storage.options import ObjectFacts
from lakebed.types import OnChange

BadLines = dict[int, int]
"""Waiting bad lines of a file, by the entry that read them."""


@dataclass(kw_only=True)
class SourceSurvey:
    """One pass over one source."""

    evidence: PipelineEvidence
    lister: SourceLister
    progress: FileProgress
    written: DayOf
    """Returns when an entry was written: the landing time of deleted and overwritten files."""
    quarantined: Mapping[str, BadLines] = field(default_factory=dict)
    """Waiting bad lines by key and by the entry that read them."""
    prefix: str = ""
    _odd: list[str] = field(default_factory=list)
    """Unreadable names: files below them are not known to be gone."""
    _sought: set[str] = field(default_factory=set)
    """Keys of unfinished files that were not listed so far."""
    _met: set[str] = field(default_factory=set)
    """Keys of files whose earlier objects were yielded."""
    _counted: set[tuple[str, int]] = field(default_factory=set)
    """Keys and entries whose bad lines were counted."""

    @cached_property
    def scan(self) -> Scan:
        """The scan that decides about each listed object."""
        context = self.evidence.context(self.lister.source, lambda _key: Recorded())
        return self.lister.scan(context, sweep=True)

    @cached_property
    def _life(self) -> Lifecycle:
        return Lifecycle(
            source=self.lister.source,
            ledger=self.evidence.history,
            progress=self.progress,
            partition=partitions_of(self.lister),
            written=self.written,
        )

    def files(self) -> Iterator[FileStanding]:
        """Yield the standing of each file, after those of earlier objects of its name."""
        for one in self._now():
            key = one.key
            history = self.evidence.history
            has_more = key in history.earlier or key in history.undecided.files
            if has_more and key not in self._met:
                self._met.add(key)
                yield from map(self._with_bad_lines, self._life.earlier(key))
            yield self._with_bad_lines(one)

    def _with_bad_lines(self, one: FileStanding) -> FileStanding:
        """Add the bad lines of an object: those up to its entry not counted for an earlier one."""
        found = {
            entry: lines
            for entry, lines in self.quarantined.get(one.key, {}).items()
            if (one.entry is None or entry <= one.entry) and (one.key, entry) not in self._counted
        }
        self._counted |= {(one.key, entry) for entry in found}
        return replace(one, quarantined_lines=sum(found.values())) if found else one

    def _now(self) -> Iterator[FileStanding]:
        """Yield the standing of each file in order of names, including files that are gone."""
        plan = self._plan()
        start = f"{self.lister.source.name}:{self.prefix}"
        self._sought = {key for key in self.evidence.history.unfinished if key.startswith(start)}
        known = known_between(self.evidence.history, start, start + LAST)
        known_next = next(known, None)
        listing = self.lister.lister.files(
            self.scan.context.store, plan, self._guide(), left_out=lambda _facts: None
        )
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

    def _guide(self) -> ListingRules:
        guide = self.scan.guide()

        def skip(path: str, fault: NameFault) -> None:
            guide.skip(path, fault)
            self._odd.append(path)

        return replace(guide, skip=skip)

    def _listed(
        self, facts: ObjectFacts, key: str, done: IngestedFile | None
    ) -> Iterator[FileStanding]:
        """Yield the standing of a listed file, if it belongs to the source."""
        self._sought.discard(key)
        files = self.scan.file_filter
        if not files.is_ours(facts):
            return
        before = self._life.before(key, done)
        decision = files.consider(facts, before)
        if decision is Decision.NO_FILE:
            return
        known = before.unfinished
        loses_rest = known is not None and files.loses_rest(facts, known)
        for one in self._life.listed(facts, before, decision, loses_rest=loses_rest):
            is_ignored = self.lister.source.on_change is OnChange.IGNORE and known is None
            if one.state is FileState.CHANGED and is_ignored and one.reason != NOT_APPLIED:
                continue  # With `on_change: ignore` the new object is not counted.
            yield one

    def _gone(self, done: IngestedFile, plan: ListingPlan) -> Iterator[FileStanding]:
        """Yield a finished file that was not listed, unless the listing plan excludes it."""
        if self._life.before(done.key, done).finished is not None and self._would_be_listed(
            done.key.partition(":")[2], plan
        ):
            yield from self._life.done_and_gone(done)

    def _unfinished(self, plan: ListingPlan) -> Iterator[FileStanding]:
        """Yield the unfinished files that were not listed."""
        for key in sorted(self._sought):
            known = self.evidence.history.unfinished[key]
            if self._would_be_listed(known.record.path, plan):
                yield self._life.unfinished_and_gone(known)

    def _would_be_listed(self, path: str, plan: ListingPlan) -> bool:
        since = self.scan.file_filter.since
        return (
            why_not_ours(path, self.lister.source) is None
            and plan.wanted(path)
            and (since is None or since.holds(path, self.scan.context.now))
            and not any(path.startswith(one) for one in self._odd)
        )


def partitions_of(lister: SourceLister) -> Callable[[str], str | None]:
    """Return a function that extracts the partition of a path; None without one."""

    def ask(path: str) -> str | None:
        try:
            values = partition_of(path, lister.template, lister.partition_fields)
        except PartitionUnknown:
            return None
        return folder(values) or None

    return ask


FIRST_OF_ALL, LAST_OF_ALL = -1, 2
"""Precedence of evidence that overrides all other, and that counts only alone."""


def known_between(history: Ledger, start: str, end: str) -> Iterator[IngestedFile]:
    """Yield the finished files between two keys, each as it is in the table."""
    recent = (history.recent[key] for key in sorted(history.recent) if key >= start)
    kept = map(IngestedFile.of, merged(history.segments, start))
    every = merge(
        ((one, 0) for one in recent),
        ((one, 1) for one in kept),
        _undecided(history, start),
        key=_order,
    )
    last = None
    for one, _age in takewhile(lambda each: each[0].key < end, every):
        if one.key >= start and one.key != last:
            yield one
        last = one.key


def _undecided(history: Ledger, start: str) -> Iterator[tuple[IngestedFile, int]]:
    """Yield files of undecided retractions with their precedence.

    New content overrides all else. Rows that are only removed stay until the entry is decided, so
    earlier evidence takes precedence.
    """
    for key in sorted(key for key in history.undecided.files if key >= start):
        one = history.undecided.of(key)
        if one is None:
            continue
        if not one.rejected and not one.after.retracted:
            yield one.after, FIRST_OF_ALL
        elif one.left is None:
            yield one.after, LAST_OF_ALL
        elif not one.rejected:
            yield replace(one.after, entry=last_entry(one.left), retracted=False), LAST_OF_ALL


def _order(each: tuple[IngestedFile, int]) -> tuple[str, int]:
    # Names in memory are newer than the segments, so they come first and win.
    return each[0].key, each[1]
