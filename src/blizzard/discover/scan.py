"""One listing of a source in progress, and the state from which it resumes.

A listing that has filled a batch stops, and a later one resumes it (`ListingState`): with the open
listing or, if that is used up or broken, with the remaining ranges.
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
from blizzard.model.source.file import IngestedFile, Recorded, UnfinishedFile
from blizzard.model.source.partly_read import is_partly_read, partial_file_gone, settled
from lakebed.documents.records import SourceRecord
from lakebed.listing.sort import ListingRules, NameFault
from lakebed.listing.watermark import ListingPlan, Range
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader

REASONS = {
    NameFault.NAME: Reason.UNUSABLE_NAME,
    NameFault.LINK: Reason.LINK,
    NameFault.UNREADABLE: Reason.UNREADABLE,
    NameFault.MARKER: Reason.FOLDER_MARKER,
}


JournalLookup = Callable[[str], Recorded]
"""Returns the journal's state of a source file by key; called in name order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryContext:
    """The store, the journal and the time of a listing."""

    store: Reader
    lookup: JournalLookup
    unfinished: Mapping[str, UnfinishedFile]
    since: datetime | None = None
    """When the source was first read; None if never or irrelevant."""
    tried: frozenset[str] = frozenset()
    """Keys that have failed in this run and must not be tried again (with `--once`)."""
    now: datetime
    ahead: timedelta = timedelta(0)
    """By how much our clock is known to be ahead of the store's."""


@dataclass(slots=True, kw_only=True)
class Scan:
    """One listing of a source in progress."""

    source: SourceSettings
    context: DiscoveryContext
    file_filter: FileFilter
    cursor_builder: CursorBuilder
    sought: set[str] = field(default_factory=set)
    """Unfinished files that were not listed so far."""

    def over(self, listing: Iterator[ObjectFacts], *, stops: bool = False) -> ObjectFacts | None:
        """Decide on listed files in order; with `stops`, return the first one beyond the batch."""
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
        """Count a listed file beyond the sweep horizon."""
        self.file_filter.leave(Reason.BEYOND_HORIZON, facts)

    def one_by_one(self, paths: list[str]) -> None:
        """Check files individually; ignore missing ones."""
        for path in paths:
            facts = self.context.store.head(path)
            if facts is not None and self.file_filter.is_ours(facts):
                self.file_filter.consider(facts, self.context.lookup(self._key(path)))

    def consider_hinted(self, facts: ObjectFacts, before: Recorded) -> Decision:
        """Decide on a hinted file without moving any position."""
        decision = self.file_filter.consider(facts, before)
        if decision is Decision.TAKE:
            self._takes(facts, self.context.now.timestamp())
        return decision

    def guide(self, counts: Callable[[], FileFilter] | None = None) -> ListingRules:
        """Return the listing's guide; `counts` returns the filter that counts skipped names."""
        source = self.source
        counts = counts or (lambda: self.file_filter)

        def enters(folder: str) -> bool:
            reason = why_not_below(folder, source)
            if reason is not None:
                counts().skip(f"{folder}/", reason)
            return reason is None

        return ListingRules(
            skip=lambda path, fault: counts().skip(path, REASONS[fault]),
            enters=enters,
            lists=lambda path: why_not_ours(path, source) is None,
        )

    def finding(self, amiss: tuple[SkipSummary, ...], *, stopped: bool = False) -> Finding:
        """Return the result; files that a stopped sweep has not reached are not gone."""
        most = self.source.max_files_per_batch
        sought = [] if stopped else sorted(self.sought)
        missing = [self.context.unfinished[self._key(path)].record for path in sought[:most]]
        self.sought.difference_update(record.path for record in missing)
        finding = self.file_filter.finding()
        swept = self.cursor_builder.sweep and not stopped and not self.sought
        if swept:
            amiss = tuple(one for one in finding.not_taken if one.reason in AMISS)
        failing = (partial_file_gone(record) for record in missing if is_partly_read(record))
        return replace(
            finding,
            misplaced=(*finding.misplaced, *failing),
            gone=tuple(gone(record) for record in missing if not is_partly_read(record)),
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
            # A changed object is compared with the ingested one each time.
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
        """Return when a file arrived: when first seen or, in a sweep, its modification time.

        A sweep may find old files. If the store's clock is ahead, they seem younger, which costs a
        little and loses nothing.
        """
        if seen is not None:
            return seen.arrived
        now = self.context.now.timestamp()
        return min(facts.modified.timestamp(), now) if self.cursor_builder.sweep else now

    def _key(self, path: str) -> str:
        return f"{self.source.name}:{path}"


@dataclass(slots=True, kw_only=True)
class OpenListing:
    """A listing that can be resumed where it stopped."""

    lister: IncrementalLister
    plan: ListingPlan
    ranges: list[Range]
    """The remaining ranges; the first one continues after `_after`."""
    scan: Scan
    """The current scan, which counts skipped names."""
    _after: str | None = None
    _files: Iterator[ObjectFacts] | None = None
    _beyond: ObjectFacts | None = None

    def files(self) -> Iterator[ObjectFacts]:
        """Yield the remaining files."""
        if self._files is None:
            self._files = self._all()
        beyond, self._beyond = self._beyond, None
        if beyond is not None:
            yield beyond
        # `yield from` would close the listing together with the stopped scan.
        for facts in self._files:  # noqa: UP028
            yield facts

    def stop(self, beyond: ObjectFacts) -> tuple[Range, ...]:
        """Put back the first remaining file; return the remaining ranges."""
        self._beyond = beyond
        first, *others = self.ranges
        return (first if self._after is None else replace(first, after=self._after), *others)

    def _all(self) -> Iterator[ObjectFacts]:
        # After resuming, `self.scan` is another scan.
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
class ListingState:
    """The state from which a listing resumes once the batch that it filled is journaled."""

    builder: CursorBuilder
    ranges: tuple[Range, ...]
    """The remaining ranges."""
    sought: frozenset[str] = frozenset()
    """Unfinished files that were not listed so far."""
    tally: SkipTally = field(default_factory=SkipTally)
    young: Mapping[str, tuple[ObjectFacts, datetime]] = field(default_factory=dict)
    began: float
    """When the listing began; later arrivals before its position are left to the next sweep."""
    reached: str = ""
    """The position of the sweep that this one replaced."""
    sorts: bool = False
    """Whether the names were sorted, see `IncrementalLister.sorts`."""
    unsettled: frozenset[str] = frozenset()
    """Files found that no entry names; they are checked individually."""
    listing: list[OpenListing] = field(default_factory=list)
    """The open listing, unless it was already resumed."""

    @property
    def position(self) -> str:
        """Return the name after which a sweep resumes."""
        return self.ranges[0].after if self.ranges else ""

    def lists(self, path: str) -> bool:
        """Whether a name is in the remaining ranges."""
        return any(
            (not each.prefix or path.startswith(f"{each.prefix}/"))
            and each.after < path
            and (each.until is None or path <= each.until)
            for each in self.ranges
        )

    def listing_for(self, scan: Scan, lister: IncrementalLister, plan: ListingPlan) -> OpenListing:
        """Return the open listing, or a new one of the remaining ranges."""
        try:
            listing = self.listing.pop()
        except IndexError:
            return OpenListing(lister=lister, plan=plan, ranges=list(self.ranges), scan=scan)
        listing.scan = scan
        return listing


def gone(record: SourceRecord) -> SourceRecord:
    """Return the record of an unfinished file that has disappeared. Pure.

    It counts no lines, since earlier entries have counted what was read.
    """
    return replace(settled(record), gone=True)
