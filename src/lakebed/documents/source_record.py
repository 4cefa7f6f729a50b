"""What an entry records of one source file: its lines, or why none of them is in the table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakebed.layout import TablePath


class FailureStage(StrEnum):
    """Where in the pipeline a source file failed."""

    DISCOVER = "discover"
    DOWNLOAD = "download"
    DECOMPRESS = "decompress"
    PARSE = "parse"
    UPLOAD = "upload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a source file is not in the table."""

    stage: FailureStage
    code: str
    message: str
    line: int | None = None
    field: str | None = None
    retryable: bool = False
    attempts: int = 1
    basis: str | None = None
    """A digest of the settings that affect it, as they were; None where none do, or unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Bytes of a plain file of which no batch has read the lines that start in them."""

    start: int
    end: int
    lines_before: int
    """How many lines were read between the unread bytes before these, or the start of the file,
    and these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """The record of one source file: its lines, or a failure and no row.

    lines = blank + filtered + quarantined + rows.

    A very large file may be read over several batches, if one ends in the middle of it: each batch
    then counts its own lines, and `skipped` says how many came before. Of a plain file `unread`
    says which bytes are left, in their order: tasks that share it stop each at a place of its own.
    """

    source: str
    """The name of the source in the configuration."""
    path: str
    """The path below that source's root."""
    size: int
    etag: str | None
    lines: int = 0
    blank: int = 0
    filtered: int = 0
    """Records that `source.skip_records` passes over."""
    quarantined: int = 0
    rows: int = 0
    skipped: int = 0
    """Lines that earlier batches have read, and that are in the table."""
    complete: bool = True
    """False where the rest of the file was left for a later batch."""
    unread: tuple[Unread, ...] = ()
    """What is left of a plain file; nothing where it is complete, or where what was read are its
    first lines and no byte is known."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Fields the schema does not declare, with how many values of each were left out."""
    rescued: Mapping[str, int] = field(default_factory=dict)
    """Where values stood that no column takes, with how many of each are in `_rescued`."""
    unit: str | None = None
    failure: Failure | None = None
    redo: bool = False
    """Whether files with its rows were given up, so that its being done before does not count."""
    supersedes: tuple[str, ...] = ()
    """The names of all data files with rows that what is read of it replaces, whether these are in
    the table or not: none of them may be active beside it."""
    reingested: bool = False
    """Whether it was ingested before as another object, whose rows are in the table, too."""
    retry: bool = False
    """Whether an operator asks for it to be read again at once, though it failed."""
    gone: bool = False
    """Whether a look at the whole source has not found it any more: nothing waits for it."""
    discarded: bool = False
    """Whether an operator has given it up, or its rest: it failed, and is gone from its source."""
    retracted: bool = False
    """Whether its rows, so many, are taken out of the table, and its waiting bad lines given up."""
    modified: int | None = None
    """When the store says that it was written, in milliseconds since the epoch; None where an
    earlier version has not recorded it."""
    form: str = ""
    """What is counted in it, if not lines: the records of its documents, and where those are."""

    @property
    def key(self) -> str:
        """Name the file among all sources of the pipeline."""
        return f"{self.source}:{self.path}"

    @property
    def records_read(self) -> int:
        """Count the lines that need not be read again: the first ones, unless it has holes."""
        return self.skipped + self.lines

    @property
    def gave_no_row(self) -> bool:
        """Whether none of its lines, now or before, gave a row: the table holds nothing of it."""
        counted = self.rows or self.quarantined or self.skipped
        return self.failure is None and not (counted or self.reingested)

    @property
    def has_holes(self) -> bool:
        """Whether the lines that were read are others than the first ones of the file."""
        if not self.unread:
            return False
        return len(self.unread) > 1 or any(file.end < self.size for file in self.unread)


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLines:
    """The bad lines of one source file in one quarantine file."""

    source: str
    """The source file, as a key of the entry's `sources`."""
    lines: int
    first: int | None
    """The number of the first one in the source file; None while lines before it are unread."""
    code: str
    """What is wrong with the first one."""
    message: str
    """The same in words, which show nothing of the data unless that is asked for."""
    field: str | None = None
    """Where in the record it is wrong, if it is not all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineFile:
    """Bad lines under a name that is used once, complete in the store."""

    filename: TablePath
    size: int
    record_count: int
    unit: str
    """The work unit; it stands or falls together with the data files of the unit."""
    sources: tuple[BadLines, ...]
    lines_before: int | None = 0
    """How many lines of the source file come before the one that the file counts as its first:
    0 unless it is of a part of a large file, None while some lines before that part are unread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A quarantine file that counts no longer: its lines were dealt with, but for some."""

    old: TablePath
    lines: int
    """How many of its lines wait no longer: the kind of the entry says why."""
    left: QuarantineFile | None = None
    """The file with the lines that go on waiting; None where none does."""
    replayed: Mapping[str, int] = field(default_factory=dict)
    """How many of these became rows, one each, by their source files."""
    filtered: Mapping[str, int] = field(default_factory=dict)
    """How many of these gave no row, by their source files, because `source.skip_records` passes
    them over by now."""

    @property
    def rows(self) -> int:
        """Return how many rows its lines gave."""
        return sum(self.replayed.values())

    @property
    def passed_over(self) -> int:
        """Return how many of its lines were passed over."""
        return sum(self.filtered.values())
