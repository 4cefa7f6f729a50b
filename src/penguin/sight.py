"""One look at a table directory: what waits, what is handed off, what cannot go on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lake.entry import Handoff
from lake.storage import Reader
from penguin.discovery import read_journals, survey
from penguin.flow import Backlog, Stopped, Transactions, Waiting
from penguin.held import Aside, HeldMetas, read_held, sort_out
from penguin.metas import Metas, hear, read_metas, settled, strays
from penguin.settings import TableSettings
from penguin.table import LogReader, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What one look at a table directory shows."""

    handoff: Handoff
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
    held_metas: HeldMetas = field(default_factory=dict)


def look(
    settings: TableSettings,
    store: Reader,
    log: LogReader,
    *,
    known: Metas | None = None,
    known_held: HeldMetas | None = None,
) -> Sight:
    """Read receipts, then the metas, then the log, then the journals.

    Metas are read where they are the hand-off, and at the first look: an earlier hand-off may have
    left some whose entries are committed.
    """
    found = survey(store, settings.discovery)
    staged = found.handoff is Handoff.STAGING
    metas = read_metas(store, known or {}) if staged or known is None else {}
    if not found.receipts and not found.stopped:
        return Sight(handoff=found.handoff, metas=metas, strays=strays(metas, (), ()))
    held_metas = read_held(store, known_held or {})
    table = log.open()
    transactions: Transactions = (lambda _app_id: None) if table is None else table.transaction
    waiting = read_journals(store, found, transactions, max_files=settings.max_files_per_commit)
    done = settled(metas, transactions)
    gone = set(done)
    metas = {path: meta for path, meta in metas.items() if path not in gone}
    sight = Sight(
        handoff=found.handoff,
        table=table,
        backlogs=waiting.backlogs,
        stopped=waiting.stopped,
        metas=metas,
        settled=done,
        strays=strays(metas, waiting.backlogs, waiting.stopped),
        aside=sort_out(held_metas, transactions),
        held_metas=held_metas,
    )
    if not staged:
        return sight
    heard = hear(store, metas, waiting.backlogs)
    return replace(
        sight,
        backlogs=heard.backlogs,
        stopped=(*waiting.stopped, *heard.stopped),
        waiting=heard.waiting,
    )
