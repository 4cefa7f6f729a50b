"""What is answered about one file, what a problem of a pipeline or table is, and its way out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import Literal

from blizzard.answers.file_state import FileState
from blizzard.discover.filter import next_try
from blizzard.model.source.file import UnfinishedFile
from lakebed.documents.records import FailureStage
from lakebed.storage.options import ObjectFacts

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
