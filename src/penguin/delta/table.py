"""A Delta table as penguin writes it: create, append, evolve, take files out, checkpoint.

Versions are written here, create-only, by the rules of the Delta protocol; the library composes
first versions and checkpoints. A fact about it that this relies on, found by experiment and kept as
a test: an app transaction with a time of its own can expire, one without never does. Never use this
module in a forked process.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar

from lakebed.deltalog.actions import read_actions
from lakebed.deltalog.delta_types import NEEDS_FEATURE, TableFacts, names_in_log
from lakebed.deltalog.latest import MOST_VERSIONS, CachedVersion, LogCache, read_latest
from lakebed.deltalog.library import translated
from lakebed.deltalog.segment import find_segment, has_log
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.deltalog.table_features import (
    APPEND_ONLY,
    CHECKPOINT_PROTECTION,
    COLUMN_MAPPING_MODE,
    INVARIANTS,
    OTHER_CHECKPOINTS,
    is_on,
    maps_columns,
    unsafe_properties,
)
from lakebed.documents.data_file import FinishedFile
from lakebed.errors import CommitFailed, StoreUnavailable, TableUnreadable, TableUnsupported
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import AlreadyThere, Created, Store
from penguin.delta import version
from penguin.delta.version import Action, Pairs
from penguin.model.commit import Add
from penguin.model.errors import TableExists

if TYPE_CHECKING:
    from deltalake import DeltaTable


class Table(Snapshot):
    """One version of a table that commits can be made against."""

    def __init__(self, of: "DeltaTable | CachedVersion", store: Store) -> None:
        super().__init__(of, store)
        self._writable = store

    def commit(
        self,
        adds: tuple[Add, ...],
        transactions: Pairs,
        metadata: object,
        at: datetime,
        *,
        next_version: bool = False,
    ) -> None:
        """Append files, if nobody advanced one of the transactions since this snapshot.

        Whatever others have committed meanwhile, the version goes after theirs if the table is
        still what it was: files that they added or removed do not concern an append. With
        `next_version` it is the version after this one, or nothing, for where it matters.

        An error does not say that nothing was committed: open the table again and look.
        """
        self._require_whole_log()
        known = self.known
        for _ in range(MOST_VERSIONS):
            body = version.append(known, adds, transactions, metadata, at)
            if create_version(self._writable, known.version + 1, body):
                return
            if next_version:
                raise self._too_late(known.version + 1)
            known = self._after_others(known, transactions)
        raise CommitFailed("others commit all the time", table=self._store.uri)

    def record(
        self,
        operation: str,
        metadata: object,
        at: datetime,
        *,
        parameters: dict[str, str],
        metrics: dict[str, str],
    ) -> int:
        """Write a version that changes nothing, after whatever others commit; return its number."""
        self._require_whole_log()
        known = self.known
        for _ in range(MOST_VERSIONS):
            body = version.note(
                known, operation, metadata, at, parameters=parameters, metrics=metrics
            )
            if create_version(self._writable, known.version + 1, body):
                return known.version + 1
            known = self._after_others(known, ())
        raise CommitFailed("others commit all the time", table=self._store.uri)

    def _after_others(self, known: CachedVersion, transactions: Pairs) -> CachedVersion:
        """Read the version that is there instead of ours, if an append may go after it.

        It may be ours: where an answer is lost the store tries again, and finds what it wrote.
        """
        number = known.version + 1
        found = self._store.fetch(log_version(number))
        if found is None:
            raise CommitFailed("a version of the log has vanished", table=self._store.uri)
        after = known.after(*found)
        carried = read_actions(number, found[0], log_version(number), kinds=("txn",), lenient=True)
        if after is None or any(app_id in carried.transactions for app_id, _ in transactions):
            raise self._too_late(number)
        return after

    def evolve(
        self, after: TableFacts, transactions: Pairs, metadata: object, at: datetime
    ) -> None:
        """Change schema and properties in the very next version, or not at all.

        Whoever commits first, wins. The version repeats transactions unchanged, so that a commit
        that was planned against an older snapshot conflicts and looks again.
        """
        self._write_next(version.evolution(self.known, after, transactions, metadata, at))

    def take_out(
        self,
        files: tuple[FinishedFile, ...],
        transactions: Pairs,
        metadata: object,
        at: datetime,
        adds: tuple[Add, ...] = (),
        *,
        rearranges: bool = False,
    ) -> None:
        """Remove files, and add others, in the very next version, or not at all.

        With `rearranges` no row changes, and readers that follow changes are told so.
        Somebody else may have rewritten a file in between; its rows would be back. A file that is
        not in the table is refused.
        """
        gone = self.changed(files)
        if gone:
            raise CommitFailed("it is not in the table", file=gone[0], table=self._store.uri)
        written, actions, names = self._written(), self._in_log(), names_in_log(self.facts)
        removes = [
            version.removed(
                written[file.filename],
                file,
                names,
                at,
                data_change=not rearranges,
                told=version.repeated(actions.get(file.filename)),
            )
            for file in files
        ]
        write = version.rearrangement if rearranges else version.replacement
        self._write_next(write(self.known, removes, adds, transactions, metadata, at))

    def repair(
        self, removes: tuple[Action, ...], transactions: Pairs, metadata: object, at: datetime
    ) -> None:
        """Take files out that are gone, in the very next version, or not at all.

        A removal repeats the deletion vector of its file, and the ids of its rows, so that tables
        that have them are repaired, too.
        """
        if is_on(self.facts.configuration, APPEND_ONLY):
            raise TableUnsupported(
                f"{APPEND_ONLY} is set: nothing may be removed from the table",
                table=self._store.uri,
            )
        self._write_next(version.repair(self.known, removes, transactions, metadata, at))

    def _write_next(self, body: bytes) -> None:
        self._require_whole_log()
        if not create_version(self._writable, self.version + 1, body):
            raise self._too_late(self.version + 1)

    def _too_late(self, number: int) -> CommitFailed:
        return CommitFailed("somebody else committed first", version=number, table=self._store.uri)

    def _require_whole_log(self) -> None:
        """Check that the log is the one that was looked at, with every version that it needs.

        The library would find out when it opens the table; an append does not open it.
        """
        tail = find_segment(self._store)
        if tail is not None and tail.missing is not None:
            raise TableUnreadable(
                "a version of the Delta log is missing",
                version=tail.missing,
                table=self._store.uri,
            )
        # Last: whatever takes the place of the log before the version is written is noticed.
        found = self._store.head(log_version(self.version))
        if tail is None or found is None or self.known.last not in (None, found):
            raise self._changed()

    def checkpoint(self) -> None:
        """Write a checkpoint of this version, then the note of it.

        The library does not sync what it writes. On a local disk it works on links to the log.
        """
        with translated(self._store):
            if self._writable.local_root is None:
                self._handle.create_checkpoint()
                return
            with TemporaryDirectory(prefix="penguin-") as folder:
                self._checkpoint_in(Path(folder), self._writable.local_root.absolute())

    def _checkpoint_in(self, scratch: Path, root: Path) -> None:
        from deltalake import DeltaTable  # noqa: PLC0415 - only where a checkpoint is due

        segment = find_segment(self._store)
        base = None if segment is None else segment.checkpoint
        first = base.version if base is not None and base.version <= self.version else 0
        (scratch / DELTA_LOG).mkdir()
        for file in (root / DELTA_LOG).iterdir():  # `_sidecars`, too: `_` sorts after digits.
            if file.name >= f"{first:020d}" and not LAST_CHECKPOINT.endswith(file.name):
                (scratch / DELTA_LOG / file.name).symlink_to(file)
        DeltaTable(str(scratch), version=self.version).create_checkpoint()
        written = [file for file in (scratch / DELTA_LOG).iterdir() if not file.is_symlink()]
        for file in sorted(written, key=lambda file: LAST_CHECKPOINT.endswith(file.name)):
            self._writable.upload(
                f"{DELTA_LOG}/{file.name}", file, part_size=1 << 20, multipart=False, max_parts=1
            )

    def leaves_clean_up_to_others(self) -> bool:
        """Whether what has expired of its log is for the engine to remove that made the table.

        Checkpoints may consist of several files, and which belong to which only that engine knows;
        or older versions are protected, since they were written by the rules of another protocol.
        """
        features = self.known.protocol.writer_features
        return not features.isdisjoint((OTHER_CHECKPOINTS, CHECKPOINT_PROTECTION))


def create_version(store: Store, number: int, body: bytes) -> bool:
    """Write a version, create-only; return False if another writer was first."""
    try:
        written = store.create(log_version(number), body)
    except StoreUnavailable as cause:
        raise CommitFailed(cause.message, version=number, table=store.uri) from cause
    match written:
        case Created():
            return True
        case AlreadyThere():
            return False


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
        """Open the latest version, to commit against it; what is known of it is not read again.

        The library is asked only where the log cannot be read without it: it says what is wrong.
        """
        recalled = self._log_cache.catch_up(self.store)
        if recalled is not None:
            return self.opened(recalled, self.store)
        before = self._log_cache.before(self.store)
        read = read_latest(self.store)
        if read is not None:
            table = self.opened(read, self.store)
            table.check_writable()
            self._log_cache.keep(read)
            return table
        handle = self._handle()
        if handle is None:
            return None
        table = self.opened(handle, self.store)
        table.check_writable()
        self._log_cache.learn(self.store, table.known, before)
        return table

    def create(self, table: TableFacts, metadata: object) -> None:
        """Create an empty table, alone: of two creators one gets an error."""
        actions = self.creation(table, metadata)
        if has_log(self.store) or not create_version(self.store, 0, version.encoded(actions)):
            raise TableExists("the table already exists", table=self.store.uri)

    def creation(self, table: TableFacts, metadata: object) -> list[Action]:
        """Return the actions that create an empty table; nothing is written here.

        The library makes the first version in a folder of our own: it does not sync what it writes.
        Where types need table features, it leaves out the one for required columns, without which
        Spark does not read the table, and misses types inside of maps: a column of the type, which
        is not kept, shows it.
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
            reasons.append(f"{COLUMN_MAPPING_MODE}: files would know columns by other names")
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
        # Checkpoints and clean-ups are no part of it: their failure would look like its own.
        post_commithook_properties=PostCommitHookProperties(
            create_checkpoint=False, cleanup_expired_logs=False
        ),
    )


def _with_plain_types(table: TableFacts) -> TableFacts:
    """Add a column of each type that needs one of the table's features."""
    fields = table.schema["fields"]
    unused = max((one["name"] for one in fields), key=len, default="")
    more = [
        {"name": f"{unused}_{kind}", "type": kind, "nullable": True, "metadata": {}}
        for kind, feature in NEEDS_FEATURE.items()
        if feature in table.features
    ]
    return replace(table, schema={**table.schema, "fields": [*fields, *more]})


def _completed(action: Action, table: TableFacts) -> Action:
    """Return an action of a first version as it is to be; nothing in it names the folder."""
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
