"""Rows that are journaled but not in the table: penguin holds them, or they were discarded.

penguin leaves a note of each such file; what counts is what the Delta log says of it. Nothing here
writes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from blizzard.journal.standings import PassedOver
from lakebed import layout
from lakebed.documents.pending_meta import HeldMeta, HeldState, decode_held
from lakebed.errors import DocumentUnreadable, LakeError
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader

Fates = Callable[[Iterable[str]], Mapping[str, int | None]]
"""Answers what the Delta log has decided of held files: 0 held, 1 released, 2 gone."""
CameBack = Callable[[Iterable[str]], Mapping[str, str]]
"""Answers which files that were given up are in the table again, and how they came there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much is journaled and not in the table, by the keys that documents have."""

    held_files: int = 0
    held_rows: int = 0
    discarded_files: int = 0
    discarded_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """The files of a pipeline, or of one entry of it, whose rows are not in the table."""

    held: tuple[HeldMeta, ...] = ()
    """They go in once they fit, or are released."""
    discarded: tuple[HeldMeta, ...] = ()
    """They never go in, and their sources were not read again."""
    error: str | None = None
    """Why it is not known what is held; None where it is."""

    def of(self, entry: int) -> "Aside":
        """Return what concerns one entry."""
        return Aside(
            held=tuple(meta for meta in self.held if meta.entry == entry),
            discarded=tuple(meta for meta in self.discarded if meta.entry == entry),
            error=self.error,
        )

    def counts(self) -> Counts:
        """Return how many files and rows these are."""
        return Counts(
            held_files=len(self.held),
            held_rows=rows(self.held),
            discarded_files=len(self.discarded),
            discarded_rows=rows(self.discarded),
        )


def rows(metas: Iterable[HeldMeta]) -> int:
    """Count the rows of some files."""
    return sum(meta.record_count for meta in metas)


def passed_over(fates: Fates, committed: Callable[[str], int | None]) -> PassedOver:
    """Return a function that says which entries had no effect, of a journal's committed ones."""

    def ask(journal: str, marks: Mapping[int, str]) -> dict[int, bool]:
        last = (committed(journal) or 0) if marks else 0
        done = {entry: mark for entry, mark in marks.items() if entry <= last}
        found = fates(done.values()) if done else {}
        return {entry: found.get(mark) == HeldState.GONE for entry, mark in done.items()}

    return ask


def read_aside(store: Reader, pipeline: str, fates: Fates) -> Aside:
    """Find what is held or discarded of a pipeline; if that fails, the rest is still shown.

    A file that an entry gives up because its sources are read again is neither: its rows come. One
    that is discarded in this moment may still be noted as held alone: the log says what it is.
    """
    try:
        return _read(store, pipeline, fates)
    except LakeError as trouble:
        return Aside(error=str(trouble))


def _read(store: Reader, pipeline: str, fates: Fates) -> Aside:
    held = tuple(notes(store, pipeline, layout.HELD))
    discarded = tuple(notes(store, pipeline, layout.DISCARDED))
    if not held and not discarded:
        return Aside()
    marks = fates({layout.file_name(meta.filename) for meta in (*held, *discarded)})
    first = min(meta.entry or 0 for meta in (*held, *discarded))
    later = JournalReader(store, pipeline).entries(first)
    again = {name for entry in later for name in entry.redone}

    noted = {layout.file_name(meta.filename): meta for meta in (*discarded, *held)}

    def those(mark: int) -> tuple[HeldMeta, ...]:
        names = noted.items()
        return tuple(meta for name, meta in names if marks.get(name) == mark and name not in again)

    return Aside(held=those(HeldState.HELD), discarded=those(HeldState.GONE))


def notes(store: Reader, pipeline: str, folder: str) -> Iterator[HeldMeta]:
    """Read penguin's notes on the files of one pipeline; penguin reports damaged ones."""
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
