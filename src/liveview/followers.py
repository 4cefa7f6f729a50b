"""Follow a pipeline's journal and a table's log: each view reads only what is new."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

from blizzard.answers.answer import CommandPrefix, WayOut
from blizzard.answers.bad_lines import (
    FaultGroup,
    QuarantineFiles,
    fix_for,
    groups_of,
    quarantine_of,
    way_out_for,
)
from blizzard.answers.status import SourceStatus
from blizzard.answers.status_reader import StatusReader
from blizzard.model.bad_lines import SelectedLines
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import OpenReader, open_reader
from blizzard.pipeline_log import PipelineLog
from lakebed.clock import Clock
from lakebed.deltalog.segment import read_checkpoint_hint
from lakebed.deltalog.snapshot import LogCache, LogReader, Snapshot
from lakebed.deltalog.versions import Commit, read_commit
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from lakebed.layout import log_version
from lakebed.storage.remote import is_there
from lakebed.storage.store import Reader
from liveview.details import BadLineGroup
from liveview.history import EntryFacts, ObservedTable, PipelineView, TableSize, facts_of
from liveview.model import DAY_SECS
from penguin.model.settings import TableSettings
from penguin.status import TableStatus, table_status

AT_ONCE = 8

Document = TypeVar("Document")
Read = Callable[[int], Document | None]
"""Reads one document; None if it is not there. It may raise LakeError if it cannot be read."""


class DocumentWindow(Generic[Document]):
    """The newest documents of one numbered sequence: a journal's entries or a log's versions.

    The first update reads back until the time span is covered, enough documents are known, or the
    time budget is spent; each later one reads what is new and continues backwards. So no update
    takes as long as the whole history.
    """

    def __init__(
        self,
        at: Callable[[Document], float | None],
        *,
        most: int = 20_000,
        budget_secs: float = 1.5,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`at` returns a document's time in seconds since the epoch."""
        self.span_secs = DAY_SECS
        """How far back to read: the longest span of any request so far."""
        self.documents: dict[int, Document] = {}
        self.missing: set[int] = set()
        """Numbers of unreadable documents."""
        self.low = 0
        """The lowest number read."""
        self.covered = False
        """Whether the whole span is known."""
        self.out_of_time = True
        """Whether the last update stopped before it covered the span."""
        self._high = -1
        self._at = at
        self._most = most
        self._budget = budget_secs
        self._seconds = seconds

    def update(self, read: Read[Document], last: int, *, since: float) -> None:
        """Read up to the last number, and back to `since` as far as the time budget allows."""
        end = self._seconds() + self._budget
        self.out_of_time = False
        if self._high < 0 or last < self._high or last - self._high > self._most:
            self.documents, self.missing = {}, set()
            self.low, self._high = last + 1, last
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="live window") as pool:
            self._take(range(self._high + 1, last + 1), read, pool)
            self._high = last
            while not self._reaches(since) and self.low > 0 and len(self.documents) < self._most:
                self.out_of_time = self._seconds() >= end
                if self.out_of_time:
                    break
                first = max(0, self.low - AT_ONCE * 4)
                self._take(range(first, self.low), read, pool)
                self.low = first
        self.covered = not self.out_of_time and (self._reaches(since) or self.low <= 0)
        if len(self.documents) > self._most:
            self._forget_before(sorted(self.documents)[-self._most])

    def get(self, read: Read[Document], number: int) -> Document | None:
        """Return one document, from memory if known; None if it cannot be read."""
        found = self.documents.get(number)
        with suppress(LakeError):
            return read(number) if found is None else found
        return None

    def since(self, at: float) -> list[Document]:
        """Return the documents from a time on, oldest first."""
        found = (self.documents[number] for number in sorted(self.documents))
        return [one for one in found if (self._at(one) or 0.0) >= at]

    def forget(self) -> None:
        """Drop everything: another journal or table has replaced it."""
        self._high = -1

    def _forget_before(self, number: int) -> None:
        self.documents = {at: one for at, one in self.documents.items() if at >= number}
        self.missing = {one for one in self.missing if one >= number}
        self.low = max(self.low, number)

    def _reaches(self, since: float) -> bool:
        for number in range(self.low, min(self.low + AT_ONCE, self._high + 1)):
            found = self.documents.get(number)
            at = None if found is None else self._at(found)
            if at is not None:
                return at < since
        return False

    def _take(self, numbers: Sequence[int], read: Read[Document], pool: ThreadPoolExecutor) -> None:
        known = partial(self.get, read)
        # For a single document the pool's threads need not start.
        found = map(known, numbers) if len(numbers) == 1 else pool.map(known, numbers)
        for number, one in zip(numbers, found, strict=True):
            if one is None:
                self.missing.add(number)
            else:
                self.documents[number] = one


class PipelineFollower:
    """Follows the journal of one pipeline."""

    def __init__(
        self, settings: PipelineSettings, *, clock: Clock, opening: OpenReader = open_reader
    ) -> None:
        self.settings = settings
        self.window = DocumentWindow[EntryFacts](lambda entry: entry.at)
        self.lock = threading.Lock()
        """Held while the ledger of a view changes."""
        self._clock = clock
        self._open = opening
        self._listing = threading.Lock()
        self._reader = StatusReader(settings, clock, PipelineLog(settings, opening))
        self._lister = StatusReader(settings, clock)
        """Has its own ledger, as listings run in parallel with views."""
        self._journal: str | None = None

    def view(self) -> PipelineView:
        """Read the new journal entries, without listing the sources."""
        with self.lock:
            window, now = self.window, self._clock.seconds()
            since = now - window.span_secs
            evidence, status = self._reader.read(self._open, listed=False)
            if status.journal != self._journal:
                window.forget()
                self._journal = status.journal
            store, name = evidence.store, self.settings.name
            journal = None if store is None else JournalReader(store, name)
            last = -1 if status.last_entry is None else status.last_entry
            window.update(
                lambda number: None if journal is None else facts_of(journal.entry(number)),
                last,
                since=since,
            )
            entries = tuple(window.since(since))
            return PipelineView(
                evidence=replace(evidence),  # Drop what is cached of the log.
                status=status,
                entries=entries,
                since=None if window.covered else entries[0].at if entries else now,
                unreadable=tuple(sorted(window.missing)),
                withheld=evidence.withheld,
                refusal=evidence.refusal(),
            )

    def sources(self) -> tuple[SourceStatus, ...]:
        """List the sources as a newly started run would."""
        with self._listing:
            return self._lister.read(self._open)[1].sources


MOST_LINES = 20_000
"""The most lines to read for grouping."""


@dataclass(slots=True)
class BadLineGroups:
    """A pipeline's groups of waiting bad lines, cached until the set of files changes."""

    follower: PipelineFollower
    cli: CommandPrefix
    _of: tuple[str, ...] | None = None
    _groups: list[BadLineGroup] = field(default_factory=list)

    def groups(self, view: PipelineView) -> list[BadLineGroup]:
        """Return the groups, largest first; read nothing if the files are unchanged."""
        with self.follower.lock:
            found = quarantine_of(view.evidence)
        names = tuple(waiting.file.filename for waiting in found.files)
        if names != self._of:
            self._groups = self._read(found)
            self._of = names
        return self._groups

    def _read(self, found: QuarantineFiles) -> list[BadLineGroup]:
        lines = sum(waiting.file.record_count for waiting in found.files)
        if lines > MOST_LINES:
            command = f"{self.cli.blizzard} dlq list"
            raise LakeError(f"{lines:,} bad lines are too many for a page; `{command}` groups them")
        return [
            BadLineGroup(
                code=group.fault.code,
                field=group.fault.field,
                lines=group.lines,
                files=len(group.files),
                sample_path=group.sample.key,
                sample_line=group.sample.line,
                way_out=_way_out(group, found, self.cli),
            )
            for group in groups_of(found, SelectedLines(everything=True))
        ]


def _way_out(group: FaultGroup, found: QuarantineFiles, cli: CommandPrefix) -> WayOut:
    name = group.fault.group
    try:
        fix = fix_for(group.tried, found.rules)
    except ImportError:
        # Only penguin is installed, and reading lines takes blizzard's libraries.
        return WayOut(advice="Print them.", commands=(f"{cli.blizzard} dlq show {name}",))
    return way_out_for(name, fix, cli)


MOST_FILES = 200_000
"""The sizes of tables with more files are unknown: reading the whole log takes too much memory."""


OpenTable = Callable[[TableSettings], Reader | None]
"""Opens a table's directory for reading; None if there is none yet."""


def open_table(settings: TableSettings) -> Reader | None:
    """Open a table's directory for reading."""
    uri = settings.table_uri
    return Reader(uri, settings.storage_options) if is_there(uri) else None


class TableFollower:
    """Follows the log of one table."""

    def __init__(
        self,
        settings: TableSettings,
        *,
        clock: Clock,
        opening: OpenTable = open_table,
    ) -> None:
        self.settings = settings
        self.window = DocumentWindow[Commit](
            lambda commit: None if commit.at_ms is None else commit.at_ms / 1000
        )
        self._clock = clock
        self._open = opening
        self._cache = LogCache()
        self._id: str | None = None
        self._size = TableSize()

    def view(self) -> ObservedTable:
        """Return the newest version and the versions of the time span."""
        store, known = self._opened()
        window, since = self.window, self._clock.seconds() - self.window.span_secs
        if store is None or known is None:
            window.update(lambda number: _version(None, number), -1, since=since)
            return ObservedTable()
        if known.id != self._id:
            # Another table has replaced it.
            window.forget()
            self._id, self._size = known.id, TableSize()
        window.update(lambda number: _version(store, number), known.version, since=since)
        return ObservedTable(
            version=known.version,
            facts=known.facts,
            commits=dict(window.documents),
            oldest=min(window.documents, default=None) if window.low > 0 else None,
        )

    def older(self, before: int, limit: int) -> list[Commit]:
        """Return versions before a number, newest first, as far as the log has them."""
        store = self._open(self.settings)
        found: list[Commit] = []
        for number in range(before - 1, max(-1, before - 1 - limit), -1):
            commit = self.window.get(lambda at: _version(store, at), number)
            if commit is None:
                break  # Older ones were cleaned up.
            found.append(commit)
        return found

    def size(self) -> TableSize:
        """Return the size of the newest version, computed once per version."""
        store, known = self._opened()
        if store is None or known is None:
            return TableSize()
        if self._size.version != known.version:
            note = read_checkpoint_hint(store)
            many = note.actions if note.files is None else note.files
            try:
                totals = known.totals() if many <= MOST_FILES else (None, None, None)
                self._size = TableSize(known.version, *totals)
            finally:
                known.release_files()
        return self._size

    def status(self) -> TableStatus | None:
        """Return waiting entries, held files and stopped pipelines; None without a table."""
        store = self._open(self.settings)
        if store is None:
            return None
        return table_status(
            self.settings,
            store,
            self._clock.now(),
            everything=False,
            log=LogReader(store, self._cache),
        )

    def _opened(self) -> tuple[Reader | None, Snapshot | None]:
        """Open the newest version, reusing what is cached of the log."""
        store = self._open(self.settings)
        return store, None if store is None else LogReader(store, self._cache).newest()


def _version(store: Reader | None, number: int) -> Commit | None:
    body = None if store is None else store.get(log_version(number))
    return None if body is None else read_commit(number, body)
