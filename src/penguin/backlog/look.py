"""One look at a table directory: what waits, what is handed off, what cannot go on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.documents.pending_meta import HeldMeta
from lakebed.storage.ahead import Documents
from lakebed.storage.store import Reader
from lakebed.types import DiscoverBy, Handoff
from penguin.backlog.journals import TablePipelines, read_journals, read_pipelines
from penguin.backlog.pending_metas import (
    Pending,
    asked_for,
    handed_off,
    read_metas,
    settled,
    strays,
)
from penguin.foreign.rules import wait_since
from penguin.foreign.search import ForeignFiles, Search
from penguin.held import HeldFile, HeldFiles, read_held, sort_out
from penguin.model.backlog import Backlog, Danger, Stopped, Transactions, Waiting, danger, instant
from penguin.model.foreign_file import LeftOut
from penguin.model.settings import TableSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """What one look at a table directory shows."""

    handoff: Handoff
    table: Snapshot | None = None
    backlogs: tuple[Backlog, ...] = ()
    stopped: tuple[Stopped, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    settled: tuple[str, ...] = ()
    """Metas whose entries are committed."""
    strays: Mapping[str, str] = field(default_factory=dict)
    """Metas that are left alone, each with the reason."""
    held_files: HeldFiles = field(default_factory=HeldFiles)
    """Files that are held, and metas of such that mean nothing any more."""
    others: ForeignFiles = field(default_factory=ForeignFiles)
    """Files that other programs wrote."""
    declared: bool = True
    """Whether blizzard has said how it hands files off."""
    searched: bool = True
    """Whether the folders were searched for files of other programs."""

    @property
    def version(self) -> int | None:
        """Return the version of the table; None before it is created."""
        return None if self.table is None else self.table.version

    @property
    def facts(self) -> TableFacts | None:
        """Return what the table is; None before it is created."""
        return None if self.table is None else self.table.facts

    @property
    def held(self) -> tuple[HeldFile, ...]:
        """Return the files that are held."""
        return self.held_files.held

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to commit from, and nothing to tidy up."""
        return not self.backlogs and not self.stopped and self.others.is_empty

    def transactions(self, app_id: str) -> int | None:
        """Return the version of an app transaction in the snapshot that was looked at."""
        return None if self.table is None else self.table.transaction(app_id)

    def danger(self, left_out: tuple[LeftOut, ...], now: datetime) -> Danger | None:
        """Whether files have waited so long for their commit that a VACUUM may delete them soon.

        Those are the files of entries, whether they are handed off or not, files that are held,
        and files of other programs that are `left_out`.
        """
        oldest = min((*self._wait_since(), *wait_since(left_out)), default=None)
        return danger(oldest, {} if self.table is None else self.table.facts.configuration, now)

    def _wait_since(self) -> Iterator[datetime]:
        """Yield the times of what waits; an entry without files waits for nothing."""
        for backlog in self.backlogs:
            with_files = (
                ready.entry.created for ready in backlog.entries if ready.entry.data_files
            )
            if (at := instant(next(with_files, ""))) is not None:
                yield at
        for since in (
            *(entry.since for entry in self.waiting),
            *(file.meta.held_at for file in self.held),
        ):
            if since is not None and (at := instant(since)) is not None:
                yield at


@dataclass(slots=True, kw_only=True)
class LookCache:
    """What one look leaves to the next: documents that are read once, as long as they stay."""

    metas: Documents[Pending] = field(default_factory=Documents)
    held: Documents[HeldMeta] = field(default_factory=Documents)
    protocol: int | None = None
    """The number of the document that says how files are handed off."""


def look(
    settings: TableSettings,
    store: Reader,
    log: LogReader,
    *,
    cache: LookCache | None = None,
    search: Search | None = None,
) -> TableView:
    """Read receipts, then the folders and the metas, then the log, then the journals.

    Metas are read where they are heard, and at the first look: an earlier hand-off may have left
    some whose entries are committed.
    """
    cache = cache or LookCache()
    pipelines = read_pipelines(store, settings.discovery, known_protocol=cache.protocol)
    if search is not None and is_scanned(pipelines, settings):
        search.scan(store, log)
        if not pipelines.declared:
            # The listing came first: what blizzard wrote before it, it has declared by now.
            pipelines = read_pipelines(store, settings.discovery)
            if not is_scanned(pipelines, settings):
                search.drop()
    cache.protocol = pipelines.protocol
    staged = pipelines.handoff is Handoff.STAGING
    hears_others = search is not None and (staged or is_scanned(pipelines, settings))
    reads_metas = staged or hears_others or not cache.metas.asked
    metas = read_metas(store, cache.metas) if reads_metas else {}
    if not pipelines.receipts and not pipelines.stopped and not hears_others:
        return TableView(
            handoff=pipelines.handoff,
            strays=strays(metas, (), (), hears_others=False),
            declared=pipelines.declared,
            searched=False,
        )
    held_metas = read_held(store, cache.held)
    table = log.open()
    transactions: Transactions = (lambda _app_id: None) if table is None else table.transaction
    backlogs, stopped = read_journals(
        store, pipelines, transactions, max_files=settings.max_files_per_commit
    )
    done = settled(metas, transactions)
    gone = set(done)
    metas = {path: meta for path, meta in metas.items() if path not in gone}
    view = TableView(
        handoff=pipelines.handoff,
        table=table,
        backlogs=backlogs,
        stopped=stopped,
        settled=done,
        strays=strays(metas, backlogs, stopped, hears_others=hears_others),
        held_files=sort_out(held_metas, transactions),
        declared=pipelines.declared,
        searched=search is not None and is_scanned(pipelines, settings),
    )
    if search is not None and hears_others:
        entries = (ready.entry for backlog in backlogs for ready in backlog.entries)
        named = frozenset(file.filename for entry in entries for file in entry.data_files)
        view = replace(view, others=search.find(store, table, asked_for(metas), named=named))
    if not staged:
        return view
    ready = handed_off(store, metas, backlogs)
    return replace(
        view,
        backlogs=ready.backlogs,
        stopped=(*stopped, *ready.stopped),
        waiting=ready.waiting,
    )


def is_scanned(pipelines: TablePipelines, settings: TableSettings) -> bool:
    """Whether files are found by looking into the folders: so it is declared, or nothing is."""
    undeclared = not pipelines.declared and settings.discovery is DiscoverBy.AUTO
    return pipelines.handoff is Handoff.DIRECT or undeclared
