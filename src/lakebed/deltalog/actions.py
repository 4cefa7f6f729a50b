"""The typed actions of a Delta log, and the parser of its versions.

`lakebed.deltalog.checkpoint` builds the same values from the columns of a checkpoint, with Arrow;
this module does not load Arrow.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from lakebed.deltalog.file_names import PathResolver
from lakebed.documents.deletion_vector import DeletionVector
from lakebed.documents.reading import parse_json
from lakebed.documents.records import FIRST_ROW_ID, ROW_VERSION, FirstRow
from lakebed.errors import TableUnreadable
from lakebed.storage.options import ObjectFacts

TABLE_KINDS = ("protocol", "metaData", "txn", "domainMetadata")
"""The actions that define a table; all others are about files, or about a version itself."""
LAST_MOMENT = 253_402_300_800_000
"""The milliseconds of the year 10000."""

FileKey = tuple[str, str | None]
"""What identifies a file in a log: the path, and the deletion vector if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAction:
    """A data file that is added or removed."""

    added: bool
    path: str
    """The object's name in the store."""
    written: str
    """The path as the log spells it."""
    key: FileKey
    vector: DeletionVector | None = None
    deletion_vector: Mapping[str, Any] | None = None
    """The deletion vector as the log spells it."""
    size: int | None = None
    partition_values: tuple[tuple[str, str | None], ...] = ()
    stats: str | None = None
    """The statistics of an added file, as JSON; from a checkpoint, the row count alone."""
    modification_time: int | None = None
    data_change: bool = True
    first_row: FirstRow | None = None
    """The first row id of an added file, if the table tracks rows."""
    removed_at_ms: int | None = None
    version: int | None = None
    """The version of the action; None for an action read from a checkpoint."""

    @classmethod
    def of(
        cls,
        action: Mapping[str, Any],
        resolve: PathResolver,
        *,
        added: bool,
        version: int | None = None,
    ) -> "FileAction":
        """Parse an action of a version, or of a checkpoint, where maps are lists of pairs."""
        vector = DeletionVector.of(action.get("deletionVector"), resolve)
        path = resolve(unquote(action["path"]))
        first, since = action.get(FIRST_ROW_ID), action.get(ROW_VERSION)
        numbered = None
        if added and first is not None and since is not None:
            numbered = FirstRow(id=int(first), version=int(since))
        return cls(
            added=added,
            path=path,
            written=action["path"],
            key=(path, None if vector is None else vector.key),
            vector=vector,
            deletion_vector=None if vector is None else action["deletionVector"],
            size=number_of(action.get("size")) if added else None,
            # Delta treats an empty string as null.
            partition_values=tuple(
                (name, value or None) for name, value in pairs_of(action.get("partitionValues"))
            ),
            stats=_stats(action, short=version is None) if added else None,
            modification_time=number_of(action.get("modificationTime")),
            data_change=action.get("dataChange") is not False,
            first_row=numbered,
            removed_at_ms=number_of(action.get("deletionTimestamp")),
            version=version,
        )

    @property
    def files(self) -> tuple[str, ...]:
        """Return the objects that the file consists of: its data, and its vector's file."""
        vector_file = None if self.vector is None else self.vector.file
        return (self.path,) if vector_file is None else (self.path, vector_file)

    @property
    def rows(self) -> int | None:
        """Return the row count in the statistics, deleted rows included; None without one."""
        return _rows_in(self.stats)

    @property
    def deleted_rows(self) -> int:
        """Return how many rows the deletion vector deletes."""
        return 0 if self.vector is None else self.vector.rows

    @property
    def visible_rows(self) -> int | None:
        """Return how many rows readers see; None if the statistics have no row count."""
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
        """Return the names of all table features."""
        return self.reader_features | self.writer_features

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> "Protocol":
        """Parse a protocol action."""
        return cls(
            reader=int(action["minReaderVersion"]),
            writer=int(action["minWriterVersion"]),
            reader_features=frozenset(action.get("readerFeatures") or ()),
            writer_features=frozenset(action.get("writerFeatures") or ()),
        )


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """The commitInfo of a version; every field is optional."""

    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def operation(self) -> str | None:
        """Return the operation, such as WRITE or OPTIMIZE."""
        return text_of(self.raw.get("operation"))

    @property
    def writer(self) -> str | None:
        """Return the program that committed the version."""
        return text_of(self.raw.get("penguin.writer")) or text_of(self.raw.get("engineInfo"))

    @property
    def at_ms(self) -> int | None:
        """Return the commit time by the writer's clock; None if it is not a valid date."""
        at = number_of(self.raw.get("timestamp"))
        return at if at is not None and 0 <= at < LAST_MOMENT else None

    @property
    def in_commit_timestamp(self) -> int | None:
        """Return the in-commit timestamp."""
        return number_of(self.raw.get("inCommitTimestamp"))

    @property
    def restored(self) -> int | None:
        """Return the version that a RESTORE restored; None for others, or if it does not say."""
        to = str(self.parameters.get("version"))
        return int(to) if self.operation == "RESTORE" and to.isdigit() else None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the operation's parameters."""
        return self._map("operationParameters")

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Return the operation's metrics."""
        return self._map("operationMetrics")

    @property
    def is_ours(self) -> bool:
        """Whether penguin committed the version."""
        return isinstance(self.raw.get("penguin"), dict)

    @property
    def note(self) -> Mapping[str, Any]:
        """Return penguin's note on its commit; empty for commits of other writers."""
        return self._map("penguin")

    def _map(self, key: str) -> Mapping[str, Any]:
        value = self.raw.get(key)
        return value if isinstance(value, dict) else {}

    @property
    def entries(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield each pipeline whose entries the version settles, with penguin's note on them."""
        entries = self.note.get("entries")
        for pipeline, part in entries.items() if isinstance(entries, dict) else ():
            if isinstance(part, dict):
                yield pipeline, part

    def range_of(self, key: str, pipeline: str) -> tuple[int, int] | None:
        """Return the first and last entry of a pipeline that penguin noted under a key."""
        ranges = self.note.get(key)
        match ranges.get(pipeline) if isinstance(ranges, dict) else None:
            case [int(first), int(last)]:
                return first, last
        return None

    def names(self, key: str) -> tuple[str, ...]:
        """Return the files that penguin's note lists under a key."""
        names = self.note.get(key)
        return tuple(map(str, names)) if isinstance(names, list) else ()


@dataclass(slots=True, kw_only=True)
class LogActions:
    """The actions of one version, or of one batch of a checkpoint."""

    version: int
    is_checkpoint: bool = False
    files: list[FileAction] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    """Files of the change data feed; checkpoints do not list them."""
    transactions: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str | None] = field(default_factory=dict)
    """The configuration of each metadata domain; None for a removed domain."""
    protocol: Protocol | None = None
    metadata: Mapping[str, Any] | None = None
    info: CommitInfo = CommitInfo()

    @property
    def adds(self) -> list[FileAction]:
        """Return the added files."""
        return [file for file in self.files if file.added]

    @property
    def removes(self) -> list[FileAction]:
        """Return the removed files."""
        return [file for file in self.files if not file.added]

    @property
    def changes_data(self) -> bool:
        """Whether any file is marked as a data change rather than a move of rows."""
        return any(file.data_change for file in self.files)

    @property
    def paths(self) -> set[str]:
        """Return the paths of all files added or removed, change data feed included."""
        return {file.path for file in self.files}.union(self.changes)

    def take(self, kind: str, action: Any, resolve: PathResolver) -> None:  # noqa: ANN401 - JSON or Arrow
        """Add one action; raise ValueError if it does not follow the protocol."""
        match kind, action:
            case "add" | "remove", {"path": str()}:
                number = None if self.is_checkpoint else self.version
                added = kind == "add"
                self.files.append(FileAction.of(action, resolve, added=added, version=number))
            case "cdc", {"path": str(written)}:
                self.changes.append(resolve(unquote(written)))
            case "txn", {"appId": str(app_id), "version": int(number)}:
                self.transactions[app_id] = number
            case "domainMetadata", {"domain": str(domain)}:
                gone = action.get("removed")
                self.domains[domain] = None if gone else str(action.get("configuration", ""))
            case "protocol", {"minReaderVersion": int(), "minWriterVersion": int()}:
                self.protocol = Protocol.of(action)
            case "metaData", dict():
                self.metadata = action
            case "commitInfo", dict():
                self.info = CommitInfo(action)
            case "add" | "remove" | "cdc" | "txn" | "domainMetadata" | "protocol" | "metaData", _:
                raise ValueError("an action of the Delta log is not as the protocol writes it")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHistory:
    """A log as far back as it is readable."""

    first: int
    """The first version that is read from its own object, not from a checkpoint."""
    last: int
    gone: tuple[int, ...]
    """Missing versions that no checkpoint covers: the table is unreadable."""
    versions: Iterator[LogActions]
    """The batches of a checkpoint, then each version; empty if versions are gone."""


def read_actions(
    version: int,
    body: bytes,
    where: str,
    resolve: PathResolver = str,
    *,
    kinds: Container[str] | None = None,
    only: Callable[[bytes], bool] | None = None,
    lenient: bool = False,
    may_be_empty: bool = False,
) -> LogActions:
    """Parse one version; raise TableUnreadable if it is malformed or empty. Pure.

    `kinds` selects actions, and `only` selects lines before they are decoded. `lenient` skips
    malformed lines, for output that is only displayed. With `may_be_empty` a later version than the
    first may be empty, as a power cut can leave it: its writer tries again.
    """
    found = LogActions(version=version)
    accepts_empty = lenient or (may_be_empty and version > 0)
    if not accepts_empty and (not body or body.isspace()):
        raise TableUnreadable("a version of the Delta log is empty", path=where)
    for line in body.splitlines():
        if not line.strip() or (only is not None and not only(line)):
            continue
        try:
            with lines_of(where):
                for kind, action in parse_json(line).items():
                    if kinds is None or kind in kinds:
                        found.take(kind, action, resolve)
        except TableUnreadable:
            if not lenient:
                raise
    return found


@contextmanager
def lines_of(path: str) -> Iterator[None]:
    """Turn the exceptions of a malformed line into an error that names the log's file.

    A line may be torn, nested too deeply, or have a number in place of an object.
    """
    try:
        yield
    except (ValueError, AttributeError, KeyError, TypeError) as torn:
        raise TableUnreadable("a line of the Delta log cannot be read", path=path) from torn


def moment(milliseconds: object) -> datetime | None:
    """Return a timestamp of the log as a datetime; None if it is not one."""
    if isinstance(milliseconds, int) and 0 <= milliseconds < LAST_MOMENT:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    return None


def pairs_of(values: Any) -> Iterable[tuple[str, str | None]]:  # noqa: ANN401 - JSON or Arrow
    """Return the pairs of a map, which is an object in JSON and a list of pairs in Parquet."""
    return values.items() if isinstance(values, Mapping) else values or ()


def number_of(value: object) -> int | None:
    """Return the value if it is an integer, else None."""
    return value if isinstance(value, int) else None


def text_of(value: object) -> str | None:
    """Return the value if it is a string, else None."""
    return value if isinstance(value, str) else None


def _stats(action: Mapping[str, Any], *, short: bool) -> str | None:
    """Return a file's statistics as JSON; a checkpoint may have the row count as a column.

    `short` keeps the row count only: a table may have a million files.
    """
    written = text_of(action.get("stats"))
    if written is not None and not short:
        return written
    rows = (action.get("stats_parsed") or {}).get("numRecords")
    rows = _rows_in(written) if rows is None else rows
    return None if rows is None else f'{{"numRecords":{rows}}}'


def _rows_in(stats: str | None) -> int | None:
    try:
        return number_of(parse_json(stats).get("numRecords")) if stats else None
    except (ValueError, AttributeError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A complete checkpoint."""

    version: int
    parts: tuple[ObjectFacts, ...]
    is_classic: bool = True
    """Whether the version alone names it; a checkpoint with a UUID name may have sidecars."""
