"""The reconciliation of a pipeline: what landed in its sources against what is in its table.

The journal's names and sums say what was read, the log what is committed, and a listing what
landed and when. Entries are read only for rows, and only those of the files that are asked for.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial

from blizzard.answers.answer import LANDED, DayOf, FileStanding, FileState
from blizzard.answers.file_counts import (
    UNKNOWN,
    By,
    DayOrPartition,
    EntryRows,
    Reconciliation,
    SourceCounts,
)
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.source_file import settled_progress
from blizzard.answers.survey import BadLines, SourceSurvey
from blizzard.discover.finding import SkipSummary
from blizzard.discover.lister import SourceLister, source_listers
from blizzard.journal.checkpoint import past_damage
from blizzard.journal.ledger import Ledger
from blizzard.journal.segments import SegmentBroken
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import OpenReader
from lakebed.clock import Clock
from lakebed.errors import JournalLost, LakeError, SourceMoved
from lakebed.journal import JournalReader
from lakebed.telemetry.events import code_of

DAYS = 31
"""How many days are listed one by one, unless others are asked for."""
READ = (
    FileState.IN_TABLE, FileState.ALTERED, FileState.JOURNALED, FileState.HELD, FileState.DISCARDED,
)  # fmt: skip
"""Files whose rows are counted: they were read as the objects they are."""
OUT = (FileState.RETRACTED, FileState.REMOVED)
"""Files whose rows are no longer in the table, nor on their way there."""
Keeps = Callable[[FileStanding], bool]
"""Whether a file is to be listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which files are meant, and how they are counted."""

    by: By = "day"
    days: tuple[str, ...] = ()
    """The days to list, such as `2024-01-01`; empty for the last `most` ones."""
    prefix: str = ""
    """What the paths below their source begin with."""
    source: str | None = None
    """The one source to list; None for all."""
    partition: str | None = None
    """A partition such as `date=2024-01-01`, or only a value of it; None for all."""
    rows: bool = True
    """Whether rows are counted: the entries of the files that are counted are read for it."""
    most: int = DAYS
    """The most days or partitions to list, the newest first."""

    def window(self, now: datetime) -> tuple[str, ...]:
        """Return the days to list, the newest first."""
        last = (f"{now - timedelta(days=ago):%Y-%m-%d}" for ago in range(self.most))
        return tuple(sorted(set(self.days), reverse=True)) or tuple(last)

    def means(self, partition: str | None) -> bool:
        """Whether a partition is asked about."""
        if self.partition is None:
            return True
        parts = (partition or "").split("/")
        values = {part.partition("=")[2] for part in parts}
        return self.partition == partition or self.partition in {*parts, *values}


@dataclass(slots=True)
class CountedFiles:
    """The files of one source that are asked about, and those whose rows are to be counted."""

    question: Question
    days: frozenset[str]
    keeps: Keeps
    groups: dict[str, DayOrPartition] = field(default_factory=dict)
    read: list[tuple[str, str, int]] = field(default_factory=list)
    """Groups, keys and entries of files whose rows are counted."""
    left_out: int = 0
    files: list[FileStanding] = field(default_factory=list)
    """Those that are to be listed, also of days that are not counted."""
    unread: tuple[SkipSummary, ...] = ()

    def count(self, one: FileStanding) -> None:
        """Count a file, if it is asked about."""
        question = self.question
        if not question.means(one.partition):
            return
        if (not question.days or one.day in self.days) and self.keeps(one):
            self.files.append(one)
        if (question.by == "day" or question.days) and one.day not in self.days:
            self.left_out += 1
            return
        name = (one.day if question.by == "day" else one.partition) or UNKNOWN
        self.groups.setdefault(name, DayOrPartition(name=name)).count(one)
        is_read = one.in_part and one.state not in OUT
        is_read = is_read or (one.state in READ and one.reason is None)
        if question.rows and one.entry is not None and is_read:
            self.read.append((name, one.key, one.entry))


@dataclass(slots=True)
class Reconciler:
    """Repeated reconciliations of one pipeline; what entries said once is not read again."""

    settings: PipelineSettings
    open_reader: OpenReader
    clock: Clock
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
        found = self._survey(question, keeps)
        return self._summed_up(question, found), [
            one for each in found.sources for one in each.files
        ]

    def count(self) -> SourceCounts:
        """Count all source files by state, whenever they landed. No row is counted."""
        found = self._survey(Question(by="partition", rows=False), lambda _one: False)
        counts = Counter[FileState]()
        for each in found.sources:
            for group in each.groups.values():
                counts.update(group.states)
        return SourceCounts(
            pipeline=self.settings.name,
            states={state: counts[state] for state in LANDED},
            unread=found.unread,
            errors=found.errors,
        )

    def _summed_up(self, question: Question, found: "SurveyedSources") -> Reconciliation:
        evidence = question.days if question.by == "day" else ()
        groups = {name: DayOrPartition(name=name) for name in evidence}
        for each in found.sources:
            for name, group in each.groups.items():
                groups.setdefault(name, DayOrPartition(name=name)).add(group)
        names = sorted(groups, reverse=True)
        listed, beyond = names[: question.most], names[question.most :]
        if question.rows:
            self._count_rows({name: groups[name] for name in listed}, found)
        today = f"{self.clock.now():%Y-%m-%d}"
        for name in listed:
            groups[name].judge(
                listed=not found.errors,
                refused=found.refused,
                so_far=name == today,
            )
        return Reconciliation(
            pipeline=self.settings.name,
            table_uri=self.settings.sink.table_uri,
            by=question.by,
            groups=tuple(groups[name] for name in listed),
            left_out=sum(each.left_out for each in found.sources)
            + sum(groups[name].landed for name in beyond),
            passed_over=found.unread,
            errors=found.errors,
        )

    def _count_rows(self, groups: Mapping[str, DayOrPartition], found: "SurveyedSources") -> None:
        """Count what was read of the files of some groups."""
        for group in groups.values():
            group.rows = 0
        if self._rows is None:
            return
        files = [one for each in found.sources for one in each.read if one[0] in groups]
        counts = self._rows.count([(key, entry) for _name, key, entry in files])
        for (name, _key, _entry), rows in zip(files, counts, strict=True):
            groups[name].add_rows(rows)

    def _survey(self, question: Question, keeps: Keeps) -> "SurveyedSources":
        """List every source; names that turn out damaged, or were replaced, are not believed."""
        evidence = PipelineEvidence.read(
            self.settings, self.clock, opening=self.open_reader, ledger=self.ledger
        )
        if evidence.store is not None and self._rows is None:
            journal = JournalReader(evidence.store, self.settings.name)
            self._rows = EntryRows(journal, lambda: self.ledger.books.replayed)
        return past_damage(self.ledger, lambda: self._surveyed(evidence, question, keeps))

    def _surveyed(
        self, evidence: PipelineEvidence, question: Question, keeps: Keeps
    ) -> "SurveyedSources":
        if not self._listers:
            self._listers = {each.source.name: each for each in source_listers(self.settings)}
        progress, errors = settled_progress(evidence)
        found = SurveyedSources(errors=errors)
        refusal = evidence.refusal_without_journal()
        if refusal is not None:
            found.refuse(refusal)
        days = question.window(self.clock.now())
        written, bad_lines = self._written(days), self._quarantined()

        def counted(lister: SourceLister) -> CountedFiles:
            survey = SourceSurvey(
                evidence=evidence,
                lister=lister,
                progress=progress,
                written=written,
                quarantined=bad_lines,
                prefix=question.prefix,
            )
            files = CountedFiles(question, frozenset(days), keeps)
            for one in survey.files():
                files.count(one)
            files.unread = survey.scan.finding(()).unread
            return files

        for name, lister in self._listers.items():
            if question.source in (None, name):
                with found.sparing(name):
                    evidence.refuse_other_source(lister.source)
                    # A store that turns out to list names in no order is listed once more.
                    found.sources.append(lister.lister.attempt(partial(counted, lister)))
        return found

    def _quarantined(self) -> dict[str, BadLines]:
        """Return how many bad lines of files wait, by key and entry; no file is opened."""
        waiting: dict[str, BadLines] = {}
        for each in self.ledger.books.waiting_files():
            for one in each.file.sources:
                lines = waiting.setdefault(one.source, {})
                lines[each.entry] = lines.get(each.entry, 0) + one.lines
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


@dataclass(slots=True)
class SurveyedSources:
    """All sources of a pipeline; one that cannot be listed hides no other."""

    sources: list[CountedFiles] = field(default_factory=list)
    errors: tuple[str, ...] = ()
    refused: bool = False
    """Whether a start of the pipeline would be refused."""

    @property
    def unread(self) -> tuple[SkipSummary, ...]:
        """Return the names that cannot be read, by reason."""
        return tuple(one for each in self.sources for one in each.unread)

    def refuse(self, refusal: LakeError) -> None:
        """Note that a start would be refused."""
        self.refused = True
        self.errors += (f"a start would be refused: {refusal} [{code_of(refusal)}]",)

    @contextmanager
    def sparing(self, source: str) -> Iterator[None]:
        """Note why a source cannot be listed, and go on."""
        try:
            yield
        except SegmentBroken:
            raise  # Nothing is wrong with the source: the entries say the same.
        except (JournalLost, SourceMoved) as refusal:
            self.refuse(refusal)
        except LakeError as trouble:
            self.errors += (f"source {source}: {trouble}",)
