"""A Delta table as penguin writes it: create, append, evolve, take files out, checkpoint.

Facts about deltalake that this relies on, found by experiment and kept as tests: an error of a
commit does not mean that nothing was committed; two creators both succeed unless retries are off;
an app transaction with a time of its own can expire, one without never does; a wider schema given
to an append is ignored. Never use this module in a forked process.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from importlib.metadata import version as version_of
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from urllib.parse import quote

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from lakebed.documents.data_file import FinishedFile
from lakebed.layout import log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import AlreadyThere, Created, Store
from penguin.delta.library import location, options_for, translated
from penguin.delta.log.cache import CachedVersion, LogCache
from penguin.delta.snapshot import LogReader, Snapshot, has_log
from penguin.delta.writer_features import INVARIANTS, OTHER_CHECKPOINTS, unsafe_properties
from penguin.model.commit import Add
from penguin.model.errors import CommitFailed, TableExists, TableUnreadable, TableUnsupported
from penguin.model.table import TableFacts

WRITER = f"penguin {version_of('blizzard-penguin')}"

Pairs = tuple[tuple[str, int], ...]

Action = dict[str, dict[str, Any]]
"""One line of the log."""


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
        with translated(self._store):
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
        adds: tuple[Add, ...] = (),
    ) -> None:
        """Remove files, and add others, in the very next version, or not at all.

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
        told = self._commit_info("UPDATE" if adds else "DELETE", metadata, at)
        self._write_next(_version([told, *removes, *map(_added, adds), *_txns(transactions)]))

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
        with translated(self._store):
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
        with translated(self._store):
            self._handle.create_checkpoint()

    def has_other_checkpoints(self) -> bool:
        """Whether its checkpoints may be of the kind that consists of several files.

        What belongs to which of them is left to the engine that writes them.
        """
        return OTHER_CHECKPOINTS in (self._handle.protocol().writer_features or ())


class Log(LogReader):
    """A table's log."""

    store: Store
    opened: ClassVar[type[Table]] = Table
    """What an opened version is."""

    def __init__(self, store: Store, cache: LogCache | None = None) -> None:
        super().__init__(store)
        self.store = store
        self._log_cache = cache or LogCache()

    def open(self) -> Table | None:
        """Open the latest version, to commit against it; what is known of it is not read again."""
        recalled = self._log_cache.catch_up(self.store)
        if recalled is not None:
            return self.opened(recalled, self.store)
        before = self._log_cache.before(self.store)
        handle = self._handle()
        if handle is None:
            return None
        table = self.opened(handle, self.store)
        table.check_writable()
        self._log_cache.learn(self.store, table.known, before)
        return table

    def create(self, table: TableFacts, metadata: object) -> None:
        """Create an empty table, alone: of two creators one gets an error."""
        reasons = list(unsafe_properties(table.configuration))
        if reasons:
            raise TableUnsupported(
                f"a table with these properties is not created: {'; '.join(reasons)}",
                table=self.store.uri,
            )
        if table.features:
            self._create_with_features(table, metadata)
            return
        try:
            with translated(self.store):
                _create(location(self.store.uri), options_for(self.store), table, metadata)
        except CommitFailed as failed:
            if has_log(self.store):
                raise TableExists("the table already exists", table=self.store.uri) from failed
            raise

    def _create_with_features(self, table: TableFacts, metadata: object) -> None:
        """Create a table whose types need table features, alone.

        The library leaves out the feature that required columns need then, and Spark refuses to
        read such a table. So the library makes the first version in a folder of our own, and it is
        written here, create-only, with that feature: required columns may come later.
        """
        with TemporaryDirectory(prefix="penguin-") as folder, translated(self.store):
            _create(folder, None, table, metadata)
            body = (Path(folder) / log_version(0)).read_text()
        if has_log(self.store):
            raise TableExists("the table is there already", table=self.store.uri)
        actions = (json.loads(line) for line in body.splitlines())
        first = _version(_with_invariants(action) for action in actions)
        match self.store.create(log_version(0), first):
            case Created():
                pass
            case AlreadyThere():
                raise TableExists("the table is there already", table=self.store.uri)


def _create(
    place: str, options: dict[str, str] | None, table: TableFacts, metadata: object
) -> None:
    create_table_with_add_actions(
        place,
        Schema.from_json(json.dumps(table.schema)),
        [],
        mode="error",
        partition_by=list(table.partition_columns),
        configuration=dict(table.configuration),
        storage_options=options,
        # With retries, the second of two creators would replace the first's table.
        commit_properties=_properties((), metadata, retries=0),
        post_commithook_properties=_no_hooks(),
    )


def _with_invariants(action: Action) -> Action:
    """Return an action of a first version, its protocol with the feature for required columns.

    What the library says of how it made the version is left out: it names the folder.
    """
    match action:
        case {"protocol": protocol}:
            features = {*protocol["writerFeatures"], INVARIANTS}
            return {"protocol": {**protocol, "writerFeatures": sorted(features)}}
        case {"commitInfo": told}:
            return {"commitInfo": {**told, "operationParameters": {}}}
    return action


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


def _added(add: Add) -> Action:
    return {
        "add": {
            # The protocol writes paths as parts of a URI.
            "path": quote(add.path, safe="/="),
            "partitionValues": dict(add.partition_values),
            "size": add.size,
            "modificationTime": add.modification_time,
            "dataChange": True,
            "stats": add.stats,
        }
    }


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
