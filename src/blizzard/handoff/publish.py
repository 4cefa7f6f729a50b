"""What happens to a journaled batch next. Doing it again changes nothing.

A batch is in the journal before it is handed on, and handed on before the next one is appended.
So after a crash at most the last entry has to be handed on again.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import assert_never

from lakebed import layout
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import Meta, encode_meta
from lakebed.storage.store import Created, Store
from lakebed.types import Handoff

CONCURRENT = 16
"""Metas that are written, or files that are moved, at once."""

IsCommitted = Callable[[Entry], bool]
"""Asks the Delta log whether an entry is committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOn:
    """What handing on has done."""

    delta_commits: int = 0
    """Commits that this process made."""
    files: int = 0
    """Data files that were handed off, by an entry, by a meta or by their final name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Hands each entry on in the way that the entry itself specifies, then commits it if asked to.

    The table's hand-off may have been changed while the batch was under way, and the process may
    have died before it handed the batch on: then the configuration of the next start says another
    hand-off than the files of that entry wait for.
    """

    is_committed: IsCommitted = lambda _entry: False
    commit: Callable[[], int] | None = None
    """Commits every entry that is not committed yet; None where penguin does."""
    finish: Callable[[], None] = lambda: None
    """Waits for what is under way beside the commits."""

    def publish(self, store: Store, last: Entry, *, redo: bool) -> HandedOn:
        """Hand on the last entry; `redo` where an earlier step may have done so."""
        files = self._hand_off(store, last, redo=redo)
        return HandedOn(files=files, delta_commits=self.commit() if self.commit else 0)

    def _hand_off(self, store: Store, last: Entry, *, redo: bool) -> int:
        """Hand off the files of an entry; of those of an earlier run count only what was left.

        With a journal the entry is the hand-off. Metas of a committed entry would do no harm, but
        penguin would have to clear them away; of a committed entry all files were moved before.
        """
        if last.handoff is Handoff.JOURNAL:
            return 0 if redo else len(last.files)
        if not last.files or (redo and self.is_committed(last)):
            return 0

        def hand_off(file: FinishedFile) -> bool:
            return _hand_off_file(store, last, file)

        with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="hand-off") as pool:
            now = list(pool.map(hand_off, last.files))
        return sum(now) if redo else len(last.files)


def _hand_off_file(store: Store, entry: Entry, file: FinishedFile) -> bool:
    """Make a file known to penguin; return whether that was still to be done."""
    match entry.handoff:
        case Handoff.STAGING:
            # One that is there is ours, of the same bytes: the name is used once.
            meta = encode_meta(meta_of(file, entry))
            return isinstance(store.create(layout.pending_meta(file.filename), meta), Created)
        case Handoff.DIRECT:
            # It comes after the entry, so no scan ever sees a file that no entry names.
            waiting = layout.outbox(entry.pipeline, file.filename)
            return store.move(waiting, file.filename, size=file.size)
        case Handoff.JOURNAL:
            raise AssertionError("the entry hands its files off")
        case never:
            assert_never(never)


def meta_of(file: FinishedFile, entry: Entry) -> Meta:
    """Return the meta of a file, as its entry describes it."""
    return Meta(
        filename=file.filename,
        size=file.size,
        record_count=file.record_count,
        partition_values=dict(file.partition_values),
        source_file=file.source_file,
        source_files=tuple(_uri_of(key, entry) for key in file.source_files),
        pipeline=entry.pipeline,
        journal=entry.journal,
        entry=entry.sequence,
    )


def _uri_of(key: str, entry: Entry) -> str:
    source, _, path = key.partition(":")
    return f"{entry.source_uris[source].rstrip('/')}/{path}"
