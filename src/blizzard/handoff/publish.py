"""Hand off journaled batches to penguin; idempotent.

A batch is journaled before it is handed off, and handed off before the next one is journaled. So
after a crash at most the last entry has to be handed off again. While files have waited too long
for their commit, no new work starts. A table's hand-off can be changed once everything handed off
is committed.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from lakebed import layout
from lakebed.documents.entry import DirectoryProtocol, Entry, encode
from lakebed.documents.pending_meta import Meta, encode_meta
from lakebed.documents.records import FinishedFile
from lakebed.errors import LakeError, ProtocolConflict, Whose
from lakebed.journal import JournalReader, latest_protocol, latest_protocol_number
from lakebed.storage.store import AlreadyThere, Created, Reader, Store
from lakebed.types import Handoff

CONCURRENT = 16
"""Metas written, or files moved, concurrently."""

IsCommitted = Callable[[Entry], bool]
"""Looks up in the Delta log whether an entry is committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffResult:
    """The result of a hand-off."""

    delta_commits: int = 0
    """Commits that this process made."""
    files: int = 0
    """Data files handed off by an entry, a meta or their final name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Hands off each entry in the way that the entry specifies, then commits it if configured.

    After a crash, the configuration may name another hand-off than the one that the last entry's
    files wait for.
    """

    is_committed: IsCommitted = lambda _entry: False
    commit: Callable[[], int] | None = None
    """Commits every uncommitted entry; None if penguin does."""
    finish: Callable[[], None] = lambda: None
    """Waits for background work of the commits."""

    def publish(self, store: Store, last: Entry, *, redo: bool) -> HandoffResult:
        """Hand off the last entry; `redo` if an earlier step may have done so."""
        files = self._hand_off(store, last, redo=redo)
        return HandoffResult(files=files, delta_commits=self.commit() if self.commit else 0)

    def _hand_off(self, store: Store, last: Entry, *, redo: bool) -> int:
        """Hand off the files of an entry; return how many were not handed off before.

        With journal hand-off, the entry itself is the hand-off. The files of a committed entry were
        all moved, and metas for it would be harmless but penguin would have to delete them.
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
            # An existing object is ours with the same bytes, since the name is unique.
            meta = encode_meta(meta_of(file, entry))
            return isinstance(store.create(layout.pending_meta(file.filename), meta), Created)
        case Handoff.DIRECT:
            # Move it after the entry, so no scan sees a file that no entry names.
            waiting = layout.outbox(entry.pipeline, file.filename)
            return store.move(waiting, file.filename, size=file.size)
        case Handoff.JOURNAL:
            raise AssertionError("the entry hands its files off")
        case never:
            assert_never(never)


def meta_of(file: FinishedFile, entry: Entry) -> Meta:
    """Return the meta of a file of an entry."""
    return Meta(
        filename=file.filename,
        size=file.size,
        record_count=file.record_count,
        partition_values=dict(file.partition_values),
        source_file=file.source_file,
        source_files=tuple(map(entry.uri_of, file.source_files)),
        pipeline=entry.pipeline,
        journal=entry.journal,
        entry=entry.sequence,
    )


SURELY_FINE = timedelta(hours=1)
"""Shorter waits are harmless with any retention, so the log need not be read."""


class CommitsBehind(LakeError, code="commits_behind", whose=Whose.USER, retryable=True):
    """Files have waited for penguin so long that a VACUUM may soon delete them."""


def check_commits(
    store: Reader,
    pipeline: str,
    *,
    last: int,
    now: datetime,
    retention: Callable[[], timedelta],
) -> None:
    """Refuse new work if the oldest uncommitted entry has waited too long.

    The limit is half of the table's retention of deleted files, which leaves time to fix it.
    """
    since = waiting_since(store, pipeline, last=last)
    if since is None or now - since < SURELY_FINE:
        return
    keeps = retention()
    if now - since >= keeps / 2:
        raise CommitsBehind(
            f"files have been waiting for their commit since {since.isoformat()}, and the table "
            f"keeps files that its log does not reference for {keeps}: nothing new is read until "
            "penguin has committed them. Start penguin, or see `penguin status` for what is "
            "blocking it",
            pipeline=pipeline,
        )


def waiting_since(store: Reader, pipeline: str, *, last: int) -> datetime | None:
    """Return when the oldest uncommitted entry with files was journaled; None without one.

    Entries without files (clean-ups, failures, inherited knowledge) do not wait for a commit.
    """
    journal = JournalReader(store, pipeline)
    receipt = journal.receipt()
    for number in range(1 if receipt is None else receipt.sequence + 1, last + 1):
        entry = journal.entry(number)
        if entry is None:
            return None  # A receipt that does not fit the journal is reported elsewhere.
        if entry.files:
            return datetime.fromisoformat(entry.created)
    return None


LastCommitted = Callable[[str, str], int | None]
"""Looks up the last committed entry of a pipeline's journal in the Delta log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncommitted:
    """The entries of one pipeline that are still to be committed."""

    pipeline: str
    first: int
    last: int


def set_handoff(
    store: Store, handoff: Handoff, last_committed: LastCommitted
) -> bool | tuple[Uncommitted, ...]:
    """Change a table's hand-off; idempotent.

    Return whether it changed, or the entries that must be committed first.
    """
    # Read the number first, so that a protocol written meanwhile makes ours fail.
    number = latest_protocol_number(store) or 0
    if _in_force(store) is handoff:
        return False
    if waiting := uncommitted(store, last_committed):
        return tuple(waiting)
    path = layout.protocol(number + 1)
    if isinstance(store.create(path, encode(DirectoryProtocol(handoff=handoff))), AlreadyThere):
        found = _in_force(store)
        if found is handoff:
            return False
        raise ProtocolConflict(
            f"another process has just changed the hand-off to {found}; nothing was changed",
            path=store.describe(path),
        )
    return True


def uncommitted(store: Reader, last_committed: LastCommitted) -> list[Uncommitted]:
    """Return the uncommitted entries of every pipeline of a table."""
    found = []
    for pipeline in layout.pipelines(store.folders(layout.OURS)):
        last = JournalReader(store, pipeline).last()
        if last is None:
            continue
        committed = last_committed(pipeline, last.journal) or 0
        if committed < last.sequence:
            found.append(Uncommitted(pipeline=pipeline, first=committed + 1, last=last.sequence))
    return found


def _in_force(store: Reader) -> Handoff | None:
    latest = latest_protocol(store)
    return None if latest is None else latest.handoff
