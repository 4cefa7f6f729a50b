"""The actions of a Delta log, typed: the one reader of its versions.

A checkpoint has the same actions as columns: `lakebed.deltalog.checkpoint` makes the same values of
them, and loads Arrow. Nothing here does.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from lakebed.columns.row_tracking import FIRST_ROW_ID, ROW_VERSION, FirstRow
from lakebed.deltalog.file_names import Naming
from lakebed.documents.deletion_vector import DeletionVector
from lakebed.documents.reading import parse_json
from lakebed.errors import TableUnreadable

TABLE_KINDS = ("protocol", "metaData", "txn", "domainMetadata")
"""The actions that say what a table is; all others are about files, or about a version itself."""
LAST_MOMENT = 253_402_300_800_000
"""The milliseconds of the year 10000."""

FileKey = tuple[str, str | None]
"""What a log tells its files apart by: the path, and the deletion vector if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAction:
    """A data file that is added or removed."""

    added: bool
    path: str
    """Its name in the store."""
    written: str
    """Its path as the log has it."""
    key: FileKey
    vector: DeletionVector | None = None
    """Its deletion vector."""
    deletion_vector: Mapping[str, Any] | None = None
    """The vector as the log writes it."""
    size: int | None = None
    partition_values: tuple[tuple[str, str | None], ...] = ()
    stats: str | None = None
    """The statistics of an added file, as JSON; from a checkpoint, the row count alone."""
    modification_time: int | None = None
    data_change: bool = True
    first_row: FirstRow | None = None
    """What an added file's rows are numbered from, where the table tracks its rows."""
    removed_at_ms: int | None = None
    version: int | None = None
    """The version that has the action; None where a checkpoint has it."""

    @classmethod
    def of(
        cls, told: Mapping[str, Any], named: Naming, *, added: bool, version: int | None = None
    ) -> "FileAction":
        """Read an action of a version, or of a checkpoint: maps are pairs there."""
        vector = DeletionVector.of(told.get("deletionVector"), named)
        path = named(unquote(told["path"]))
        first, since = told.get(FIRST_ROW_ID), told.get(ROW_VERSION)
        numbered = None
        if added and first is not None and since is not None:
            numbered = FirstRow(id=int(first), version=int(since))
        return cls(
            added=added,
            path=path,
            written=told["path"],
            key=(path, None if vector is None else vector.key),
            vector=vector,
            deletion_vector=None if vector is None else told["deletionVector"],
            size=number_of(told.get("size")) if added else None,
            # Delta takes an empty string for null.
            partition_values=tuple(
                (name, value or None) for name, value in pairs_of(told.get("partitionValues"))
            ),
            stats=_stats(told, short=version is None) if added else None,
            modification_time=number_of(told.get("modificationTime")),
            data_change=told.get("dataChange") is not False,
            first_row=numbered,
            removed_at_ms=number_of(told.get("deletionTimestamp")),
            version=version,
        )

    @property
    def files(self) -> tuple[str, ...]:
        """Return what it needs in the store."""
        held_in = None if self.vector is None else self.vector.file
        return (self.path,) if held_in is None else (self.path, held_in)

    @property
    def rows(self) -> int | None:
        """Count its rows by its statistics, deleted ones included; None where they do not say."""
        return _rows_in(self.stats)

    @property
    def deleted_rows(self) -> int:
        """Count the rows that its deletion vector deletes."""
        return 0 if self.vector is None else self.vector.rows

    @property
    def visible_rows(self) -> int | None:
        """Count the rows that no deletion vector deletes; None where statistics do not say."""
        rows = self.rows
        return None if rows is None else rows - self.deleted_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What a table requires of its readers and writers."""

    reader: int = 1
    writer: int = 2
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()

    @property
    def features(self) -> frozenset[str]:
        """Return all table features, by name."""
        return self.reader_features | self.writer_features

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Protocol":
        """Read an action."""
        return cls(
            reader=int(told["minReaderVersion"]),
            writer=int(told["minWriterVersion"]),
            reader_features=frozenset(told.get("readerFeatures") or ()),
            writer_features=frozenset(told.get("writerFeatures") or ()),
        )


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What a version says of itself; any writer may leave out anything."""

    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def operation(self) -> str | None:
        """Return the operation that made it."""
        return text_of(self.told.get("operation"))

    @property
    def writer(self) -> str | None:
        """Return the program that committed it."""
        return text_of(self.told.get("penguin.writer")) or text_of(self.told.get("engineInfo"))

    @property
    def at_ms(self) -> int | None:
        """Return when it was committed, by the writer's clock, if it is a time of a calendar."""
        at = number_of(self.told.get("timestamp"))
        return at if at is not None and 0 <= at < LAST_MOMENT else None

    @property
    def in_commit_timestamp(self) -> int | None:
        """Return the timestamp that the protocol requires of tables with in-commit timestamps."""
        return number_of(self.told.get("inCommitTimestamp"))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters of the operation."""
        found = self.told.get("operationParameters")
        return found if isinstance(found, dict) else {}

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Return what the operation counted."""
        found = self.told.get("operationMetrics")
        return found if isinstance(found, dict) else {}

    @property
    def is_ours(self) -> bool:
        """Whether penguin made it."""
        return isinstance(self.told.get("penguin"), dict)

    @property
    def note(self) -> Mapping[str, Any]:
        """Return what penguin says of its commit; empty for those of other writers."""
        found = self.told.get("penguin")
        return found if isinstance(found, dict) else {}

    @property
    def entries(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the pipelines of which it settles entries, each with what it says of them."""
        entries = self.note.get("entries")
        for pipeline, part in entries.items() if isinstance(entries, dict) else ():
            if isinstance(part, dict):
                yield pipeline, part

    def names(self, key: str) -> tuple[str, ...]:
        """Return the files that penguin's note lists under a key."""
        found = self.note.get(key)
        return tuple(map(str, found)) if isinstance(found, list) else ()


@dataclass(slots=True, kw_only=True)
class LogActions:
    """The actions of one version, or of a part of the checkpoint that replaces all up to it."""

    version: int
    is_checkpoint: bool = False
    files: list[FileAction] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    """Files of the change data feed; no checkpoint has them."""
    transactions: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str | None] = field(default_factory=dict)
    """The configuration of each domain of metadata; None of one that was removed."""
    protocol: Protocol | None = None
    metadata: Mapping[str, Any] | None = None
    info: CommitInfo = CommitInfo()

    @property
    def adds(self) -> list[FileAction]:
        """Return the files that are added."""
        return [one for one in self.files if one.added]

    @property
    def removes(self) -> list[FileAction]:
        """Return the files that are removed."""
        return [one for one in self.files if not one.added]

    @property
    def changes_data(self) -> bool:
        """Whether it says that it changes rows, and does not only move them."""
        return any(one.data_change for one in self.files)

    @property
    def paths(self) -> set[str]:
        """Name every file that it adds or removes, those of the change data feed included."""
        return {one.path for one in self.files}.union(self.changes)

    def take(self, kind: str, told: Any, named: Naming) -> None:  # noqa: ANN401 - JSON or Arrow
        """Add one action; one that is not as the protocol writes it is a ValueError."""
        match kind, told:
            case "add" | "remove", {"path": str()}:
                number = None if self.is_checkpoint else self.version
                added = kind == "add"
                self.files.append(FileAction.of(told, named, added=added, version=number))
            case "cdc", {"path": str(written)}:
                self.changes.append(named(unquote(written)))
            case "txn", {"appId": str(app_id), "version": int(number)}:
                self.transactions[app_id] = number
            case "domainMetadata", {"domain": str(domain)}:
                gone = told.get("removed")
                self.domains[domain] = None if gone else str(told.get("configuration", ""))
            case "protocol", {"minReaderVersion": int(), "minWriterVersion": int()}:
                self.protocol = Protocol.of(told)
            case "metaData", dict():
                self.metadata = told
            case "commitInfo", dict():
                self.info = CommitInfo(told)
            case "add" | "remove" | "cdc" | "txn" | "domainMetadata" | "protocol" | "metaData", _:
                raise ValueError("an action of the Delta log is not as the protocol writes it")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHistory:
    """A log, as far back as it can be read."""

    first: int
    """The first version that is read by itself."""
    last: int
    gone: tuple[int, ...]
    """Versions that are missing and that no checkpoint covers: the table cannot be read."""
    versions: Iterator[LogActions]
    """A checkpoint in parts, and then each version; nothing where some are gone."""


def read_actions(
    version: int,
    body: bytes,
    where: str,
    named: Naming = str,
    *,
    kinds: Container[str] | None = None,
    only: Callable[[bytes], bool] | None = None,
    lenient: bool = False,
) -> LogActions:
    """Read one version; one that cannot be read is an error, never an empty one. Pure.

    `kinds` are the actions to read, and `only` chooses lines before they are decoded. `lenient`
    skips what cannot be read, for answers that are only shown.
    """
    found = LogActions(version=version)
    if not lenient and (not body or body.isspace()):
        raise TableUnreadable("a version of the Delta log is empty", path=where)
    for line in body.splitlines():
        if not line.strip() or (only is not None and not only(line)):
            continue
        try:
            with lines_of(where):
                for kind, told in parse_json(line).items():
                    if kinds is None or kind in kinds:
                        found.take(kind, told, named)
        except TableUnreadable:
            if not lenient:
                raise
    return found


@contextmanager
def lines_of(path: str) -> Iterator[None]:
    """Turn what a malformed line of a log raises into an error that names the log's file.

    A line may be torn, nested too deep, or have a number where an object belongs.
    """
    try:
        yield
    except (ValueError, AttributeError, KeyError, TypeError) as torn:
        raise TableUnreadable("a line of the Delta log cannot be read", path=path) from torn


def moment(milliseconds: object) -> datetime | None:
    """Return a time of the log; None for a value that is none."""
    if isinstance(milliseconds, int) and 0 <= milliseconds < LAST_MOMENT:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    return None


def pairs_of(values: Any) -> Iterable[tuple[str, str | None]]:  # noqa: ANN401 - JSON or Arrow
    """Return the pairs of a map: Parquet has a list of them, JSON an object."""
    return values.items() if isinstance(values, Mapping) else values or ()


def number_of(value: object) -> int | None:
    """Return a number; None for any other value."""
    return value if isinstance(value, int) else None


def text_of(value: object) -> str | None:
    """Return a text; None for any other value."""
    return value if isinstance(value, str) else None


def _stats(told: Mapping[str, Any], *, short: bool) -> str | None:
    """Return the statistics of a file as JSON; a checkpoint may have the row count as a column.

    A short form keeps the row count alone: a table may have a million files.
    """
    written = text_of(told.get("stats"))
    if written is not None and not short:
        return written
    rows = (told.get("stats_parsed") or {}).get("numRecords")
    rows = _rows_in(written) if rows is None else rows
    return None if rows is None else f'{{"numRecords":{rows}}}'


def _rows_in(stats: str | None) -> int | None:
    try:
        return number_of(parse_json(stats).get("numRecords")) if stats else None
    except (ValueError, AttributeError):
        return None
