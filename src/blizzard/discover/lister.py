"""List a source repeatedly: compare with the journal, decide, and remember the position.

An incomplete listing fails as a whole: nothing is taken, and no position moves. Single files can be
checked by the same rules without listing the rest.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from blizzard.discover.cursor import CursorBuilder, ListingCursor
from blizzard.discover.filter import FileFilter, bases_of, is_due
from blizzard.discover.finding import Finding, SkipSummary, why_not_ours
from blizzard.discover.scan import DiscoveryContext, ListingState, Scan
from blizzard.model.event_time import from_path
from blizzard.model.settings import ListingLimits, PipelineSettings, SourceSettings
from blizzard.model.source.file import UnfinishedFile
from blizzard.model.source.partly_read import PartialFileGone, is_traced
from lakebed.columns.schema import Field
from lakebed.documents.records import FailureStage, SourceRecord
from lakebed.errors import StoreDenied
from lakebed.listing.watermark import ListingPlan, Range, sweep_is_due
from lakebed.partition import Template, table_schema
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.options import ObjectFacts

MOST_HEADS = 100
"""Due files that are checked individually; with more, the source is swept."""
SKIPPED = 1000
"""Names of an old folder that are read before the listing jumps past it."""


@dataclass(slots=True, kw_only=True)
class SourceLister:
    """Lists one source, and remembers where the next listing may begin."""

    source: SourceSettings
    template: Template | None
    partition_fields: Mapping[str, Field]
    bases: Mapping[FailureStage, str] = field(default_factory=dict)
    """By stage, a digest of the relevant settings."""
    limits: ListingLimits = field(default_factory=ListingLimits)
    _cursor: ListingCursor = field(default_factory=ListingCursor)
    _young: dict[str, tuple[ObjectFacts, datetime]] = field(default_factory=dict)
    _amiss: tuple[SkipSummary, ...] = ()
    lister: IncrementalLister = field(default_factory=IncrementalLister)
    _stopped: ListingState | None = None
    """Where the last listing stopped; None if it completed."""
    _from: ListingState | None = None
    """Where a stopped listing had begun or resumed."""
    _began: datetime | None = None
    """When this lister first listed the source, needed before a batch is journaled."""

    def discover(
        self,
        context: DiscoveryContext,
        *,
        open_work: Collection[str] | None = None,
        whole: bool = False,
    ) -> Finding:
        """List the source: by a sweep if one is due, else by a quick listing.

        A listing that has filled a batch stops, and the next call resumes it. `open_work` holds the
        keys that the last call found and no entry names yet: a few are checked individually; if
        they are many or unknown, the last call is repeated. With `whole`, all names are listed and
        those beyond the batch are counted.
        """
        name = f"{self.source.name}:"
        unsettled = None if open_work is None else {key.removeprefix(name) for key in open_work}
        return self.lister.attempt(lambda: self._discover(context, unsettled, whole=whole))

    def _discover(
        self, context: DiscoveryContext, unsettled: set[str] | None, *, whole: bool
    ) -> Finding:
        now, unfinished = context.now, context.unfinished
        began = self._since(context)
        due = self._due(context)
        before = self._goes_on(unsettled)
        state = self._state(before, due, unfinished, now)
        sweep = state.builder.sweep
        scan = self.scan(context, sweep=sweep, state=state)
        scan.sought |= state.sought & self._sought(unfinished, now)
        if state is before:
            alone = self._to_check(state, due)
            # While a backlog is read, retried files take at most half of a batch.
            scan.one_by_one(alone[: self._most_heads])
            scan.file_filter.left_over += len(alone[self._most_heads :])
        elif not sweep:
            scan.one_by_one(self._to_check(state, due))
        plan = self.sweep_plan(now) if sweep else ListingPlan(ranges=lambda _root: ())
        listing = state.listing_for(scan, self.lister, plan)
        beyond = scan.over(listing.files(), stops=not whole)
        finding = scan.finding(self._amiss, stopped=beyond is not None)
        self._amiss, self._began = finding.amiss, began
        if beyond is not None or finding.gone_left_over:
            self._from = state
            self._stopped = replace(
                state,
                builder=scan.cursor_builder,
                ranges=() if beyond is None else listing.stop(beyond),
                sought=frozenset(scan.sought),
                tally=scan.file_filter.tally,
                young=scan.file_filter.young,
                listing=[listing],
            )
        else:
            self._from = self._stopped = None
            self._cursor = scan.cursor_builder.end(state.began, now.timestamp())
            self._young = scan.file_filter.young
        return finding

    def _state(
        self,
        before: ListingState | None,
        due: list[str],
        unfinished: Mapping[str, UnfinishedFile],
        now: datetime,
    ) -> ListingState:
        """Return the state to resume from, or a new one."""
        if before is None:
            return self._begin(due, unfinished, now)
        if before.sorts is not self.lister.sorts:
            # If names are unsorted, some before the position may not have been listed.
            return self._begin(due, unfinished, now, sweep=True)
        if self._is_overdue(before, now):
            return self._begin(due, unfinished, now, sweep=True, reached=before.position)
        return before

    def _goes_on(self, unsettled: Collection[str] | None) -> ListingState | None:
        """Return the state to resume from; None to begin a new listing."""
        if unsettled is None or len(unsettled) > self._most_heads or self._stopped is None:
            return self._from
        return replace(self._stopped, unsettled=frozenset(unsettled))

    def _is_overdue(self, state: ListingState, now: datetime) -> bool:
        """Whether a new sweep replaces a stopped listing.

        A sweep is due every `sweep_interval`, for files that arrived below the position. But each
        sweep must get further than the one before, or the last names would never be reached.
        """
        began = state.began if state.builder.sweep else self._cursor.swept_at
        return (not state.builder.sweep or state.position > state.reached) and sweep_is_due(
            began, now.timestamp(), every=self.source.sweep_interval
        )

    def _begin(
        self,
        due: list[str],
        unfinished: Mapping[str, UnfinishedFile],
        now: datetime,
        *,
        sweep: bool = False,
        reached: str = "",
    ) -> ListingState:
        """Return the state of a new listing: a sweep if one is due, or a quick listing."""
        sweep = (
            sweep
            or self._cursor.sweep_is_due(
                now.timestamp(),
                interval=self.source.sweep_interval,
                poll_interval=self.source.poll_interval,
            )
            or len(due) > MOST_HEADS
        )
        # Computed only if used: for ten thousand folders this takes a minute.
        ranges = [] if sweep else self._cursor.ranges()
        sweep = sweep or len(ranges) > self.limits.ranges
        return ListingState(
            builder=self._builder(now, sweep=sweep),
            ranges=tuple(self.sweep_plan(now).ranges("") if sweep else ranges),
            sought=frozenset(self._sought(unfinished, now)) if sweep else frozenset(),
            began=now.timestamp(),
            reached=reached,
            sorts=self.lister.sorts,
        )

    def _to_check(self, state: ListingState, due: list[str]) -> list[str]:
        """Return the files to check individually, since the listing does not reach them."""
        return [
            path
            for path in dict.fromkeys((*sorted(state.unsettled), *due))
            if not state.lists(path) and why_not_ours(path, self.source) is None
        ]

    @property
    def _most_heads(self) -> int:
        return min(MOST_HEADS, max(1, self.source.max_files_per_batch // 2))

    def _builder(self, now: datetime, *, sweep: bool) -> CursorBuilder:
        return CursorBuilder(
            late_after=now.timestamp() - self.source.late_window,
            before=self._cursor,
            sweep=sweep,
            limits=self.limits,
        )

    def scan(
        self, context: DiscoveryContext, *, sweep: bool, state: ListingState | None = None
    ) -> Scan:
        """Return a scan that begins, or resumes from a state."""
        now, lookback = context.now, self.source.lookback
        state = state or ListingState(
            builder=self._builder(now, sweep=sweep), ranges=(), began=now.timestamp()
        )
        since = None if lookback is None else lookback.counted_from(self._since(context))
        return Scan(
            source=self.source,
            context=context,
            file_filter=FileFilter(
                source=self.source,
                template=self.template,
                partition_fields=self.partition_fields,
                tried=context.tried,
                bases=self.bases,
                first_seen=self._young,
                since=since,
                now=now,
                ahead=context.ahead,
                exists=lambda path: context.store.head(path) is not None,
                young=dict(state.young),
                tally=state.tally.resumed(),
            ),
            cursor_builder=state.builder.resumed(
                now.timestamp() - self.source.late_window, state.unsettled
            ),
        )

    def _since(self, context: DiscoveryContext) -> datetime:
        """Return when the source was first listed."""
        return min(at for at in (context.since, self._began, context.now) if at is not None)

    def remember_young(self, young: Mapping[str, tuple[ObjectFacts, datetime]]) -> None:
        """Record when each file was first seen unchanged, as observed between two listings."""
        self._young = {**self._young, **young}

    def _due(self, context: DiscoveryContext) -> list[str]:
        """Return the files that may be retried now; no range waits for them."""
        return sorted(
            known.record.path
            for key, known in context.unfinished.items()
            if known.record.source == self.source.name
            and key not in context.tried
            and is_due(known, context.now, self.bases)
        )

    def _sought(self, unfinished: Mapping[str, UnfinishedFile], now: datetime) -> set[str]:
        """Return the unfinished files that a sweep would list if they exist."""
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
        """Return the listing of all names within the pattern and the horizon."""
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


def _is_ended(record: SourceRecord) -> bool:
    """Whether a file is already recorded as gone."""
    return record.gone or is_traced(record, PartialFileGone)


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
            limits=settings.sizing.quick_listing,
        )
        for source in settings.sources
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotCheck:
    """Checks single names of one source."""

    lister: SourceLister
    context: DiscoveryContext

    def of(self, path: str) -> Finding:
        """Return the finding of a sweep for one name."""
        scan = self.lister.scan(self.context, sweep=True)
        facts = self._plain(path)
        if facts is None:
            # A listing identifies links, unusable names and folder markers.
            one = Range(prefix="", after=path[:-1], until=path)
            scan.over(facts for facts in self._listed(scan, one) if facts.path == path)
        elif self.lister.sweep_plan(self.context.now).wanted(path):
            scan.over(iter((facts,)))
        else:
            scan.beyond_horizon(facts)
        return scan.finding(())

    def _listed(self, scan: Scan, names: Range) -> Iterator[ObjectFacts]:
        plan = replace(self.lister.sweep_plan(self.context.now), ranges=lambda _root: [names])
        return self.lister.lister.files(
            self.context.store, plan, scan.guide(), left_out=scan.beyond_horizon
        )

    def _plain(self, path: str) -> ObjectFacts | None:
        """Return an object of a bucket; None if only a listing can identify it."""
        if self.context.store.local_root is not None:
            return None
        try:
            return self.context.store.head(path)
        except StoreDenied:
            return None
