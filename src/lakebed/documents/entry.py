"""The documents of the journal: each entry is commit point, manifest and ledger in one.

blizzard appends them, penguin commits the files they name. They are JSON objects with a format
version. An unreadable entry stops the run; it is never treated as missing.
"""

import hashlib
from collections.abc import Iterator, Mapping
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
"""The kind of an entry; only batches, replays and retractions add data files of their own.

`open` begins a journal, `inherited` repeats an earlier journal's knowledge of source files, and
`closed` ends a journal that another pipeline took over. `moved` records the new location and
objects of a source. `gc` names files that are deleted after it. `redo` gives up lost data files, so
that their source files are read again. `retry` names failed source files to be read again at once.
`promote` replaces data files with ones in which a column is filled from `_rescued`. `replay` has
rows of quarantined lines; `discard` gives up such lines, or failed source files that are gone.
`retract` removes rows of source files from the table, `erase` rows that match a condition: data
files are removed, or rewritten without them. A retraction's own data files hold the rows that it
read to supersede those. `compact` moves the rows of many small data files into fewer; no row
changes.
"""


Operation = Literal["append", "overwrite", "rewrite", "control"]
"""An entry's effect on the table: it adds, changes or moves rows, or has none."""
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
    """The journal from which a new one inherits its knowledge of source files."""

    pipeline: str
    journal: str
    sequence: int
    """Its last inherited entry."""
    digest: str
    entries: int
    """The number of `inherited` entries after entry 0; the journal begins with the last of them."""
    since: Mapping[str, str] = field(default_factory=dict)
    """When each source was first read, by name: lookbacks count from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Entry N of a journal. Entry 0 opens the journal: it names it and has no files."""

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
    """The URIs of the sources by name, so that a renamed pipeline is noticed."""
    table_schema: dict[str, Any]
    """The table's schema in Delta's form, including partition columns."""
    partition_columns: tuple[str, ...]
    columns: Schema | None = None
    """The columns including inferred ones; None if all are configured."""
    sources: tuple[SourceRecord, ...] = ()
    files: tuple[FinishedFile, ...] = ()
    dlq: tuple[str, ...] = ()
    """The URIs of this batch's objects in the dead letter queue; others there do not count."""
    deleted: tuple[str, ...] = ()
    """The paths that a `gc` entry deletes: no later entry may name them."""
    redone: tuple[str, ...] = ()
    """The names of the held files that a `redo` entry gives up."""
    inherits: Inheritance | None = None
    """The journal that this one replaces and inherits from; in entry 0."""
    heir: str | None = None
    """The pipeline that took this journal over; in a `closed` entry."""
    moved: str | None = None
    """The source that was moved; in a `moved` entry.

    One that is missing in the entry's sources was never read.
    """
    follows: int = 0
    """The number of `inherited` entries that continue a `moved` entry, right after it."""
    rewrites: tuple[Rewrite, ...] = ()
    """The data files that it removes and those that supersede them: all in one commit or none."""
    as_of: int | None = None
    """The table version for which an entry that supersedes data files was planned."""
    erased: Mapping[str, int] = field(default_factory=dict)
    """The rows that an `erase` entry removes, by source file URI, as far as known."""
    reason: str | None = None
    """The operator's reason for an `erase` entry; its condition is not stored."""
    quarantine: tuple[QuarantineFile, ...] = ()
    """The quarantine files of the sources; files that no entry names do not count."""
    resolved: tuple[Resolved, ...] = ()
    """Quarantine files that are resolved, with their replacements."""
    seconds: float | None = None
    """The duration of the batch up to this entry; None for other kinds."""

    @property
    def operation(self) -> Operation:
        """Return its effect on the table: decisions depend on this, not on the kind."""
        return _OPERATIONS.get(self.kind, "control")

    @property
    def is_batch(self) -> bool:
        """Whether a run appended it for source files that it read."""
        return self.operation == "append" and not self.by_operator

    @property
    def by_operator(self) -> bool:
        """Whether a command appended it, not a run."""
        return self.kind not in ("open", "batch", "inherited", "closed", "moved")

    @property
    def data_files(self) -> tuple[FinishedFile, ...]:
        """Return every data file that was written for it, committed or not."""
        return (*self.files, *(new for rewrite in self.rewrites for new in rewrite.new))

    @property
    def supersedes(self) -> frozenset[str]:
        """Return the data files that its rows, now or later, supersede: none may be active.

        A `redo` entry names them, and so does each entry that reads their sources again.
        """
        return frozenset(name for name, _key in self.superseded_rows())

    def superseded_rows(self) -> Iterator[tuple[str, str | None]]:
        """Yield each superseded file with the source files whose rows are; None for all."""
        yield from ((name, None) for name in self.redone)
        read = [record for record in self.readings if record.failure is None]
        yield from ((name, record.key) for record in read for name in record.supersedes)
        # The first reading supersedes the rows of source files that are not read again, too.
        again = {record.key for record in read}
        out = [one.key for one in self.sources if one.retracted and one.key not in again]
        first = read[0].supersedes if read else ()
        yield from ((name, key) for name in first for key in out)

    @property
    def replaces(self) -> bool:
        """Whether it removes or replaces data files of the table."""
        return bool(self.rewrites) or (self.operation == "overwrite" and bool(self.supersedes))

    @property
    def outgoing(self) -> tuple[FinishedFile, ...]:
        """Return the data files that leave the table with it."""
        return tuple(old for rewrite in self.rewrites for old in rewrite.old_files())

    @property
    def readings(self) -> tuple[SourceRecord, ...]:
        """Return the records of source files that were read for it, or failed."""
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
        """Return the name of the mark by which the log records that the entry was rejected.

        It is the name of the first new file: all of them are discarded then. Without new files it
        is the id of the command that wrote the entry.
        """
        new = next((new for rewrite in self.rewrites for new in rewrite.new), None)
        return self.run if new is None else file_name(new.filename)

    @property
    def left_out(self) -> int:
        """Count the rows that leave the table."""
        return sum(rewrite.left_out for rewrite in self.rewrites)

    @property
    def rescues(self) -> bool:
        """Whether the table has `_rescued` at this entry."""
        return any(column["name"] == RESCUED for column in self.table_schema["fields"])

    @property
    def awaits(self) -> int:
        """Return the last entry that must follow before the journal may continue; else 0."""
        if self.inherits is not None:
            return self.inherits.entries
        return self.sequence + self.follows if self.follows else 0

    def uri_of(self, key: str) -> str:
        """Return the URI of a source file at the time of the entry, by its key."""
        source, _, path = key.partition(":")
        # A source that is no longer configured has a name and no URI.
        return f"{self.source_uris.get(source, f'{source}:').rstrip('/')}/{path}"

    def successor(self, kind: Kind, *, previous: str, run: str, created: str) -> "Entry":
        """Return the next entry of the same journal, without any action. Pure."""
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
    """How often a batch was started by processes that died before journaling it."""

    starts: int = 0
    alone: str | None = None
    """The only source file of the last start, if it had one."""
    alone_starts: int = 0
    """How often that file was started alone."""


def digest(body: bytes) -> str:
    """Return the SHA-256 of a stored entry, which the next one repeats as `previous`."""
    return hashlib.sha256(body).hexdigest()


def digest_number(digest_hex: str) -> int:
    """Return the first 63 bits of a digest: what fits into the version of an app transaction."""
    return int(digest_hex[:16], 16) >> 1


def encode(document: Entry | DirectoryProtocol | Receipt | Started) -> bytes:
    """Encode a document as a line of JSON."""
    if not isinstance(document, Entry):
        return encode_document(document)
    # Defaults are omitted, which halves an entry of many files: so no
    # default of its fields may ever change.
    body = adapter_of(Entry).dump_json(document, exclude={"format"}, exclude_defaults=True)
    return b'{"format":%d,%b\n' % (FORMAT, body[1:])


def decode_entry(body: bytes, path: str) -> Entry:
    """Decode an entry; raise DocumentUnreadable, which stops the run, for any fault."""
    if not body:
        raise DocumentUnreadable(
            "this journal entry is empty, as a power cut can leave it; restore it from a backup, "
            f"or continue from the entry before it with {_new_journal(path)}",
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


def _new_journal(path: str) -> str:
    """Return the command that replaces a journal whose last entry is empty."""
    pipeline = next(iter(path.split("/")[-3:-2]), "PIPELINE")
    how = "--empty" if entry_sequence(path) == 0 else f"--from {pipeline}"
    return f"blizzard journal new -p {pipeline} {how}"


Document = TypeVar("Document", Entry, DirectoryProtocol, Receipt, Started)


def decode(kind: type[Document], body: bytes, path: str) -> Document:
    """Decode a document; raise DocumentUnreadable, which stops the run, for any fault."""
    if not body:
        raise DocumentUnreadable(
            "this document is empty, as a power cut can leave it; delete it, and the next start "
            "recreates it",
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
