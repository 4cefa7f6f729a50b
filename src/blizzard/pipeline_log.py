"""The Delta log of a pipeline's table, read without Spark."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from blizzard.config.columns import columns_from
from blizzard.handoff import held_rows
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import OpenReader, open_reader, open_table, sink_location
from lakebed.columns.column_mapping import ColumnMapping
from lakebed.columns.schema import Schema
from lakebed.deltalog.log_contents import retention
from lakebed.deltalog.snapshot import LogCache, LogReader, Snapshot
from lakebed.deltalog.versions import read_commits
from lakebed.documents.entry import Entry
from lakebed.errors import LakeError

if TYPE_CHECKING:
    from lakebed.deltalog.search import LogSearch

NEWEST_VERSIONS = 10
"""The number of newest versions to search for a pipeline's last commit."""


@dataclass(slots=True)
class PipelineLog:
    """Lookups in the newest version of the log, with caching."""

    settings: PipelineSettings
    opening: OpenReader = open_reader
    _cache: LogCache = field(default_factory=LogCache)
    _unmapped: bool = False

    def snapshot(self) -> Snapshot | None:
        """Open the newest version; None if there is no table."""
        store = open_table(self.settings, self.opening)
        return None if store is None else LogReader(store, self._cache).newest()

    def search(self) -> "LogSearch":
        """Return lookups of single entries and files, all in one version."""
        from lakebed.deltalog.search import LogSearch  # noqa: PLC0415 - it loads Arrow

        return LogSearch(self.opening(sink_location(self.settings)))

    def knows_pipeline(self) -> bool:
        """Whether anything of the pipeline was ever committed."""
        table = self.snapshot()
        return table is not None and table.knows(self.settings.name)

    def committed(self, pipeline: str, journal: str) -> int | None:
        """Return the last entry of a journal in the log; None without one."""
        table = self.snapshot()
        return None if table is None else table.committed(pipeline, journal)

    def last_commit_at(self) -> datetime | None:
        """Return when entries of the pipeline were last committed; None if not lately."""
        table = self.snapshot()
        if table is None:
            return None
        name = self.settings.name
        for version in range(table.version, max(-1, table.version - NEWEST_VERSIONS), -1):
            for commit in read_commits(table.store, version, 1):
                if any(settled.pipeline == name for settled in commit.entries):
                    return commit.at
        return None

    def has_entry(self, entry: Entry) -> bool:
        """Whether an entry is committed."""
        last = self.committed(entry.pipeline, entry.journal)
        return last is not None and last >= entry.sequence

    def fates(self, names: Iterable[str]) -> dict[str, int | None]:
        """Return the decisions on held files: 0 held, 1 released, 2 gone; None if undecided."""
        table = self.snapshot()
        return dict.fromkeys(names) if table is None else table.fates(names)

    def rejections(self, journal: str, marks: Mapping[int, str]) -> dict[int, bool]:
        """Return, for the committed ones of some entries, whether penguin rejected them."""
        asks = held_rows.rejection_lookup(self.fates, partial(self.committed, self.settings.name))
        return dict(asks(journal, marks))

    def retention(self) -> timedelta:
        """Return the table's retention of deleted files."""
        table = self.snapshot()
        return retention({} if table is None else table.facts.configuration)

    def columns(self) -> Schema | None:
        """Return the columns of the table; None if there is none or the log is unreadable."""
        try:
            table = self.snapshot()
        except LakeError:
            return None
        return None if table is None else columns_from(table.facts.schema)

    def mapping(self) -> ColumnMapping | None:
        """Return the table's column mapping; None without one.

        Without a mapping, the log is read only once: if mapping is enabled later, physical names
        differ only after a rename, when the writer declares the column anew. An unreadable log is
        reported by penguin.
        """
        if self._unmapped:
            return None
        try:
            table = self.snapshot()
        except LakeError as unread:
            if unread.retryable:
                raise
            return None
        if table is None:
            return None
        self._unmapped = table.mapping is None
        return table.mapping
