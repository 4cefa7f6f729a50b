"""A table as it is: its log, read once, and what waits to be committed to it."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lakebed.clock import Clock
from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.latest import CachedVersion, LogCache, read_latest
from lakebed.deltalog.segment import find_segment, noted_checkpoint
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.deltalog.table_files import checkpoint_totals
from lakebed.deltalog.versions import Commit, read_commit
from lakebed.errors import LakeError
from lakebed.layout import log_version
from lakebed.storage.store import Reader, is_there
from liveview.looks.kept import ANEW, Fresh, Kept
from liveview.looks.window import Window
from liveview.views.versions import VersionFacts
from penguin.inspect.status import TableStatus, table_status
from penguin.model.settings import TableSettings

MOST_FILES = 200_000
"""Files of a table whose newest version is added up: the log of a larger one takes too much memory,
so it is added up as it was at its last checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """What one look has found; `version` is None where there is no table yet."""

    version: int | None = None
    facts: TableFacts | None = None
    commits: dict[int, Commit] = field(default_factory=dict)
    """The newest versions, by their numbers."""
    covered_since: float | None = None
    """From when on all versions are known; None where that is all there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """How large a version of a table is."""

    version: int | None = None
    files: int | None = None
    bytes: int | None = None
    rows: int | None = None


OpenTable = Callable[[TableSettings], Reader | None]
"""Opens a table's directory to look only; None where there is none yet."""


def open_table(settings: TableSettings) -> Reader | None:
    """Open a table's directory to look only."""
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
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._open = opening
        self._most_files = most_files
        self._lock = threading.Lock()
        self._cache = LogCache()
        self._knowing = threading.Lock()
        self._window: Window[VersionFacts] = Window()
        self._id: str | None = None
        self._size: tuple[int, TableSize] | None = None
        self._kept: Kept[TableView] = Kept(seconds)
        self.unfinished = True
        """Whether the next look goes on with what the last one had no time for."""

    def view(self, *, since: float, fresh: Fresh = ANEW) -> TableView:
        """Look at the log, unless the last look does: its newest version, and those of a span."""
        with self._lock:
            view = self._kept.does(fresh, since)
            if view is not None:
                return view
            self._kept.begin(fresh, since)
            store = self._open(self.settings)
            known = None if store is None else self._known(store)
            if store is None or known is None:
                self.unfinished = False
                return self._kept.keep(TableView())
            if known.id != self._id:
                # Another table has taken the place of the one that was known.
                self._window, self._id, self._size = Window(), known.id, None
            self._window.look(lambda number: _version(store, number), known.version, since=since)
            self._window.trim()
            commits = {number: one.commit for number, one in self._window.documents.items()}
            view = TableView(
                version=known.version,
                facts=known.facts,
                commits=commits,
                covered_since=None if self._window.low <= 0 else self._first_at(),
            )
            # A look whose time was up is gone on with by the next one.
            self.unfinished = self._window.out_of_time
            return view if self.unfinished else self._kept.keep(view)

    def older(self, before: int, limit: int) -> list[Commit]:
        """Return versions before a number, the newest first, as far back as the log has them."""
        store = self._open(self.settings)
        found: list[Commit] = []
        for number in range(before - 1, -1, -1):
            commit = None if store is None else self._of(store, number)
            if commit is None or len(found) >= limit:
                break  # Older ones were cleaned up.
            found.append(commit)
        return found

    def size(self) -> TableSize:
        """Add up the files of the newest version; what was added up for it is known."""
        store = self._open(self.settings)
        known = None if store is None else self._known(store)
        with self._lock:
            size = self._size
        if store is None or known is None:
            return TableSize()
        if size is None or size[0] != known.version:
            size = known.version, self._added_up(store, known)
            with self._lock:
                self._size = size
        return size[1]

    def _added_up(self, store: Reader, known: CachedVersion) -> TableSize:
        note = noted_checkpoint(store)
        many = note.actions if note.files is None else note.files
        if many > self._most_files:
            return self._at_checkpoint(store)
        table = Snapshot(known, store)
        try:
            files, size, rows = table.totals()
        finally:
            table.let_go()
        return TableSize(version=known.version, files=files, bytes=size, rows=rows)

    def _at_checkpoint(self, store: Reader) -> TableSize:
        """Add up a large table as it was at its last checkpoint, once for each of them."""
        tail = find_segment(store)
        if tail is None or tail.checkpoint is None:
            return TableSize()
        last = None if self._size is None else self._size[1]
        if last is not None and last.version == tail.checkpoint.version:
            return last
        found = checkpoint_totals(store, tail.checkpoint)
        return TableSize(
            version=tail.checkpoint.version, files=found.files, bytes=found.bytes, rows=found.rows
        )

    def status(self) -> TableStatus | None:
        """Return what waits, what is held and what is stopped; None where there is no table."""
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

    def _known(self, store: Reader) -> CachedVersion | None:
        """Return the newest version; what is known of the log is not read again."""
        with self._knowing:
            return self._newest(store)

    def _newest(self, store: Reader) -> CachedVersion | None:
        known = self._cache.catch_up(store)
        if known is None:
            known = read_latest(store)
            if known is not None:
                self._cache.keep(known)
        if known is None:
            found = LogReader(store).look()
            known = None if found is None else found.known
        return known

    def _of(self, store: Reader, number: int) -> Commit | None:
        known = self._window.documents.get(number)
        found = known or _version(store, number)
        return None if found is None else found.commit

    def _first_at(self) -> float | None:
        known = self._window.documents
        return known[min(known)].at if known else None


class _KnownLog(LogReader):
    """A log of which repeated looks read what is new."""

    def __init__(self, store: Reader, known: Callable[[Reader], CachedVersion | None]) -> None:
        super().__init__(store)
        self._known = known

    def look(self) -> Snapshot | None:
        """Open the latest version of whatever table there is."""
        known = self._known(self.store)
        return None if known is None else Snapshot(known, self.store)


def _version(store: Reader, number: int) -> VersionFacts | None:
    try:
        body = store.get(log_version(number))
    except LakeError:
        return None
    return None if body is None else VersionFacts(read_commit(number, body))
