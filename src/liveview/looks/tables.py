"""A table as it is: its log, read once, and what waits to be committed to it."""

import threading
from collections.abc import Callable

from lakebed.clock import Clock
from lakebed.deltalog.checkpoint import checkpoint_totals
from lakebed.deltalog.segment import find_segment, read_checkpoint_hint
from lakebed.deltalog.snapshot import LogCache, LogReader, Snapshot
from lakebed.deltalog.versions import Commit, read_commit
from lakebed.errors import LakeError
from lakebed.layout import log_version
from lakebed.storage.store import Reader, is_there
from liveview.looks.window import DocumentWindow
from liveview.model import DAY_SECS
from liveview.versions import ObservedTable, TableSize
from penguin.model.settings import TableSettings
from penguin.status import TableStatus, table_status

MOST_FILES = 200_000
"""Files of the largest table whose newest version is added up: a larger log takes too much memory,
so it is added up as of its last checkpoint."""


OpenTable = Callable[[TableSettings], Reader | None]
"""Opens a table's directory for reading; None if there is none yet."""


def open_table(settings: TableSettings) -> Reader | None:
    """Open a table's directory for reading."""
    uri = settings.table_uri
    return Reader(uri, settings.storage_options) if is_there(uri) else None


class TableLook:
    """Repeated looks at one table."""

    def __init__(
        self,
        settings: TableSettings,
        *,
        clock: Clock,
        opening: OpenTable = open_table,
        most_files: int = MOST_FILES,
    ) -> None:
        self.settings = settings
        self.span_secs = DAY_SECS
        """How far back a look goes: as far as any request did."""
        self.unfinished = True
        """Whether the next look goes on with what the last one had no time for."""
        self._clock = clock
        self._open = opening
        self._most_files = most_files
        self._cache = LogCache()
        self._knowing = threading.Lock()
        self._window = _window()
        self._id: str | None = None
        self._size = TableSize()

    def view(self) -> ObservedTable:
        """Look at the log: its newest version, and those of the span."""
        store, known = self._opened()
        if store is None or known is None:
            self.unfinished = False
            return ObservedTable()
        if known.id != self._id:
            # Another table has taken the place of the one that was known.
            self._window, self._id, self._size = _window(), known.id, TableSize()
        since = self._clock.seconds() - self.span_secs
        self._window.look(lambda number: _version(store, number), known.version, since=since)
        self.unfinished = self._window.out_of_time
        commits = dict(self._window.documents)
        first = commits[min(commits)] if commits and self._window.low > 0 else None
        return ObservedTable(
            version=known.version,
            facts=known.facts,
            commits=commits,
            covered_since=None if first is None else _at(first),
        )

    def older(self, before: int, limit: int) -> list[Commit]:
        """Return versions before a number, the newest first, as far back as the log has them."""
        store = self._open(self.settings)
        found: list[Commit] = []
        for number in range(before - 1, max(-1, before - 1 - limit), -1):
            commit = self._window.documents.get(number)
            if commit is None and store is not None:
                commit = _version(store, number)
            if commit is None:
                break  # Older ones were cleaned up.
            found.append(commit)
        return found

    def size(self) -> TableSize:
        """Add up the files of the newest version, once for each version."""
        store, known = self._opened()
        if store is None or known is None:
            return TableSize()
        if self._size.version != known.version:
            self._size = self._added_up(store, known)
        return self._size

    def _added_up(self, store: Reader, known: Snapshot) -> TableSize:
        """Add up a version, or if the table is large, that of its last checkpoint."""
        note = read_checkpoint_hint(store)
        many = note.actions if note.files is None else note.files
        if many <= self._most_files:
            try:
                return TableSize(known.version, *known.totals())
            finally:
                known.release_files()
        segment = find_segment(store)
        if segment is None or segment.checkpoint is None:
            return TableSize()
        if self._size.version == segment.checkpoint.version:
            return self._size
        totals = checkpoint_totals(store, segment.checkpoint)
        return TableSize(segment.checkpoint.version, *totals)

    def status(self) -> TableStatus | None:
        """Return what waits, what is held and what is stopped; None without a table."""
        store = self._open(self.settings)
        if store is None:
            return None
        return table_status(
            self.settings,
            store,
            self._clock.now(),
            count_ignored=False,
            everything=False,
            log=_KnownLog(store, self._known),
        )

    def _opened(self) -> tuple[Reader | None, Snapshot | None]:
        store = self._open(self.settings)
        return store, None if store is None else self._known(store)

    def _known(self, store: Reader) -> Snapshot | None:
        """Return the newest version; what is known of the log is not read again."""
        with self._knowing:
            return LogReader(store, self._cache).look()


class _KnownLog(LogReader):
    """A log of which repeated looks read only what is new."""

    def __init__(self, store: Reader, known: Callable[[Reader], Snapshot | None]) -> None:
        super().__init__(store)
        self._known = known

    def look(self) -> Snapshot | None:
        """Open the latest version of the table."""
        return self._known(self.store)


def _at(commit: Commit) -> float | None:
    return None if commit.at_ms is None else commit.at_ms / 1000


def _window() -> DocumentWindow[Commit]:
    return DocumentWindow(_at)


def _version(store: Reader, number: int) -> Commit | None:
    try:
        body = store.get(log_version(number))
    except LakeError:
        return None
    return None if body is None else read_commit(number, body)
