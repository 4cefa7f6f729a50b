"""The values of answers: states of a file, problems, and ways out."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from shlex import quote
from typing import Literal

from blizzard.discover.filter import next_try
from blizzard.model.source.file import IngestedFile, UnfinishedFile
from lakebed.documents.records import FailureStage
from lakebed.storage.options import ObjectFacts

NOT_APPLIED = "not_applied"
"""Reason of replacement content whose entry penguin rejected."""
PART_READ = "part_read"
"""Reason of a file that is read in part and whose rest waits."""
REDO = "redo"
"""Reason of a file that is read again because its data files were given up."""
ROWS_LOST = "rows_lost"
"""The code of a data file whose rows a repair took out and `blizzard redo` cannot read again."""
NO_ROWS = "no_rows"
"""Reason of a file that was read and gave no row."""
INHERITED = "inherited"
"""Reason of a file that was read under an earlier journal."""


class FileState(StrEnum):
    """The state of a source file or a data file; the values are stable identifiers."""

    WAITING = "waiting"
    """To be read, in full or from where the last batch stopped."""
    FAILED = "failed"
    """The last attempt failed, whether or not the file is still in its source."""
    JOURNALED = "journaled"
    """Read; penguin has not committed the entry yet."""
    HELD = "held"
    """Read; penguin holds a data file with its rows."""
    CHANGED = "changed"
    """Read, and now another object that `on_change` leaves unread; or replacement content whose
    entry penguin rejected."""
    REMOVED = "removed"
    """Read and committed; some or all of its rows were removed from the table since."""
    ALTERED = "altered"
    """Read and committed; another writer rewrote its data files, perhaps without its rows."""
    IN_TABLE = "in_table"
    """Read and committed, even without any row."""
    RETRACTED = "retracted"
    """Committed, then removed by `blizzard retract`. Of a data file: an entry removed all of its
    rows."""
    DISCARDED = "discarded"
    """Given up by an operator: a data file with its rows, a failed file that was deleted from its
    source, or the unread rest of a file."""
    MISSING = "missing"
    """Neither in the store nor known to the journal and the log."""
    ELSEWHERE = "elsewhere"
    """In no source and no table of the configuration."""
    SKIPPED = "skipped"
    """In a source but never read; the reason says why."""
    REWRITTEN = "rewritten"
    """A data file whose rows are in other files now."""
    GIVEN_UP = "given_up"
    """A data file that is never committed because its sources were read again."""
    ORPHAN = "orphan"
    """A data file that no entry names; `blizzard gc` deletes it."""
    DELETED = "deleted"
    """A data file that `blizzard gc` deleted or is about to delete."""
    FOREIGN = "foreign"
    """A data file of another program."""


LANDED = (
    FileState.WAITING, FileState.FAILED, FileState.JOURNALED, FileState.HELD, FileState.CHANGED,
    FileState.REMOVED, FileState.ALTERED, FileState.IN_TABLE, FileState.RETRACTED,
    FileState.DISCARDED,
)  # fmt: skip
"""The states of files that landed, for counting."""
DONE = (FileState.IN_TABLE, FileState.ALTERED, FileState.RETRACTED, FileState.DISCARDED)
"""Final states: the file is in the table, or its rows were changed on purpose."""


DayOf = Callable[[int | None], datetime | None]
"""Returns roughly when an entry was written; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStanding:
    """One source file."""

    source: str
    path: str
    state: FileState
    at: datetime | None
    """When it landed, by the store's clock; for a deleted or overwritten file, when it was
    read."""
    size: int
    entry: int | None = None
    """The entry that read it or its last part; if unread, the entry that says so. None if there is
    none or it is unknown."""
    partition: str | None = None
    """The partition in its path, such as `date=2024-01-01`; None without one."""
    reason: str | None = None
    """The code of its failure."""
    deleted: bool = False
    """Whether it is no longer in its source."""
    overwritten: bool = False
    """Whether another object has its name since, which counts as a file of its own."""
    quarantined_lines: int = 0
    """Its bad lines that wait in quarantine."""
    in_part: bool = False
    """Whether only a part of it was read."""

    @property
    def lost(self) -> bool:
        """Whether it failed and can no longer be read."""
        return self.deleted and self.state is FileState.FAILED

    @property
    def key(self) -> str:
        """The unique name of the file within the pipeline: `source:path`."""
        return f"{self.source}:{self.path}"

    @property
    def day(self) -> str | None:
        """The day on which it landed, in UTC; None if unknown."""
        return None if self.at is None else f"{self.at.astimezone(UTC):%Y-%m-%d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProgress:
    """How far files have come since an entry read them."""

    committed: int | None
    """The last committed entry; None before the first."""
    lost: int | None = None
    """The last committed entry by the receipt, if the log has lost its version."""
    held: Mapping[str, Collection[int]] = field(default_factory=dict)
    """By key of a file with rows that penguin holds, the entries that wrote them."""
    discarded: Mapping[str, Collection[int]] = field(default_factory=dict)
    rejected: frozenset[int] = frozenset()
    """Entries that penguin rejected."""
    repaired: Mapping[str, int] = field(default_factory=dict)
    """By key, the last entry whose rows of the file a repair took out of the table."""
    is_of: Callable[[IngestedFile, int], bool] = lambda _done, _entry: True
    """Whether an entry wrote rows of this content, not of another one of the same name."""
    altered: Mapping[tuple[str, int], FileState] = field(default_factory=dict)
    """States that other writers have caused, by key and entry."""

    def of(self, done: IngestedFile) -> FileState:
        """Return the state of a file that was read to its end.

        Rows that a retraction takes out stay in the table until it is committed.
        """
        is_due = self.committed is None or (done.entry is not None and done.entry > self.committed)
        if is_due and not done.retracted:
            return FileState.JOURNALED
        if done.entry in self.rejected:
            return FileState.CHANGED
        for entries, state in (
            (self.held, FileState.HELD),
            (self.discarded, FileState.DISCARDED),
        ):
            if any(self.is_of(done, entry) for entry in entries.get(done.key, ())):
                return state
        state = FileState.RETRACTED if done.retracted and not is_due else FileState.IN_TABLE
        lost = self.repaired.get(done.key)
        is_lost = lost is not None and (done.entry is None or done.entry <= lost)
        if is_lost and state is FileState.IN_TABLE:
            state = FileState.REMOVED
        return self.altered.get((done.key, done.entry or 0), state)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitingRedo:
    """A data file that `penguin fsck` took out, whose rows `blizzard redo` reads again."""

    file: str
    entry: int
    rows: int
    sources: tuple[str, ...]
    """The keys of its source files."""


ROWS_ARE_THERE = frozenset((FileState.IN_TABLE, FileState.REWRITTEN, FileState.ALTERED))
"""The states of data files with rows that are in the table, perhaps in other files."""


def state_by_data_files(states: Collection[FileState]) -> FileState:
    """Return the state of a committed source file from the states of its data files.

    Other writers may have removed or rewritten them, and rows of replayed lines may be pending.
    """
    for state in (FileState.HELD, FileState.DISCARDED):
        if state in states:
            return state  # penguin's record of it changed since the log was read.
    for state in (FileState.REMOVED, FileState.JOURNALED, FileState.ALTERED):
        if state in states:
            return state
    return FileState.IN_TABLE


def state_by_log(state: FileState, data_files: Collection[FileState]) -> FileState:
    """Correct the state of a file by the log's view of its data files.

    Retracted rows may be in the table again. Both `why` and `files` use this.
    """
    found = state_by_data_files(data_files)
    follows = (
        state is FileState.IN_TABLE
        or (state is FileState.RETRACTED and not ROWS_ARE_THERE.isdisjoint(data_files))
        or (state is FileState.REMOVED and found is FileState.ALTERED)
    )
    return found if follows else state


Health = Literal["ok", "warning", "failing", "unknown"]


@dataclass(frozen=True, slots=True)
class CommandPrefix:
    """The start of a command line: program, configuration options and pipeline."""

    options: str = ""
    """The options that name the configuration, such as ` -c lake.yaml`."""
    pipeline: str | None = None
    """None if the configuration has only one."""

    @property
    def blizzard(self) -> str:
        """The prefix of blizzard commands about the pipeline."""
        return f"blizzard{self.options}{f' -p {quote(self.pipeline)}' if self.pipeline else ''}"

    @property
    def penguin(self) -> str:
        """The prefix of penguin commands, which take no pipeline."""
        return f"penguin{self.options}"

    def start(self, program: str) -> str:
        """Return the command that starts a program, for all pipelines."""
        return f"{program}{self.options}"


def confirmed(command: str) -> tuple[str, str]:
    """Return a command as a preview, and with --yes."""
    return command, f"{command} --yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """What an operator can do: advice, configuration to change, commands to run."""

    advice: str | None = None
    yaml: str | None = None
    """Keys of the pipeline's configuration as YAML."""
    commands: tuple[str, ...] = ()
    """Each can be run as is."""

    def lines(self) -> Iterator[str]:
        """Yield the lines to print: the advice, then YAML and commands, indented."""
        yield from () if self.advice is None else (self.advice,)
        below = (*(self.yaml or "").splitlines(), *self.commands)
        yield from (f"  {line}" for line in below)


def committed_again(cli: CommandPrefix) -> WayOut:
    """Return how to commit entries again whose versions the log has lost."""
    advice = "Commit again what the log has lost; penguin forget continues without it."
    return WayOut(advice=advice, commands=confirmed(f"{cli.penguin} replay"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem of a pipeline or table, and what to do about it."""

    severity: Literal["warning", "error"]
    code: str
    message: str
    way_out: WayOut | None = None
    since: str | None = None
    subject: str | None = None
    """What it concerns: a source, a file, an entry."""
    counts: tuple[int, ...] = ()
    """The counts in the message, to be summed over several pipelines."""
    many: str | None = None
    """The message as a template for such sums; None if it cannot be merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What one entry records about reading a source file."""

    entry: int
    at: datetime
    lines: int
    blank: int
    filtered: int
    quarantined: int
    rescued: int
    """Values in `_rescued`."""
    dropped: int
    """Values that were left out."""
    rows: int
    version: int | None = None
    """The Delta version with its rows; None if uncommitted or no longer known."""
    committed: bool = False
    committed_at: datetime | None = None
    counted: str = "lines"
    """The unit of the counts: `lines`, or `records` of documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What one entry did with quarantined lines of a source file."""

    entry: int
    kind: str
    """`replay` or `discard`."""
    at: datetime
    lines: int
    """Lines that no longer wait."""
    filtered: int
    """Of these, lines that `source.skip_records` now filters."""
    rows: int
    version: int | None
    """The Delta version with the rows; None if uncommitted or unknown."""
    committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedSource:
    """Where and since when a source file fails."""

    path: str
    stage: str
    code: str
    message: str
    line: int | None
    field: str | None
    attempts: int
    since: datetime | None
    """When it first failed; None before the entry that records it is written."""
    failed_at: datetime
    """When it was last tried."""
    entry: int | None
    next_try: datetime | None
    """None if it is not tried again until the file or relevant settings change."""
    lines_in_table: int = 0
    """Its lines that earlier batches read; if any, it cannot simply be replaced."""

    @classmethod
    def of(
        cls, known: UnfinishedFile, bases: Mapping[FailureStage, str] | None
    ) -> "FailedSource | None":
        """Return a file's failure; None without one. Without `bases` it is not tried again."""
        failure = known.record.failure
        if failure is None:
            return None
        return cls(
            path=known.record.path,
            stage=failure.stage.value,
            code=failure.code,
            message=failure.message,
            line=failure.line,
            field=failure.field,
            attempts=failure.attempts,
            since=known.since,
            failed_at=known.at,
            entry=known.entry,
            next_try=None if bases is None else next_try(known, bases),
            lines_in_table=known.record.records_read,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file with rows of the file in question."""

    path: str
    rows: int
    bytes: int
    entry: int
    sources: int
    """How many source files have rows in it."""
    state: FileState
    own_rows: int | None = None
    """Its rows of the file in question; None if unknown."""
    version: int | None = None
    removed_version: int | None = None
    removed_at: datetime | None = None
    removed_by: str | None = None
    """The operation and the writer that committed it."""
    code: str | None = None
    """Why penguin holds it, or ROWS_LOST."""
    reasons: tuple[str, ...] = ()
    """Why penguin holds it."""
    replaced_by: str | None = None
    """The file that holds its remaining rows now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRetraction:
    """An entry that takes rows of a source file out of the table."""

    entry: int
    at: datetime
    rows: int
    committed: bool
    rejected: bool
    """Whether penguin rejected it: the rows are in the table."""
    reasons: tuple[str, ...] = ()
    """Why it was rejected; empty if the log no longer says."""
    version: int | None = None
    """The Delta version without the rows; None if no longer known."""
    committed_at: datetime | None = None
    deleted_from: datetime | None = None
    """The earliest time at which VACUUM may delete the files with the rows."""
    replaced: bool = False
    """Whether the same entry adds new content in their place."""
    others: tuple[str, ...] = ()
    """The source files of the rows, if not this one."""
    came_back: bool = False
    """Whether a RESTORE has undone the version, so that the rows may be in the table again."""
    pipeline: str | None = None
    """The other pipeline of the table that wrote the entry; None for the file's own."""

    @property
    def is_done(self) -> bool:
        """Whether the rows were taken out and still are out."""
        return self.committed and not self.rejected and not self.came_back

    @property
    def is_not_applied(self) -> bool:
        """Whether it was to add new content, and penguin rejected it."""
        return self.replaced and self.rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer about one file: a sentence, the facts, and what to do next."""

    kind: str
    """Whether it is a `source` file or a `data` file."""
    state: FileState
    uri: str
    pipeline: str | None = None
    table_uri: str | None = None
    source: str | None = None
    path: str | None = None
    answer: str
    reason: str | None = None
    """Why it is skipped, waits, is held or failed, as a stable identifier."""
    detail: str | None = None
    """Details beyond the reason."""
    stored: ObjectFacts | None = None
    """The object that is in the store now."""
    read: tuple[Read, ...] = ()
    resolved: tuple[Resolution, ...] = ()
    """What has been done with its bad lines since."""
    failure: FailedSource | None = None
    gone: bool = False
    """Whether a run recorded that it left its source before it was fully read."""
    running: bool | None = None
    """For a waiting file: whether blizzard runs; None if it may run on another machine."""
    data_files: tuple[DataFile, ...] = ()
    sources: tuple[str, ...] = ()
    """For a data file: the source files with rows in it."""
    retraction: FileRetraction | None = None
    erased: tuple[FileRetraction, ...] = ()
    """The erasures that took some of its rows out of the table."""
    earlier_lines: int = 0
    """Its lines that were read before `read`, as under an earlier journal."""
    read_before: tuple[int, ...] = ()
    """The last entries that read other content of its name, whose rows may be in the table."""
    bad_lines: int = 0
    """Bad lines of its name that wait in quarantine, also those of other content."""
    deleted_from: datetime | None = None
    """For an orphan: when `blizzard gc` starts to delete it."""
    next: tuple[WayOut, ...] = ()
    """What an operator can do."""
