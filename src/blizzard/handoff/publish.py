"""What happens to a journaled batch next. Doing it again changes nothing.

A batch is in the journal before it is handed on, and handed on before the next one is appended.
So after a crash at most the last entry has to be handed on again.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Protocol, assert_never

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


class Publisher(Protocol):
    """Hands journaled batches on."""

    def publish(self, store: Store, last: Entry, *, redo: bool) -> HandedOn:
        """Hand on the last entry; `redo` where an earlier step may have done so."""


@dataclass(frozen=True, slots=True)
class FollowEntry:
    """Hand on each entry in the way that the entry itself specifies.

    The table's hand-off may have been changed while the batch was under way, and the process may
    have died before it handed the batch on: then the configuration of the next start says another
    hand-off than the files of that entry wait for.
    """

    is_committed: IsCommitted

    def publish(self, store: Store, last: Entry, *, redo: bool) -> HandedOn:
        """Hand the entry on as it says."""
        return publisher_of(last.handoff, self.is_committed).publish(store, last, redo=redo)


def publisher_of(handoff: Handoff, is_committed: IsCommitted) -> Publisher:
    """Return the publisher of a hand-off."""
    match handoff:
        case Handoff.JOURNAL:
            return LeaveToPenguin()
        case Handoff.STAGING:
            return StageMetas(is_committed)
        case Handoff.DIRECT:
            return MoveFromOutbox(is_committed)
        case _:
            assert_never(handoff)


class LeaveToPenguin:
    """The journal is the hand-off: penguin reads the entries past the one it committed last."""

    def publish(self, store: Store, last: Entry, *, redo: bool) -> HandedOn:  # noqa: ARG002 - the entry says it all
        """Do nothing: with its entry a file is handed off."""
        return HandedOn(files=0 if redo else len(last.files))


@dataclass(frozen=True, slots=True)
class StageMetas:
    """Each file gets a meta in `_staging/pending/`, which penguin deletes once it is committed."""

    is_committed: IsCommitted

    def publish(self, store: Store, last: Entry, *, redo: bool) -> HandedOn:
        """Write the metas of an entry.

        Those of a committed entry would do no harm, but penguin would have to clear them away.
        """
        if not last.files or (redo and self.is_committed(last)):
            return HandedOn()

        def write(file: FinishedFile) -> bool:
            # One that is there is ours, of the same bytes: the name is used once.
            meta = encode_meta(meta_of(file, last))
            return isinstance(store.create(layout.pending_meta(file.filename), meta), Created)

        return _handed(last.files, write, redo=redo)


@dataclass(frozen=True, slots=True)
class MoveFromOutbox:
    """Each file is moved from the outbox to its final name, where a scan may see it.

    It comes after the entry, so no scan ever sees a file that no entry names.
    """

    is_committed: IsCommitted

    def publish(self, store: Store, last: Entry, *, redo: bool) -> HandedOn:
        """Move the files of an entry; of a committed one all were moved before."""
        if not last.files or (redo and self.is_committed(last)):
            return HandedOn()

        def move(file: FinishedFile) -> bool:
            waiting = layout.outbox(last.pipeline, file.filename)
            return store.move(waiting, file.filename, size=file.size)

        return _handed(last.files, move, redo=redo)


@dataclass(frozen=True, slots=True)
class CommitInline:
    """Commit each batch to the Delta log in this process, right after it is handed off."""

    commit: Callable[[], int]
    before: Publisher = field(default_factory=LeaveToPenguin)
    finish: Callable[[], None] = lambda: None
    """Waits for what is under way beside the commits."""

    def publish(self, store: Store, last: Entry, *, redo: bool) -> HandedOn:
        """Commit every entry that is not committed yet, also those of an earlier run."""
        handed = self.before.publish(store, last, redo=redo)
        return replace(handed, delta_commits=self.commit())


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


def _handed(
    files: tuple[FinishedFile, ...], hand_off: Callable[[FinishedFile], bool], *, redo: bool
) -> HandedOn:
    """Hand off every file; of those of an earlier run only what was left to do counts."""
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="hand-off") as pool:
        now = list(pool.map(hand_off, files))
    return HandedOn(files=sum(now) if redo else len(files))
