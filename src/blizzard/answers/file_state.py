"""The states of a file, and how one stands that was read. Pure."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from blizzard.model.source.file import IngestedFile

NOT_APPLIED = "not_applied"
"""The reason of new content that was to replace other rows, by an entry that penguin rejected."""
PART_READ = "part_read"
"""The reason of a file whose first lines are read, and whose rest waits."""
REDO = "redo"
"""The reason of a file that is read again because its data files were given up."""
NO_ROWS = "no_rows"
"""The reason of a file that was read and has no row."""
INHERITED = "inherited"
"""The reason of a file that was read under an earlier journal."""


class FileState(StrEnum):
    """The state of a source file or a data file, by words that do not change."""

    WAITING = "waiting"
    """To be read, or a part of it is."""
    FAILED = "failed"
    """The last attempt failed; also if the file has left its source since."""
    JOURNALED = "journaled"
    """Read; penguin has not committed the entry yet."""
    HELD = "held"
    """Read; penguin holds a data file with its rows."""
    CHANGED = "changed"
    """Read, and another object now that `on_change` says not to read; or new content that was to
    replace other rows, by an entry that penguin rejected."""
    REMOVED = "removed"
    """Read and committed; some or all of its rows were removed from the table since."""
    ALTERED = "altered"
    """Read and committed; another writer has rewritten its data files, perhaps without its rows."""
    IN_TABLE = "in_table"
    """Read and committed; also if it has no row."""
    RETRACTED = "retracted"
    """Committed once; `blizzard retract` has taken its rows out of the table. Of a data file: an
    entry took all of its rows out."""
    DISCARDED = "discarded"
    """Given up by an operator: a data file with its rows, or all of it after it failed and was
    deleted from its source; or its rest, if a part of it is in the table."""
    MISSING = "missing"
    """Not in the store, and unknown to the journal and the log."""
    ELSEWHERE = "elsewhere"
    """In no source and no table of the configuration."""
    SKIPPED = "skipped"
    """In a source and never read; the reason says why."""
    REWRITTEN = "rewritten"
    """A data file whose rows are in other files now."""
    GIVEN_UP = "given_up"
    """A data file that is never committed, because its sources were read again."""
    ORPHAN = "orphan"
    """A data file that no entry names; `blizzard gc` deletes it."""
    DELETED = "deleted"
    """A data file that `blizzard gc` has deleted, or is about to."""
    FOREIGN = "foreign"
    """A data file of another program."""


LANDED = (
    FileState.WAITING, FileState.FAILED, FileState.JOURNALED, FileState.HELD, FileState.CHANGED,
    FileState.REMOVED, FileState.ALTERED, FileState.IN_TABLE, FileState.RETRACTED,
    FileState.DISCARDED,
)  # fmt: skip
"""The states by which files that landed are counted."""
DONE = (FileState.IN_TABLE, FileState.ALTERED, FileState.RETRACTED, FileState.DISCARDED)
"""Nothing more is to come of a file: it is in, or its rows were changed on purpose."""


DayOf = Callable[[int | None], datetime | None]
"""Answers when about an entry was written; None if that is unknown."""


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
        """Return the day on which it landed, in UTC; None if unknown."""
        return None if self.at is None else f"{self.at.astimezone(UTC):%Y-%m-%d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProgress:
    """What is known of files that were read, beyond which entry read them."""

    committed: int | None
    """The last entry that is committed; None before the first."""
    held: frozenset[str] = frozenset()
    """Keys of files with rows that penguin holds."""
    discarded: frozenset[str] = frozenset()
    passed_over: frozenset[int] = frozenset()
    """Entries that had no effect."""
    repaired: Mapping[str, int] = field(default_factory=dict)
    """The last entries whose rows of files a repair took out of the table, by key."""
    altered: Mapping[tuple[str, int], FileState] = field(default_factory=dict)
    """What other writers have made of the rows of files, by key and entry."""

    def of(self, done: IngestedFile) -> FileState:
        """Return how a file stands that was read to its end.

        The rows of one that is to be taken back are in the table until that is committed.
        """
        is_due = self.committed is None or (done.entry is not None and done.entry > self.committed)
        if is_due and not done.retracted:
            return FileState.JOURNALED
        if done.entry in self.passed_over:
            return FileState.CHANGED
        if done.key in self.held or done.key in self.discarded:
            return FileState.HELD if done.key in self.held else FileState.DISCARDED
        state = FileState.RETRACTED if done.retracted and not is_due else FileState.IN_TABLE
        lost = self.repaired.get(done.key)
        is_lost = lost is not None and (done.entry is None or done.entry <= lost)
        if is_lost and state is FileState.IN_TABLE:
            state = FileState.REMOVED
        return self.altered.get((done.key, done.entry or 0), state)


def state_by_data_files(states: Collection[FileState]) -> FileState:
    """Return the state of a committed source file, by the states of the data files with its rows.

    Other writers may have removed or rewritten them, and rows of replayed lines may still wait.
    """
    for state in (FileState.HELD, FileState.DISCARDED):
        if state in states:
            return state  # penguin's note of it came or went since the log was read.
    if set(states) == {FileState.JOURNALED}:
        return FileState.JOURNALED
    for state in (FileState.REMOVED, FileState.ALTERED):
        if state in states:
            return state
    return FileState.IN_TABLE


def state_by_log(
    state: FileState, data_files: Collection[FileState], *, came_back: bool
) -> FileState:
    """Correct the state of a file that was read, by what the log says of its data files.

    `came_back` says that rows which a retraction took out are in the table again. `why` and `files`
    both decide here.
    """
    found = state_by_data_files(data_files)
    follows = (
        state is FileState.IN_TABLE
        or (state is FileState.RETRACTED and came_back)
        or (state is FileState.REMOVED and found is FileState.ALTERED)
    )
    return found if follows else state
