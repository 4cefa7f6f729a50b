"""The reconciliation of a pipeline: what landed in its sources against what is in its table.

The journal's names and sums say what was read, the receipt what is committed, and a listing what
landed and when. Entries are read only for rows, and only those of the files that are asked for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Generic

from blizzard.answers.entry_rows import EntryRows
from blizzard.answers.lifecycle import (
    LANDED,
    NOT_APPLIED,
    DayOf,
    FileStanding,
    FileState,
)
from blizzard.answers.progress import StillOut, progress_of
from blizzard.answers.reconcile import By, DayBooks, Group, RowCount, SourceCounts
from blizzard.answers.refusal import refuse_other_source
from blizzard.answers.survey import Collected, Survey, WaitingLines
from blizzard.discover.lister import SourceLister, source_listers
from blizzard.discover.skip_reason import SkipSummary
from blizzard.handoff.held_rows import Fates
from blizzard.journal.checkpoint import refresh, reread
from blizzard.journal.ledger import Ledger
from blizzard.journal.segments import SegmentBroken
from blizzard.model.locations import OpenReader, sink_location
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.clock import Clock
from lakebed.errors import JournalLost, LakeError, ObjectMissing, SourceMoved
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader
from lakebed.telemetry.events import code_of

DAYS = 31
"""How many days are told one by one, unless others are asked for."""
READ = (FileState.IN_TABLE, FileState.JOURNALED, FileState.HELD, FileState.DISCARDED)
"""Files whose rows are counted: they were read as the objects they are."""
OUT = (FileState.RETRACTED, FileState.REMOVED)
"""Files whose rows are no longer in the table, nor on their way there."""
Refusal = Callable[[Reader, Ledger], LakeError | None]
"""Answers why a start of the pipeline would be refused; None where it would not."""
ByEntry = dict[str, dict[int, list[str]]]
"""Keys of files, by day or partition and by entry."""
Keeps = Callable[[FileStanding], bool]
"""Whether a file is to be listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which files are meant, and how they are counted."""

    by: By = "day"
    days: tuple[str, ...] = ()
    """The days that are told, such as `2024-01-01`; empty for the last `most` ones."""
    prefix: str = ""
    """What the paths below their source begin with."""
    source: str | None = None
    """The one source that is looked at; None for all."""
    partition: str | None = None
    """A partition such as `date=2024-01-01`, or only a value of it; None for all."""
    rows: bool = True
    """Whether rows are counted: the entries of the files that are told are read for it."""
    most: int = DAYS
    """The most days or partitions that are told, the newest first."""

    def window(self, now: datetime) -> tuple[str, ...]:
        """Return the days that are told, the newest first."""
        last = (f"{now - timedelta(days=ago):%Y-%m-%d}" for ago in range(self.most))
        return tuple(sorted(set(self.days), reverse=True)) or tuple(last)

    def means(self, partition: str | None) -> bool:
        """Whether a partition is asked about."""
        if self.partition is None:
            return True
        parts = (partition or "").split("/")
        values = {part.partition("=")[2] for part in parts}
        return self.partition == partition or self.partition in {*parts, *values}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """What landed in the sources of a pipeline, and what of it is in the table."""

    pipeline: str
    table_uri: str
    by: By
    groups: tuple[Group, ...]
    """The newest day first; a day that was asked for is there, also without files."""
    left_out: int = 0
    """Files of older days, or of more partitions, that are not told."""
    passed_over: tuple[SkipSummary, ...] = ()
    """Names in the sources that cannot be read, by the reason."""
    errors: tuple[str, ...] = ()
    """Why something is not known: whether a day is complete is not, then."""

    def day(self, name: str) -> Group | None:
        """Return one of the days that were told."""
        return next((group for group in self.groups if group.name == name), None)


@dataclass(slots=True)
class Counted:
    """Counts the files of a source that are asked about, and whose rows are to be counted."""

    question: Question
    days: frozenset[str]
    books: DayBooks
    read: ByEntry = field(default_factory=dict)
    """By day or partition, the keys of files that entries have read."""
    aside: ByEntry = field(default_factory=dict)
    """Those of which bad lines are counted alone: no row of them is in the table, nor comes."""
    others: ByEntry = field(default_factory=dict)
    """Those with bad lines that wait, and that entries other than their own have set aside."""
    left_out: int = 0
    lines: WaitingLines = field(default_factory=WaitingLines)
    keeps: Keeps = lambda _one: False
    files: list[FileStanding] = field(default_factory=list)
    """Those that are to be listed, also of days that are not counted."""

    def add(self, one: FileStanding) -> None:
        """Take notice of a file."""
        question, lines = self.question, self.lines.of(one)
        if not question.means(one.partition):
            return
        if (not question.days or one.day in self.days) and self.keeps(one):
            self.files.append(one)
        if (question.by == "day" or question.days) and one.day not in self.days:
            self.left_out += 1
            return
        self.books.add(one)
        is_whole = one.state in READ and one.reason is None
        is_read = is_whole or (one.in_part and one.state not in OUT)
        is_aside = one.state is FileState.REMOVED or one.reason == NOT_APPLIED
        if question.rows and one.entry is not None and (is_read or is_aside):
            self._count(self.read if is_read else self.aside, one, one.entry)
        for entry in lines if question.rows else ():
            if entry != one.entry:
                self._count(self.others, one, entry)

    def _count(self, by_name: ByEntry, one: FileStanding, entry: int) -> None:
        by_entry = by_name.setdefault(self.books.name_of(one), {})
        by_entry.setdefault(entry, []).append(one.key)


@dataclass(slots=True)
class Reconciler:
    """Repeated reconciliations of one pipeline; what entries said once is not read again."""

    settings: PipelineSettings
    open_reader: OpenReader
    clock: Clock
    fates: Fates = lambda _names: {}
    still_out: StillOut = frozenset
    refusal: Refusal = lambda _store, _history: None
    ledger: Ledger = field(default_factory=Ledger)
    _listers: dict[str, SourceLister] = field(default_factory=dict)
    _rows: EntryRows | None = None

    def reconcile(self, question: Question) -> Reconciliation:
        """Return what landed and what of it is in the table. Nothing is written."""
        return self.reconcile_and_list(question, lambda _one: False)[0]

    def reconcile_and_list(
        self, question: Question, keeps: Keeps
    ) -> tuple[Reconciliation, list[FileStanding]]:
        """Return what landed and what of it is in the table, and some of the files themselves."""
        days = frozenset(question.window(self.clock.now()))

        def counted() -> Counted:
            lines = WaitingLines(self._quarantined())
            return Counted(question, days, DayBooks(by=question.by), lines=lines, keeps=keeps)

        looked = self.look(question, counted)
        files = [file for one in looked.collected for file in one.files]
        return self._summed_up(question, looked), files

    def count(self) -> SourceCounts:
        """Count all source files by state, whenever they landed. No row is counted."""
        looked = self.look(Question(rows=False, most=0), DayBooks)
        counts = Counter[FileState]()
        for books in looked.collected:
            for states in books.files.values():
                counts.update(states)
        return SourceCounts(
            pipeline=self.settings.name,
            states={state: counts[state] for state in LANDED},
            unread=looked.passed_over,
            errors=looked.errors,
        )

    def _summed_up(self, question: Question, looked: "Looked[Counted]") -> Reconciliation:
        total = DayBooks(by=question.by)
        for one in looked.collected:
            total.take(one.books)
        asked = question.days if question.by == "day" else ()
        names = sorted({*total.files, *asked}, reverse=True)
        told, beyond = names[: question.most], names[question.most :]
        rows = self._rows_of(told, looked.collected) if question.rows else {}
        errors = looked.errors
        today = f"{self.clock.now():%Y-%m-%d}"
        return Reconciliation(
            pipeline=self.settings.name,
            table_uri=self.settings.sink.table_uri,
            by=question.by,
            groups=tuple(
                total.group(
                    name,
                    listed=not errors,
                    refused=looked.refused,
                    today=today,
                    counted=rows.get(name, RowCount()) if question.rows else None,
                )
                for name in told
            ),
            left_out=sum(one.left_out for one in looked.collected)
            + sum(total.files[name].total() for name in beyond),
            passed_over=looked.passed_over,
            errors=errors,
        )

    def look(self, question: Question, collect: Callable[[], Collected]) -> "Looked[Collected]":
        """Tell a collector for each source of its files; one that cannot be listed hides no other.

        Names that turn out damaged, or were replaced, are not believed.
        """
        store = self._open()
        for _try in range(2):
            try:
                return self._look(store, question, collect)
            except SegmentBroken as broken:
                reread(self.ledger, broken)
        return self._look(store, question, collect)

    def _open(self) -> Reader | None:
        try:
            store = self.open_reader(sink_location(self.settings))
        except ObjectMissing:
            return None  # The table's folder does not exist yet, so neither does a journal.
        refresh(self.ledger, store, self.settings.name)
        if self._rows is None:
            journal = JournalReader(store, self.settings.name)
            self._rows = EntryRows(journal, lambda: self.ledger.books.replayed)
        return store

    def _look(
        self, store: Reader | None, question: Question, collect: Callable[[], Collected]
    ) -> "Looked[Collected]":
        history = self.ledger
        if not self._listers:
            self._listers = {each.source.name: each for each in source_listers(self.settings)}
        progress, errors = progress_of(
            self.settings, store, history, fates=self.fates, still_out=self.still_out
        )
        survey = Survey(
            settings=self.settings,
            listers=self._listers,
            open_reader=self.open_reader,
            store=store,
            history=history,
            progress=progress,
            clock=self.clock,
            written=self._written(question.window(self.clock.now())),
            quarantined=self._quarantined(),
        )
        refusal = None if store is None else self.refusal(store, history)
        if refusal is not None:
            errors += (_refused(refusal),)
        looked: Looked[Collected] = Looked(errors=errors, refused=refusal is not None)
        for source in self.settings.sources:
            if question.source in (None, source.name):
                looked.add(survey, source, question.prefix, collect)
        return looked

    def _quarantined(self) -> dict[str, Counter[int]]:
        """Return how many bad lines of files wait, by key and entry; no file is opened."""
        waiting: dict[str, Counter[int]] = {}
        for each in self.ledger.books.waiting_files():
            for one in each.file.sources:
                waiting.setdefault(one.source, Counter())[each.entry] += one.lines
        return waiting

    def _written(self, days: Sequence[str]) -> DayOf:
        """Return the way to ask on which of some days an entry was written."""
        last = self.ledger.sequence

        @cache
        def ranges() -> dict[str, range]:
            return {} if self._rows is None else self._rows.days_of(days, last)

        @cache
        def of(entry: int | None) -> datetime | None:
            found = (day for day, entries in ranges().items() if entry in entries)
            day = next(found, None) if entry is not None else None
            return None if day is None else datetime.fromisoformat(day).replace(tzinfo=UTC)

        return of

    def _rows_of(self, names: Sequence[str], counted: Iterable[Counted]) -> dict[str, RowCount]:
        if self._rows is None:
            return {}
        sources = tuple(counted)
        rows = self._rows.count(_by_entry(names, [one.read for one in sources]))
        aside = self._rows.count(_by_entry(names, [one.aside for one in sources]))
        # What was to come in the place of rows in vain is no part of what has its name since.
        others = _by_entry(names, [one.others for one in sources])
        in_vain = self._rows.count(others, only_replacements=True)
        for name, found in (*aside.items(), *in_vain.items()):
            bad_lines = RowCount(bad_lines=found.bad_lines)
            rows[name] = rows.get(name, RowCount()).plus(bad_lines)
        return rows


def _by_entry(names: Sequence[str], counted: Sequence[ByEntry]) -> dict[int, list[tuple[str, str]]]:
    wanted: dict[int, list[tuple[str, str]]] = {}
    for one in counted:
        for name in names:
            for entry, keys in one.get(name, {}).items():
                wanted.setdefault(entry, []).extend((name, key) for key in keys)
    return wanted


@dataclass(slots=True)
class Looked(Generic[Collected]):
    """What a look at all sources has told."""

    collected: list[Collected] = field(default_factory=list)
    passed_over: tuple[SkipSummary, ...] = ()
    errors: tuple[str, ...] = ()
    refused: bool = False
    """Whether a start of the pipeline would be refused."""

    def add(
        self, survey: Survey, source: SourceSettings, prefix: str, collect: Callable[[], Collected]
    ) -> None:
        """Look at one more source."""
        try:
            refuse_other_source(survey.store, survey.settings, source, survey.history)
            found, passed_over = survey.over(source, prefix, collect)
        except SegmentBroken:
            raise  # Nothing is wrong with the source: the entries say the same.
        except (JournalLost, SourceMoved) as refusal:
            self.refused = True
            self.errors += (_refused(refusal),)
        except LakeError as trouble:
            self.errors += (f"source {source.name}: {trouble}",)
        else:
            self.collected.append(found)
            self.passed_over += passed_over


def _refused(refusal: LakeError) -> str:
    return f"a start would be refused: {refusal} [{code_of(refusal)}]"
