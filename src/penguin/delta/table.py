"""Write a Delta table: create, append, evolve, remove files, checkpoint.

Versions are written here, create-only, by the rules of the Delta protocol; the library composes
first versions and checkpoints. A tested fact that this relies on: an app transaction with a time of
its own can expire, one without never does. Never use this module in a forked process.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from lakebed.columns.column_mapping import MODE, maps_columns
from lakebed.deltalog.actions import read_actions
from lakebed.deltalog.delta_types import NEEDS_FEATURE, TableFacts, nullable_field, struct_of
from lakebed.deltalog.segment import find_segment, has_log
from lakebed.deltalog.snapshot import MOST_VERSIONS, LogCache, LogReader, Snapshot
from lakebed.deltalog.table_features import (
    CHECKPOINT_PROTECTION,
    INVARIANTS,
    OTHER_CHECKPOINTS,
    unsafe_properties,
)
from lakebed.deltalog.tables import load_table, translated
from lakebed.documents.records import FinishedFile
from lakebed.errors import CommitUnconfirmed, StoreUnavailable, TableUnreadable, TableUnsupported
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import AlreadyThere, Created, Store
from penguin.delta import version
from penguin.delta.version import Action, NextVersion, Pairs
from penguin.model.commit import Add
from penguin.model.settings import TableExists


@dataclass(slots=True, kw_only=True)
class WritableTable(Snapshot):
    """One version of a table that commits can be made against."""

    store: Store = field(compare=False, repr=False)

    def commit(
        self,
        adds: tuple[Add, ...],
        transactions: Pairs,
        metadata: object,
        at: datetime,
        *,
        removes: tuple[FinishedFile, ...] = (),
        rearranges: bool = False,
        next_version: bool = False,
    ) -> None:
        """Add and remove files, unless another writer has advanced one of the transactions.

        A commit that only adds is written after versions that others commit meanwhile, if the table
        is unchanged: files that those add or remove do not concern it. With `next_version`, or with
        removes, it is written as the very next version or not at all: another writer may have
        rewritten such a file, and its rows would come back. Removing a file that is not active
        raises. With `rearranges` no row changes, and readers of changes skip the commit.

        An error does not mean that nothing was committed: open the table again and check.
        """
        gone = self.changed(removes) if removes else ()
        if gone:
            raise CommitUnconfirmed("it is not in the table", file=gone[0], table=self.store.uri)
        out = (self.files[file.filename] for file in removes)
        operation, parameters = self._operation(adds, removes, rearranges=rearranges)
        wanted = NextVersion(
            operation=operation,
            metadata=metadata,
            at=at,
            adds=adds,
            removes=tuple(version.removed(file, at, data_change=not rearranges) for file in out),
            transactions=transactions,
            parameters=parameters,
            data_change=not rearranges,
            blind=not removes,
        )
        if removes or next_version:
            self.write_next(wanted)
        else:
            self.append(wanted)

    def _operation(
        self, adds: tuple[Add, ...], removes: tuple[FinishedFile, ...], *, rearranges: bool
    ) -> tuple[str, dict[str, str]]:
        """Return the operation by which other engines know such a commit, with its parameters."""
        if not removes:
            columns = version.to_json(list(self.facts.partition_columns))
            return "WRITE", {"mode": "Append", "partitionBy": columns}
        if rearranges:
            return "OPTIMIZE", {"predicate": "[]", "zOrderBy": "[]"}
        return "UPDATE" if adds else "DELETE", {}

    def append(self, wanted: NextVersion) -> int:
        """Write a version after those that others commit meanwhile, and return its number."""
        self._require_whole_log()
        known: WritableTable = self
        for _ in range(MOST_VERSIONS):
            if create_version(self.store, known.version + 1, wanted.body(known)):
                return known.version + 1
            known = self._after_others(known, wanted.transactions)
        raise CommitUnconfirmed("other writers commit all the time", table=self.store.uri)

    def _after_others(self, known: "WritableTable", transactions: Pairs) -> "WritableTable":
        """Read the version that another writer committed first, if an append may follow it.

        It may be ours: after a lost response the store retries and finds what it wrote.
        """
        number = known.version + 1
        found = self.store.fetch(log_version(number))
        if found is None:
            raise CommitUnconfirmed("a version of the log has vanished", table=self.store.uri)
        after = known.after(*found)
        carried = read_actions(number, found[0], log_version(number), kinds=("txn",), lenient=True)
        if after is None or any(app_id in carried.transactions for app_id, _ in transactions):
            raise self._too_late(number)
        return after

    def evolve(
        self, after: TableFacts, transactions: Pairs, metadata: object, at: datetime
    ) -> None:
        """Change schema and properties in the very next version, or not at all.

        The version repeats transactions unchanged, so that a commit planned against an older
        snapshot conflicts and is planned again.
        """
        self.write_next(
            NextVersion(
                operation="REPLACE COLUMNS",
                metadata=metadata,
                at=at,
                after=after,
                transactions=transactions,
            )
        )

    def write_next(self, wanted: NextVersion) -> None:
        """Write the very next version, or nothing."""
        self._require_whole_log()
        if not create_version(self.store, self.version + 1, wanted.body(self)):
            raise self._too_late(self.version + 1)

    def _too_late(self, number: int) -> CommitUnconfirmed:
        return CommitUnconfirmed(
            "another writer committed first", version=number, table=self.store.uri
        )

    def _require_whole_log(self) -> None:
        """Check that the log is still the one that was read, with every version it needs."""
        tail = find_segment(self.store)
        if tail is not None and tail.missing is not None:
            raise TableUnreadable(
                "a version of the Delta log is missing",
                version=tail.missing,
                table=self.store.uri,
            )
        # Last, so that a log that was replaced meanwhile is noticed.
        found = self.store.head(log_version(self.version))
        if tail is None or found is None or self.last not in (None, found):
            raise self.overtaken()

    def checkpoint(self) -> None:
        """Write a checkpoint of this version, then `_last_checkpoint`.

        The library does not sync. On a local disk it works on links to the log.
        """
        with translated(self.store):
            if self.store.local_root is None:
                load_table(self.store, self.version).create_checkpoint()
                return
            with TemporaryDirectory(prefix="penguin-") as folder:
                self._checkpoint_in(Path(folder), self.store.local_root.absolute())

    def _checkpoint_in(self, scratch: Path, root: Path) -> None:
        from deltalake import DeltaTable  # noqa: PLC0415 - only where a checkpoint is due

        segment = find_segment(self.store)
        base = None if segment is None else segment.checkpoint
        first = base.version if base is not None and base.version <= self.version else 0
        (scratch / DELTA_LOG).mkdir()
        for file in (root / DELTA_LOG).iterdir():  # `_sidecars`, too: `_` sorts after digits.
            if file.name < f"{first:020d}" or LAST_CHECKPOINT.endswith(file.name):
                continue
            # Where this version has a checkpoint, the library writes no `_last_checkpoint`.
            if self.version > 0 or file.suffix != ".parquet":
                (scratch / DELTA_LOG / file.name).symlink_to(file)
        DeltaTable(str(scratch), version=self.version).create_checkpoint()
        written = [file for file in (scratch / DELTA_LOG).iterdir() if not file.is_symlink()]
        for file in sorted(written, key=lambda file: LAST_CHECKPOINT.endswith(file.name)):
            self.store.upload(
                f"{DELTA_LOG}/{file.name}", file, part_size=1 << 20, multipart=False, max_parts=1
            )

    def remove_expired_versions(self) -> None:
        """Remove the versions before a checkpoint that are older than the table keeps them."""
        with translated(self.store):
            load_table(self.store, self.version).cleanup_metadata()

    def leaves_clean_up_to_others(self) -> bool:
        """Whether removing expired versions is left to the engine that made the table.

        Only that engine knows which files belong to a multi-part checkpoint, or older versions are
        protected because they follow another protocol.
        """
        return not self.protocol.writer_features.isdisjoint(
            (OTHER_CHECKPOINTS, CHECKPOINT_PROTECTION)
        )


def create_version(store: Store, number: int, body: bytes) -> bool:
    """Write a version, create-only; return False if another writer was first."""
    try:
        written = store.create(log_version(number), body)
    except StoreUnavailable as cause:
        raise CommitUnconfirmed(cause.message, version=number, table=store.uri) from cause
    match written:
        case Created():
            return True
        case AlreadyThere():
            return False


class Log(LogReader):
    """The writable log of a table."""

    store: Store
    opened: ClassVar[type[WritableTable]] = WritableTable

    def __init__(self, store: Store, cache: LogCache | None = None) -> None:
        super().__init__(store, cache)
        self.store = store

    def open(self) -> WritableTable | None:
        """Open the latest version to commit against; cached parts are not read again."""
        found = super().open()
        return found if isinstance(found, WritableTable) else None

    def create(self, table: TableFacts, metadata: object) -> None:
        """Create an empty table; of two concurrent creators one gets TableExists."""
        actions = self.creation(table, metadata)
        if has_log(self.store) or not create_version(self.store, 0, version.encoded(actions)):
            raise TableExists("the table already exists", table=self.store.uri)

    def creation(self, table: TableFacts, metadata: object) -> list[Action]:
        """Return the actions that create an empty table, and write nothing.

        The library makes the first version in a temporary folder: it does not sync what it writes.
        For types that need table features it omits the feature for required columns, without which
        Spark does not read the table, and overlooks types inside maps: a temporary column of each
        such type makes it add their features.
        """
        self._check_creatable(table)
        with TemporaryDirectory(prefix="penguin-") as folder, translated(self.store):
            _create(folder, _with_plain_types(table), metadata)
            body = (Path(folder) / log_version(0)).read_text()
        actions = (json.loads(line) for line in body.splitlines())
        return [_completed(action, table) for action in actions]

    def _check_creatable(self, table: TableFacts) -> None:
        reasons = list(unsafe_properties(table.configuration))
        if maps_columns(table.configuration):
            reasons.append(f"{MODE}: files would know columns by other names")
        if reasons:
            raise TableUnsupported(
                f"a table with these properties is not created: {'; '.join(reasons)}",
                table=self.store.uri,
            )


def _create(place: str, table: TableFacts, metadata: object) -> None:
    from deltalake import (  # noqa: PLC0415 - only a table that is yet to be made needs it
        CommitProperties,
        PostCommitHookProperties,
        Schema,
    )
    from deltalake.transaction import create_table_with_add_actions  # noqa: PLC0415

    create_table_with_add_actions(
        place,
        Schema.from_json(json.dumps(table.schema)),
        [],
        mode="error",
        partition_by=list(table.partition_columns),
        configuration=dict(table.configuration),
        commit_properties=CommitProperties(custom_metadata=version.custom_metadata(metadata)),
        # A failing checkpoint or clean-up would look like a failing creation.
        post_commithook_properties=PostCommitHookProperties(
            create_checkpoint=False, cleanup_expired_logs=False
        ),
    )


def _with_plain_types(table: TableFacts) -> TableFacts:
    """Add a column of each type that needs a table feature."""
    fields = table.schema["fields"]
    unused = max((one["name"] for one in fields), key=len, default="")
    more = [
        nullable_field(f"{unused}_{kind}", kind)
        for kind, feature in NEEDS_FEATURE.items()
        if feature in table.features
    ]
    return replace(table, schema={**table.schema, "fields": [*fields, *more]})


def _completed(action: Action, table: TableFacts) -> Action:
    """Correct an action of a first version; nothing in it names the temporary folder."""
    match action:
        case {"metaData": made} if table.features:
            return {"metaData": {**made, "schemaString": version.to_json(table.schema)}}
        case {"protocol": protocol} if table.features:
            features = {*protocol["writerFeatures"], INVARIANTS}
            return {"protocol": {**protocol, "writerFeatures": sorted(features)}}
        case {"commitInfo": info}:
            return {"commitInfo": {**info, "operationParameters": {}}}
    return action


def refused_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return why a table cannot be created with some properties, by the property to blame.

    Only the library knows what it accepts, so an empty table is created in a temporary folder and
    opened as the real one would be.
    """
    alone = {name: _refused({name: value}) for name, value in properties.items()}
    found = {name: why for name, why in alone.items() if why is not None}
    together = None if found or len(properties) < 2 else _refused(properties)
    return found if together is None else {next(iter(properties)): together}


def _refused(properties: Mapping[str, str]) -> str | None:
    wanted = TableFacts(
        version=None,
        schema=struct_of([nullable_field("id", "long")]),
        partition_columns=(),
        configuration=properties,
    )
    with TemporaryDirectory(prefix="penguin-") as folder:
        log = Log(Store(folder, StorageOptions()))
        try:
            log.create(wanted, {})
            log.open()
        except (CommitUnconfirmed, TableUnreadable, TableUnsupported) as refused:
            return refused.message
    return None
