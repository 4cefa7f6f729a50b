"""How one source file stands: in the table, or how far it has come. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from blizzard.discover.filter import Decision, is_same, same_object
from blizzard.journal.ledger import Before
from blizzard.model.files import IngestedFile, UnfinishedFile
from blizzard.model.source.part_way import GonePartWay, is_part_way
from lakebed.storage.store import ObjectFacts

NOT_APPLIED = "not_applied"
"""The reason of a file whose rows were to come in the place of others, and did not."""


class FileState(StrEnum):
    """How far a file has come; every file that landed has one of these."""

    IN_TABLE = "in_table"
    """It was read, and its entry is committed; also where it held no row."""
    JOURNALED = "journaled"
    """It was read; penguin has not committed its entry yet."""
    HELD = "held"
    """It was read, and penguin holds a data file with its rows."""
    DISCARDED = "discarded"
    """An operator gave it up: a data file with its rows, or all of it, after it failed and was
    deleted from its source; or its rest, where a part of it is in the table."""
    FAILED = "failed"
    """It failed when it was last tried; also where it was deleted from its source since."""
    WAITING = "waiting"
    """It is to be read, or a part of it is."""
    CHANGED = "changed"
    """It was read, and is another object now, which `on_change` says not to read; or its rows were
    to come in the place of others, and penguin could not apply that."""
    RETRACTED = "retracted"
    """Its rows were taken out of the table by `blizzard retract`."""
    REMOVED = "removed"
    """`penguin fsck --repair` took rows of it out of the table, and it was not read again."""


DONE = (FileState.IN_TABLE, FileState.RETRACTED, FileState.DISCARDED)
"""Nothing more is to come of a file: it is in, or an operator has decided otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStanding:
    """One source file."""

    source: str
    path: str
    state: FileState
    at: datetime | None
    """When it landed, by the store's clock; of one that was read and is deleted or overwritten,
    when it was read."""
    size: int
    entry: int | None = None
    """The entry with which it was read, or the last part of it; of one that was not, the entry that
    says so. None where there is none, or where that is not known."""
    partition: str | None = None
    """What its path says, such as `date=2024-01-01`; None where it says none."""
    reason: str | None = None
    """The code of its failure."""
    deleted: bool = False
    """Whether it is no longer in its source."""
    overwritten: bool = False
    """Whether another object has its name since; that one is a file of its own."""
    quarantined_lines: int = 0
    """Bad lines of it that wait in quarantine."""
    in_part: bool = False
    """Whether a part of it was read, and the rest was not."""

    @property
    def lost(self) -> bool:
        """Whether it failed, and is not there to be read any more."""
        return self.deleted and self.state is FileState.FAILED

    @property
    def key(self) -> str:
        """Name the file among all sources of the pipeline."""
        return f"{self.source}:{self.path}"

    @property
    def day(self) -> str | None:
        """Return the day on which it landed, in UTC; None where nobody knows."""
        return None if self.at is None else f"{self.at.astimezone(UTC):%Y-%m-%d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is known of files that were read, beyond which entry read them."""

    committed: int | None
    """The last entry that is committed; None before the first."""
    held: frozenset[str] = frozenset()
    """Keys of files with rows that penguin holds."""
    discarded: frozenset[str] = frozenset()
    passed_over: frozenset[int] = frozenset()
    """Entries that had no effect."""
    removed: Mapping[str, int] = field(default_factory=dict)
    """The last entries whose rows of files a repair took out of the table, by key."""

    def of(self, done: IngestedFile) -> FileState:
        """Return how a file stands that was read to its end.

        The rows of one that is to be taken back are in the table until that is committed.
        """
        is_due = self.committed is None or (done.entry is not None and done.entry > self.committed)
        if is_due and not done.retracted:
            return FileState.JOURNALED
        if done.entry in self.passed_over:
            return FileState.CHANGED
        if done.key in self.held:
            return FileState.HELD
        if done.key in self.discarded:
            return FileState.DISCARDED
        if done.retracted and not is_due:
            return FileState.RETRACTED
        lost = self.removed.get(done.key)
        is_lost = lost is not None and (done.entry is None or done.entry <= lost)
        return FileState.REMOVED if is_lost else FileState.IN_TABLE


def state_of(
    facts: ObjectFacts,
    before: Before,
    decision: Decision,
    progress: Progress,
) -> tuple[FileState, int | None, str | None]:
    """Return how a listed object stands, the entry that says so, and why it failed.

    What was read under its name before it was overwritten is an object of its own.
    """
    known, done = before.unfinished, before.finished
    if done is not None and is_same(done, facts):
        return progress.of(done), done.entry, None
    if known is not None:
        state, reason = _unfinished(facts, known, decision)
        return state, last_entry(known), reason
    is_read = done is None or decision is not Decision.DONE
    return (FileState.WAITING if is_read else FileState.CHANGED), None, None


def of_deleted(known: UnfinishedFile, progress: Progress) -> tuple[FileState, str | None]:
    """Return how a file stands that is not done and not in its source any more, and why it failed.

    One that failed was never loaded, and nothing is there to be read: only an operator ends that.
    What was read of one whose rest was given up still has to come into the table.
    """
    record = known.record
    reason = None if record.failure is None else record.failure.code
    if record.discarded and is_part_way(record):
        part = IngestedFile(key=record.key, size=record.size, etag=record.etag, entry=known.read_in)
        state = progress.of(part)
        is_in = state is FileState.IN_TABLE
        return (FileState.DISCARDED if is_in else state), GonePartWay.code
    if record.gone:
        return (FileState.DISCARDED if record.discarded else FileState.FAILED), reason or "gone"
    return (FileState.WAITING if reason is None else FileState.FAILED), reason


def of_unfinished(known: UnfinishedFile, progress: Progress) -> tuple[FileState, str | None]:
    """Return how a file stands that is not done, by the journal alone, and why it failed."""
    if not known.record.gone and _is_due(known):
        return FileState.WAITING, None
    return of_deleted(known, progress)


def has_a_part_read(known: UnfinishedFile) -> bool:
    """Whether rows of a file that is not done were read, and none of them was given up."""
    return is_part_way(known.record) and not known.record.redo


def last_entry(known: UnfinishedFile) -> int | None:
    """Return the last entry that read lines of a file that is not done; without one, the last."""
    return known.entry if known.read_in is None else known.read_in


def _is_due(known: UnfinishedFile) -> bool:
    """Whether nothing is wrong with a file: the rest of it, or all of it, is to be read."""
    failure = known.record.failure
    return failure is None or (known.record.redo and not failure.attempts)


def _unfinished(
    facts: ObjectFacts, known: UnfinishedFile, decision: Decision
) -> tuple[FileState, str | None]:
    failure = known.record.failure
    is_new = known.record.gone or not same_object(known.record, facts)
    if failure is None or _is_due(known) or (is_new and decision is not Decision.DONE):
        return FileState.WAITING, None
    return FileState.FAILED, failure.code


ByFile = Mapping[str, Mapping[int, int]]
"""How many bad lines of files wait, by key and by the entry that read them."""


@dataclass(slots=True)
class WaitingLines:
    """Tells bad lines once, as objects are met in the order in which they were read."""

    waiting: ByFile = field(default_factory=dict)
    _told: set[tuple[str, int]] = field(default_factory=set)

    def of(self, one: FileStanding) -> dict[int, int]:
        """Return those of an object by entry: all up to its own that are of no earlier object."""
        found = {
            entry: lines
            for entry, lines in self.waiting.get(one.key, {}).items()
            if (one.entry is None or entry <= one.entry) and (one.key, entry) not in self._told
        }
        self._told |= {(one.key, entry) for entry in found}
        return found
