"""A look at every file of a source, and at those that are no longer there. Read-only.

The listing and the names that the journal knows come in the same order, so they are gone through
side by side: each file is met once, and neither of the two is held in memory.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from blizzard.answers.known_names import known_between, to_be_replaced
from blizzard.answers.lifecycle import (
    NOT_APPLIED,
    ByFile,
    FileStanding,
    FileState,
    Progress,
    WaitingLines,
    has_a_part_read,
    last_entry,
    of_deleted,
    state_of,
)
from blizzard.discover.filter import Decision, is_same, same_object
from blizzard.discover.lister import SourceLister
from blizzard.discover.names import PartitionUnknown, partition_of, why_not_ours
from blizzard.discover.scan import Scan
from blizzard.discover.skip_reason import SkipSummary
from blizzard.journal.ledger import Before, Ledger
from blizzard.journal.standings import Undecided
from blizzard.model.files import IngestedFile, UnfinishedFile
from blizzard.model.locations import OpenReader, source_location
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.model.source.part_way import ChangedPartWay, is_part_way, lacks_its_object
from lakebed.clock import Clock
from lakebed.listing.incremental import ListingPlan
from lakebed.listing.sort import LAST, Guide, Oddity
from lakebed.partition import folder
from lakebed.storage.store import ObjectFacts, Reader
from lakebed.types import OnChange


class Collector(Protocol):
    """What is told of each file."""

    def add(self, one: FileStanding, /) -> object:
        """Take notice of a file."""
        ...


Collected = TypeVar("Collected", bound=Collector)
DayOf = Callable[[int | None], datetime | None]
"""Answers when about an entry was written; None where that is not known."""


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
            walk = _Walk(survey=self, lister=lister, scan=scan, prefix=prefix, lines=lines)
            for one in walk.files(place):
                collected.add(one)
            return collected, scan.finding(()).unread

        return lister.lister.attempt(look)

    def _scan(self, lister: SourceLister, place: Reader) -> Scan:
        now, name = self.clock.now(), lister.source.name
        since = None
        if lister.source.lookback is not None and self.store is not None:
            since = self.history.first_read(name, now=now)
        return lister.scan(
            place,
            lambda _key: Before(),
            unfinished=self.history.unfinished,
            began=lister.began(since, now),
            now=now,
            sweep=True,
        )


def _landed(known: UnfinishedFile) -> datetime:
    """Return when a file landed that is not done or, where no entry says it, when it failed."""
    written = known.record.modified
    if written is not None:
        return datetime.fromtimestamp(written / 1000, UTC)
    return known.since or known.at


@dataclass(slots=True, kw_only=True)
class _Walk:
    """One look at one source."""

    survey: Survey
    lister: SourceLister
    scan: Scan
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
                yield from (self._with_bad_lines(each) for each in self._earlier(key))
            yield self._with_bad_lines(one)

    def _with_bad_lines(self, one: FileStanding) -> FileStanding:
        lines = self.lines.of(one)
        return replace(one, quarantined_lines=sum(lines.values())) if lines else one

    def _earlier(self, key: str) -> Iterator[FileStanding]:
        """Yield the objects whose rows are in the table beside those of what has their name."""
        history = self.survey.history
        for each in history.earlier.get(key, ()):
            one = self._read(each.file, overwritten=True)
            if each.reason is None:
                yield one
            else:
                is_in = one.state is FileState.IN_TABLE
                state = FileState.DISCARDED if is_in else one.state
                yield replace(one, state=state, reason=each.reason, in_part=True)
        yield from (self._read(each, overwritten=True) for each in to_be_replaced(history, key))

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
        plan = self.lister.sweep_plan(self.scan.now)
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
        """Yield how a listed file stands, if it is one of the source's."""
        self.sought.discard(key)
        if not self.scan.file_filter.is_ours(facts):
            return
        unfinished = self.survey.history.unfinished.get(key)
        if unfinished is not None and unfinished.record.redo:
            done = None  # The files with its rows are gone: it is to be read again.
        before = Before(unfinished=unfinished, finished=done)
        decision = self.scan.file_filter.consider(facts, before)
        if decision is Decision.NO_FILE:
            return
        undone = self._not_applied(key)
        if undone is not None and is_same(undone.after, facts) and not self._is_read(decision):
            yield from self._not_in_place(undone, done, at=facts.modified)
            return
        read = tuple(self._read_before(facts, before, decision))
        yield from read
        if read and unfinished is None and self.lister.source.on_change is OnChange.IGNORE:
            return  # Whatever has its name now is nothing to anybody.
        state, entry, reason = self._state(facts, before, decision)
        yield FileStanding(
            source=self.lister.source.name,
            path=facts.path,
            state=state,
            at=facts.modified,
            size=facts.size,
            entry=entry,
            partition=self._partition(facts.path),
            reason=reason,
            in_part=not read
            and done is None
            and unfinished is not None
            and has_a_part_read(unfinished),
        )

    def _read_before(
        self, facts: ObjectFacts, before: Before, decision: Decision
    ) -> Iterator[FileStanding]:
        """Yield what was read under a name, as the object that it was, and counts by itself."""
        known, done = before.unfinished, before.finished
        if done is not None and not is_same(done, facts) and self._is_in(done):
            yield self._read(done, overwritten=True)
        if known is not None and self._is_over(facts, known, decision):
            yield replace(self._of_deleted(known), deleted=False, overwritten=True)

    def _state(
        self, facts: ObjectFacts, before: Before, decision: Decision
    ) -> tuple[FileState, int | None, str | None]:
        """Return how a listed object stands, as the next run finds it."""
        state, entry, reason = state_of(facts, before, decision, self.survey.progress)
        known, done = before.unfinished, before.finished
        if known is None or (done is not None and is_same(done, facts)):
            return state, entry, reason
        if self.scan.file_filter.loses_rest(facts, known):
            return FileState.FAILED, entry, ChangedPartWay.code
        if decision is Decision.TAKE and lacks_its_object(known.record):
            return FileState.WAITING, entry, None  # Its rest is read, or all of it.
        return state, entry, reason

    def _gone(self, done: IngestedFile, plan: ListingPlan) -> Iterator[FileStanding]:
        """Yield a file that is done and was not listed, unless the listing left it out."""
        known = self.survey.history.unfinished.get(done.key)
        if known is not None and known.record.redo:
            return  # The files with its rows are gone: it was to be read again.
        if not self._would_be_listed(done.key.partition(":")[2], plan):
            return
        undone = self._not_applied(done.key)
        if undone is None:
            yield self._read(done, deleted=True)
        else:
            at = self.survey.written(undone.entry)
            yield from self._not_in_place(undone, done, at=at, deleted=True)

    def _not_applied(self, key: str) -> Undecided | None:
        """Return the entry by which rows of a file were to come in the place of others in vain."""
        one = self.survey.history.undecided.of(key)
        is_it = one is not None and one.not_applied and key not in self.survey.history.unfinished
        return one if is_it else None

    def _is_in(self, done: IngestedFile) -> bool:
        """Whether a file was read by an entry that has not been passed over."""
        return done.entry not in self.survey.progress.passed_over

    def _is_read(self, decision: Decision) -> bool:
        """Whether new content is read beside the old, which leaves nothing to be put in place."""
        return decision is Decision.TAKE and self.lister.source.on_change is OnChange.REINGEST

    def _not_in_place(
        self,
        undone: Undecided,
        done: IngestedFile | None,
        *,
        at: datetime | None,
        deleted: bool = False,
    ) -> Iterator[FileStanding]:
        """Yield what is in the table of a file, and its new content, which is not."""
        if done is not None and self._is_in(done):
            yield self._read(done, overwritten=True)
        path = undone.after.key.partition(":")[2]
        yield FileStanding(
            source=self.lister.source.name,
            path=path,
            state=FileState.CHANGED,
            at=at,
            size=undone.after.size,
            entry=undone.entry,
            partition=self._partition(path),
            reason=NOT_APPLIED,
            deleted=deleted,
        )

    def _read(
        self, done: IngestedFile, *, deleted: bool = False, overwritten: bool = False
    ) -> FileStanding:
        """Return how a file stands that was read, and is not in its source as it was."""
        path = done.key.partition(":")[2]
        return FileStanding(
            source=self.lister.source.name,
            path=path,
            state=self.survey.progress.of(done),
            at=self.survey.written(done.entry),
            size=done.size,
            entry=done.entry,
            partition=self._partition(path),
            deleted=deleted,
            overwritten=overwritten,
        )

    def _unfinished(self, plan: ListingPlan) -> Iterator[FileStanding]:
        """Yield the files that are not done and were not listed."""
        for key in sorted(self.sought):
            known = self.survey.history.unfinished[key]
            if self._would_be_listed(known.record.path, plan):
                yield self._of_deleted(known)

    def _is_over(self, facts: ObjectFacts, known: UnfinishedFile, decision: Decision) -> bool:
        """Whether the rest of a file was given up, and another object is read under its name."""
        record = known.record
        is_given_up = record.discarded and is_part_way(record) and not same_object(record, facts)
        is_cut = self.scan.file_filter.loses_rest(facts, known)
        return is_given_up and not is_cut and decision is not Decision.DONE

    def _of_deleted(self, known: UnfinishedFile) -> FileStanding:
        state, reason = of_deleted(known, self.survey.progress)
        return FileStanding(
            source=self.lister.source.name,
            path=known.record.path,
            state=state,
            at=_landed(known),
            size=known.record.size,
            entry=last_entry(known),
            partition=self._partition(known.record.path),
            reason=reason,
            deleted=True,
            in_part=has_a_part_read(known),
        )

    def _would_be_listed(self, path: str, plan: ListingPlan) -> bool:
        since = self.scan.file_filter.since
        return (
            why_not_ours(path, self.lister.source) is None
            and plan.wanted(path)
            and (since is None or since.holds(path, self.scan.now))
            and not any(path.startswith(one) for one in self.odd)
        )

    def _partition(self, path: str) -> str | None:
        try:
            values = partition_of(path, self.lister.template, self.lister.partition_fields)
        except PartitionUnknown:
            return None
        return folder(values) or None
