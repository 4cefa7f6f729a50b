"""One look at a source under way: what is listed, what is decided, and where it stopped.

A look that has filled a batch stops, and a later one goes on from there (`LookState`): by the
listing that is still open or, where that is used up or broken, by the names that are left.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from blizzard.discover.cursor import CursorBuilder, SeenName
from blizzard.discover.filter import Decision, FileFilter, is_same
from blizzard.discover.finding import (
    AMISS,
    Finding,
    Reason,
    SkipSummary,
    SkipTally,
    why_not_below,
    why_not_ours,
)
from blizzard.model.settings import SourceSettings
from blizzard.model.source.file import Before, IngestedFile, UnfinishedFile
from blizzard.model.source.part_way import gone_part_way, is_part_way, settled
from lakebed.documents.records import SourceRecord
from lakebed.listing.sort import Guide, Oddity
from lakebed.listing.watermark import ListingPlan, Range
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader

REASONS = {
    Oddity.NAME: Reason.UNUSABLE_NAME,
    Oddity.LINK: Reason.LINK,
    Oddity.UNREADABLE: Reason.UNREADABLE,
    Oddity.MARKER: Reason.FOLDER_MARKER,
}


JournalLookup = Callable[[str], Before]
"""Returns what the journal knows of a source file by its key; asked in the order of the names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryContext:
    """What files of a source are compared with: the store, the journal and the time."""

    store: Reader
    lookup: JournalLookup
    unfinished: Mapping[str, UnfinishedFile]
    since: datetime | None = None
    """When the source was first read; None if it never was, or if that does not matter."""
    tried: frozenset[str] = frozenset()
    """Keys that have failed in this run and must not be tried again (with `--once`)."""
    now: datetime
    ahead: timedelta = timedelta(0)
    """By how much our clock is known to be ahead of the store's."""


@dataclass(slots=True, kw_only=True)
class Scan:
    """One listing of a source under way."""

    source: SourceSettings
    context: DiscoveryContext
    file_filter: FileFilter
    cursor_builder: CursorBuilder
    sought: set[str] = field(default_factory=set)
    """The files that are not done and were not listed so far."""

    def over(self, listing: Iterator[ObjectFacts], *, stops: bool = False) -> ObjectFacts | None:
        """Go over listed files in their order; with `stops`, return the first beyond the batch."""
        sought, is_ours, consider = self.sought, self.file_filter.is_ours, self._consider
        listed, beyond = 0, None
        for facts in listing:
            if sought:
                sought.discard(facts.path)
            if is_ours(facts) and consider(facts) is Decision.FULL:
                if stops:
                    beyond = facts
                    break
                self.cursor_builder.waits(facts.path)
            listed += 1
        self.cursor_builder.listed(listed)
        return beyond

    def beyond_horizon(self, facts: ObjectFacts) -> None:
        """Count a listed file that is too old for a sweep to look at."""
        self.file_filter.leave(Reason.BEYOND_HORIZON, facts)

    def one_by_one(self, paths: list[str]) -> None:
        """Look at files that no range need list; one that is gone stays as it was left."""
        for path in paths:
            facts = self.context.store.head(path)
            if facts is not None and self.file_filter.is_ours(facts):
                self.file_filter.consider(facts, self.context.lookup(self._key(path)))

    def consider_hinted(self, facts: ObjectFacts, before: Before) -> Decision:
        """Return what becomes of a file that is looked at by itself; no position moves by it."""
        decision = self.file_filter.consider(facts, before)
        if decision is Decision.TAKE:
            self._takes(facts, self.context.now.timestamp())
        return decision

    def guide(self, counts: Callable[[], FileFilter] | None = None) -> Guide:
        """Return what the listing need not enter; `counts` counts what it leaves out."""
        source = self.source
        counts = counts or (lambda: self.file_filter)

        def enters(folder: str) -> bool:
            reason = why_not_below(folder, source)
            if reason is not None:
                counts().pass_over(f"{folder}/", reason)
            return reason is None

        return Guide(
            passes=lambda path, oddity: counts().pass_over(path, REASONS[oddity]),
            enters=enters,
            lists=lambda path: why_not_ours(path, source) is None,
        )

    def finding(self, amiss: tuple[SkipSummary, ...], *, stopped: bool = False) -> Finding:
        """Return what came of it; what a sweep that stopped has not listed is not gone."""
        most = self.source.max_files_per_batch
        sought = [] if stopped else sorted(self.sought)
        missing = [self.context.unfinished[self._key(path)].record for path in sought[:most]]
        self.sought.difference_update(record.path for record in missing)
        finding = self.file_filter.finding()
        swept = self.cursor_builder.sweep and not stopped and not self.sought
        if swept:
            amiss = tuple(one for one in finding.not_taken if one.reason in AMISS)
        failing = (gone_part_way(record) for record in missing if is_part_way(record))
        return replace(
            finding,
            misplaced=(*finding.misplaced, *failing),
            gone=tuple(gone(record) for record in missing if not is_part_way(record)),
            gone_left_over=len(sought) - len(missing),
            amiss=amiss,
            swept=swept,
        )

    def _consider(self, facts: ObjectFacts) -> Decision:
        key = self._key(facts.path)
        seen = self.cursor_builder.before.seen(facts.path)
        if seen is not None and key not in self.context.unfinished and is_same(seen.name, facts):
            self.file_filter.done(facts)
            self.cursor_builder.done(seen.name, facts.path, seen.arrived)
            return Decision.DONE
        before = self.context.lookup(key)
        decision = self.file_filter.consider(facts, before)
        if decision is Decision.DONE:
            # One that is another object now is compared with what is in the table each time.
            name = before.finished or IngestedFile(key=key, size=facts.size, etag=facts.etag)
            self.cursor_builder.done(name, facts.path, self._arrival(facts, seen))
        elif decision is Decision.TAKE or decision is Decision.FAIL:
            self._takes(facts, self._arrival(facts, seen))
        elif decision is Decision.WAIT:
            self.cursor_builder.waits(facts.path)
        return decision

    def _takes(self, facts: ObjectFacts, arrived: float) -> None:
        name = IngestedFile(key=self._key(facts.path), size=facts.size, etag=facts.etag)
        self.cursor_builder.takes(name, facts.path, arrived)

    def _arrival(self, facts: ObjectFacts, seen: SeenName | None) -> float:
        """Return when a file came: when we first saw it or, at a sweep, when the store says so.

        A sweep sees files that came long ago. A store's clock that is ahead makes them younger
        than they are, which costs a little and loses nothing.
        """
        if seen is not None:
            return seen.arrived
        now = self.context.now.timestamp()
        return min(facts.modified.timestamp(), now) if self.cursor_builder.sweep else now

    def _key(self, path: str) -> str:
        return f"{self.source.name}:{path}"


@dataclass(slots=True, kw_only=True)
class OpenListing:
    """The listing of a look, which goes on where the look stopped."""

    lister: IncrementalLister
    plan: ListingPlan
    ranges: list[Range]
    """What is left to list; of the first range, the names after `_after`."""
    scan: Scan
    """The look that counts what the listing leaves out."""
    _after: str | None = None
    _files: Iterator[ObjectFacts] | None = None
    _beyond: ObjectFacts | None = None

    def files(self) -> Iterator[ObjectFacts]:
        """Yield the files that are left."""
        if self._files is None:
            self._files = self._all()
        beyond, self._beyond = self._beyond, None
        if beyond is not None:
            yield beyond
        # `yield from` would close the listing together with the look that stops.
        for facts in self._files:  # noqa: UP028
            yield facts

    def stop(self, beyond: ObjectFacts) -> tuple[Range, ...]:
        """Put back a file, the first one that is left; return the ranges that are left."""
        self._beyond = beyond
        first, *others = self.ranges
        return (first if self._after is None else replace(first, after=self._after), *others)

    def _all(self) -> Iterator[ObjectFacts]:
        # The scan is another one once the listing is resumed.
        guide = self.scan.guide(lambda: self.scan.file_filter)

        def left_out(facts: ObjectFacts) -> None:
            self.scan.beyond_horizon(facts)

        while self.ranges:
            one = replace(self.plan, ranges=lambda _root: self.ranges[:1])
            store = self.scan.context.store
            for facts in self.lister.files(store, one, guide, left_out=left_out):
                yield facts
                self._after = facts.path
            self.ranges.pop(0)
            self._after = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookState:
    """How far a look has come: where it goes on once the batch that it filled is journaled."""

    builder: CursorBuilder
    ranges: tuple[Range, ...]
    """What is left to list."""
    sought: frozenset[str] = frozenset()
    """The files that are not done and were not listed so far."""
    tally: SkipTally = field(default_factory=SkipTally)
    young: Mapping[str, tuple[ObjectFacts, datetime]] = field(default_factory=dict)
    began: float
    """When the look began: what lands before its position later on is for the next sweep."""
    reached: str = ""
    """How far the sweep before had come when this one took its place."""
    sorts: bool = False
    """Whether the names were sorted, as `IncrementalLister.sorts` says."""
    unsettled: frozenset[str] = frozenset()
    """Files that it has found and that no entry names: they are looked at one by one."""
    listing: list[OpenListing] = field(default_factory=list)
    """The listing that is still open, unless another look has gone on with it."""

    @property
    def position(self) -> str:
        """Return the name after which a sweep goes on."""
        return self.ranges[0].after if self.ranges else ""

    def lists(self, path: str) -> bool:
        """Whether a name is still to be listed."""
        return any(
            (not each.prefix or path.startswith(f"{each.prefix}/"))
            and each.after < path
            and (each.until is None or path <= each.until)
            for each in self.ranges
        )

    def listing_for(self, scan: Scan, lister: IncrementalLister, plan: ListingPlan) -> OpenListing:
        """Return the open listing, or a new one of what is left."""
        try:
            listing = self.listing.pop()
        except IndexError:
            return OpenListing(lister=lister, plan=plan, ranges=list(self.ranges), scan=scan)
        listing.scan = scan
        return listing


def gone(record: SourceRecord) -> SourceRecord:
    """Return the record of a file that is not done and not there any more. Pure.

    What was read of it before is in the books already, so it counts no lines.
    """
    return replace(settled(record), gone=True)
