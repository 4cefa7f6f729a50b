"""A table as it is: its log, read once, and what waits to be committed to it."""

from collections.abc import Callable

from lakebed.clock import Clock
from lakebed.deltalog.checkpoint import checkpoint_totals
from lakebed.deltalog.segment import find_segment, read_checkpoint_hint
from lakebed.deltalog.snapshot import LogCache, LogReader, Snapshot
from lakebed.deltalog.versions import Commit, read_commit
from lakebed.layout import log_version
from lakebed.storage.remote import is_there
from lakebed.storage.store import Reader
from liveview.looks.window import DocumentWindow
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
        self.window = DocumentWindow[Commit](
            lambda commit: None if commit.at_ms is None else commit.at_ms / 1000
        )
        self._clock = clock
        self._open = opening
        self._most_files = most_files
        self._cache = LogCache()
        self._id: str | None = None
        self._size = TableSize()

    def view(self) -> ObservedTable:
        """Look at the log: its newest version, and those of the span."""
        store, known = self._opened()
        window, since = self.window, self._clock.seconds() - self.window.span_secs
        if store is None or known is None:
            window.look(lambda number: _version(None, number), -1, since=since)
            return ObservedTable()
        if known.id != self._id:
            # Another table has taken the place of the one that was known.
            window.forget()
            self._id, self._size = known.id, TableSize()
        window.look(lambda number: _version(store, number), known.version, since=since)
        return ObservedTable(
            version=known.version,
            facts=known.facts,
            commits=dict(window.documents),
            oldest=min(window.documents, default=None) if window.low > 0 else None,
        )

    def older(self, before: int, limit: int) -> list[Commit]:
        """Return versions before a number, the newest first, as far back as the log has them."""
        store = self._open(self.settings)
        found: list[Commit] = []
        for number in range(before - 1, max(-1, before - 1 - limit), -1):
            commit = self.window.get(lambda at: _version(store, at), number)
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
            log=LogReader(store, self._cache),
        )

    def _opened(self) -> tuple[Reader | None, Snapshot | None]:
        """Return the newest version; what is known of the log is not read again."""
        store = self._open(self.settings)
        return store, None if store is None else LogReader(store, self._cache).look()


def _version(store: Reader | None, number: int) -> Commit | None:
    body = None if store is None else store.get(log_version(number))
    return None if body is None else read_commit(number, body)
