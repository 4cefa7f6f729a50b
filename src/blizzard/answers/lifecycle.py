"""The lifecycle of a file: the one place that decides its state. Pure.

`blizzard why`, `files`, `status`, `dlq` and the live page print these states.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from blizzard.answers.answer import (
    NOT_APPLIED,
    PART_READ,
    REDO,
    DayOf,
    FileProgress,
    FileStanding,
    FileState,
)
from blizzard.discover.filter import Decision, is_same, same_object
from blizzard.discover.finding import PartitionUnknown, Reason
from blizzard.journal.ledger import Ledger
from blizzard.journal.standings import Undecided
from blizzard.model.settings import SourceSettings
from blizzard.model.source.file import IngestedFile, Recorded, UnfinishedFile
from blizzard.model.source.partly_read import (
    PartialFileChanged,
    PartialFileGone,
    is_partly_read,
    lacks_its_object,
)
from lakebed.storage.options import ObjectFacts
from lakebed.types import OnChange

READ_AGAIN = (OnChange.REINGEST, OnChange.REPLACE)
"""With these, the next batch reads such content again."""


def of_deleted(known: UnfinishedFile, progress: FileProgress) -> tuple[FileState, str | None]:
    """Return the state and reason of an unfinished file that has left its source.

    A failed file stays failed until an operator gives it up. If the rest of a file was given up,
    the part that was read still has to reach the table.
    """
    record = known.record
    reason = None if record.failure is None else record.failure.code
    if record.discarded and is_partly_read(record):
        part = IngestedFile(key=record.key, size=record.size, etag=record.etag, entry=known.read_in)
        state = progress.of(part)
        is_in = state is FileState.IN_TABLE
        return (FileState.DISCARDED if is_in else state), PartialFileGone.code
    if record.gone:
        return (FileState.DISCARDED if record.discarded else FileState.FAILED), reason or "gone"
    return (FileState.WAITING, PART_READ) if reason is None else (FileState.FAILED, reason)


def of_unfinished(known: UnfinishedFile, progress: FileProgress) -> tuple[FileState, str | None]:
    """Return the state and reason of an unfinished file, by the journal alone."""
    if not known.record.gone and _is_due(known):
        return FileState.WAITING, REDO if known.record.redo else PART_READ
    return of_deleted(known, progress)


def is_failed(known: UnfinishedFile) -> bool:
    """Whether a file failed and no retry has been ordered since."""
    return known.record.failure is not None and not _is_due(known)


def has_a_part_read(known: UnfinishedFile) -> bool:
    """Whether rows of an unfinished file were read and not given up."""
    return is_partly_read(known.record) and not known.record.redo


def last_entry(known: UnfinishedFile) -> int | None:
    """Return the last entry that read lines of an unfinished file, or else that names it."""
    return known.entry if known.read_in is None else known.read_in


def _is_due(known: UnfinishedFile) -> bool:
    """Whether an unfinished file is simply due to be read, in full or in part."""
    failure = known.record.failure
    return failure is None or (known.record.redo and not failure.attempts)


def _unfinished(
    facts: ObjectFacts, known: UnfinishedFile, decision: Decision
) -> tuple[FileState, str | None]:
    """Return the state and reason of a listed object whose name is unfinished."""
    record, failure = known.record, known.record.failure
    is_due = failure is None or _is_due(known)
    is_other = not same_object(record, facts)
    is_back = decision is Decision.TAKE and lacks_its_object(record)
    if (is_other or record.gone) and (is_due or decision is not Decision.DONE):
        is_rest = is_back and not is_other
        changed = PART_READ if is_rest else Reason.CHANGED.value
        return FileState.WAITING, _young(decision) or changed
    if is_due or is_back:
        return FileState.WAITING, REDO if record.redo else PART_READ
    return FileState.FAILED, None if failure is None else failure.code


def _young(decision: Decision) -> str | None:
    return Reason.TOO_YOUNG.value if decision is Decision.WAIT else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """Decides the state of every object of one source. No other code does.

    Several objects of one name may have rows in the table; each has its own standing.
    """

    source: SourceSettings
    ledger: Ledger
    progress: FileProgress
    partition: Callable[[str], str | None] = lambda _path: None
    """Returns the partition that a path names."""
    written: DayOf = lambda _entry: None

    def before(self, key: str, done: IngestedFile | None) -> Recorded:
        """Return the ledger's record of a name; `done` is the object that was read to its end."""
        unfinished = self.ledger.unfinished.get(key)
        if unfinished is not None and unfinished.record.redo:
            done = None  # The files with its rows are gone: it is read again.
        undone = self._not_applied(key)
        is_rejected = done is not None and undone is not None and done.entry == undone.entry
        return Recorded(unfinished=unfinished, finished=done, is_rejected=is_rejected)

    def listed(
        self, facts: ObjectFacts, before: Recorded, decision: Decision, *, loses_rest: bool
    ) -> Iterator[FileStanding]:
        """Yield earlier objects of a listed object's name, then the object itself."""
        known, done = before.unfinished, before.finished
        undone = self._not_applied(f"{self.source.name}:{facts.path}")
        is_read = decision is Decision.TAKE and self.source.on_change in READ_AGAIN
        if undone is not None and is_same(undone.after, facts) and not is_read:
            yield from self._not_in_place(undone, done, at=facts.modified)
            return
        read = tuple(self._read_before(facts, before, decision, loses_rest=loses_rest))
        yield from read
        state, entry, reason = self._state(facts, before, decision, loses_rest=loses_rest)
        in_part = not read and done is None and known is not None and has_a_part_read(known)
        yield self._standing(
            facts.path, state, facts.modified, facts.size, entry, reason=reason, in_part=in_part
        )

    def done_and_gone(self, done: IngestedFile) -> Iterator[FileStanding]:
        """Yield an object that was read to its end and has left its source."""
        undone = self._not_applied(done.key)
        if undone is None:
            yield self.read(done, deleted=True)
        else:
            at = self.written(undone.entry)
            yield from self._not_in_place(undone, done, at=at, deleted=True)

    def unfinished_and_gone(self, known: UnfinishedFile) -> FileStanding:
        """Return an unfinished object that has left its source."""
        record = known.record
        state, reason = of_deleted(known, self.progress)
        landed = known.since or known.at
        if record.modified is not None:
            landed = datetime.fromtimestamp(record.modified / 1000, UTC)
        standing = self._standing(
            record.path, state, landed, record.size, last_entry(known), reason=reason
        )
        return replace(standing, deleted=True, in_part=has_a_part_read(known))

    def earlier(self, key: str) -> Iterator[FileStanding]:
        """Yield the earlier objects of a name whose rows are still in the table."""
        for each in self.ledger.earlier.get(key, ()):
            one = self.read(each.file, overwritten=True)
            if each.reason is None:
                yield one
            else:
                is_in = one.state is FileState.IN_TABLE
                state = FileState.DISCARDED if is_in else one.state
                yield replace(one, state=state, reason=each.reason, in_part=True)
        yield from (self.read(each, overwritten=True) for each in to_be_replaced(self.ledger, key))

    def read(
        self, done: IngestedFile, *, deleted: bool = False, overwritten: bool = False
    ) -> FileStanding:
        """Return a fully read object that is no longer in its source as it was."""
        path = done.key.partition(":")[2]
        state, at = self.progress.of(done), self.written(done.entry)
        standing = self._standing(path, state, at, done.size, done.entry)
        return replace(standing, deleted=deleted, overwritten=overwritten)

    def _state(
        self, facts: ObjectFacts, before: Recorded, decision: Decision, *, loses_rest: bool
    ) -> tuple[FileState, int | None, str | None]:
        """Return the state of a listed object, its entry and its reason."""
        known, done = before.unfinished, before.finished
        if done is not None and is_same(done, facts):
            return self.progress.of(done), done.entry, None
        if known is None and done is None and decision is Decision.FAIL:
            return FileState.FAILED, None, PartitionUnknown.code
        # Content in the table takes precedence over other content that failed and is gone.
        if known is None or (known.record.gone and done is not None and not loses_rest):
            is_read = done is None or decision is not Decision.DONE
            reason = None if done is None else Reason.CHANGED.value
            state = FileState.WAITING if is_read else FileState.CHANGED
            return state, None, _young(decision) or reason
        if loses_rest:
            return FileState.FAILED, last_entry(known), PartialFileChanged.code
        state, code = _unfinished(facts, known, decision)
        return state, last_entry(known), code

    def _read_before(
        self, facts: ObjectFacts, before: Recorded, decision: Decision, *, loses_rest: bool
    ) -> Iterator[FileStanding]:
        """Yield earlier objects of a name that count separately."""
        known, done = before.unfinished, before.finished
        if done is not None and not is_same(done, facts) and self._is_in(done):
            yield self.read(done, overwritten=True)
        if known is None:
            return
        record = known.record
        is_given_up = record.discarded and is_partly_read(record) and not same_object(record, facts)
        if is_given_up and not loses_rest and decision is not Decision.DONE:
            yield replace(self.unfinished_and_gone(known), deleted=False, overwritten=True)

    def _not_applied(self, key: str) -> Undecided | None:
        """Return the rejected replacement by a file, if there is one."""
        one = self.ledger.undecided.of(key)
        is_it = one is not None and one.not_applied and key not in self.ledger.unfinished
        return one if is_it else None

    def _is_in(self, done: IngestedFile) -> bool:
        """Whether the entry that read a file was not rejected."""
        return done.entry not in self.progress.rejected

    def _not_in_place(
        self,
        undone: Undecided,
        done: IngestedFile | None,
        *,
        at: datetime | None,
        deleted: bool = False,
    ) -> Iterator[FileStanding]:
        """Yield the old content that is in the table, then the new content that is not."""
        if done is not None and self._is_in(done):
            yield self.read(done, overwritten=True)
        path, size = undone.after.key.partition(":")[2], undone.after.size
        changed = self._standing(
            path, FileState.CHANGED, at, size, undone.entry, reason=NOT_APPLIED
        )
        yield replace(changed, deleted=deleted)

    def _standing(
        self,
        path: str,
        state: FileState,
        at: datetime | None,
        size: int,
        entry: int | None,
        *,
        reason: str | None = None,
        in_part: bool = False,
    ) -> FileStanding:
        return FileStanding(
            source=self.source.name,
            path=path,
            state=state,
            at=at,
            size=size,
            entry=entry,
            partition=self.partition(path),
            reason=reason,
            in_part=in_part,
        )


def to_be_replaced(ledger: Ledger, key: str) -> Iterator[IngestedFile]:
    """Yield the content in the table that a pending entry replaces."""
    one = ledger.undecided.of(key)
    if one is None or one.rejected or one.after.retracted:
        return
    known = ledger.known_name(key)
    if known is not None and not known.retracted:
        yield known
    if one.left is not None:
        part = one.left.record
        entry = last_entry(one.left)
        yield IngestedFile(key=key, size=part.size, etag=part.etag, entry=entry)
