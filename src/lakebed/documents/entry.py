"""The documents of the journal: one entry per batch, commit point, manifest and ledger in one.

blizzard appends them, penguin commits what they name. They are JSON objects with a format
version; one that cannot be read stops the run, it is never taken for missing.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar

from lakebed.columns.schema import Schema
from lakebed.documents.reading import adapter_of, encode_document, validated
from lakebed.documents.records import FinishedFile, QuarantineFile, Resolved, Rewrite, SourceRecord
from lakebed.errors import DocumentUnreadable
from lakebed.layout import entry_sequence, file_name
from lakebed.types import RESCUED, Handoff

FORMAT = 1
"""The one format of entries and protocol documents; 1.0 freezes it."""

Kind = Literal[
    "open", "batch", "gc", "redo", "retry", "inherited", "closed", "moved", "promote", "replay",
    "discard", "retract", "erase", "compact",
]  # fmt: skip
"""What an entry is: only a batch, a replay and a retraction have data files of their own.

`open` begins a journal. `gc` names what is deleted after it. `redo` gives up data files that are
gone, so that their source files are read again. `retry` names source files that failed and are to
be read again at once. `inherited` repeats what an earlier journal knew of source files. `closed`
ends a journal that another pipeline has taken over. `moved` says that the files of a source lie at
another place now, and which objects they are there. `promote` puts data files in the place of
others, in which a column is filled from `_rescued`. `replay` has rows of lines that were set aside,
`discard` gives such lines up, or source files that failed and are gone. `retract` takes the rows of
source files out of the table, `erase` rows for which a condition holds: data files go, or come anew
without them. What a retraction has read to take the place of such rows are its own data files.
`compact` puts the rows of many small data files into fewer; no row changes.
"""


Operation = Literal["append", "overwrite", "rewrite", "control"]
"""What an entry does to the table: add rows, change or remove some, move them, or none of these."""
_OPERATIONS: Mapping[Kind, Operation] = {
    "batch": "append",
    "replay": "append",
    "promote": "overwrite",
    "retract": "overwrite",
    "erase": "overwrite",
    "compact": "rewrite",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inheritance:
    """The journal that a new one takes its knowledge of source files from."""

    pipeline: str
    journal: str
    sequence: int
    """Its last entry whose knowledge is taken over."""
    digest: str
    entries: int
    """How many `inherited` entries follow entry 0; without them all the journal is not begun."""
    since: Mapping[str, str] = field(default_factory=dict)
    """When each source was first read, by its name: a lookback counts from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Entry N of a journal. Entry 0 opens the journal: it names it and holds no files."""

    format: int = FORMAT
    kind: Kind
    pipeline: str
    journal: str
    sequence: int
    run: str
    created: str
    previous: str | None
    """The SHA-256 of the entry before, in hex; None for entry 0."""
    handoff: Handoff
    source_uris: Mapping[str, str]
    """The sources by name, so that a renamed pipeline is noticed."""
    table_schema: dict[str, Any]
    """The table's schema as Delta writes it, partition columns included."""
    partition_columns: tuple[str, ...]
    columns: Schema | None = None
    """The columns as blizzard knows them, those that were found in the data included; None where
    the configuration says them all."""
    sources: tuple[SourceRecord, ...] = ()
    files: tuple[FinishedFile, ...] = ()
    dlq: tuple[str, ...] = ()
    """The dead letter queue's objects of this batch, as URIs; one that no entry names is none."""
    deleted: tuple[str, ...] = ()
    """What a `gc` entry deletes, by its path below the table: no later entry may name it."""
    redone: tuple[str, ...] = ()
    """The held files that a `redo` entry gives up, by their names."""
    inherits: Inheritance | None = None
    """Where the knowledge of a journal that replaces another comes from; in entry 0."""
    heir: str | None = None
    """The pipeline that has taken this journal over; in a `closed` entry."""
    moved: str | None = None
    """The source whose files lie at another place now; in a `moved` entry.

    One that the entry's sources do not have was never read after all.
    """
    follows: int = 0
    """How many `inherited` entries go on with what a `moved` entry says, right after it."""
    rewrites: tuple[Rewrite, ...] = ()
    """The data files that it takes out of the table, and those that supersede them: all in one
    commit, or nothing."""
    as_of: int | None = None
    """The version of the table for which an entry was planned that supersedes data files."""
    erased: Mapping[str, int] = field(default_factory=dict)
    """How many rows an `erase` entry takes of each source file, by URI; others are unknown."""
    reason: str | None = None
    """What an operator says of an `erase` entry; the condition itself is written nowhere."""
    quarantine: tuple[QuarantineFile, ...] = ()
    """The files with the bad lines of the sources; one that no entry names is none."""
    resolved: tuple[Resolved, ...] = ()
    """The quarantine files whose lines no longer wait, with those that take their place."""
    seconds: float | None = None
    """How long the batch took up to this entry; None for other kinds."""

    @property
    def operation(self) -> Operation:
        """Return what it does to the table: decisions depend on this, not on the kind."""
        return _OPERATIONS.get(self.kind, "control")

    @property
    def is_batch(self) -> bool:
        """Whether a run has appended it for source files that it read."""
        return self.operation == "append" and not self.by_operator

    @property
    def by_operator(self) -> bool:
        """Whether a command has appended it beside the batches of a run."""
        return self.kind not in ("open", "batch", "inherited", "closed", "moved")

    @property
    def data_files(self) -> tuple[FinishedFile, ...]:
        """Return every data file that was written for it, committed or not."""
        return (*self.files, *(new for rewrite in self.rewrites for new in rewrite.new))

    @property
    def supersedes(self) -> frozenset[str]:
        """Name the data files that its rows, now or later, replace: none may be active beside them.

        A `redo` entry names them, and so does each entry that reads their sources again.
        """
        read = (record for record in self.readings if record.failure is None)
        return frozenset((*self.redone, *(name for record in read for name in record.supersedes)))

    @property
    def replaces(self) -> bool:
        """Whether it takes data files of the table out, or puts others in their place."""
        return bool(self.rewrites) or (self.operation == "overwrite" and bool(self.supersedes))

    @property
    def outgoing(self) -> tuple[FinishedFile, ...]:
        """Return the data files that leave the table with it."""
        return tuple(old for rewrite in self.rewrites for old in rewrite.old_files())

    @property
    def readings(self) -> tuple[SourceRecord, ...]:
        """Return what it says of source files that were read for it, or failed."""
        if self.operation == "control":
            return ()
        return tuple(record for record in self.sources if not record.retracted)

    def has_read(self, key: str) -> bool:
        """Whether a source file was read for it."""
        return any(
            record.key == key and record.failure is None and not record.gone
            for record in self.readings
        )

    @property
    def quarantine_files(self) -> tuple[QuarantineFile, ...]:
        """Return every quarantine file that was written for it."""
        left = (file.left for file in self.resolved)
        return (*self.quarantine, *(one for one in left if one is not None))

    @property
    def replacement_mark(self) -> str:
        """Return the name by which the log says that nothing was rewritten.

        It is the name of the first new file: all of them are given up. Where there is none, the
        command that wrote the entry has a name that is as good.
        """
        new = next((new for rewrite in self.rewrites for new in rewrite.new), None)
        return self.run if new is None else file_name(new.filename)

    @property
    def left_out(self) -> int:
        """Count the rows that leave the table."""
        return sum(rewrite.left_out for rewrite in self.rewrites)

    @property
    def rescues(self) -> bool:
        """Whether the table has `_rescued` from this entry on at the latest."""
        return any(column["name"] == RESCUED for column in self.table_schema["fields"])

    @property
    def awaits(self) -> int:
        """Return the last entry that this one needs before the journal may continue; else 0."""
        if self.inherits is not None:
            return self.inherits.entries
        return self.sequence + self.follows if self.follows else 0

    def uri_of(self, key: str) -> str:
        """Return where a source file is, or was when the entry was written, by its key."""
        source, _, path = key.partition(":")
        # A line of a source that is not configured any more was replayed under its name alone.
        return f"{self.source_uris.get(source, f'{source}:').rstrip('/')}/{path}"

    def successor(self, kind: Kind, *, previous: str, run: str, created: str) -> "Entry":
        """Return the entry that follows this one in the same journal, without any action. Pure."""
        return Entry(
            kind=kind,
            pipeline=self.pipeline,
            journal=self.journal,
            sequence=self.sequence + 1,
            run=run,
            created=created,
            previous=previous,
            handoff=self.handoff,
            source_uris=self.source_uris,
            table_schema=self.table_schema,
            partition_columns=self.partition_columns,
            columns=self.columns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryProtocol:
    """The protocol of a table directory, written before any data file."""

    format: int = FORMAT
    handoff: Handoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The last entry known to be committed; used only to detect contradictions."""

    journal: str
    sequence: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """How often a batch was started by a process that did not live to journal it."""

    starts: int = 0
    alone: str | None = None
    """The one source file of the last start, if it was one."""
    alone_starts: int = 0
    """How often that file was started alone."""


def digest(body: bytes) -> str:
    """Return the SHA-256 of a stored entry, which the next one repeats as `previous`."""
    return hashlib.sha256(body).hexdigest()


def digest_number(digest_hex: str) -> int:
    """Return the first 63 bits of a digest: what fits into the version of an app transaction."""
    return int(digest_hex[:16], 16) >> 1


def encode(document: Entry | DirectoryProtocol | Receipt | Started) -> bytes:
    """Write a document, a line of JSON that ends in a newline."""
    if not isinstance(document, Entry):
        return encode_document(document)
    # What a reader takes for granted is left out, which halves an entry of many files: so no
    # default of its fields may ever change.
    body = adapter_of(Entry).dump_json(document, exclude={"format"}, exclude_defaults=True)
    return b'{"format":%d,%b\n' % (FORMAT, body[1:])


def decode_entry(body: bytes, path: str) -> Entry:
    """Read an entry; any fault in it stops the run and names the object."""
    if not body:
        raise DocumentUnreadable(
            "this journal entry is empty, as a power cut can leave it; restore it from a backup, "
            f"or continue from the entry before it with {_begins_anew(path)}",
            path=path,
        )
    entry = decode(Entry, body, path)
    try:
        datetime.fromisoformat(entry.created)
    except ValueError as invalid:
        raise DocumentUnreadable(
            f"this document cannot be read: created: {invalid}; restore it from a backup",
            path=path,
        ) from invalid
    return entry


def _begins_anew(path: str) -> str:
    """Return the command that replaces a journal whose last entry is empty."""
    pipeline = next(iter(path.split("/")[-3:-2]), "PIPELINE")
    how = "--empty" if entry_sequence(path) == 0 else f"--from {pipeline}"
    return f"blizzard journal new -p {pipeline} {how}"


Document = TypeVar("Document", Entry, DirectoryProtocol, Receipt, Started)


def decode(kind: type[Document], body: bytes, path: str) -> Document:
    """Read a document of a kind; one that cannot be read stops the run and names the object."""
    if not body:
        raise DocumentUnreadable(
            "this document is empty, as a power cut can leave it; delete it, and the next start "
            "writes it anew",
            path=path,
        )
    document = validated(kind, body, path, what="document", remedy="; restore it from a backup")
    if isinstance(document, Entry | DirectoryProtocol) and document.format != FORMAT:
        raise DocumentUnreadable(
            f"this document has format {document.format}, but this program reads format {FORMAT}; "
            "use the program that wrote it, or a newer one",
            path=path,
        )
    return document
