"""The documents about one pipeline or one table. Read-only."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from blizzard.answers.progress import progress_of
from blizzard.answers.report import Question
from blizzard.answers.source_status import FailedFile as SourceFailure
from blizzard.answers.source_status import failed_files
from blizzard.answers.ways_out import way_out
from blizzard.answers.why import Pipelines, why
from blizzard.handoff.held_rows import Aside, read_aside
from blizzard.journal.ledger import Ledger
from blizzard.journal.source_names import FileUnknown
from blizzard.log_questions import asked_of, asks_fates, asks_still_out
from blizzard.model.settings import PipelineSettings
from lakebed.deltalog.versions import Commit
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from liveview.looks.bad_lines import BadLines
from liveview.looks.files import Search
from liveview.looks.tables import TableView
from liveview.model import (
    BadLineGroup,
    Batch,
    Batches,
    Column,
    FailedFile,
    Files,
    HeldEntry,
    Journey,
    PipelineDetail,
    TableDetail,
    Versions,
)
from liveview.observer import Observer
from liveview.over_time import Days, FreshnessSeries, Series
from liveview.times import of_text, rfc3339
from liveview.views.days import days_of, yesterday_of
from liveview.views.entries import Committed, batch_of, committed_in, timed
from liveview.views.journey import journey_of
from liveview.views.problems import HELD
from liveview.views.series import freshness_series, series_of
from liveview.views.versions import (
    changes_of,
    columns_of,
    since_versions,
    version_of,
)

RECENT = 10
MOST_FAILED = 200


class NoSuchFile(LakeError):
    """No source of the pipeline has this name."""

    code = "file_unknown"


class Answers:
    """Answers questions about single pipelines and tables."""

    def __init__(self, observer: Observer) -> None:
        self._on = observer
        self._bad_lines = {
            name: BadLines(settings, observer.pipelines[name])
            for name, settings in observer.lake.pipelines.items()
        }

    def pipeline(self, name: str) -> PipelineDetail:
        """Return one pipeline in full; what cannot be read is said in a note."""
        settings = self._on.lake.pipelines[name]
        notes: list[str] = []
        summary = self._on.summary(name)
        batches: list[Batch] = []
        bad_lines: list[BadLineGroup] = []
        held: list[HeldEntry] = []
        with _noting(notes, "the journal"):
            batches = self.batches(name, before=None, limit=RECENT).batches
        with _noting(notes, "the quarantine"):
            bad_lines = self._bad_lines[name].groups()
        with _noting(notes, "what penguin holds"):
            held = self._held(settings)
        return PipelineDetail(
            summary=summary,
            recent_batches=batches,
            bad_lines=bad_lines,
            failed=list(self._failed(settings)),
            held=held,
            schema=self._columns(name, notes),
            note="; ".join(notes) or None,
        )

    def batches(self, name: str, *, before: int | None, limit: int) -> Batches:
        """Return entries of a journal, the newest first."""
        look = self._on.pipelines[name]
        store = look.store()
        last = self._on.pipeline_view(name).status.last_entry
        if store is None or last is None:
            return Batches(batches=[], next_before=None)
        journal = JournalReader(store, name)
        highest = last if before is None else min(last, before - 1)
        numbers = range(highest, max(-1, highest - limit), -1)
        committed = self._on.committed(name)
        secs = self._on.batch_secs(name)
        found = [
            timed(self._batch(name, journal, number, committed), secs.get(str(number)))
            for number in numbers
        ]
        lowest = numbers[-1] if numbers else 0
        return Batches(batches=found, next_before=lowest if lowest > 0 else None)

    def files(self, name: str, *, search: str, limit: int) -> Files:
        """Return source files with a text in their names, the newest first."""
        settings, look = self._on.lake.pipelines[name], self._on.pipelines[name]
        self._on.pipeline_view(name)  # What the journal says by now is learned with it.
        store, committed = look.store(), self._on.committed(name)
        history = look.history()
        progress, unsure = progress_of(
            settings,
            store,
            history,
            fates=asks_fates(settings),
            still_out=asks_still_out(settings),
        )
        found = Search(
            settings=settings,
            store=store,
            history=history,
            opening=self._on.opening,
            committed=committed.get,
            progress=progress,
        ).find(search, limit)
        notes = [*unsure, *(() if found.note is None else (found.note,))]
        return replace(found, note="; ".join(notes) or None)

    def journey(self, name: str, path: str) -> Journey:
        """Return where one source file is; NoSuchFile where no file is meant."""
        settings = self._on.lake.pipelines[name]
        key = _key(settings, path)
        asked = asked_of(settings, self._on.clock, opening=self._on.opening)
        try:
            answers = why(key, Pipelines((settings,), lambda _settings: asked))
        except FileUnknown as unknown:
            raise NoSuchFile(unknown.message) from unknown
        journey = journey_of(answers[0], quotes=not settings.show_values)
        return replace(journey, path=key)

    def days(self, name: str, *, limit: int) -> Days:
        """Return the last days: what landed, and what of it is in the table."""
        now = self._on.clock.now()
        days = Question(most=limit).window(now)
        found = self._on.reconciled(name, Question(days=days, most=limit))
        return days_of(found, yesterday_of(now))

    def throughput(self, name: str, *, hours: int, points: int) -> Series:
        """Return rows, bytes and files over the last hours."""
        now = self._on.clock.seconds()
        view = self._on.pipeline_view(name, hours * 3600)
        return series_of(view.entries, now=now, hours=hours, points=points)

    def freshness(self, name: str, *, hours: int, points: int) -> FreshnessSeries:
        """Return how long files took into the table, over the last hours."""
        now = self._on.clock.seconds()
        view = self._on.pipeline_view(name, hours * 3600)
        return freshness_series(
            view.entries,
            self._on.committed(name, span_secs=hours * 3600),
            now=now,
            hours=hours,
            points=points,
            held=view.held,
        )

    def table(self, name: str) -> TableDetail:
        """Return one table in full."""
        notes: list[str] = []
        view: TableView | None = None
        commits: list[Commit] = []
        columns: list[Column] = []
        apart: list[str] = []
        properties: dict[str, str] = {}
        features: list[str] = []
        with _noting(notes, "the log of the table"):
            view = self._on.table_view(name)
            commits = sorted(view.commits.values(), key=lambda one: -one.version)
            if view.facts is not None:
                columns = columns_of(view.facts, since_versions(commits))
                apart = list(view.facts.partition_columns)
                properties = {
                    name: value
                    for name, value in view.facts.configuration.items()
                    if name.startswith("delta.")
                }
                features = sorted(view.facts.features)
            if view.covered_since is not None:
                oldest = commits[-1].version if commits else None
                notes.append(f"changes of columns are shown from version {oldest} on")
        summary = self._on.table_summary(name, view)
        if summary.size_version not in (None, summary.version):
            when = "" if summary.size_at is None else f", committed at {summary.size_at}"
            notes.append(f"files, rows and size are those of version {summary.size_version}{when}")
        return TableDetail(
            summary=summary,
            columns=columns,
            partition_columns=apart,
            schema_changes=changes_of(commits),
            recent_versions=[version_of(one) for one in commits[:RECENT]],
            properties=properties,
            features=features,
            note="; ".join(notes) or None,
        )

    def versions(self, name: str, *, before: int | None, limit: int) -> Versions:
        """Return versions of a table, the newest first."""
        look = self._on.tables[name]
        view = self._on.table_view(name)
        if view.version is None:
            return Versions(versions=[], next_before=None)
        start = view.version + 1 if before is None else min(before, view.version + 1)
        commits = look.older(start, limit)
        last = commits[-1].version if commits else 0
        more = bool(commits) and len(commits) == limit and last > 0
        return Versions(
            versions=[version_of(one) for one in commits], next_before=last if more else None
        )

    def _batch(
        self, name: str, journal: JournalReader, number: int, committed: dict[int, Committed]
    ) -> Batch:
        known = self._on.pipelines[name].known(number)
        if known is not None:
            return committed_in(known.batch, committed.get(number))
        try:
            entry = journal.entry(number)
        except LakeError as trouble:
            return _unreadable(number, str(trouble))
        if entry is None:
            return _unreadable(number, "this entry is not there")
        return batch_of(entry, committed.get(number))

    def _failed(self, settings: PipelineSettings) -> Iterator[FailedFile]:
        failed = self._on.pipelines[settings.name].learned(
            lambda history: _failed(settings, history)
        )
        for source, one, since in failed:
            # With show_values a message may quote the line that it is about.
            reason = f"{one.stage}, {one.code}" if settings.show_values else one.message
            yield FailedFile(
                path=f"{source}:{one.path}",
                code=one.code,
                reason=reason,
                way_out=None
                if one.next_try is not None
                else way_out(one.code, part_way=bool(one.lines_in_table)),
                attempts=one.attempts,
                next_try_at=None if one.next_try is None else rfc3339(one.next_try),
                since=None if since is None else rfc3339(since),
            )

    def _held(self, settings: PipelineSettings) -> list[HeldEntry]:
        status = self._on.pipeline_view(settings.name).status
        if not status.held_files:
            return []
        aside = self._aside(settings)
        entries: dict[int | None, list[int]] = {}
        for place, meta in enumerate(aside.held):
            entries.setdefault(meta.entry, []).append(place)
        found = []
        for entry, places in entries.items():
            metas = [aside.held[place] for place in places]
            reasons = dict.fromkeys(reason for meta in metas for reason in meta.reasons)
            found.append(
                HeldEntry(
                    entry=entry,
                    reason="; ".join(reasons),
                    way_out=HELD,
                    since=of_text(min(meta.held_at for meta in metas)),
                    files=len(metas),
                    rows=sum(meta.record_count for meta in metas),
                )
            )
        return found

    def _aside(self, settings: PipelineSettings) -> Aside:
        store = self._on.pipelines[settings.name].store()
        if store is None:
            return Aside()
        return read_aside(store, settings.name, asks_fates(settings))

    def _columns(self, name: str, notes: list[str]) -> list[Column]:
        settings = self._on.lake.pipelines[name]
        with _noting(notes, "the log of the table"):
            view = self._on.table_view(self._on.lake.table_of[name])
            if view.facts is not None:
                return columns_of(view.facts, since_versions(view.commits.values()))
        apart = settings.sink.template.keys if settings.sink.template else ()
        return [
            Column(
                name=one.name,
                type=one.shown,
                nullable=one.nullable,
                since_version=None,
                partition=one.name in apart,
            )
            for one in settings.table_schema.fields
        ]


def _failed(
    settings: PipelineSettings, history: Ledger
) -> list[tuple[str, SourceFailure, datetime | None]]:
    """Return the files that failed, the newest first, with their sources and since when. Pure."""
    failed = [
        (source.name, one)
        for source in settings.sources
        for one in failed_files(settings, source, history)
    ]
    failed.sort(key=lambda one: one[1].failed_at, reverse=True)
    found = []
    for source, one in failed[:MOST_FAILED]:
        known = history.unfinished.get(f"{source}:{one.path}")
        found.append((source, one, None if known is None else known.since))
    return found


def _key(settings: PipelineSettings, path: str) -> str:
    """Return the key of a file: a path alone is enough where there is one source."""
    names = [source.name for source in settings.sources]
    if path.partition(":")[0] in names and ":" in path:
        return path
    if len(names) > 1:
        raise NoSuchFile(f"name the source: {', '.join(f'{name}:PATH' for name in names)}")
    return f"{names[0]}:{path}"


@contextmanager
def _noting(notes: list[str], what: str) -> Iterator[None]:
    """Note what cannot be read, and go on without it."""
    try:
        yield
    except LakeError as trouble:
        notes.append(f"{what} cannot be read: {trouble}")


def _unreadable(number: int, why: str) -> Batch:
    """Return what stands in the place of an entry that cannot be read."""
    return Batch(
        entry=number,
        kind="unknown",
        at=None,
        seconds=None,
        files=0,
        files_failed=0,
        rows=0,
        lines=0,
        bad_lines=0,
        rescued=0,
        bytes_read=0,
        bytes_written=0,
        data_files=0,
        committed_version=None,
        committed_at=None,
        balanced=False,
        books=[],
        error=why,
    )
