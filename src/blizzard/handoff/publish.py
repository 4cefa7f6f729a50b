"""What happens to a journaled batch next. Doing it again changes nothing.

A batch is in the journal before it is handed on, and handed on before the next one is appended.
So after a crash at most the last entry has to be handed on again. While finished files wait too
long for their commit, no new work is begun. The table's hand-off is changed once everything that
was handed off is committed.
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
        source_files=tuple(map(entry.uri_of, file.source_files)),
        pipeline=entry.pipeline,
        journal=entry.journal,
        entry=entry.sequence,
    )


SURELY_FINE = timedelta(hours=1)
"""Below this no retention is near, and the log need not be asked."""


class CommitsBehind(LakeError, code="commits_behind", whose=Whose.USER, retryable=True):
    """Files have been waiting for penguin for so long that a VACUUM may soon delete them."""


def check_commits(
    store: Reader,
    pipeline: str,
    *,
    last: int,
    now: datetime,
    retention: Callable[[], timedelta],
) -> None:
    """Refuse new work if the oldest uncommitted entry has been waiting too long.

    That is half of the table's retention of deleted files: there is still time to fix it.
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
    """Return when the oldest entry with files was journaled that is not committed; None if all are.

    One without files (a clean-up, failures, what a new journal inherits) waits for nothing.
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
"""Asks the Delta log for the last committed entry of a pipeline's journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncommitted:
    """The entries of one pipeline that are still to be committed."""

    pipeline: str
    first: int
    last: int


def set_handoff(
    store: Store, handoff: Handoff, last_committed: LastCommitted
) -> bool | tuple[Uncommitted, ...]:
    """Change how a table's files are handed off; doing so again changes nothing.

    Return whether it changed, or the entries that have to be committed before.
    """
    # The number comes first: a protocol that is written meanwhile then makes ours fail.
    number = latest_protocol_number(store) or 0
    if _in_force(store) is handoff:
        return False
    if waiting := entries_before(store, handoff, last_committed):
        return waiting
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


def entries_before(
    store: Reader, handoff: Handoff, last_committed: LastCommitted
) -> tuple[Uncommitted, ...]:
    """Return the entries that keep a table from another hand-off. Read-only."""
    if _in_force(store) is handoff:
        return ()
    return tuple(uncommitted(store, last_committed))


def uncommitted(store: Reader, last_committed: LastCommitted) -> list[Uncommitted]:
    """Name the entries of every pipeline of a table that the Delta log does not have."""
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
