"""Everything that can be asked of one configuration, for both programs. Read-only.

What is looked at is kept between looks, and nothing is looked at while nobody asks. Looks at
journals and logs run in a few threads; what lists sources, or adds up a table, runs in one of its
own, so that a slow listing never holds up the rest. What is not known in time is said to be.
"""

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from datetime import datetime

from blizzard.answers.report import Question, Reconciliation
from blizzard.log_questions import open_reader, reconciler_of
from blizzard.model.locations import OpenReader
from lakebed.clock import Clock
from lakebed.errors import LakeError
from liveview.lake import Lake, ProgramName
from liveview.live import Live
from liveview.looks.desk import Busy, Desk
from liveview.looks.kept import Fresh
from liveview.looks.other import Unreachable, ask
from liveview.looks.pipelines import PipelineLook, PipelineView
from liveview.looks.tables import OpenTable, TableLook, TableSize, TableView, open_table
from liveview.model import Overview, PipelineSummary, Problem, Program, TableSummary
from liveview.parts import PipelinePart, Process, TablePart
from liveview.patience import Patience
from liveview.times import of_seconds
from liveview.views import problems
from liveview.views.days import verdict_of, yesterday_of
from liveview.views.entries import Committed
from liveview.views.series import DAY_SECS
from liveview.views.summary import (
    Backlog,
    Journaled,
    TableParts,
    backlog_of,
    journaled,
    pipeline_summary,
    stuck_of,
    table_summary,
)
from liveview.views.versions import committed_entries

MAX_AGE_SECS = 1.0
UNREACHABLE_SECS = 5.0
"""After how long a program is asked again that has not answered."""


class Programs:
    """The program that answers here, and the other one of the same configuration."""

    def __init__(
        self,
        lake: Lake,
        own: ProgramName,
        process: Callable[[], Process],
        desk: Desk,
        patience: float,
    ) -> None:
        self._lake = lake
        self._other: ProgramName = "penguin" if own == "blizzard" else "blizzard"
        self._process = process
        self._desk = desk
        self._patience = patience

    def heard(self) -> tuple[list[Process], list[Program]]:
        """Return the processes that answer, this one first, and both programs by name."""
        own = self._process()
        address = self._lake.addresses.get(self._other)
        other, note = self._heard_of_other(address)
        there = (
            Program(name=self._other, version=None, reachable=False, address=address, note=note)
            if other is None
            else _reachable(other, address)
        )
        programs = [_reachable(own, self._lake.addresses.get(own.program)), there]
        found = [own] if other is None else [own, other]
        return found, sorted(programs, key=lambda one: one.name)

    def _heard_of_other(self, address: str | None) -> tuple[Process | None, str | None]:
        """Return what the other program says, or why it is not heard."""
        note = self._lake.notes.get(self._other)
        if address is None or note is not None:
            return None, note
        question = ("process", self._other)
        is_away = isinstance(self._desk.last(question), Unreachable)
        try:
            heard = self._desk.ask(
                question,
                lambda: ask(address, self._lake.guard, timeout=self._patience),
                max_age=UNREACHABLE_SECS if is_away else MAX_AGE_SECS,
                # Connecting and answering may each take as long.
                wait=2 * self._patience,
            )
        except Busy:
            heard = Unreachable(f"nobody answers at {address}")
        if isinstance(heard, Unreachable):
            return None, heard.note
        if heard.program != self._other:
            return None, f"another program answers at {address}"
        return heard, None


def _reachable(process: Process, address: str | None) -> Program:
    return Program(
        name=process.program,
        version=process.version,
        reachable=True,
        started_at=process.started_at,
        address=address,
    )


KNOWN_SECS = 60.0
"""How old a look may be at a pipeline whose process tells of every change."""
UNKNOWN_SECS = 10.0
"""How old it may be where nobody tells."""
ANSWER_SECS = 5.0
"""How old it may be for a question about one pipeline or table, if nobody has told of a change."""
GOING_ON_SECS = 2.0
"""After how long a look whose time was up is gone on with."""
LISTED_SECS = 30.0
MANY = 5
"""Of more pipelines or tables than this, looks may be older, so that all of them cost as much."""
DAY_AGE_SECS = 300.0
SLOW_SHARE = 100
"""What lists sources or adds up a table takes a hundredth of the time at most."""


class Observer:
    """Answers from one configuration. Its questions may be asked from any thread."""

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
        patience: Patience | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lake = lake
        self.clock = clock
        self.opening = opening
        self.failed = failed
        """Is told of every error that a look ended with."""
        self.patience = patience or Patience()
        self._live = live
        self.quick = Desk(seconds=monotonic)
        self.slow = Desk(threads=1, seconds=monotonic)
        self.asked = Desk(seconds=monotonic)
        """For what waits for the others."""
        self._programs = Programs(lake, program, live.process, self.quick, self.patience.other)
        self.pipelines = {
            name: PipelineLook(settings, clock=clock, opening=opening, seconds=monotonic)
            for name, settings in lake.pipelines.items()
        }
        self.tables = {
            name: TableLook(settings, clock=clock, opening=opening_table, seconds=monotonic)
            for name, settings in lake.tables.items()
        }
        self._reconciling = {name: threading.Lock() for name in lake.pipelines}
        self._reconcilers = {
            name: reconciler_of(settings, opening, clock)
            for name, settings in lake.pipelines.items()
        }

    def close(self) -> None:
        """Let the threads go."""
        self.quick.close()
        self.slow.close()
        self.asked.close()

    def settle(self, wait: float) -> None:
        """Wait until what was begun to be looked at is known, but so many seconds at most."""
        end = time.monotonic() + wait
        for desk in (self.quick, self.slow):
            desk.settle(_left(end))

    def process(self) -> Process:
        """Return what this process knows by itself."""
        return self._live.process()

    def overview(self) -> Overview:
        """Return all pipelines and tables."""
        processes, programs = self._programs.heard()
        for name in self.tables:
            self._begin_table(name, processes)
        for name in self.pipelines:
            self._begin_pipeline(name, processes)
        end = time.monotonic() + self.patience.first
        pipelines = [self._summary(name, processes, end) for name in self.pipelines]
        tables = [self._table(name, processes, end) for name in self.tables]
        return Overview(
            at=of_seconds(self.clock.seconds()),
            programs=programs,
            pipelines=pipelines,
            tables=tables,
        )

    def summary(self, name: str) -> PipelineSummary:
        """Return one pipeline at a glance."""
        processes, _programs = self._programs.heard()
        self._begin_table(self.lake.table_of[name], processes)
        self._begin_pipeline(name, processes)
        return self._summary(name, processes, time.monotonic() + self.patience.first)

    def table_summary(self, name: str, seen: TableView | None = None) -> TableSummary:
        """Return one table at a glance, as a look at its log has just found it."""
        processes, _programs = self._programs.heard()
        self._begin_table(name, processes)
        for pipeline in self.lake.pipelines_of(name):
            self._begin_pipeline(pipeline, processes)
        return self._table(name, processes, time.monotonic() + self.patience.first, seen)

    def pipeline_view(
        self, name: str, span_secs: float = DAY_SECS, processes: list[Process] | None = None
    ) -> PipelineView:
        """Return the journal of a pipeline; looked at once for all who ask before it changes."""
        heard = self._programs.heard()[0] if processes is None else processes
        fresh = Fresh(self._mark_of(name, heard), ANSWER_SECS)
        return self.pipelines[name].view(since=self.clock.seconds() - span_secs, fresh=fresh)

    def table_view(
        self, name: str, span_secs: float = DAY_SECS, processes: list[Process] | None = None
    ) -> TableView:
        """Return the log of a table; looked at once for all who ask before it changes."""
        heard = self._programs.heard()[0] if processes is None else processes
        part = self._table_part(name, heard)
        fresh = Fresh(None if part is None else part.changes, ANSWER_SECS)
        return self.tables[name].view(since=self.clock.seconds() - span_secs, fresh=fresh)

    def committed(
        self, name: str, span_secs: float = DAY_SECS, processes: list[Process] | None = None
    ) -> dict[int, Committed]:
        """Return the versions of a pipeline's last entries, as far as they are known."""
        table, span_secs = self.lake.table_of[name], max(span_secs, DAY_SECS)
        try:
            view = self.table_view(table, span_secs, processes)
        except LakeError:
            return {}  # The table says why.
        return committed_entries(view.commits.values(), name)

    def mark(self, name: str) -> Hashable:
        """Return what changes when a program tells of a change of a pipeline or table."""
        processes = self._programs.heard()[0]
        table = self._table_part(name, processes) if name in self.tables else None
        pipeline = self._mark_of(name, processes) if name in self.pipelines else None
        return pipeline, None if table is None else table.changes

    def batch_secs(self, name: str) -> dict[str, float]:
        """Return how long the last batches of a pipeline took, where its process tells."""
        part = _pipeline_part(name, self._programs.heard()[0])
        return {} if part is None else part.batch_secs

    def reconciled(self, name: str, question: Question) -> Reconciliation:
        """Compare what landed in the sources of a pipeline with its table, one at a time."""
        with self._reconciling[name]:
            return self._reconcilers[name].reconcile(question)

    def _begin_pipeline(self, name: str, processes: list[Process]) -> None:
        part = _pipeline_part(name, processes)
        mark = self._mark_of(name, processes)
        self.quick.begin(
            ("journal", name),
            lambda: self._journaled(name, processes),
            max_age=self._look_age(self.pipelines[name], told=part is not None),
            mark=mark,
        )
        if part is None or (part.waiting_files is None and part.state in ("idle", "stopped")):
            # A process that runs the pipeline tells what it has listed.
            self.slow.begin(
                ("sources", name),
                lambda: backlog_of(self.pipelines[name].sources()),
                max_age=self._age(LISTED_SECS if part is None else DAY_AGE_SECS),
                slow_share=SLOW_SHARE,
            )
        day = yesterday_of(self.clock.now())
        self.slow.begin(
            ("yesterday", name, day),
            # What the journal said before is not newer than what is found now.
            lambda: (
                stuck_of(self.quick.last(("journal", name))),
                self.reconciled(name, Question(days=(day,), rows=False)),
            ),
            max_age=self._age(DAY_AGE_SECS),
            mark=(
                mark,
                None if part is None else part.waiting_files,
                stuck_of(self.quick.last(("journal", name))),
            ),
            slow_share=2 * SLOW_SHARE,
        )

    def _begin_table(self, name: str, processes: list[Process]) -> None:
        part = self._table_part(name, processes)
        look = self.tables[name]
        mark = None if part is None else part.changes
        self.quick.begin(
            ("log", name),
            lambda: self.table_view(name, processes=processes),
            max_age=self._look_age(look, told=part is not None),
            mark=mark,
        )
        self.slow.begin(
            ("status", name),
            look.status,
            max_age=self._age(LISTED_SECS),
            mark=mark,
            slow_share=SLOW_SHARE,
        )

    def _journaled(self, name: str, processes: list[Process]) -> Journaled:
        """Look at a journal, and at which of its entries the log has."""
        view = self.pipeline_view(name, processes=processes)
        return journaled(
            view.status,
            view.entries,
            self.committed(name, processes=processes),
            now=self.clock.seconds(),
            since=view.since,
            unreadable=view.unreadable,
            held=view.held,
            refusal=view.refusal,
        )

    def _summary(self, name: str, processes: list[Process], end: float) -> PipelineSummary:
        part = _pipeline_part(name, processes)
        found: Journaled | None = None
        trouble: Problem | None = None
        try:
            found = self.quick.result(
                ("journal", name), wait=_left(end), stale_wait=self._stale(end)
            )
        except Busy:
            trouble = _not_yet(f"the journal of {name}")
        except Exception as error:  # noqa: BLE001 - one pipeline hides no other
            trouble = problems.of_error(error, "the journal cannot be read")
            self.failed(error)
        backlog: Backlog = self.slow.last(("sources", name)) or Backlog()
        if part is not None and part.waiting_files is not None:
            backlog = replace(
                backlog, files=part.waiting_files, bytes=None, oldest_at=_oldest(part)
            )
        day = yesterday_of(self.clock.now())
        before, day_found = self.slow.last(("yesterday", name, day)) or (None, None)
        stuck = stuck_of(found)
        return pipeline_summary(
            self.lake.pipelines[name],
            table=self.lake.table_of.get(name),
            found=found,
            trouble=trouble,
            backlog=backlog,
            part=part,
            yesterday=verdict_of(day, day_found, outdated=any(stuck) and stuck != before),
            now=self.clock.seconds(),
        )

    def _table(
        self, name: str, processes: list[Process], end: float, seen: TableView | None = None
    ) -> TableSummary:
        parts = TableParts()
        try:
            view: TableView = seen or self.quick.result(
                ("log", name), wait=_left(end), stale_wait=self._stale(end)
            )
            newest = None if view.version is None else view.commits.get(view.version)
            size = self._size(name, view.version)
            then = None if size.version is None else view.commits.get(size.version)
            parts = TableParts(
                version=view.version,
                newest=newest,
                files=size.files,
                bytes=size.bytes,
                rows=size.rows,
                size_version=size.version,
                size_at_ms=None if then is None else then.at_ms,
                status=self.slow.last(("status", name)),
                known=True,
            )
        except Busy:
            parts = replace(parts, trouble=_not_yet("the log of the table"))
        except Exception as error:  # noqa: BLE001 - one table hides no other
            trouble = problems.of_error(error, "the log of the table cannot be read")
            parts = replace(parts, trouble=trouble)
            self.failed(error)
        return table_summary(
            name,
            self.lake.tables[name],
            found=parts,
            part=self._table_part(name, processes),
            pipelines=self.lake.pipelines_of(name),
            waiting=self._waiting(name, end),
        )

    def _waiting(self, table: str, end: float) -> int | None:
        """Return how many entries wait for a commit; None if a journal could not be looked at."""
        waiting = 0
        for pipeline in self.lake.pipelines_of(table):
            try:
                found: Journaled = self.quick.result(
                    ("journal", pipeline), wait=_left(end), stale_wait=self._stale(end)
                )
            except Exception:  # noqa: BLE001 - the pipeline itself says why
                return None
            waiting += found.status.uncommitted_entries
        return waiting

    def _size(self, name: str, version: int | None) -> TableSize:
        """Return how large a table is, or was at the last version that was added up."""
        self.slow.begin(
            ("size", name),
            self.tables[name].size,
            max_age=self._age(LISTED_SECS),
            mark=version,
            slow_share=SLOW_SHARE,
        )
        size: TableSize | None = self.slow.last(("size", name))
        # One of a later version is of another table, which was in this place before.
        is_of_it = size is not None and (size.version or 0) <= (-1 if version is None else version)
        return size if size is not None and is_of_it else TableSize()

    def _age(self, seconds: float) -> float:
        """Return how old a look may be: the more there is to look at, the older."""
        return seconds * max(1.0, max(len(self.pipelines), len(self.tables)) / MANY)

    def _look_age(self, look: PipelineLook | TableLook, *, told: bool) -> float:
        """Return how old a look may be: what was not read to its end is gone on with soon."""
        age = self._age(KNOWN_SECS if told else UNKNOWN_SECS)
        return min(age, GOING_ON_SECS) if look.unfinished else age

    def _mark_of(self, name: str, processes: list[Process]) -> Hashable:
        """Return what changes when something has happened that the journal or the log tell of."""
        part = _pipeline_part(name, processes)
        table = self._table_part(self.lake.table_of[name], processes)
        return (None if part is None else part.changes, None if table is None else table.changes)

    def _stale(self, end: float) -> float:
        return max(0.0, _left(end) - (self.patience.first - self.patience.stale))

    def _table_part(self, name: str, processes: list[Process]) -> TablePart | None:
        # blizzard knows a table that it commits to itself by its URI, where nothing else names it.
        called = self.lake.tables[name].name
        return next((one.tables[called] for one in processes if called in one.tables), None)


def _pipeline_part(name: str, processes: list[Process]) -> PipelinePart | None:
    return next((one.pipelines[name] for one in processes if name in one.pipelines), None)


def _oldest(part: PipelinePart) -> float | None:
    at = part.oldest_waiting_at
    return None if at is None else datetime.fromisoformat(at).timestamp()


def _left(end: float) -> float:
    return max(0.0, end - time.monotonic())


def _not_yet(what: str) -> Problem:
    return Problem(severity="warning", code="being_read", message=f"{what} is being read")
