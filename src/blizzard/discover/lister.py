"""One look after the other at a source: list, compare with the journal, decide, remember where.

A listing that breaks off fails the whole look: nothing is taken, and no position moves.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Protocol

from blizzard.discover.cursor import CursorBuilder, ListingCursor
from blizzard.discover.filter import Decision, FileFilter, is_same
from blizzard.discover.finding import Finding
from blizzard.discover.names import why_not_below, why_not_ours
from blizzard.discover.retry import is_due
from blizzard.discover.skip_reason import Reason, SkipSummary
from blizzard.journal.state import UNKNOWN, Before
from blizzard.model.event_time import from_path
from blizzard.model.failure_basis import bases_of
from blizzard.model.files import IngestedFile, UnfinishedFile
from blizzard.model.limits import LookLimits
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.model.source.part_way import GonePartWay, gone_part_way, is_part_way, is_told, settled
from lakebed.columns.schema import Field
from lakebed.dataclass import dataclass
from lakebed.documents.source_record import SourceRecord, Stage
from lakebed.listing.incremental import ListingPlan, Range
from lakebed.listing.sort import Guide, Oddity
from lakebed.partition import Template, table_schema
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.store import ObjectFacts, Reader

MOST_HEADS = 100
"""Files that are looked at one by one because they are due; beyond that, a sweep is made."""
REASONS = {
    Oddity.NAME: Reason.UNUSABLE_NAME,
    Oddity.LINK: Reason.LINK,
    Oddity.UNREADABLE: Reason.UNREADABLE,
    Oddity.MARKER: Reason.FOLDER_MARKER,
}
SKIPPED = 1000
"""Names of an old folder that are passed over before the listing goes on behind it."""


class JournalLookup(Protocol):
    """What a look asks of the journal."""

    def __call__(self, key: str, /) -> Before:
        """Return what is known of a source file; asked in the order of the names."""
        ...


@dataclass(slots=True, kw_only=True)
class SourceLister:
    """Looks at one source, and remembers between two looks where the next one may begin."""

    source: SourceSettings
    template: Template | None
    partition_fields: Mapping[str, Field]
    bases: Mapping[Stage, str] = field(default_factory=dict)
    """By stage, a digest of the settings that bear on it."""
    limits: LookLimits = field(default_factory=LookLimits)
    _cursor: ListingCursor = field(default_factory=ListingCursor)
    _young: dict[str, tuple[ObjectFacts, datetime]] = field(default_factory=dict)
    _amiss: tuple[SkipSummary, ...] = ()
    lister: IncrementalLister = field(default_factory=IncrementalLister)
    _began: datetime | None = None
    """When this one first looked: before a batch is journaled, nothing else says since when."""

    def look(
        self,
        store: Reader,
        lookup: JournalLookup,
        *,
        unfinished: Mapping[str, UnfinishedFile],
        since: datetime | None,
        tried: frozenset[str],
        now: datetime,
        ahead: timedelta = timedelta(0),
    ) -> Finding:
        """Return what there is to do: by a sweep where one is due, else by a quick look.

        `ahead` is by how much our clock is known to be ahead of a store's.
        """
        return self.lister.attempt(
            lambda: self._look(
                store, lookup, unfinished=unfinished, since=since, tried=tried, now=now, ahead=ahead
            )
        )

    def _look(
        self,
        store: Reader,
        lookup: JournalLookup,
        *,
        unfinished: Mapping[str, UnfinishedFile],
        since: datetime | None,
        tried: frozenset[str],
        now: datetime,
        ahead: timedelta,
    ) -> Finding:
        began = self.began(since, now)
        due = self._due(unfinished, tried, now)
        sweep = (
            self._cursor.sweep_is_due(
                now.timestamp(),
                interval=self.source.sweep_interval,
                poll_interval=self.source.poll_interval,
            )
            or len(due) > MOST_HEADS
        )
        # Only where they are used: of ten thousand folders they take a minute to work out.
        ranges = [] if sweep else self._cursor.ranges()
        sweep = sweep or len(ranges) > self.limits.ranges
        look = self.scan(
            store,
            lookup,
            unfinished=unfinished,
            began=began,
            tried=tried,
            now=now,
            ahead=ahead,
            sweep=sweep,
        )
        if sweep:
            look.sought |= self._sought(unfinished, now)
        plan = self.sweep_plan(now) if sweep else ListingPlan(ranges=lambda _root: ranges)
        look.over(self.lister.files(store, plan, look.guide(), left_out=look.beyond_horizon))
        if not sweep:
            look.one_by_one(due)
        finding = look.finding(self._amiss)
        self._cursor = look.cursor_builder.end(now.timestamp())
        self._young = look.file_filter.young
        self._amiss = finding.amiss
        self._began = began
        return finding

    def scan(
        self,
        store: Reader,
        lookup: JournalLookup,
        *,
        unfinished: Mapping[str, UnfinishedFile],
        began: datetime,
        tried: frozenset[str] = frozenset(),
        now: datetime,
        ahead: timedelta = timedelta(0),
        sweep: bool,
    ) -> "Scan":
        """Return a look that has listed nothing yet; `began` is when the source was first read."""
        lookback = self.source.lookback
        return Scan(
            lister=self,
            store=store,
            lookup=lookup,
            unfinished=unfinished,
            file_filter=FileFilter(
                source=self.source,
                template=self.template,
                partition_fields=self.partition_fields,
                tried=tried,
                bases=self.bases,
                first_seen=self._young,
                since=None if lookback is None else lookback.counted_from(began, now),
                now=now,
                ahead=ahead,
                exists=lambda path: store.head(path) is not None,
            ),
            cursor_builder=CursorBuilder(
                late_after=now.timestamp() - self.source.late_window,
                before=self._cursor,
                sweep=sweep,
                limits=self.limits,
            ),
            now=now,
            sought=set(),
        )

    def began(self, since: datetime | None, now: datetime) -> datetime:
        """Return when the source was first looked at."""
        return min(at for at in (since, self._began, now) if at is not None)

    def remember_young(self, young: Mapping[str, tuple[ObjectFacts, datetime]]) -> None:
        """Remember since when files are as they are that were looked at between two looks."""
        self._young = {**self._young, **young}

    def seen(self, path: str) -> tuple[IngestedFile, float] | None:
        """Return a name that is done as the last look saw it, and when it arrived."""
        found = self._cursor.seen(path)
        return None if found is None else (found.name, found.arrived)

    def _due(
        self, unfinished: Mapping[str, UnfinishedFile], tried: frozenset[str], now: datetime
    ) -> list[str]:
        """Name the files that may be tried again by now; no range waits for them."""
        return sorted(
            known.record.path
            for key, known in unfinished.items()
            if known.record.source == self.source.name
            and key not in tried
            and is_due(known, now, self.bases)
        )

    def _sought(self, unfinished: Mapping[str, UnfinishedFile], now: datetime) -> set[str]:
        """Name the files that are not done and that a sweep comes by, if they are there."""
        pattern, horizon = self.source.pattern, self.source.horizon
        return {
            path
            for known in unfinished.values()
            if known.record.source == self.source.name and not _is_ended(known.record)
            for path in (known.record.path,)
            if (pattern is None or (path.startswith(pattern.start) and path > pattern.after))
            and (horizon is None or horizon.holds(path, now))
        }

    def sweep_plan(self, now: datetime) -> ListingPlan:
        """Return the listing of everything that the pattern can mean and the horizon holds."""
        pattern, horizon = self.source.pattern, self.source.horizon
        whole = Range(
            prefix="",
            after="" if pattern is None else pattern.after,
            until=None if pattern is None else pattern.until,
        )
        return ListingPlan(
            ranges=lambda _root: [whole],
            wanted=lambda path: horizon is None or horizon.holds(path, now),
            skip_after=SKIPPED,
        )


@dataclass(slots=True, kw_only=True)
class Scan:
    """One look under way."""

    lister: SourceLister
    store: Reader
    lookup: JournalLookup
    unfinished: Mapping[str, UnfinishedFile]
    file_filter: FileFilter
    cursor_builder: CursorBuilder
    now: datetime
    sought: set[str]
    """The files that are not done and were not listed so far."""

    def over(self, listing: Iterator[ObjectFacts]) -> None:
        """Go over listed files in their order."""
        sought, is_ours, consider = self.sought, self.file_filter.is_ours, self._consider
        listed = 0
        for facts in listing:
            listed += 1
            if sought:
                sought.discard(facts.path)
            if is_ours(facts):
                consider(facts)
        self.cursor_builder.listed(listed)

    def beyond_horizon(self, facts: ObjectFacts) -> None:
        """Count a listed file that is too old for a sweep to look at."""
        self.file_filter.leave(Reason.BEYOND_HORIZON, facts)

    def one_by_one(self, due: list[str]) -> None:
        """Look at files that no range need list; one that is gone stays as it was left."""
        for path in due:
            facts = self.store.head(path)
            if facts is not None and self.file_filter.is_ours(facts):
                self.file_filter.consider(facts, self.lookup(self._key(path)))

    def consider_hinted(self, facts: ObjectFacts, before: Before) -> Decision:
        """Return what becomes of a file that is looked at by itself; no position moves by it."""
        decision = self.file_filter.consider(facts, before)
        if decision is Decision.TAKE:
            self.cursor_builder.waits(facts.path, is_new=before == Before())
        return decision

    def guide(self) -> Guide:
        """Return what the listing need not go into; whatever it leaves out is counted."""
        source = self.lister.source

        def enters(folder: str) -> bool:
            reason = why_not_below(folder, source)
            if reason is not None:
                self.file_filter.pass_over(f"{folder}/", reason)
            return reason is None

        return Guide(
            passes=lambda path, oddity: self.file_filter.pass_over(path, REASONS[oddity]),
            enters=enters,
            lists=lambda path: why_not_ours(path, source) is None,
        )

    def finding(self, amiss: tuple[SkipSummary, ...]) -> Finding:
        """Return what came of it."""
        source = self.lister.source
        most = source.max_files_per_batch
        missing = [self.unfinished[self._key(path)].record for path in sorted(self.sought)[:most]]
        return self.file_filter.finding(
            late=frozenset(f"{source.name}:{path}" for path in self.cursor_builder.late),
            swept=self.cursor_builder.sweep,
            amiss=amiss,
            gone=tuple(gone(each) for each in missing if not is_part_way(each)),
            failing=tuple(gone_part_way(each) for each in missing if is_part_way(each)),
            gone_left_over=len(self.sought) - len(missing),
        )

    def _consider(self, facts: ObjectFacts) -> None:
        key = self._key(facts.path)
        seen = self.lister.seen(facts.path)
        if seen is not None and key not in self.unfinished and is_same(seen[0], facts):
            self.file_filter.done(facts)
            self.cursor_builder.done(seen[0], facts.path, seen[1])
            return
        before = self.lookup(key)
        decision = self.file_filter.consider(facts, before)
        if decision is Decision.NO_FILE:
            return
        if decision is Decision.DONE:
            # One that is another object now is compared with what is in the table each time.
            name = before.finished or IngestedFile(key=key, size=facts.size, etag=facts.etag)
            self.cursor_builder.done(name, facts.path, self._arrival(facts, seen))
        else:
            is_new = decision is Decision.TAKE and (before is UNKNOWN or before == UNKNOWN)
            self.cursor_builder.waits(facts.path, is_new=is_new)

    def _arrival(self, facts: ObjectFacts, seen: tuple[IngestedFile, float] | None) -> float:
        """Return when a file came: when we first saw it or, at a sweep, when the store says so.

        A sweep sees files that came long ago. A store's clock that is ahead makes them younger
        than they are, which costs a little and loses nothing.
        """
        if seen is not None:
            return seen[1]
        if self.cursor_builder.sweep:
            return min(facts.modified.timestamp(), self.now.timestamp())
        return self.now.timestamp()

    def _key(self, path: str) -> str:
        return f"{self.lister.source.name}:{path}"


def _is_ended(record: SourceRecord) -> bool:
    """Whether the books say already that a file is gone.

    One that is begun fails by that, unless an operator has given up its rest.
    """
    if record.discarded or not is_part_way(record):
        return record.gone
    return is_told(record, GonePartWay)


def gone(record: SourceRecord) -> SourceRecord:
    """Return the record of a file that is not done and not there any more. Pure.

    What was read of it before is in the books already, so it counts no lines.
    """
    return replace(settled(record), gone=True)


def source_listers(settings: PipelineSettings) -> list[SourceLister]:
    """Return a lister for each source, in the order of the sources."""
    sink = settings.sink
    schema = table_schema(settings.schema, sink.template)
    fields = {column.name: column for column in schema.fields}
    template = from_path(sink.template, settings.schema, sink.timestamp_field)
    return [
        SourceLister(
            source=source,
            template=template,
            partition_fields=fields,
            bases=bases_of(settings, source),
            limits=settings.sizing.looks,
        )
        for source in settings.sources
    ]
