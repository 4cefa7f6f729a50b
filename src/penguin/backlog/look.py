"""One look at a table directory: what waits, what is handed off, what cannot go on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from lakebed.documents.pending_meta import HeldMeta
from lakebed.storage.document_cache import Documents
from lakebed.storage.store import Reader
from lakebed.types import DiscoverBy, Handoff
from penguin.backlog.journals import Survey, read_journals, survey
from penguin.backlog.pending_metas import (
    Metas,
    Pending,
    asked_for,
    hear,
    read_metas,
    settled,
    strays,
)
from penguin.delta.table import LogReader, Snapshot
from penguin.foreign.rules import wait_since
from penguin.foreign.search import Found, Search
from penguin.held import Aside, read_held, sort_out
from penguin.model.commit import Backlog, Stopped, Transactions, Waiting
from penguin.model.foreign_file import LeftOut
from penguin.model.retention import Danger, danger, instant
from penguin.model.settings import TableSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What one look at a table directory shows."""

    handoff: Handoff
    protocol: int | None = None
    """The number of the document that says how files are handed off."""
    table: Snapshot | None = None
    backlogs: tuple[Backlog, ...] = ()
    stopped: tuple[Stopped, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    metas: Metas = field(default_factory=dict)
    settled: tuple[str, ...] = ()
    """Metas whose entries are committed."""
    strays: Mapping[str, str] = field(default_factory=dict)
    """Metas that are left alone, each with the reason."""
    aside: Aside = field(default_factory=Aside)
    """Files that are held."""
    others: Found = field(default_factory=Found)
    """Files that other programs wrote."""
    declared: bool = True
    """Whether blizzard has said how it hands files off."""
    searched: bool = True
    """Whether the folders were searched for files of other programs."""

    def transactions(self, app_id: str) -> int | None:
        """Give the version of an app transaction in the snapshot that was looked at."""
        return None if self.table is None else self.table.transaction(app_id)

    def danger(self, left_out: tuple[LeftOut, ...], now: datetime) -> Danger | None:
        """Say whether files wait so long for their commit that a VACUUM may soon take them.

        Those are the files of entries, whether they are handed off or not, files that are held,
        and files of other programs that are `left_out`.
        """
        oldest = min((*self._wait_since(), *wait_since(left_out)), default=None)
        return danger(oldest, {} if self.table is None else self.table.facts.configuration, now)

    def _wait_since(self) -> Iterator[datetime]:
        """Give the times of what waits; an entry without files waits for nothing."""
        for backlog in self.backlogs:
            with_files = (one.entry.created for one in backlog.entries if one.entry.files)
            if (at := instant(next(with_files, ""))) is not None:
                yield at
        for told in (
            *(one.since for one in self.waiting),
            *(one.meta.held_at for one in self.aside.held),
        ):
            if told is not None and (at := instant(told)) is not None:
                yield at


def look(
    settings: TableSettings,
    store: Reader,
    log: LogReader,
    *,
    known: Documents[Pending] | None = None,
    known_held: Documents[HeldMeta] | None = None,
    known_protocol: int | None = None,
    search: Search | None = None,
) -> Sight:
    """Read receipts, then the folders and the metas, then the log, then the journals.

    Metas are read where they are heard, and at the first look: an earlier hand-off may have left
    some whose entries are committed.
    """
    found = survey(store, settings.discovery, known_protocol=known_protocol)
    if search is not None and _is_scanned(found, settings):
        search.scan(store, log)
        if not found.declared:
            # The listing came first: what blizzard wrote before it, it has declared by now.
            found = survey(store, settings.discovery)
            if not _is_scanned(found, settings):
                search.drop()
    staged = found.handoff is Handoff.STAGING
    hears_others = search is not None and (staged or _is_scanned(found, settings))
    pending: Documents[Pending] = Documents() if known is None else known
    metas = read_metas(store, pending) if staged or hears_others or not pending.asked else {}
    if not found.receipts and not found.stopped and not hears_others:
        left = strays(metas, (), (), hears_others=False)
        return Sight(
            handoff=found.handoff,
            protocol=found.protocol,
            metas=metas,
            strays=left,
            declared=found.declared,
            searched=False,
        )
    held_metas = read_held(store, known_held)
    table = log.open()
    transactions: Transactions = (lambda _app_id: None) if table is None else table.transaction
    waiting = read_journals(store, found, transactions, max_files=settings.max_files_per_commit)
    done = settled(metas, transactions)
    gone = set(done)
    metas = {path: meta for path, meta in metas.items() if path not in gone}
    sight = Sight(
        handoff=found.handoff,
        protocol=found.protocol,
        table=table,
        backlogs=waiting.backlogs,
        stopped=waiting.stopped,
        metas=metas,
        settled=done,
        strays=strays(metas, waiting.backlogs, waiting.stopped, hears_others=hears_others),
        aside=sort_out(held_metas, transactions),
        declared=found.declared,
        searched=search is not None and _is_scanned(found, settings),
    )
    if search is not None and hears_others:
        entries = (ready.entry for backlog in waiting.backlogs for ready in backlog.entries)
        named = frozenset(file.filename for entry in entries for file in entry.files)
        sight = replace(sight, others=search.find(store, table, asked_for(metas), named=named))
    if not staged:
        return sight
    heard = hear(store, metas, waiting.backlogs)
    return replace(
        sight,
        backlogs=heard.backlogs,
        stopped=(*waiting.stopped, *heard.stopped),
        waiting=heard.waiting,
    )


def _is_scanned(found: Survey, settings: TableSettings) -> bool:
    """Say whether files are found by looking into the folders: so it is declared, or nothing is."""
    undeclared = not found.declared and settings.discovery is DiscoverBy.AUTO
    return found.handoff is Handoff.DIRECT or undeclared
