"""Held files: not in the table and not lost, each with its reasons.

A file's meta in `_staging/held/` is written first; then the commit that leaves the file out carries
a mark of it. The mark decides what the meta means: without one the commit was never made and the
meta is void; with one the file is held, was released, or is gone for good.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from lakebed import layout
from lakebed.documents.pending_meta import (
    EntryName,
    HeldMeta,
    HeldState,
    decode_held,
    encode_meta,
    entry_named_by,
)
from lakebed.documents.records import FinishedFile
from lakebed.errors import DocumentUnreadable
from lakebed.journal import JournalReader
from lakebed.storage.lister import objects
from lakebed.storage.objects import ahead
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader, Store
from penguin.model.backlog import ReadyEntry, Transactions
from penguin.model.commit import Hold, HoldCode, Releasable

Kind = TypeVar("Kind")
HeldMetas = Mapping[str, HeldMeta]
"""The metas in `_staging/held/`, by path."""


@dataclass(slots=True)
class KnownDocuments(Generic[Kind]):
    """Cached documents of a folder; one whose object changed is read again."""

    asked: bool = False
    """Whether the folder was read yet."""
    _read: dict[str, tuple[ObjectFacts, Kind]] = field(default_factory=dict)

    def read(
        self,
        store: Reader,
        listed: Iterable[ObjectFacts],
        decode: Callable[[bytes, str], Kind],
        unreadable: Callable[[str, DocumentUnreadable], Kind],
    ) -> dict[str, Kind]:
        """Read listed documents that are not cached; leave out one that is gone.

        `unreadable` replaces a document that cannot be decoded.
        """

        def read(facts: ObjectFacts) -> tuple[ObjectFacts, Kind] | None:
            known = self._read.get(facts.path)
            if known is not None and known[0] == facts:
                return known
            try:
                body = store.get(facts.path)
                # Another penguin may have deleted it since it was listed.
                return None if body is None else (facts, decode(body, facts.path))
            except DocumentUnreadable as why:
                return facts, unreadable(facts.path, why)

        found = {facts.path: answer for facts, answer in ahead(read, listed) if answer is not None}
        self.asked, self._read = True, found
        return {path: document for path, (_, document) in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFiles:
    """The held files, and stale metas."""

    held: tuple[HeldMeta, ...] = ()
    stale: tuple[str, ...] = ()


def record_holds(store: Store, holds: Iterable[Hold], now: datetime) -> None:
    """Record which files a commit is about to hold, and why."""

    def write(hold: Hold) -> None:
        file, entry = hold.file, hold.entry
        meta = HeldMeta(
            filename=file.filename,
            size=file.size,
            record_count=file.record_count,
            partition_values=file.partition_values,
            source_file=file.source_file,
            source_files=file.source_files,
            pipeline=entry.pipeline,
            journal=entry.journal,
            entry=entry.sequence,
            code=hold.code,
            reasons=hold.reasons,
            unit=file.unit,
            held_at=now.isoformat(),
        )
        store.replace(layout.held_meta(hold.name), encode_meta(meta))

    list(ahead(write, holds))


def record_discarded(store: Store, files: Iterable[HeldMeta]) -> None:
    """Record which files are about to be discarded: their held metas are deleted with the commit.

    These records decide nothing: a file is discarded if its mark in the log says so.
    """
    for file in files:
        store.replace(layout.discarded_meta(file.name), encode_meta(file))


def read_held(
    store: Reader, known: KnownDocuments[HeldMeta] | None = None, folder: str = layout.HELD
) -> HeldMetas:
    """List the metas of held files and read those that are new or changed."""
    # This program gives no meta an unusable name.
    found = {each.path: each for each in objects(store, folder, odd=lambda _name, _fault: None)}
    listed = (facts for path, facts in sorted(found.items()) if layout.is_meta(path, folder))
    return (known or KnownDocuments()).read(store, listed, decode_held, _unreadable)


def _unreadable(path: str, why: DocumentUnreadable) -> HeldMeta:
    """Return a placeholder for an unreadable meta: its name still says which file is held."""
    name = path.rpartition("/")[2].removesuffix(layout.META_SUFFIX)
    return HeldMeta(
        filename=f"{name}.parquet",
        size=0,
        record_count=0,
        partition_values={},
        source_file=None,
        code=HoldCode.DOCUMENT_UNREADABLE,
        reasons=(str(why),),
        held_at="",
    )


def sort_out(metas: HeldMetas, transactions: Transactions) -> HeldFiles:
    """Sort metas by their marks in the log. Pure."""
    held: list[HeldMeta] = []
    stale: list[str] = []
    for path, meta in sorted(metas.items()):
        match transactions(layout.held_transaction(meta.name)):
            case HeldState.HELD:
                held.append(meta)
            case None:
                if _is_settled(meta, transactions):
                    stale.append(path)
            case _:
                stale.append(path)
    return HeldFiles(held=tuple(held), stale=tuple(stale))


def _is_settled(meta: HeldMeta, transactions: Transactions) -> bool:
    """Whether the entry of a file without a mark is committed, and so the file with it."""
    entry = entry_named_by(meta)
    if entry is None:
        return False
    last = transactions(layout.journal_transaction(entry.pipeline, entry.journal))
    return last is not None and last >= entry.sequence


def releasable(store: Reader, held: Iterable[HeldMeta]) -> tuple[Releasable, ...]:
    """Find the entries of held files; a file whose entry is missing stays held."""
    wanted: dict[EntryName, set[str]] = {}
    for meta in held:
        name = entry_named_by(meta)
        if name is not None:
            wanted.setdefault(name, set()).add(meta.filename)
    found = []
    for name, files in wanted.items():
        ready = read_entry(store, name)
        if ready is None:
            continue
        units: dict[str, list[FinishedFile]] = {}
        for file in ready.entry.files:
            if file.filename in files:
                units.setdefault(file.unit, []).append(file)
        found += [Releasable(files=tuple(unit), ready=ready) for unit in units.values()]
    return tuple(found)


def read_entry(store: Reader, name: EntryName) -> ReadyEntry | None:
    """Read one entry of a journal; None if it is missing, unreadable, or of another journal."""
    journal = JournalReader(store, name.pipeline, full_paths=True)
    try:
        stored = journal.stored(name.sequence)
    except DocumentUnreadable:
        return None
    if stored is None or stored.entry.journal != name.journal:
        return None  # A newer journal has replaced the one that named the file.
    return ReadyEntry(entry=stored.entry, digest=stored.digest, path=journal.where(name.sequence))
