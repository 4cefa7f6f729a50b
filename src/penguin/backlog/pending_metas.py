"""The metas of the staging hand-off. One of ours is only a notification.

It says that an entry is handed off; what is committed is the entry, whole, as the journal has it.
One whose entry is committed is deleted, however late it is seen. The meta of another program asks
for one file; whether it gets in is decided by what the file itself says. Metas that cannot be read
are left alone and reported.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import EntryName, Meta, decode_meta, entry_named_by
from lakebed.errors import DocumentUnreadable, JournalLost
from lakebed.layout import PENDING, is_meta, journal_entry, journal_transaction
from lakebed.listing.sort import Oddity
from lakebed.storage.ahead import Documents
from lakebed.storage.lister import objects
from lakebed.storage.store import Reader, Store
from lakebed.types import Handoff
from penguin.foreign.rules import WHY_UNUSABLE, why_not_a_data_file
from penguin.model.backlog import Backlog, Stopped, Transactions, Waiting

CONCURRENT = 16
FOREIGN = (
    "this table is handed off by its journal; metas of other programs are accepted only where "
    "the hand-off is staging or direct, or where blizzard does not write"
)
UNRUNG = "blizzard has not written its metas yet"


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A meta that announces no entry of this table, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A meta of another program: it asks for one file."""

    meta: Meta


Pending = EntryName | FileRequest | LeftAlone
Metas = Mapping[str, Pending]
"""What waits in `_staging/pending/`, by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOff:
    """The entries that are handed off, those that are not yet, and the pipelines in trouble."""

    backlogs: tuple[Backlog, ...]
    waiting: tuple[Waiting, ...]
    stopped: tuple[Stopped, ...]


def read_metas(store: Reader, known: Documents[Pending]) -> Metas:
    """List the metas that wait and read those that are not known yet, or written anew since."""
    odd: dict[str, Pending] = {}

    def tell(name: str, oddity: Oddity) -> None:
        if is_meta(name):
            odd[name] = LeftAlone(WHY_UNUSABLE[oddity])

    found = {facts.path: facts for facts in objects(store, PENDING, odd=tell)}
    listed = (facts for path, facts in sorted(found.items()) if is_meta(path))
    return odd | known.read(store, listed, _decode, _unreadable)


def _decode(body: bytes, path: str) -> Pending:
    meta = decode_meta(body, path)
    named = entry_named_by(meta)
    if named is not None:
        return named
    wrong = why_not_a_data_file(path, meta)
    return FileRequest(meta) if wrong is None else LeftAlone(wrong)


def _unreadable(_path: str, why: DocumentUnreadable) -> Pending:
    return LeftAlone(why.message)


def settled(metas: Metas, transactions: Transactions) -> tuple[str, ...]:
    """Name the metas whose entries are committed: the log says so, however long ago it was."""
    journals = {(name.pipeline, name.journal) for name in _ours(metas)}
    committed = {journal: transactions(journal_transaction(*journal)) or 0 for journal in journals}
    return tuple(
        path
        for path, name in metas.items()
        if isinstance(name, EntryName) and name.sequence <= committed[name.pipeline, name.journal]
    )


def handed_off(store: Reader, metas: Metas, backlogs: tuple[Backlog, ...]) -> HandedOff:
    """Keep the entries that have been announced, in order: a meta of N announces those before it.

    An entry without files has no meta to wait for; one that another hand-off wrote has none either.
    """
    last: dict[tuple[str, str], int] = {}
    for name in _ours(metas):
        journal = (name.pipeline, name.journal)
        last[journal] = max(name.sequence, last.get(journal, 0))
    kept: list[Backlog] = []
    waiting: list[Waiting] = []
    stopped: list[Stopped] = []
    for backlog in backlogs:
        rung = last.get((backlog.pipeline, backlog.position.journal), 0)
        if rung > backlog.end and store.head(journal_entry(backlog.pipeline, rung)) is None:
            # It was in the journal before its meta was written, and so before we looked.
            stopped.append(_lost(store, backlog, rung))
            continue
        unrung = next(_unrung(backlog, rung), None)
        if unrung is not None:
            waiting.append(
                Waiting(
                    pipeline=backlog.pipeline,
                    sequence=unrung.sequence,
                    reason=UNRUNG,
                    since=unrung.created,
                )
            )
            backlog = backlog.before(unrung.sequence)  # noqa: PLW2901 - the same backlog, cut
        kept.append(backlog)
    return HandedOff(backlogs=tuple(kept), waiting=tuple(waiting), stopped=tuple(stopped))


def strays(
    metas: Metas,
    backlogs: tuple[Backlog, ...],
    stopped: tuple[Stopped, ...],
    *,
    hears_others: bool,
) -> dict[str, str]:
    """Return the metas that announce no entry of this table, each with the reason."""
    journals = {(backlog.pipeline, backlog.position.journal) for backlog in backlogs}
    halted = {each.pipeline for each in stopped}
    left = {}
    for path, meta in metas.items():
        match meta:
            case LeftAlone(reason):
                left[path] = reason
            case FileRequest() if not hears_others:
                left[path] = FOREIGN
            case EntryName(pipeline, journal, _):
                if pipeline not in halted and (pipeline, journal) not in journals:
                    left[path] = f"this table has no journal {journal} of pipeline {pipeline}"
    return left


def asked_for(metas: Metas) -> dict[str, Meta]:
    """Return the metas of other programs, by path."""
    return {path: meta.meta for path, meta in metas.items() if isinstance(meta, FileRequest)}


def delete_metas(store: Store, paths: tuple[str, ...]) -> None:
    """Delete metas whose entries are committed; one that is already gone is no error."""
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="meta") as pool:
        list(pool.map(store.delete, paths))


def _ours(metas: Metas) -> Iterator[EntryName]:
    return (meta for meta in metas.values() if isinstance(meta, EntryName))


def _unrung(backlog: Backlog, rung: int) -> Iterator[Entry]:
    for ready in backlog.entries:
        entry = ready.entry
        if entry.sequence > rung and entry.files and entry.handoff is Handoff.STAGING:
            yield entry


def _lost(store: Reader, backlog: Backlog, rung: int) -> Stopped:
    return Stopped(
        pipeline=backlog.pipeline,
        error=JournalLost(
            f"entry {rung} was handed off, but the journal does not have it; restore the journal "
            "from a backup",
            pipeline=backlog.pipeline,
            journal=store.describe(journal_entry(backlog.pipeline, rung)),
        ),
    )
