"""Reconcile a pipeline: files that landed in its sources against its table.

The ledger says what was read, the log what is committed, and a listing what landed and when.
Entries are read only to count rows, and only those of the files in question.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial

from blizzard.answers.answer import DayOf, FileStanding, FileState
from blizzard.answers.file_counts import (
    UNKNOWN,
    By,
    DayOrPartition,
    EntryRows,
    Reconciliation,
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
"""The default number of days to list."""
READ = (
    FileState.IN_TABLE, FileState.ALTERED, FileState.JOURNALED, FileState.HELD, FileState.DISCARDED,
)  # fmt: skip
"""States of files whose rows are counted: they were read as the present objects."""
OUT = (FileState.RETRACTED, FileState.REMOVED)
"""States of files whose rows are neither in the table nor pending."""
Keeps = Callable[[FileStanding], bool]
"""Decides whether to list a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which files to reconcile, and how to group them."""

    by: By = "day"
    days: tuple[str, ...] = ()
    """The days to list, such as `2024-01-01`; empty for the last `most` ones."""
    prefix: str = ""
    """A prefix of paths below the source."""
    source: str | None = None
    """The one source to list; None for all."""
    partition: str | None = None
    """A partition such as `date=2024-01-01`, or only a value of it; None for all."""
    rows: bool = True
    """Whether to count rows, which reads the entries of the counted files."""
    most: int = DAYS
    """The most days or partitions to list, newest first."""

    def window(self, now: datetime) -> tuple[str, ...]:
        """Return the days to list, newest first."""
        last = (f"{now - timedelta(days=ago):%Y-%m-%d}" for ago in range(self.most))
        return tuple(sorted(set(self.days), reverse=True)) or tuple(last)

    def means(self, partition: str | None) -> bool:
        """Whether a partition is selected."""
        if self.partition is None:
            return True
        parts = (partition or "").split("/")
        values = {part.partition("=")[2] for part in parts}
        return self.partition == partition or self.partition in {*parts, *values}


@dataclass(slots=True)
class CountedFiles:
    """Collects the selected files of one source, and those whose rows to count."""

    question: Question
    days: frozenset[str]
    keeps: Keeps
    groups: dict[str, DayOrPartition] = field(default_factory=dict)
    read: list[tuple[str, str, int]] = field(default_factory=list)
    """Groups, keys and entries of files whose rows to count."""
    left_out: int = 0
    files: list[FileStanding] = field(default_factory=list)
    """The files to list, including those of days that are not counted."""
    unread: tuple[SkipSummary, ...] = ()

    def count(self, one: FileStanding) -> None:
        """Count a file if it is selected."""
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
    """Reconciles one pipeline repeatedly, caching what entries say."""

    settings: PipelineSettings
    open_reader: OpenReader
    clock: Clock
    ledger: Ledger = field(default_factory=Ledger)
    _listers: dict[str, SourceLister] = field(default_factory=dict)
    _rows: EntryRows | None = None

    def reconcile(self, question: Question) -> Reconciliation:
        """Compare landed files with the table. Nothing is written."""
        return self.reconcile_and_list(question, lambda _one: False)[0]

    def reconcile_and_list(
        self, question: Question, keeps: Keeps
    ) -> tuple[Reconciliation, list[FileStanding]]:
        """Compare landed files with the table, and return the files that `keeps` selects."""
        found = self._survey(question, keeps)
        return self._summed_up(question, found), [
            one for each in found.sources for one in each.files
        ]

    def _summed_up(self, question: Question, found: "SurveyedSources") -> Reconciliation:
        named = question.days if question.by == "day" else ()
        groups = {name: DayOrPartition(name=name) for name in named}
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
                so_far=question.by == "day" and today <= name != UNKNOWN,
            )
        return Reconciliation(
            pipeline=self.settings.name,
            table_uri=self.settings.sink.table_uri,
            by=question.by,
            groups=tuple(groups[name] for name in listed),
            left_out=sum(each.left_out for each in found.sources)
            + sum(groups[name].landed for name in beyond),
            skipped_names=found.unread,
            errors=found.errors,
        )

    def _count_rows(self, groups: Mapping[str, DayOrPartition], found: "SurveyedSources") -> None:
        """Count the rows of the files of some groups."""
        for group in groups.values():
            group.rows = 0
        if self._rows is None:
            return
        files = [one for each in found.sources for one in each.read if one[0] in groups]
        counts = self._rows.count([(key, entry) for _name, key, entry in files])
        for (name, _key, _entry), rows in zip(files, counts, strict=True):
            groups[name].add_rows(rows)

    def _survey(self, question: Question, keeps: Keeps) -> "SurveyedSources":
        """List every source; if segments turn out damaged or replaced, read the ledger again."""
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
                    # A store that turns out to list names unordered is listed once more.
                    found.sources.append(lister.lister.attempt(partial(counted, lister)))
        return found

    def _quarantined(self) -> dict[str, BadLines]:
        """Count the waiting bad lines by key and entry, without opening files."""
        waiting: dict[str, BadLines] = {}
        for each in self.ledger.books.waiting_files():
            for one in each.file.sources:
                lines = waiting.setdefault(one.source, {})
                lines[each.entry] = lines.get(each.entry, 0) + one.lines
        return waiting

    def _written(self, days: Sequence[str]) -> DayOf:
        """Return a function that tells on which of some days an entry was written."""
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
    """The surveyed sources of a pipeline; an unlistable one does not hide the others."""

    sources: list[CountedFiles] = field(default_factory=list)
    errors: tuple[str, ...] = ()
    refused: bool = False
    """Whether a start of the pipeline would be refused."""

    @property
    def unread(self) -> tuple[SkipSummary, ...]:
        """The unreadable names, by reason."""
        return tuple(one for each in self.sources for one in each.unread)

    def refuse(self, refusal: LakeError) -> None:
        """Record that a start would be refused."""
        self.refused = True
        self.errors += (f"a start would be refused: {refusal} [{code_of(refusal)}]",)

    @contextmanager
    def sparing(self, source: str) -> Iterator[None]:
        """Record why a source cannot be listed, and continue."""
        try:
            yield
        except SegmentBroken:
            raise  # The source is fine; the ledger is read again from the entries.
        except (JournalLost, SourceMoved) as refusal:
            self.refuse(refusal)
        except LakeError as trouble:
            self.errors += (f"source {source}: {trouble}",)
