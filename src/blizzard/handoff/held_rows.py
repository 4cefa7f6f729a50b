"""Rows that are journaled but not in the table: held by penguin, or discarded. Read-only.

penguin keeps a record of each such file, but the Delta log decides.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from blizzard.journal.standings import RejectionLookup
from lakebed import layout
from lakebed.documents.pending_meta import HeldMeta, HeldState, decode_held
from lakebed.errors import DocumentUnreadable, LakeError
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader

Fates = Callable[[Iterable[str]], Mapping[str, int | None]]
"""Returns the Delta log's decisions on held files: 0 held, 1 released, 2 gone."""
CameBack = Callable[[Iterable[str]], Mapping[str, str]]
"""Returns which given-up files are back in the table, and how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Journaled files and rows that are not in the table; the names are JSON keys."""

    held_files: int = 0
    held_rows: int = 0
    discarded_files: int = 0
    discarded_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldFiles:
    """The files of a pipeline or entry whose rows are not in the table."""

    held: tuple[HeldMeta, ...] = ()
    """Files that are committed once they fit or are released."""
    discarded: tuple[HeldMeta, ...] = ()
    """Files that are never committed, and whose sources were not read again."""
    error: str | None = None
    """Why the held files are unknown; None if known."""

    def of(self, entry: int) -> "WithheldFiles":
        """Return the files of one entry."""
        return WithheldFiles(
            held=tuple(meta for meta in self.held if meta.entry == entry),
            discarded=tuple(meta for meta in self.discarded if meta.entry == entry),
            error=self.error,
        )

    def counts(self) -> Counts:
        """Count files and rows."""
        return Counts(
            held_files=len(self.held),
            held_rows=rows(self.held),
            discarded_files=len(self.discarded),
            discarded_rows=rows(self.discarded),
        )


def rows(metas: Iterable[HeldMeta]) -> int:
    """Count the rows of some files."""
    return sum(meta.record_count for meta in metas)


def rejection_lookup(fates: Fates, committed: Callable[[str], int | None]) -> RejectionLookup:
    """Return a lookup of which of a journal's committed entries were rejected."""

    def ask(journal: str, marks: Mapping[int, str]) -> dict[int, bool]:
        last = (committed(journal) or 0) if marks else 0
        done = {entry: mark for entry, mark in marks.items() if entry <= last}
        found = fates(done.values()) if done else {}
        return {entry: found.get(mark) == HeldState.GONE for entry, mark in done.items()}

    return ask


def read_withheld(store: Reader, pipeline: str, fates: Fates) -> WithheldFiles:
    """Return a pipeline's held and discarded files; an error is returned in `error`.

    A file whose sources are read again is neither. A file that is being discarded may still be
    recorded as held, so the log decides.
    """
    try:
        return _read(store, pipeline, fates)
    except LakeError as trouble:
        return WithheldFiles(error=str(trouble))


def _read(store: Reader, pipeline: str, fates: Fates) -> WithheldFiles:
    held = tuple(notes(store, pipeline, layout.HELD))
    discarded = tuple(notes(store, pipeline, layout.DISCARDED))
    if not held and not discarded:
        return WithheldFiles()
    marks = fates({layout.file_name(meta.filename) for meta in (*held, *discarded)})
    first = min(meta.entry or 0 for meta in (*held, *discarded))
    later = JournalReader(store, pipeline).entries(first)
    again = {name for entry in later for name in entry.redone}

    noted = {layout.file_name(meta.filename): meta for meta in (*discarded, *held)}

    def files_with(mark: int) -> tuple[HeldMeta, ...]:
        names = noted.items()
        return tuple(meta for name, meta in names if marks.get(name) == mark and name not in again)

    return WithheldFiles(held=files_with(HeldState.HELD), discarded=files_with(HeldState.GONE))


def notes(store: Reader, pipeline: str, folder: str) -> Iterator[HeldMeta]:
    """Read penguin's records of the files of one pipeline; penguin reports damaged ones."""
    for facts in store.objects(folder):
        body = store.get(facts.path) if layout.is_meta(facts.path, folder) else None
        if body is None:
            continue
        try:
            meta = decode_held(body, facts.path)
        except DocumentUnreadable:
            continue
        if meta.pipeline == pipeline:
            yield meta
