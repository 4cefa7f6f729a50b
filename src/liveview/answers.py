"""The documents of the API, each registered under its route. Read-only."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from importlib.metadata import version as installed_version

from blizzard.answers.answer import Answer, CommandPrefix, WayOut
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.report import Question
from blizzard.answers.source_file import settled_progress
from blizzard.answers.status_reader import failed_files, lost_among
from blizzard.answers.why import Pipelines, why
from blizzard.answers.wording.phrases import of_failed, of_lost
from blizzard.journal.source_names import FileUnknown
from lakebed.clock import rfc3339
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from liveview.details import (
    BadLineGroup,
    Batch,
    Batches,
    Days,
    FailedFile,
    Files,
    FreshnessSeries,
    HeldEntry,
    PipelineDetail,
    Series,
    TableDetail,
    Versions,
)
from liveview.file_search import FileSearch
from liveview.followers import BadLineGroups
from liveview.history import (
    ObservedTable,
    PipelineView,
    batch_of,
    changes_of,
    columns_of,
    committed_in,
    freshness_series,
    series_of,
    version_of,
)
from liveview.model import Overview, Process, of_text
from liveview.observer import Observer
from liveview.routes import (
    BEFORE,
    DAYS,
    HOURS,
    LIMIT,
    PATH,
    POINTS,
    SEARCH,
    RequestRefused,
    Route,
    Values,
    encoded,
    route,
    text,
)
from liveview.summaries import days_of

RECENT = 10
MOST_FAILED = 200


class Answers:
    """Answers the requests of one configuration."""

    def __init__(self, observer: Observer) -> None:
        self._on = observer
        self._bad_lines = {
            name: BadLineGroups(follower, observer.lake.line(name))
            for name, follower in observer.pipelines.items()
        }

    def close(self) -> None:
        """Release the threads."""
        self._on.close()

    def document(self, route: Route, name: str, values: Values) -> bytes:
        """Return the document of a route as JSON, at most as old as the route allows."""
        on = self._on
        if route.of is not None and name not in getattr(on, route.of):
            kind = route.of[:-1]
            raise RequestRefused(
                f"{kind}_unknown",
                f"the configuration has no {kind} of this name",
                "the overview has all names",
                HTTPStatus.NOT_FOUND,
            )

        def compute() -> bytes:
            names = (name,) if route.of is not None else ()
            return encoded(route.answer(self, *names, **values))

        if route.max_age == 0:
            return compute()
        return on.documents.ask(
            (route.path, name, *values.values()),
            compute,
            max_age=route.max_age,
            wait=on.patience.answer,
            stale_wait=on.patience.stale,
            mark=on.mark(name),
        )

    @route("overview", "All pipelines and tables at a glance", max_age=0)
    def overview(self) -> Overview:
        """Return all pipelines and tables."""
        return self._on.overview()

    @route(
        "process",
        "What this process reports; the other program requests it",
        max_age=0,
    )
    def process(self) -> Process:
        """Return what this process reports about itself."""
        return replace(self._on.live.process(), table_uris=self._on.lake.table_uris)

    @route("pipelines/{name}", "One pipeline in full")
    def pipeline(self, name: str) -> PipelineDetail:
        """Return one pipeline in full, with a note about anything unreadable."""
        notes: list[str] = []
        summary = self._on.pipeline(name)
        batches: list[Batch] = []
        bad_lines: list[BadLineGroup] = []
        failed: list[FailedFile] = []
        held: list[HeldEntry] = []
        with _noting(notes, "the journal"):
            batches = self.batches(name, before=None, limit=RECENT).batches
            view = self._on.journal(name)
            held, failed = list(_held(view, self._on.lake.line())), list(self._failed(view))
            with _noting(notes, "the quarantine"):
                bad_lines = self._bad_lines[name].groups(view)
        return PipelineDetail(
            summary=summary,
            recent_batches=batches,
            bad_lines=bad_lines,
            failed=failed,
            held=held,
            note="; ".join(notes) or None,
        )

    @route(
        "pipelines/{name}/batches",
        "Entries of its journal with their books, newest first",
        BEFORE,
        LIMIT,
    )
    def batches(self, name: str, *, before: int | None, limit: int) -> Batches:
        """Return a page of journal entries, newest first."""
        follower, view = self._on.pipelines[name], self._on.journal(name)
        store, last = view.evidence.store, view.status.last_entry
        if store is None or last is None:
            return Batches(batches=[], next_before=None)
        journal = JournalReader(store, name)
        highest = last if before is None else min(last, before - 1)
        numbers = range(highest, max(-1, highest - limit), -1)
        committed = self._on.committed(name)
        found = []
        for number in numbers:
            known = follower.window.documents.get(number)
            batch = _read(journal, number) if known is None else known.batch
            found.append(committed_in(batch, committed.get(number)))
        lowest = numbers[-1] if numbers else 0
        return Batches(batches=found, next_before=lowest if lowest > 0 else None)

    @route(
        "pipelines/{name}/files",
        "Source files by part of their names, newest first",
        SEARCH,
        LIMIT,
    )
    def files(self, name: str, *, search: str, limit: int) -> Files:
        """Return source files whose names contain a text, newest first."""
        evidence = replace(self._on.journal(name).evidence)  # With the newest version of the log.
        progress, unsure = settled_progress(evidence)
        entries = self._on.pipelines[name].window.documents

        def written(number: int) -> str | None:
            return entries[number].batch.at if number in entries else None

        found = FileSearch(
            evidence=evidence,
            committed=self._on.committed(name).get,
            written=written,
            progress=progress,
        ).find(search, limit)
        notes = [*unsure, *(() if found.note is None else (found.note,))]
        return replace(found, note="; ".join(notes) or None)

    @route(
        "pipelines/{name}/file",
        "The journey of one source file: the answer of `blizzard why`",
        PATH,
    )
    def journey(self, name: str, *, path: str) -> Answer:
        """Return the answer of `why` for one source file; raise RequestRefused if it is unknown."""
        settings = self._on.lake.pipelines[name]
        if _leads_out(path):
            raise _no_such_file("a file is named by its path below a source, without `..`")
        names = [source.name for source in settings.sources]
        key = path
        if ":" not in path or path.partition(":")[0] not in names:
            if len(names) > 1:
                raise _no_such_file(f"name the source: {', '.join(f'{one}:PATH' for one in names)}")
            key = f"{names[0]}:{path}"
        evidence = PipelineEvidence.read(
            settings, self._on.clock, opening=self._on.opening, cli=self._on.lake.line(name)
        )
        try:
            answers = why(key, Pipelines((settings,), lambda _settings: evidence))
        except FileUnknown as unknown:
            raise _no_such_file(unknown.message) from unknown
        return without_quotes(answers[0]) if settings.show_values else answers[0]

    @route(
        "pipelines/{name}/days",
        "The files that landed on each day, and how many of them are in the table",
        DAYS,
        max_age=15.0,
    )
    def days(self, name: str, *, limit: int) -> Days:
        """Return how many files landed on each recent day, and how many are in the table."""
        now = self._on.clock.now()
        days = Question(most=limit).window(now)
        found = self._on.reconciled(name, Question(days=days, most=limit))
        return days_of(found)

    @route(
        "pipelines/{name}/throughput", "Rows, bytes and files over time", HOURS, POINTS, max_age=5.0
    )
    def throughput(self, name: str, *, hours: int, points: int) -> Series:
        """Return rows, bytes and files per time step."""
        view = self._on.journal(name, hours * 3600)
        now = self._on.clock.seconds()
        return series_of(view.entries, now=now, hours=hours, points=points)

    @route(
        "pipelines/{name}/freshness",
        "The time from the arrival of files to the Delta commit, over time",
        HOURS,
        POINTS,
        max_age=5.0,
    )
    def freshness(self, name: str, *, hours: int, points: int) -> FreshnessSeries:
        """Return the delay from arrival to commit per time step."""
        view, now = self._on.journal(name, hours * 3600), self._on.clock.seconds()
        committed = self._on.committed(name, hours * 3600)
        return freshness_series(
            view.entries, committed, now=now, hours=hours, points=points, held=view.held
        )

    @route("tables/{name}", "One table in full")
    def table(self, name: str) -> TableDetail:
        """Return one table in full."""
        notes: list[str] = []
        view: ObservedTable | None = None
        with _noting(notes, "the log of the table"):
            view = self._on.log(name)
        summary = self._on.table(name, view)
        facts = None if view is None else view.facts
        found = {} if view is None else view.commits
        commits = [found[version] for version in sorted(found, reverse=True)]
        if view is not None and view.oldest is not None:
            notes.append(f"column changes are shown since version {view.oldest}")
        if summary.size_version not in (None, summary.version):
            when = "" if summary.size_at is None else f", committed at {summary.size_at}"
            notes.append(f"files, rows and size are those of version {summary.size_version}{when}")
        properties = {} if facts is None else facts.configuration
        return TableDetail(
            summary=summary,
            columns=[] if facts is None else columns_of(facts),
            partition_columns=[] if facts is None else list(facts.partition_columns),
            schema_changes=changes_of(commits),
            recent_versions=[version_of(one) for one in commits[:RECENT]],
            properties={key: properties[key] for key in properties if key.startswith("delta.")},
            features=[] if facts is None else sorted(facts.features),
            note="; ".join(notes) or None,
        )

    @route("tables/{name}/versions", "Versions of a table, newest first", BEFORE, LIMIT)
    def versions(self, name: str, *, before: int | None, limit: int) -> Versions:
        """Return a page of table versions, newest first."""
        version = self._on.log(name).version
        if version is None:
            return Versions(versions=[], next_before=None)
        start = version + 1 if before is None else min(before, version + 1)
        commits = self._on.tables[name].older(start, limit)
        last = commits[-1].version if len(commits) == limit else 0
        return Versions(versions=[version_of(one) for one in commits], next_before=last or None)

    def _failed(self, view: PipelineView) -> Iterator[FailedFile]:
        settings, history = view.evidence.settings, view.evidence.history
        with self._on.pipelines[settings.name].lock:
            failed = [
                (f"{source.name}:{one.path}", one)
                for source in settings.sources
                for one in failed_files(settings, source, history)
            ]
            failed.sort(key=lambda each: each[1].failed_at, reverse=True)
            lost = sorted(lost_among(history).items(), key=lambda each: each[1].at, reverse=True)
        cli = self._on.lake.line(settings.name)
        for key, known in lost[:MOST_FAILED]:
            failure = known.record.failure
            yield FailedFile(
                path=key,
                code="files_lost" if failure is None else failure.code,
                reason="it was deleted from its source before all of it was read",
                way_out=of_lost(cli, key),
                attempts=0 if failure is None else failure.attempts,
                next_try_at=None,
                since=rfc3339(known.at),
            )
        for key, one in failed[:MOST_FAILED]:
            # With show_values a message may quote the line that it is about.
            reason = f"{one.stage}, {one.code}" if settings.show_values else one.message
            yield FailedFile(
                path=key,
                code=one.code,
                reason=reason,
                way_out=of_failed(one, key, settings, cli),
                attempts=one.attempts,
                next_try_at=None if one.next_try is None else rfc3339(one.next_try),
                since=None if one.since is None else rfc3339(one.since),
            )


def _held(view: PipelineView, cli: CommandPrefix) -> Iterator[HeldEntry]:
    for entry in dict.fromkeys(meta.entry for meta in view.withheld.held):
        metas = [meta for meta in view.withheld.held if meta.entry == entry]
        yield HeldEntry(
            entry=entry,
            reason="; ".join(dict.fromkeys(reason for meta in metas for reason in meta.reasons)),
            way_out=WayOut(commands=(f"{cli.penguin} held",)),
            since=of_text(min(meta.held_at for meta in metas)),
            files=len(metas),
            rows=sum(meta.record_count for meta in metas),
        )


def _read(journal: JournalReader, number: int) -> Batch:
    """Return an entry; if it is unreadable, `error` says why."""
    try:
        entry = journal.entry(number)
    except LakeError as trouble:
        return Batch(entry=number, kind="unknown", error=str(trouble))
    if entry is None:
        return Batch(entry=number, kind="unknown", error="this entry is missing")
    return batch_of(entry)


def without_quotes(answer: Answer) -> Answer:
    """Replace a failure's message, which may quote a line, by its code."""
    if answer.failure is None:
        return answer
    return replace(
        answer,
        answer=f"It failed and is not in the table, or not all of it: {answer.failure.code}.",
        detail=None,
        failure=replace(answer.failure, message=answer.failure.code),
    )


def _leads_out(path: str) -> bool:
    """Whether a path could point outside its source."""
    below = path.partition(":")[2] or path
    parts = re.split(r"[/\\]", below)
    return ".." in parts or "." in parts or below.startswith(("/", "\\", "~")) or "://" in path


def _no_such_file(message: str) -> RequestRefused:
    return RequestRefused("file_unknown", message, status=HTTPStatus.NOT_FOUND)


@contextmanager
def _noting(notes: list[str], what: str) -> Iterator[None]:
    """Turn a read error within the block into a note."""
    try:
        yield
    except LakeError as trouble:
        notes.append(f"{what} cannot be read: {trouble}")


if __name__ == "__main__":
    sys.stdout.write(text(installed_version("blizzard-penguin")))
