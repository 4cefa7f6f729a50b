"""Observe the pipelines and tables of one configuration on request, for both programs. Read-only.

Results are cached. Journals and logs are read in a few threads; listing sources and sizing tables
have a thread of their own, so a slow listing delays nothing else. Anything not known in time is
marked unknown.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from blizzard.answers.answer import Problem
from blizzard.answers.file_counts import DayOrPartition, Reconciliation
from blizzard.answers.problems import of_error
from blizzard.answers.report import Question, Reconciler
from blizzard.model.stores import OpenReader, open_reader
from lakebed.clock import Clock
from lakebed.deltalog.versions import Commit
from lakebed.errors import LakeError
from lakebed.telemetry.health import PartKind
from liveview.answer_cache import AnswerCache, Busy, CachedAnswer, Timeouts
from liveview.followers import (
    DocumentWindow,
    OpenTable,
    PipelineFollower,
    TableFollower,
    open_table,
)
from liveview.headline import overview_of
from liveview.history import ObservedTable, PipelineView, TableSize, committed_entries
from liveview.lake import OTHER_LAKE, Lake, ProgramName, Unreachable
from liveview.live import Live
from liveview.model import (
    DAY_SECS,
    Overview,
    PartReport,
    PipelineSummary,
    Process,
    Program,
    TableSummary,
    of_seconds,
)
from liveview.summaries import (
    journaled,
    running,
    stuck_of,
    table_summary,
    verdict_of,
    yesterday_of,
)

MAX_AGE_SECS = 1.0
UNREACHABLE_SECS = 5.0
"""Retry interval for a program that does not answer."""
KNOWN_SECS = 60.0
"""Maximum age of a view if the pipeline's process reports its changes."""
UNKNOWN_SECS = 10.0
"""Maximum age of a view if no process does."""
ANSWER_SECS = 5.0
"""Maximum age of a view for a request about one pipeline or table, unless it changed."""
GOING_ON_SECS = 2.0
"""Interval after which a view that ran out of time continues."""
LISTED_SECS = 30.0
MANY = 5
"""With more pipelines or tables than this, maximum ages grow, so the total cost stays the same."""
DAY_AGE_SECS = 300.0


class Observer:
    """Observes one configuration. Thread-safe."""

    def __init__(
        self,
        lake: Lake,
        live: Live,
        program: ProgramName,
        *,
        clock: Clock,
        opening: OpenReader = open_reader,
        opening_table: OpenTable = open_table,
        failed: Callable[[BaseException], None] = lambda _error: None,
        patience: Timeouts | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`failed` is called with every error of an observation."""
        self.lake = lake
        self.clock = clock
        self.opening = opening
        self.failed = failed
        self.patience = patience or Timeouts()
        self.live = live
        self._other: ProgramName = "penguin" if program == "blizzard" else "blizzard"
        self.quick = AnswerCache(seconds=monotonic)
        self.slow = AnswerCache(threads=1, seconds=monotonic)
        self.documents = AnswerCache(seconds=monotonic)
        """For API documents, which wait for the other caches."""
        self._others = AnswerCache(threads=1, seconds=monotonic)
        self.pipelines = {
            name: PipelineFollower(settings, clock=clock, opening=opening)
            for name, settings in lake.pipelines.items()
        }
        self._views: dict[str, CachedAnswer[PipelineView]] = {
            name: CachedAnswer(monotonic) for name in self.pipelines
        }
        self._reconcilers = {
            name: Reconciler(settings, opening, clock) for name, settings in lake.pipelines.items()
        }
        self._reconciling = {name: threading.Lock() for name in lake.pipelines}
        """Held while a reconciler runs."""
        self.tables = {
            name: TableFollower(settings, clock=clock, opening=opening_table)
            for name, settings in lake.tables.items()
        }
        self._logs: dict[str, CachedAnswer[ObservedTable]] = {
            name: CachedAnswer(monotonic) for name in self.tables
        }
        self._unknown = {
            name: PipelineSummary(
                name=name,
                table=lake.table_of[name],
                table_uri=settings.sink.table_uri,
                sources=[source.uri for source in settings.sources],
                hand_off=settings.sink.handoff.value,
            )
            for name, settings in lake.pipelines.items()
        }
        """Summaries from the configuration alone."""
        self._yesterdays: dict[str, tuple[tuple[int, ...], DayOrPartition]] = {}
        """The latest verdict on yesterday, and what was stuck before it was computed."""

    def close(self) -> None:
        """Release the threads."""
        for desk in (self.quick, self.slow, self.documents, self._others):
            desk.close()

    def settle(self, wait: float) -> None:
        """Wait up to `wait` seconds for observations in progress."""
        end = time.monotonic() + wait
        for desk in (self.quick, self.slow):
            desk.settle(_left(end))

    def overview(self) -> Overview:
        """Return all pipelines and tables."""
        programs = self._programs()
        end = self._begin(self.pipelines, self.tables)
        pipelines = [self._pipeline(name, end) for name in self.pipelines]
        known = {each.name: each for each in pipelines}
        tables = [self._table(name, end, known) for name in self.tables]
        at = of_seconds(self.clock.seconds())
        return overview_of(at, programs, pipelines, tables)

    def pipeline(self, name: str) -> PipelineSummary:
        """Return one pipeline at a glance."""
        return self._pipeline(name, self._begin([name], [self.lake.table_of[name]]))

    def table(self, name: str, view: ObservedTable | None) -> TableSummary:
        """Return one table at a glance, given a fresh view of its log."""
        pipelines = self.lake.pipelines_of(name)
        end = self._begin(pipelines, [name])
        return self._table(name, end, {one: self._pipeline(one, end) for one in pipelines}, view)

    def journal(self, name: str, span_secs: float = DAY_SECS) -> PipelineView:
        """Return the view of a pipeline's journal, shared by requests until it changes."""
        follower = self.pipelines[name]
        age = self._answer_age(follower.window, span_secs)
        return self._views[name].now(follower.view, max_age=age, mark=self.mark(name))

    def log(self, name: str, span_secs: float = DAY_SECS) -> ObservedTable:
        """Return the view of a table's log, shared by requests until it changes."""
        follower = self.tables[name]
        age = self._answer_age(follower.window, span_secs)
        return self._logs[name].now(follower.view, max_age=age, mark=self.mark(name))

    def committed(self, name: str, span_secs: float = DAY_SECS) -> dict[int, Commit]:
        """Map a pipeline's recent entries to the versions that committed them, where known."""
        try:
            view = self.log(self.lake.table_of[name], span_secs)
        except LakeError:
            return {}  # The table's summary shows the reason.
        return committed_entries(view.commits.values(), name)

    def mark(self, name: str) -> Hashable:
        """Return a value that changes whenever a program reports a change.

        For a pipeline that includes changes to its table.
        """
        names = [name, self.lake.table_of.get(name, name)]
        called = {*names, *(self.lake.tables[one].name for one in names if one in self.tables)}
        found = [one for one in (self.live, self._peer()) if not isinstance(one, Unreachable)]
        parts: list[Mapping[str, Any]] = [of for one in found for of in (one.pipelines, one.tables)]
        return tuple(each[one].changes for each in parts for one in sorted(called) if one in each)

    def reconciled(self, name: str, question: Question) -> Reconciliation:
        """Reconcile a pipeline's sources with its table, one request at a time."""
        with self._reconciling[name]:
            # Read the journal's counts first: they must not be newer than the comparison.
            before = stuck_of(self.quick.last(("summary", name)))
            found = self._reconcilers[name].reconcile(question)
            yesterday = found.day(yesterday_of(self.clock.now()))
            if yesterday is not None:
                self._yesterdays[name] = before, yesterday
            return found

    def _peer(self, wait: float = 0.0) -> Process | Unreachable:
        """Return the other program's report; without `wait`, the last known one."""
        address, note = (one.get(self._other) for one in (self.lake.addresses, self.lake.notes))
        if address is None or note is not None:
            return Unreachable(note)
        question, timeout = ("process", self._other), self.patience.other
        is_away = isinstance(self._others.last(question), Unreachable)
        try:
            report = self._others.ask(
                question,
                lambda: self.lake.ask(self._other, "/api/v1/process", Process, timeout=timeout),
                max_age=UNREACHABLE_SECS if is_away else MAX_AGE_SECS,
                wait=2 * wait,  # Connecting and answering may each take as long.
                stale_wait=min(wait, self.patience.stale),
            )
        except Busy:
            return Unreachable(f"no answer at {address}")
        if isinstance(report, Process) and report.program != self._other:
            return Unreachable(f"another program answers at {address}")
        if isinstance(report, Process) and not self.lake.shares(report.table_uris):
            return Unreachable(OTHER_LAKE.format(address=address))
        return report

    def _answering(self) -> list[str]:
        """Name the running programs: the other one if it answers, and this one.

        A `top` process, which has an empty version, does not count.
        """
        hears = isinstance(self._peer(), Process)
        return [*[self.live.program] * bool(self.live.version), *[self._other] * hears]

    def _programs(self) -> list[Program]:
        report = self._peer(self.patience.other)
        both = {self.live.program: self.live, self._other: report}
        return [self._program(name, both[name]) for name in sorted(both)]

    def _program(self, name: ProgramName, report: Live | Process | Unreachable) -> Program:
        if isinstance(report, Unreachable):
            return self.lake.unreachable(name, report.note)
        return replace(
            self.lake.unreachable(name, None),
            reachable=True,
            version=report.version,
            started_at=report.started_at,
        )

    def _begin(self, pipelines: Iterable[str], tables: Iterable[str]) -> float:
        """Start observing pipelines and tables; return the deadline for waiting."""
        self._peer(self.patience.other)
        for name in tables:
            self._begin_table(name)
        for name in pipelines:
            self._begin_pipeline(name)
        return time.monotonic() + self.patience.first

    def _begin_pipeline(self, name: str) -> None:
        part, mark = self._part(PartKind.PIPELINE, name), self.mark(name)
        follower, last = self.pipelines[name], self.quick.last(("summary", name))
        age = self._view_age(follower.window, reported=part is not None)
        self.quick.begin(
            ("summary", name),
            lambda: self._journaled(name),
            max_age=age,
            mark=mark,
        )
        if part is None or (part.waiting is None and part.state in ("idle", "stopped")):
            # The process that runs the pipeline reports its own listings.
            self.slow.begin(
                ("sources", name),
                follower.sources,
                max_age=self._age(LISTED_SECS if part is None else DAY_AGE_SECS),
            )
        day = yesterday_of(self.clock.now())
        self.slow.begin(
            ("yesterday", name, day),
            lambda: self.reconciled(name, Question(days=(day,), rows=False)),
            max_age=self._age(DAY_AGE_SECS),
            mark=(mark, None if part is None else part.waiting, stuck_of(last)),
        )

    def _begin_table(self, name: str) -> None:
        follower, mark = self.tables[name], self.mark(name)
        age = self._view_age(follower.window, reported=self._part(PartKind.TABLE, name) is not None)
        self.quick.begin(("log", name), lambda: self.log(name), max_age=age, mark=mark)
        self.slow.begin(
            ("status", name),
            follower.status,
            max_age=self._age(LISTED_SECS),
            mark=mark,
        )

    def _journaled(self, name: str) -> tuple[PipelineView, PipelineSummary]:
        """Read a journal, and which of its entries are committed."""
        view = self.journal(name)
        committed, now = self.committed(name), self.clock.seconds()
        return view, journaled(self._unknown[name], view, committed, now=now)

    def _pipeline(self, name: str, end: float) -> PipelineSummary:
        found: tuple[PipelineView, PipelineSummary] | None
        found, trouble = self._result(("summary", name), end, f"the journal of {name}")
        day = yesterday_of(self.clock.now())
        before, compared = self._yesterdays.get(name, (None, None))
        if compared is not None and compared.name != day:
            compared = None
        stuck = stuck_of(found)
        view, pipeline = found or (None, self._unknown[name])
        settings, part = self.lake.pipelines[name], self._part(PartKind.PIPELINE, name)
        return running(
            pipeline,
            view,
            settings=settings,
            cli=self.lake.line(name),
            answering=self._answering(),
            trouble=trouble,
            sources=self.slow.last(("sources", name)) or (),
            part=part,
            yesterday=verdict_of(day, compared, outdated=any(stuck) and stuck != before),
            now=self.clock.seconds(),
        )

    def _table(
        self,
        name: str,
        end: float,
        known: Mapping[str, PipelineSummary],
        view: ObservedTable | None = None,
    ) -> TableSummary:
        trouble: Problem | None = None
        if view is None:
            view, trouble = self._result(("log", name), end, "the log of the table")
        pipelines = self.lake.pipelines_of(name)
        return table_summary(
            TableSummary(name=name, uri=self.lake.tables[name].table_uri, pipelines=pipelines),
            view,
            size=TableSize() if view is None else self._size(name, view.version),
            status=None if view is None else self.slow.last(("status", name)),
            trouble=trouble,
            part=self._part(PartKind.TABLE, name),
            pipelines=[known[one] for one in pipelines],
            cli=self.lake.line(),
        )

    def _result(self, key: Hashable, end: float, what: str) -> tuple[Any, Problem | None]:
        """Return an observation, or None and the problem: one failure hides no other result."""
        left = _left(end)
        stale = max(0.0, left - (self.patience.first - self.patience.stale))
        try:
            return self.quick.result(key, wait=left, stale_wait=stale), None
        except Busy:
            message = f"{what} is being read"
            return None, Problem(severity="warning", code="being_read", message=message)
        except Exception as error:  # noqa: BLE001 - it is shown and logged
            self.failed(error)
            return None, of_error(error, f"{what} cannot be read")

    def _size(self, name: str, version: int | None) -> TableSize:
        """Return a table's size as of the last version that was sized."""
        self.slow.begin(
            ("size", name),
            self.tables[name].size,
            max_age=self._age(LISTED_SECS),
            mark=version,
        )
        size: TableSize | None = self.slow.last(("size", name))
        # A later version means that the size is of a previous table at this location.
        is_of_it = size is not None and (size.version or 0) <= (-1 if version is None else version)
        return size if size is not None and is_of_it else TableSize()

    def _age(self, seconds: float) -> float:
        """Scale a maximum age with the number of pipelines and tables."""
        return seconds * max(1.0, max(len(self.pipelines), len(self.tables)) / MANY)

    def _view_age(self, window: DocumentWindow[Any], *, reported: bool) -> float:
        age = self._age(KNOWN_SECS if reported else UNKNOWN_SECS)
        return min(age, GOING_ON_SECS) if window.out_of_time else age

    def _answer_age(self, window: DocumentWindow[Any], span_secs: float) -> float:
        """Return the maximum age of a view for a request, and widen its span to cover it."""
        is_short = window.out_of_time or window.span_secs < span_secs
        window.span_secs = max(window.span_secs, span_secs)
        return 0.0 if is_short else ANSWER_SECS

    def _part(self, kind: PartKind, name: str) -> PartReport | None:
        """Return the report of the process that runs a pipeline or commits to a table."""
        # blizzard names a table that it commits itself by URI if it has no `tables:` entry.
        called = name if kind is PartKind.PIPELINE else self.lake.tables[name].name
        own, report = self.live.part(kind, called), self._peer()
        if own is not None or not isinstance(report, Process):
            return own
        return (report.pipelines if kind is PartKind.PIPELINE else report.tables).get(called)


def _left(end: float) -> float:
    return max(0.0, end - time.monotonic())
