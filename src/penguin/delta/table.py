"""The only door to deltalake: its errors become ours, a panic of its core included.

Facts that this door relies on, found by experiment and kept as tests: an error of a commit does
not mean that nothing was committed; two creators both succeed unless retries are off; an app
transaction with a time of its own can expire, one without never does; a wider schema given to an
append is ignored. Never use this module in a forked process.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import version as version_of
from tempfile import TemporaryDirectory
from typing import Any, NoReturn
from urllib.parse import unquote

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    Transaction,
)
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from lakebed.documents.data_file import FinishedFile
from lakebed.errors import LakeError, StoreDenied, StoreFull
from lakebed.layout import (
    DELTA_LOG,
    LAST_CHECKPOINT,
    journal_transaction,
    log_version,
    pipeline_transaction,
)
from lakebed.storage import remote
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import AlreadyThere, Created, Reader, Store, local_path
from penguin.delta.file_names import naming
from penguin.delta.log_cache import CachedVersion, LogCache
from penguin.model.commit import Add, DeltaField, DeltaSchema, TableFacts
from penguin.model.delta_types import inner_structs
from penguin.model.errors import CommitFailed, TableExists, TableUnreadable, TableUnsupported

REFUSALS = ("Permission denied", "lacked the necessary privileges", "403 Forbidden")
"""What the library's text holds when a disk or a store refuses us."""
FORGETS_TRANSACTIONS = "delta.setTransactionRetentionDuration"
WRITER = f"penguin {version_of('blizzard-penguin')}"
LOG_FILE = re.compile(r"\d{20}\.(json|checkpoint\..*)")

LAST_KNOWN_READER = 3
LAST_KNOWN_WRITER = 7
VERSION_WITH_IDENTITY_COLUMNS = 6
DELETION_VECTORS = "deletionVectors"
OTHER_CHECKPOINTS = "v2Checkpoint"
SAFE_FEATURES = frozenset(
    {
        "appendOnly",  # only adds are written
        "changeDataFeed",  # readers derive inserts from adds
        "checkConstraints",  # while no constraint is set, see below
        "columnMapping",  # while its mode is none, see below
        DELETION_VECTORS,  # adds carry none, and a checkpoint keeps those of others
        "generatedColumns",  # while no column is one, see below
        "invariants",  # while no column has one, see below
        "timestampNtz",
        OTHER_CHECKPOINTS,  # a checkpoint of the classic kind stays allowed
    }
)
UNSAFE_FIELD_METADATA = (
    "delta.columnMapping",
    "delta.generationExpression",
    "delta.identity",
    "delta.invariants",
)

Pairs = tuple[tuple[str, int], ...]

Action = dict[str, dict[str, Any]]
"""One line of the log."""


class Snapshot:
    """One version of a table, to be read only."""

    def __init__(self, of: DeltaTable | CachedVersion, store: Reader) -> None:
        self._store = store
        self._loaded = None if isinstance(of, CachedVersion) else of
        self.known = of if isinstance(of, CachedVersion) else _read(of, store)

    @property
    def _handle(self) -> DeltaTable:
        """Give the library's table of this very version, opened now where it was recalled."""
        if self._loaded is None:
            try:
                with _translated(self._store, unreadable=True):
                    loaded = _load(self._store, self.version)
            except _NoTable as cause:
                self._require_the_same()
                raise _unreadable(self._store) from cause
            except TableUnreadable:
                self._require_the_same()
                raise
            self._require_the_same()
            self._loaded = loaded
        return self._loaded

    def let_go(self) -> None:
        """Free the library's table, which holds every file; what was read stays known."""
        self._loaded = None

    def _require_the_same(self) -> None:
        """See that what is recalled and what is opened are of the same log."""
        if not self.known.still_stands(self._store):
            raise CommitFailed("the log has changed since it was looked at", table=self._store.uri)

    @property
    def id(self) -> str:
        """Tell the table from every other one, also from one that stood in its place before."""
        return self.known.id

    @property
    def facts(self) -> TableFacts:
        """Say what the table is."""
        return self.known.facts

    @property
    def version(self) -> int:
        """Give the version of the snapshot."""
        return self.known.version

    def transaction(self, app_id: str) -> int | None:
        """Give the version of an app transaction, None where the log has none."""
        answers = self.known.answers
        if app_id not in answers:
            with _translated(self._store):
                answers[app_id] = self._handle.transaction_version(app_id)
        return answers[app_id]

    def paths(self) -> tuple[str, ...]:
        """Name the files that are in the table, as the log writes them."""
        with _translated(self._store):
            actions = self._handle.get_add_actions(flatten=True)
            return tuple(str(path) for path in actions.column("path").to_pylist())

    def files(self) -> frozenset[str]:
        """Name the files that are in the table, as they are in the store."""
        return frozenset(self._written())

    def _written(self) -> dict[str, str]:
        """Give the files that are in the table as the log writes them, by their names."""
        named = naming(self._store)
        return {named(unquote(path)): path for path in self.paths()}

    def may_delete_in_place(self) -> bool:
        """Say whether rows may be deleted without their file being written anew."""
        return DELETION_VECTORS in (self._handle.protocol().reader_features or ())

    def counts(self) -> tuple[int, int]:
        """Count the files and the rows."""
        with _translated(self._store):
            return len(self._handle.file_uris()), self._handle.count()

    def first_rows(self, columns: tuple[str, ...], count: int) -> tuple[tuple[object, ...], ...]:
        """Read some rows, whichever come first."""
        rows: list[tuple[object, ...]] = []
        with _translated(self._store):
            # Not to_pyarrow_table: it can abort a short-lived process at its end.
            for batch in self._handle.scan(columns=list(columns)):
                part = pa.record_batch(batch).slice(0, count - len(rows))
                rows += [tuple(row[name] for name in columns) for row in part.to_pylist()]
                if len(rows) >= count:
                    break
        return tuple(rows)

    def check_writable(self) -> None:
        """Refuse, by name, a table that asks of its writers what penguin does not do."""
        protocol = self._handle.protocol()
        reasons = [
            *_protocol_reasons(protocol.min_reader_version, protocol.min_writer_version),
            *(
                f"table feature {feature}"
                for feature in sorted(
                    {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
                    - SAFE_FEATURES
                )
            ),
            *_configuration_reasons(self.facts.configuration),
            *_field_reasons(self.facts.schema["fields"]),
        ]
        if reasons:
            raise TableUnsupported(
                f"penguin cannot write this table safely: {'; '.join(reasons)}",
                table=self._store.uri,
            )


class Table(Snapshot):
    """One version of a table that commits can be made against."""

    def __init__(self, of: DeltaTable | CachedVersion, store: Store) -> None:
        super().__init__(of, store)
        self._writable = store

    def commit(
        self,
        adds: tuple[Add, ...],
        transactions: Pairs,
        metadata: object,
        *,
        next_version: bool = False,
    ) -> None:
        """Append files, if nobody advanced one of the transactions since this snapshot.

        With `next_version` it is the version after this one, or nothing: the library would go on
        after what others have committed meanwhile, also where that was one of these files.

        An error does not say that nothing was committed: open the table again and look.
        """
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                path=add.path,
                size=add.size,
                partition_values=dict(add.partition_values),
                modification_time=add.modification_time,
                data_change=True,
                stats=add.stats,
            )
            for add in adds
        ]
        with _translated(self._store):
            self._handle.create_write_transaction(
                actions,
                "append",
                self._handle.schema(),
                partition_by=list(self.facts.partition_columns),
                commit_properties=_properties(
                    transactions, metadata, retries=0 if next_version else None
                ),
                post_commithook_properties=_no_hooks(),
            )

    def evolve(
        self, after: TableFacts, transactions: Pairs, metadata: object, at: datetime
    ) -> None:
        """Change schema and properties in the very next version, or not at all.

        The library can only add columns, and not inside of lists. So the version is written here,
        create-only: whoever commits first, wins. It repeats transactions unchanged, so that a
        commit that was planned against an older snapshot conflicts and looks again.
        """
        self._write_next(self._evolution(after, transactions, metadata, at))

    def take_out(
        self,
        files: tuple[FinishedFile, ...],
        transactions: Pairs,
        metadata: object,
        at: datetime,
    ) -> None:
        """Remove files in the very next version, or not at all.

        The library does not see that somebody else has rewritten a file in between; its rows would
        be back. So the version is written here, create-only. A file that is not in the table is
        refused.
        """
        written = self._written()
        gone = [file.filename for file in files if file.filename not in written]
        if gone:
            raise CommitFailed("it is not in the table", file=gone[0], table=self._store.uri)
        removes: list[Action] = [
            {
                "remove": {
                    "path": written[file.filename],
                    "deletionTimestamp": int(at.timestamp() * 1000),
                    "dataChange": True,
                    "extendedFileMetadata": True,
                    "partitionValues": {
                        key: value or None for key, value in file.partition_values.items()
                    },
                    "size": file.size,
                }
            }
            for file in files
        ]
        told = self._commit_info("DELETE", metadata, at)
        self._write_next(_version([told, *removes, *_txns(transactions)]))

    def _write_next(self, body: bytes) -> None:
        match self._writable.create(log_version(self.version + 1), body):
            case Created():
                pass
            case AlreadyThere():
                raise CommitFailed(
                    "somebody else committed first", version=self.version + 1, table=self._store.uri
                )

    def _commit_info(self, operation: str, metadata: object, at: datetime) -> Action:
        return {
            "commitInfo": {
                "timestamp": int(at.timestamp() * 1000),
                "operation": operation,
                "operationParameters": {},
                "readVersion": self.version,
                "isBlindAppend": False,
                "engineInfo": WRITER,
                **_custom_metadata(metadata),
            },
        }

    def _evolution(
        self, after: TableFacts, transactions: Pairs, metadata: object, at: datetime
    ) -> bytes:
        """Write a version that changes what the table is and touches no file."""
        with _translated(self._store):
            now = self._handle.metadata()
        actions: list[Action] = [
            self._commit_info("REPLACE COLUMNS", metadata, at),
            {
                "metaData": {
                    "id": str(now.id),
                    "name": now.name,
                    "description": now.description,
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": _json(after.schema),
                    "partitionColumns": list(after.partition_columns),
                    "createdTime": now.created_time,
                    "configuration": dict(after.configuration),
                }
            },
            *_txns(transactions),
        ]
        return _version(actions)

    def checkpoint(self) -> None:
        """Write a checkpoint of this version."""
        with _translated(self._store):
            self._handle.create_checkpoint()

    def has_other_checkpoints(self) -> bool:
        """Whether its checkpoints may be of the kind that consists of several files.

        What belongs to which of them is left to the engine that writes them.
        """
        return OTHER_CHECKPOINTS in (self._handle.protocol().writer_features or ())


class LogReader:
    """A table's log that can only be read."""

    def __init__(self, store: Reader) -> None:
        self.store = store

    def open(self) -> Snapshot | None:
        """Open the latest version; None where there is no log at all, never for an unreadable one.

        A table that penguin cannot write safely is refused here, before anything is written.
        """
        snapshot = self.look()
        if snapshot is not None:
            snapshot.check_writable()
        return snapshot

    def look(self) -> Snapshot | None:
        """Open the latest version of whatever table there is, also of one we could not write."""
        handle = self._handle()
        return None if handle is None else Snapshot(handle, self.store)

    def schema_at(self, version: int) -> DeltaSchema:
        """Give the schema that an earlier version had."""
        with _translated(self.store, unreadable=True):
            schema: DeltaSchema = json.loads(_load(self.store, version).schema().to_json())
            return schema

    def _handle(self) -> DeltaTable | None:
        found = self._open()
        if found is not None or not _has_log(self.store):
            return found
        # Somebody may have created the table between the two looks. The library also says "no
        # table" of a folder that it may not read, and says it again.
        found = self._open()
        if found is None:
            raise _unreadable(self.store)
        return found

    def _open(self) -> DeltaTable | None:
        try:
            with _translated(self.store, unreadable=True):
                return _load(self.store)
        except _NoTable:
            return None


class Log(LogReader):
    """A table's log."""

    store: Store

    def __init__(self, store: Store, cache: LogCache | None = None) -> None:
        super().__init__(store)
        self.store = store
        self._log_cache = cache or LogCache()

    def open(self) -> Table | None:
        """Open the latest version, to commit against it; what is known of it is not read again."""
        recalled = self._log_cache.catch_up(self.store)
        if recalled is not None:
            return Table(recalled, self.store)
        before = self._log_cache.before(self.store)
        handle = self._handle()
        if handle is None:
            return None
        table = Table(handle, self.store)
        table.check_writable()
        self._log_cache.learn(self.store, table.known, before)
        return table

    def create(self, table: TableFacts, metadata: object) -> None:
        """Create an empty table, alone: of two creators one gets an error."""
        reasons = list(_configuration_reasons(table.configuration))
        if reasons:
            raise TableUnsupported(
                f"a table with these properties is not created: {'; '.join(reasons)}",
                table=self.store.uri,
            )
        try:
            with _translated(self.store):
                create_table_with_add_actions(
                    _location(self.store.uri),
                    Schema.from_json(json.dumps(table.schema)),
                    [],
                    mode="error",
                    partition_by=list(table.partition_columns),
                    configuration=dict(table.configuration),
                    storage_options=_options(self.store),
                    # With retries, the second of two creators would replace the first's table.
                    commit_properties=_properties((), metadata, retries=0),
                    post_commithook_properties=_no_hooks(),
                )
        except CommitFailed as failed:
            if _has_log(self.store):
                raise TableExists("the table is there already", table=self.store.uri) from failed
            raise


def refused_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return why a table with some properties cannot be made, by the property that is to blame.

    Only the library knows what it takes, so a table without files is made in a folder of our own
    and opened as the real one would be.
    """
    alone = {name: _refused({name: value}) for name, value in properties.items()}
    found = {name: why for name, why in alone.items() if why is not None}
    together = None if found or len(properties) < 2 else _refused(properties)
    return found if together is None else {next(iter(properties)): together}


def _refused(properties: Mapping[str, str]) -> str | None:
    column = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    wanted = TableFacts(
        version=None,
        schema={"type": "struct", "fields": [column]},
        partition_columns=(),
        configuration=properties,
    )
    with TemporaryDirectory(prefix="penguin-") as folder:
        log = Log(Store(folder, StorageOptions()))
        try:
            log.create(wanted, {})
            log.open()
        except (CommitFailed, TableUnreadable, TableUnsupported) as refused:
            return refused.message
    return None


def pipeline_known(uri: str, options: StorageOptions, pipeline: str) -> bool:
    """Say whether the log carries a transaction of a pipeline, of whichever journal."""
    return _version_of(uri, options, pipeline_transaction(pipeline)) is not None


def last_committed(uri: str, options: StorageOptions, pipeline: str, journal: str) -> int | None:
    """Give the last entry of a journal that the log has; None where it has none."""
    return _version_of(uri, options, journal_transaction(pipeline, journal))


def _version_of(uri: str, options: StorageOptions, app_id: str) -> int | None:
    folder = local_path(uri)
    if folder is not None and not folder.exists():
        return None
    snapshot = LogReader(Reader(uri, options)).look()
    return None if snapshot is None else snapshot.transaction(app_id)


def _load(store: Reader, version: int | None = None) -> DeltaTable:
    return DeltaTable(_location(store.uri), version=version, storage_options=_options(store))


def _read(handle: DeltaTable, store: Reader) -> CachedVersion:
    """Read what a table is."""
    with _translated(store, unreadable=True):
        metadata = handle.metadata()
        return CachedVersion(
            version=handle.version(),
            id=str(metadata.id),
            facts=TableFacts(
                version=handle.version(),
                schema=json.loads(handle.schema().to_json()),
                partition_columns=tuple(metadata.partition_columns),
                configuration=dict(metadata.configuration),
            ),
        )


def _unreadable(store: Reader) -> TableUnreadable:
    return TableUnreadable("there is a Delta log, and it cannot be read", table=store.uri)


class _NoTable(LakeError):
    """The library found no table; whether there is none is still to be seen."""


@contextmanager
def _translated(store: Reader, *, unreadable: bool = False) -> Iterator[None]:
    """Turn whatever the library raises into our errors, without its secrets."""
    try:
        yield
    except (DeltaError, OSError, ValueError, RuntimeError) as cause:
        _raise_ours(store, cause, unreadable=unreadable)
    except BaseException as cause:
        # A panic of the library's core derives from BaseException and has no importable name.
        if type(cause).__name__ != "PanicException":
            raise
        _raise_ours(store, cause, unreadable=unreadable)


def _raise_ours(store: Reader, cause: BaseException, *, unreadable: bool) -> NoReturn:
    if unreadable and isinstance(cause, TableNotFoundError):
        raise _NoTable("there is no table", table=store.uri) from cause
    text = remote.explained(str(cause) or type(cause).__name__, store.options)
    if isinstance(cause, PermissionError) or any(sign in str(cause) for sign in REFUSALS):
        raise StoreDenied("the Delta log: permission denied", table=store.uri) from cause
    if "No space left" in str(cause):
        raise StoreFull("the Delta log: no space is left", table=store.uri) from cause
    if "Unsupported table features" in text:
        raise TableUnsupported(text, table=store.uri) from cause
    if unreadable and isinstance(cause, DeltaError) and not isinstance(cause, CommitFailedError):
        raise TableUnreadable(text, table=store.uri) from cause
    raise CommitFailed(text, table=store.uri) from cause


def _has_log(store: Reader) -> bool:
    if store.local_root is not None:
        folder = store.local_root / DELTA_LOG
        try:
            # A listing by the store takes an unreadable folder for an empty one.
            next(folder.iterdir(), None)
        except FileNotFoundError:
            return False
        except OSError as cause:
            raise StoreDenied("the Delta log cannot be read", path=folder) from cause
    return any(
        facts.path == LAST_CHECKPOINT or LOG_FILE.fullmatch(facts.path.rpartition("/")[2])
        for facts in store.objects(DELTA_LOG)
    )


def _options(store: Reader) -> dict[str, str]:
    plain = store.options.plain()
    return plain if store.local_root is not None else remote.for_delta(plain)


def _location(uri: str) -> str:
    folder = local_path(uri)
    return uri if folder is None else str(folder.absolute())


def _properties(
    transactions: Pairs, metadata: object, *, retries: int | None = None
) -> CommitProperties:
    return CommitProperties(
        custom_metadata=_custom_metadata(metadata),
        # Without a time of its own a transaction never expires.
        app_transactions=[Transaction(app_id, number) for app_id, number in transactions],
        max_commit_retries=retries,
    )


def _custom_metadata(metadata: object) -> dict[str, Any]:
    return {"penguin": metadata, "penguin.writer": WRITER}


def _txns(transactions: Pairs) -> Iterator[Action]:
    return ({"txn": {"appId": app_id, "version": number}} for app_id, number in transactions)


def _version(actions: Iterable[Action]) -> bytes:
    """Write a version of the log, an action a line."""
    return "".join(f"{_json(action)}\n" for action in actions).encode()


def _json(value: object) -> str:
    """Write JSON on one line, with characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _no_hooks() -> PostCommitHookProperties:
    """Keep checkpoints and clean-ups out of a commit: their failure would look like its own."""
    return PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def _protocol_reasons(reader: int, writer: int) -> Iterator[str]:
    if reader > LAST_KNOWN_READER:
        yield f"reader version {reader}"
    if writer > LAST_KNOWN_WRITER or writer == VERSION_WITH_IDENTITY_COLUMNS:
        yield f"writer version {writer}"


def _configuration_reasons(configuration: Mapping[str, str]) -> Iterator[str]:
    for name, value in sorted(configuration.items()):
        if name == FORGETS_TRANSACTIONS:
            yield f"{name} is set: the table would forget which entries are committed"
        elif name.startswith("delta.constraints."):
            yield f"{name} is set: constraints are not checked"
        elif name == "delta.columnMapping.mode" and value != "none":
            yield f"{name} is {value}"


def _field_reasons(fields: list[DeltaField], inside: str = "") -> Iterator[str]:
    for field in fields:
        shown = f"{inside}{field['name']}"
        for name in sorted(field.get("metadata") or ()):
            if name.startswith(UNSAFE_FIELD_METADATA):
                yield f"column {shown} has {name}"
        for inner in inner_structs(field["type"]):
            yield from _field_reasons(inner["fields"], f"{shown}.")
