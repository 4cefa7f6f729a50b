"""Inspection of a table directory: what waits, what is handed off, what is stopped."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import EntryName, HeldMeta, Meta, decode_meta, entry_named_by
from lakebed.errors import JournalLost
from lakebed.layout import PENDING, is_meta, journal_entry, journal_transaction
from lakebed.listing.sort import NameFault
from lakebed.storage.lister import objects
from lakebed.storage.objects import ahead
from lakebed.storage.store import Reader, Store
from lakebed.types import DiscoverBy, Handoff
from penguin.backlog.journals import TablePipelines, read_journals, read_pipelines
from penguin.foreign.rules import WHY_UNUSABLE, wait_since, why_not_a_data_file
from penguin.foreign.search import ForeignFiles, ForeignSearch
from penguin.held import HeldFiles, KnownDocuments, read_held, sort_out
from penguin.model.backlog import (
    Danger,
    LeftOut,
    PipelineBacklog,
    Stopped,
    Transactions,
    WaitingEntry,
    danger,
    instant,
)
from penguin.model.settings import TableSettings

FOREIGN = (
    "this table is handed off by its journal; metas of other programs are accepted only where "
    "the hand-off is staging or direct, or where blizzard does not write"
)
NOT_ANNOUNCED = "blizzard has not written its metas yet"


Pending = EntryName | Meta | str
"""The entry that a meta announces, a meta of another program that requests one file, or why the
meta is left alone."""
Metas = Mapping[str, Pending]
"""The metas in `_staging/pending/`, by path."""


def read_metas(store: Reader, known: KnownDocuments[Pending]) -> Metas:
    """List the pending metas and read those that are new or changed."""
    odd: dict[str, Pending] = {}

    def note_odd(name: str, fault: NameFault) -> None:
        if is_meta(name):
            odd[name] = WHY_UNUSABLE[fault]

    found = {facts.path: facts for facts in objects(store, PENDING, odd=note_odd)}
    listed = (facts for path, facts in sorted(found.items()) if is_meta(path))
    return odd | known.read(store, listed, _decode, lambda _path, why: why.message)


def _decode(body: bytes, path: str) -> Pending:
    meta = decode_meta(body, path)
    return entry_named_by(meta) or why_not_a_data_file(path, meta) or meta


def settled(metas: Metas, transactions: Transactions) -> tuple[str, ...]:
    """Return the metas whose entries the log says are committed."""
    journals = {(name.pipeline, name.journal) for name in _ours(metas)}
    committed = {journal: transactions(journal_transaction(*journal)) or 0 for journal in journals}
    return tuple(
        path
        for path, name in metas.items()
        if isinstance(name, EntryName) and name.sequence <= committed[name.pipeline, name.journal]
    )


def handed_off(store: Reader, metas: Metas, view: "TableView") -> "TableView":
    """Keep the entries that metas announce, in order: a meta of N announces those before it.

    An entry without files, or of another hand-off, has no meta to wait for.
    """
    last: dict[tuple[str, str], int] = {}
    for name in _ours(metas):
        journal = (name.pipeline, name.journal)
        last[journal] = max(name.sequence, last.get(journal, 0))
    kept: list[PipelineBacklog] = []
    waiting: list[WaitingEntry] = []
    stopped: list[Stopped] = []
    for backlog in view.backlogs:
        announced = last.get((backlog.pipeline, backlog.position.journal), 0)
        entry = journal_entry(backlog.pipeline, announced)
        if announced > backlog.end and store.head(entry) is None:
            # The entry precedes its meta, so it was in the journal before we read it.
            stopped.append(_lost(store, backlog, announced))
            continue
        silent = next(_unannounced(backlog, announced), None)
        if silent is not None:
            waiting.append(
                WaitingEntry(
                    pipeline=backlog.pipeline,
                    sequence=silent.sequence,
                    reason=NOT_ANNOUNCED,
                    since=silent.created,
                )
            )
            backlog = backlog.before(silent.sequence)  # noqa: PLW2901 - the same backlog, cut
        kept.append(backlog)
    return replace(
        view,
        backlogs=tuple(kept),
        waiting=tuple(waiting),
        stopped=(*view.stopped, *stopped),
    )


def strays(
    metas: Metas,
    backlogs: tuple[PipelineBacklog, ...],
    stopped: tuple[Stopped, ...],
    *,
    hears_others: bool,
) -> dict[str, str]:
    """Return the metas that announce no entry of this table, with reasons."""
    journals = {(backlog.pipeline, backlog.position.journal) for backlog in backlogs}
    halted = {each.pipeline for each in stopped}
    left = {}
    for path, meta in metas.items():
        match meta:
            case str():
                left[path] = meta
            case Meta() if not hears_others:
                left[path] = FOREIGN
            case EntryName(pipeline, journal, _):
                if pipeline not in halted and (pipeline, journal) not in journals:
                    left[path] = f"this table has no journal {journal} of pipeline {pipeline}"
    return left


def requested(metas: Metas) -> dict[str, Meta]:
    """Return the metas of other programs, by path."""
    return {path: meta for path, meta in metas.items() if isinstance(meta, Meta)}


def delete_metas(store: Store, paths: tuple[str, ...]) -> None:
    """Delete metas; one that is already gone is no error."""
    list(ahead(store.delete, paths))


def _ours(metas: Metas) -> Iterator[EntryName]:
    return (meta for meta in metas.values() if isinstance(meta, EntryName))


def _unannounced(backlog: PipelineBacklog, announced: int) -> Iterator[Entry]:
    for ready in backlog.entries:
        entry = ready.entry
        if entry.sequence > announced and entry.files and entry.handoff is Handoff.STAGING:
            yield entry


def _lost(store: Reader, backlog: PipelineBacklog, announced: int) -> Stopped:
    return Stopped(
        pipeline=backlog.pipeline,
        error=JournalLost(
            f"entry {announced} was handed off, but the journal does not have it; restore the "
            "journal from a backup",
            pipeline=backlog.pipeline,
            journal=store.describe(journal_entry(backlog.pipeline, announced)),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """Facts that one inspection of a table directory found."""

    handoff: Handoff
    table: Snapshot | None = None
    backlogs: tuple[PipelineBacklog, ...] = ()
    stopped: tuple[Stopped, ...] = ()
    waiting: tuple[WaitingEntry, ...] = ()
    settled: tuple[str, ...] = ()
    """Metas whose entries are committed."""
    strays: Mapping[str, str] = field(default_factory=dict)
    """Metas that are left alone, with reasons."""
    held_files: HeldFiles = field(default_factory=HeldFiles)
    """Files that are held, and stale metas of such."""
    others: ForeignFiles = field(default_factory=ForeignFiles)
    """Files that other programs wrote."""
    declared: bool = True
    """Whether blizzard has declared its hand-off."""
    searched: bool = True
    """Whether the folders were searched for files of other programs."""

    @property
    def version(self) -> int | None:
        """Return the version of the table; None before it is created."""
        return None if self.table is None else self.table.version

    @property
    def facts(self) -> TableFacts | None:
        """Return the table's definition; None before it is created."""
        return None if self.table is None else self.table.facts

    @property
    def held(self) -> tuple[HeldMeta, ...]:
        """Return the files that are held."""
        return self.held_files.held

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to commit and nothing to clean up."""
        return not self.backlogs and not self.stopped and self.others.is_empty

    def transactions(self, app_id: str) -> int | None:
        """Return the version of an app transaction in the inspected snapshot."""
        return None if self.table is None else self.table.transaction(app_id)

    def danger(self, left_out: tuple[LeftOut, ...], now: datetime) -> Danger | None:
        """Return the danger if files have waited so long that a VACUUM may delete them soon.

        Counted are files of entries, handed off or not, held files, and the foreign files in
        `left_out`.
        """
        oldest = min((*self._wait_since(), *wait_since(left_out)), default=None)
        return danger(oldest, {} if self.table is None else self.table.facts.configuration, now)

    def _wait_since(self) -> Iterator[datetime]:
        """Yield since when files wait; an entry without files does not count."""
        for backlog in self.backlogs:
            with_files = (
                ready.entry.created for ready in backlog.entries if ready.entry.data_files
            )
            if (at := instant(next(with_files, ""))) is not None:
                yield at
        for since in (
            *(entry.since for entry in self.waiting),
            *(file.held_at for file in self.held),
        ):
            if since is not None and (at := instant(since)) is not None:
                yield at


@dataclass(slots=True, kw_only=True)
class InspectionCache:
    """Documents cached between inspections: each is read again only after it changes."""

    metas: KnownDocuments[Pending] = field(default_factory=KnownDocuments)
    held: KnownDocuments[HeldMeta] = field(default_factory=KnownDocuments)
    protocol: int | None = None
    """The number of the document that says how files are handed off."""


def inspect(
    settings: TableSettings,
    store: Reader,
    log: LogReader,
    *,
    cache: InspectionCache | None = None,
    search: ForeignSearch | None = None,
) -> TableView:
    """Read receipts, then folders and metas, then the log, then the journals.

    Metas are read where they count, and at the first inspection: an earlier hand-off may have left
    some whose entries are committed.
    """
    cache = cache or InspectionCache()
    pipelines = read_pipelines(store, settings.discovery, known_protocol=cache.protocol)
    if search is not None and is_scanned(pipelines, settings):
        search.scan(store, log)
        if not pipelines.declared:
            # Blizzard declares its hand-off before it writes files: those listed are declared now.
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
        view = replace(view, others=search.find(store, table, requested(metas), named=named))
    return handed_off(store, metas, view) if staged else view


def is_scanned(pipelines: TablePipelines, settings: TableSettings) -> bool:
    """Whether files are found by listing folders: direct hand-off, or none declared."""
    undeclared = not pipelines.declared and settings.discovery is DiscoverBy.AUTO
    return pipelines.handoff is Handoff.DIRECT or undeclared
