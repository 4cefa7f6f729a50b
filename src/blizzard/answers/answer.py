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


Health = Literal["ok", "warning", "failing", "unknown"]


@dataclass(frozen=True, slots=True)
class CommandPrefix:
    """The start of a command: its program, its configuration, and one pipeline of several."""

    options: str = ""
    """Those that name the configuration: ` -c lake.yaml`."""
    pipeline: str | None = None
    """None where the configuration has no other."""

    @property
    def blizzard(self) -> str:
        """A command of blizzard about the pipeline."""
        return f"blizzard{self.options}{f' -p {quote(self.pipeline)}' if self.pipeline else ''}"

    @property
    def penguin(self) -> str:
        """A command of penguin, which knows no pipelines."""
        return f"penguin{self.options}"

    def start(self, program: str) -> str:
        """Return the command that starts a program, for all pipelines."""
        return f"{program}{self.options}"


def confirmed(command: str) -> tuple[str, str]:
    """Return a command as a preview, and then so that it is done."""
    return command, f"{command} --yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """What an operator can do: in words, then what to change in the configuration, then to run."""

    advice: str | None = None
    yaml: str | None = None
    """Keys of the pipeline, as they stand in its configuration."""
    commands: tuple[str, ...] = ()
    """Each runs as it is."""

    def lines(self) -> Iterator[str]:
        """Yield it for a person, keys and commands below the words."""
        yield from () if self.advice is None else (self.advice,)
        below = (*(self.yaml or "").splitlines(), *self.commands)
        yield from (f"  {line}" for line in below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something a person should know, and what to do about it."""

    severity: Literal["warning", "error"]
    code: str
    message: str
    way_out: WayOut | None = None
    since: str | None = None
    subject: str | None = None
    """What it is about: a source, a file, an entry."""
    counts: tuple[int, ...] = ()
    """What the message counts, to be added up over several pipelines."""
    many: str | None = None
    """The message with places for such sums; None where the message is of one pipeline alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What one entry says of the reading of a source file."""

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
    """The Delta version that has it; None where it is not committed, or not known any more."""
    committed: bool = False
    committed_at: datetime | None = None
    counted: str = "lines"
    """What is counted as lines here: `lines`, or the `records` of documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What one entry did with bad lines of a source file that had been set aside."""

    entry: int
    kind: str
    """`replay` or `discard`."""
    at: datetime
    lines: int
    """Lines that wait no longer."""
    filtered: int
    """Those of them that `source.skip_records` passes over by now."""
    rows: int
    version: int | None
    """The Delta version that has the rows; None where it is not committed, or not known."""
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
    """When it failed first; None before the entry that says so is written."""
    failed_at: datetime
    """When it was tried last."""
    entry: int | None
    next_try: datetime | None
    """None where it is not tried again until it, or what bears on it in the settings, changes."""
    lines_in_table: int = 0
    """Lines of it that earlier batches have read; it cannot just be replaced then."""

    @classmethod
    def of(
        cls, known: UnfinishedFile, bases: Mapping[FailureStage, str] | None
    ) -> "FailedSource | None":
        """Return how a file failed, None if it has not; without `bases` it is not tried again."""
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
    """A data file with rows of the file that is asked about."""

    path: str
    rows: int
    bytes: int
    entry: int
    sources: int
    """How many source files have rows in it."""
    state: FileState
    own_rows: int | None = None
    """Rows of the file that is asked about in it; None where that is not known."""
    version: int | None = None
    removed_version: int | None = None
    removed_at: datetime | None = None
    removed_by: str | None = None
    """The operation and who committed it."""
    code: str | None = None
    reasons: tuple[str, ...] = ()
    """Why penguin holds it."""
    replaced_by: str | None = None
    """The file that has its rows now, or those that are left; the files, where they were sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRetraction:
    """The entry that takes rows of a source file out of the table."""

    entry: int
    at: datetime
    rows: int
    committed: bool
    passed_over: bool
    """Whether penguin has settled it without effect: the rows are in the table."""
    reasons: tuple[str, ...] = ()
    """Why it has; empty where the log no longer says."""
    version: int | None = None
    """The Delta version without the rows; None where it is not known any more."""
    committed_at: datetime | None = None
    deleted_from: datetime | None = None
    """Before then no VACUUM deletes the files with the rows, by the table's retention."""
    replaced: bool = False
    """Whether the new content of the file comes in their place, with the same entry."""
    others: tuple[str, ...] = ()
    """The source files whose rows they are, where they are not of this one."""
    came_back: bool = False
    """Whether data files that it took out are in the table again, as after a RESTORE."""
    is_out: bool = False
    """Whether it is without effect (yet), and no row of its data files is in the table."""
    is_altered: bool = False
    """Whether it was rejected, and other writers have rewritten data files that it names."""

    @property
    def is_done(self) -> bool:
        """Whether the rows were taken out, and still are."""
        return self.committed and not self.passed_over and not self.came_back

    @property
    def is_not_applied(self) -> bool:
        """Whether new content was to come in their place, and penguin could not apply that."""
        return self.replaced and self.passed_over


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer about one file: in words, then the facts, then what to do."""

    kind: str
    """`source` or `data`: what the file is."""
    state: FileState
    uri: str
    pipeline: str | None = None
    table_uri: str | None = None
    source: str | None = None
    path: str | None = None
    answer: str
    reason: str | None = None
    """Why it is skipped, waits, is held or failed, by a word that does not change."""
    detail: str | None = None
    """What was said of it, where the reason does not say it all."""
    stored: ObjectFacts | None = None
    """The object as it is in the store now."""
    read: tuple[Read, ...] = ()
    resolved: tuple[Resolution, ...] = ()
    """What has become of its bad lines since."""
    failure: FailedSource | None = None
    gone: bool = False
    """Whether it left its source before all of it was read, and a run has recorded that."""
    running: bool | None = None
    """Of a file that waits: whether a blizzard runs; None if it runs on another machine, if any."""
    data_files: tuple[DataFile, ...] = ()
    sources: tuple[str, ...] = ()
    """Of a data file: the source files with rows in it."""
    retraction: FileRetraction | None = None
    erased: tuple[FileRetraction, ...] = ()
    """What was asked to take some of its rows out of the table by what they hold."""
    replaces_rows: int | None = 0
    """Rows in the table of what it was before its new content failed; None if not known."""
    earlier_lines: int = 0
    """Lines of it that were read under an earlier journal, which counted their rows."""
    read_before: tuple[Read, ...] = ()
    """What was read under its name as other objects, whose rows stay (`on_change: reingest`)."""
    taken_back_by: int | None = None
    """The entry that takes out what was read before it under that name, and is not committed."""
    other_bad_lines: int = 0
    """Bad lines that wait, and are not of what `read` tells: of what had its name before, say."""
    deleted_from: datetime | None = None
    """Of an orphan: from when on `blizzard gc` deletes it."""
    next: tuple[WayOut, ...] = ()
    """What an operator can do."""
