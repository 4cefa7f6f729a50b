"""One version of a Delta table, read from its log; the list of data files is loaded on demand.

Opening a table reads only the columns of the checkpoint that are not about files, so its cost does
not depend on the number of files. A version is written once: while the object of the newest one is
unchanged, a cached snapshot is valid. Later versions are applied to it unless they change the
table's protocol or metadata; then the log is read again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, ClassVar, Self

from lakebed import errors, layout
from lakebed.columns.column_mapping import ColumnMapping, mapping_of
from lakebed.deltalog import table_features
from lakebed.deltalog.actions import (
    TABLE_KINDS,
    FileAction,
    FileKey,
    LogActions,
    Protocol,
    lines_of,
    read_actions,
)
from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.segment import (
    LogSegment,
    fetch_actions,
    find_segment,
    has_log,
    is_empty_log,
    read_versions,
    whole_segment,
)
from lakebed.documents.records import ROW_IDS, ROW_VERSIONS, FinishedFile, RowColumns, row_columns
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader
from lakebed.units import plural

MOST_VERSIONS = 10
"""The most versions that a cached snapshot catches up with; above that, reading the log is cheaper.
"""
ATTEMPTS = 3
"""Attempts to read a log while other writers replace its checkpoint or clean up."""
KINDS = (*TABLE_KINDS, "commitInfo")


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """One version of a table."""

    store: Reader = field(compare=False, repr=False)
    version: int
    facts: TableFacts
    protocol: Protocol = field(default_factory=Protocol)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The table's metadata action, as in the log."""
    transactions: Mapping[str, int] = field(default_factory=dict)
    """All app transactions except those of single foreign files, which may be numerous."""
    domains: Mapping[str, str] = field(default_factory=dict)
    """The configuration of each metadata domain."""
    in_commit_timestamp: int | None = None
    last: ObjectFacts | None = None
    """The object of the version that was read."""
    _files: Mapping[str, FileAction] | None = field(default=None, compare=False, repr=False)

    def after(self, body: bytes, last: ObjectFacts) -> Self | None:
        """Apply the next version; None if it redefines the table or is malformed. Pure."""
        try:
            actions = read_actions(self.version + 1, body, last.path, kinds=KINDS)
        except errors.TableUnreadable:
            return None
        if actions.protocol is not None or actions.metadata is not None:
            return None
        return replace(
            self,
            version=self.version + 1,
            facts=replace(self.facts, version=self.version + 1),
            transactions={**self.transactions, **_without_foreign(actions)},
            domains=_merged_domains(self.domains, actions.domains),
            in_commit_timestamp=actions.info.in_commit_timestamp,
            last=last,
            _files=None,
        )

    def is_unchanged(self) -> bool:
        """Whether the version's object is still the one that was read."""
        return (
            self.last is not None
            and self.last.etag is not None
            and self.store.head(layout.log_version(self.version)) == self.last
        )

    @property
    def id(self) -> str:
        """Return the table's id; a recreated table has a new one."""
        return str(self.metadata.get("id"))

    def transaction(self, app_id: str) -> int | None:
        """Return the version of an app transaction; None without one."""
        return self.transactions.get(app_id)

    def committed(self, pipeline: str, journal: str) -> int | None:
        """Return the last committed entry of a journal; None if none is committed."""
        return self.transaction(layout.journal_transaction(pipeline, journal))

    def knows(self, pipeline: str) -> bool:
        """Whether any journal of a pipeline has a transaction."""
        return self.transaction(layout.pipeline_transaction(pipeline)) is not None

    def fates(self, names: Iterable[str]) -> dict[str, int | None]:
        """Return the decision on each held file: 0 held, 1 released, 2 discarded, None if none."""
        return {name: self.transaction(layout.held_transaction(name)) for name in names}

    @property
    def mapping(self) -> ColumnMapping | None:
        """Return the table's column mapping; None without one."""
        return mapping_of(self.facts.schema, self.facts.configuration)

    @property
    def row_columns(self) -> RowColumns | None:
        """Return the columns in which files keep row ids; None if rows are not tracked."""
        tracked = table_features.ROW_TRACKING in self.facts.features
        return row_columns(self.facts.configuration) if tracked else None

    @property
    def files(self) -> Mapping[str, FileAction]:
        """Return the add actions of the table's files, by file name."""
        if self._files is None:
            segment = whole_segment(self.store, self.version)
            found = {file.path: file for file in active_files(self.store, segment, counted=True)}
            if segment.version != self.version or not (self.last is None or self.is_unchanged()):
                raise self.overtaken()
            self._files = found
        return self._files

    def release_files(self) -> None:
        """Free the list of files; `files` reads it again."""
        self._files = None

    def overtaken(self) -> errors.CommitUnconfirmed:
        """Return the error for a log that changed since it was read."""
        return errors.CommitUnconfirmed(
            "the log has changed since it was read", table=self.store.uri
        )

    def changed(self, files: Iterable[FinishedFile]) -> tuple[str, ...]:
        """Return the files that are no longer in the table, or have another deletion vector."""
        active = self.files
        return tuple(
            file.filename
            for file in files
            if file.filename not in active or active[file.filename].key[1] != file.vector
        )

    def why_no_removal(self) -> str | None:
        """Return why no file may be removed from the table; None if files may be removed."""
        if table_features.is_on(self.facts.configuration, table_features.APPEND_ONLY):
            return f"{table_features.APPEND_ONLY} is set: nothing may be removed from the table"
        if table_features.ROW_TRACKING in self.facts.features and self.row_columns is None:
            return (
                "the table tracks its rows, but does not name the columns in which files store row "
                f"ids ({ROW_IDS}, {ROW_VERSIONS}): set delta.enableRowTracking "
                "with Spark, or use its DELETE or OPTIMIZE on this table"
            )
        return None

    def why_not_replaced(self, files: Iterable[FinishedFile]) -> str | None:
        """Return why files cannot be replaced by others with the same rows; None if they can."""
        gone = self.changed(files)
        if gone:
            return (
                f"{plural(len(gone), 'file')} to be replaced, such as {min(gone)}, "
                f"{'is' if len(gone) == 1 else 'are'} no longer in the table as before: OPTIMIZE, "
                "DELETE or another rewrite came first"
            )
        return self.why_no_removal()

    def totals(self) -> tuple[int, int, int | None]:
        """Return the numbers of files, bytes and visible rows; None if a row count is missing."""
        files = self.files.values()
        rows = [file.visible_rows for file in files]
        counted = [row for row in rows if row is not None]
        return (
            len(rows),
            sum(file.size or 0 for file in files),
            sum(counted) if len(counted) == len(rows) else None,
        )

    def check_writable(self) -> None:
        """Raise TableUnsupported, with each reason, if penguin cannot write the table safely."""
        reasons = [
            *table_features.unsafe_protocol(self.protocol.reader, self.protocol.writer),
            *table_features.unsafe_features(self.protocol.features),
            *table_features.unsafe_properties(self.facts.configuration),
            *table_features.unsafe_fields(self.facts.schema, self.facts.configuration),
        ]
        if reasons:
            raise errors.TableUnsupported(
                f"penguin cannot write this table safely: {'; '.join(reasons)}",
                table=self.store.uri,
            )


@dataclass(slots=True)
class LogCache:
    """The newest version that was read from a log, so that reading the next one is cheaper."""

    known: Snapshot | None = None
    lock: Lock = field(default_factory=Lock, compare=False, repr=False)
    """Held while a version is read: threads that share a cache read it once."""

    def catch_up(self, store: Reader) -> Snapshot | None:
        """Apply the versions since; None if the log must be read again."""
        known = None if self.known is None else replace(self.known, store=store, _files=None)
        self.known = self._caught_up(known)
        return self.known

    def _caught_up(self, known: Snapshot | None) -> Snapshot | None:
        for _ in range(MOST_VERSIONS):
            if known is None:
                return None
            following = known.store.fetch(layout.log_version(known.version + 1))
            # The order matters: a version that was read before the same object is seen again
            # follows it, and does not belong to a table that replaced this one.
            if not known.is_unchanged():
                return None
            if following is None:
                return known
            known = known.after(*following)
        return None


class LogReader:
    """A table's log."""

    opened: ClassVar[type[Snapshot]] = Snapshot
    """The class of the snapshots that it opens."""

    def __init__(self, store: Reader, cache: LogCache | None = None) -> None:
        self.store = store
        self._cache = cache or LogCache()

    def open(self) -> Snapshot | None:
        """Open the newest version for writing; None without a log.

        Raise if the log is unreadable, or if penguin cannot write the table safely.
        """
        snapshot = self.newest()
        if snapshot is not None:
            snapshot.check_writable()
        return snapshot

    def newest(self) -> Snapshot | None:
        """Open the newest version, also of a table that penguin cannot write."""
        with self._cache.lock:
            found = self._cache.catch_up(self.store)
            if found is None:
                found = self._cache.known = self._read(None)
            return found

    def at(self, version: int) -> Snapshot:
        """Open an earlier version; raise if it is unreadable."""
        found = self._read(version)
        if found is None or found.version != version:
            raise _unreadable(self.store)
        return found

    def _read(self, version: int | None) -> Snapshot | None:
        """Read a version, or the newest; None without a log."""
        for _ in range(ATTEMPTS):
            segment = find_segment(self.store, version)
            if segment is None and not has_log(self.store):
                return None
            try:
                found = None if segment is None else _read_segment(self.store, segment, self.opened)
            except (errors.ObjectChanged, errors.ObjectMissing):
                continue  # Another writer is replacing the same checkpoint, or cleaning up.
            except errors.TableUnreadable:
                if is_empty_log(self.store):
                    raise errors.TableUnreadable(
                        "version 0 of the Delta log is empty, as a power cut can leave it, and "
                        "there is no other; penguin fsck --repair --yes removes it",
                        table=self.store.uri,
                    ) from None
                raise
            if found is not None:
                return found
        if segment is None:
            raise _unreadable(self.store)
        raise errors.StoreUnavailable("the Delta log changes while it is read", path=self.store.uri)


def _read_segment(store: Reader, segment: LogSegment, kind: type[Snapshot]) -> Snapshot | None:
    """Read the snapshot of a segment; None if another log replaced it meanwhile."""
    if segment.missing is not None:
        raise errors.TableUnreadable(
            "a version of the Delta log is missing", version=segment.missing, table=store.uri
        )
    # The newest version is read first, and its object checked at the end: so all reads in between
    # are of the same log, and not of one that replaced it.
    path = layout.log_version(segment.version)
    newest = store.fetch(path) if segment.version in segment.objects else None
    found = _folded(store, _parts(store, segment, newest and newest[0]), kind)
    if newest is None:
        return None if segment.version in segment.objects else found
    now = store.head(path)
    if now is not None and now.etag is None:
        return found  # Without an e-tag there is nothing to compare.
    found.last = newest[1]
    return found if now == found.last else None


def _parts(store: Reader, segment: LogSegment, newest: bytes | None) -> Iterator[LogActions]:
    """Yield the actions that are not about files, of the checkpoint and then of each version."""
    if segment.checkpoint is not None:
        # A log without checkpoints is read without Arrow.
        from lakebed.deltalog.checkpoint import read_checkpoint  # noqa: PLC0415

        yield from read_checkpoint(store, segment.checkpoint, TABLE_KINDS, sidecars=False)
    numbers = range(segment.first, segment.version)
    for actions in fetch_actions(store, numbers, kinds=KINDS, may_be_empty=True):
        if actions is None:
            raise errors.ObjectMissing("a version of the Delta log is gone", path=store.uri)
        yield actions
    number = segment.version
    if number not in segment.objects:
        return
    path = layout.log_version(number)
    if newest is None:
        raise errors.ObjectMissing("the newest version of the Delta log is gone", path=path)
    kinds: tuple[str, ...] = KINDS
    if number < segment.first:
        # The checkpoint has the rest; the first line has its timestamp.
        newest, kinds = newest.partition(b"\n")[0], ("commitInfo",)
    yield read_actions(number, newest, store.describe(path), kinds=kinds, may_be_empty=True)


def _folded(store: Reader, parts: Iterator[LogActions], kind: type[Snapshot]) -> Snapshot:
    whole = LogActions(version=-1)
    for part in parts:
        whole.version = part.version
        whole.protocol = part.protocol or whole.protocol
        whole.metadata = part.metadata or whole.metadata
        whole.transactions |= _without_foreign(part)
        whole.domains |= part.domains
        whole.info = part.info
    if whole.protocol is None or whole.metadata is None:
        raise _unreadable(store)
    with lines_of(store.describe(layout.log_version(whole.version))):
        facts = TableFacts.of(whole.version, whole.metadata, whole.protocol.features)
    return kind(
        store=store,
        version=whole.version,
        facts=facts,
        protocol=whole.protocol,
        metadata=whole.metadata,
        transactions=whole.transactions,
        domains=_merged_domains({}, whole.domains),
        in_commit_timestamp=whole.info.in_commit_timestamp,
    )


def _without_foreign(actions: LogActions) -> dict[str, int]:
    """Return the transactions without those of single foreign files."""
    items = actions.transactions.items()
    return {app_id: number for app_id, number in items if not layout.is_foreign_transaction(app_id)}


def _merged_domains(before: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the metadata domains after some were set or removed."""
    after = {**before, **changes}
    return {domain: value for domain, value in after.items() if value is not None}


def _unreadable(store: Reader) -> errors.TableUnreadable:
    return errors.TableUnreadable("there is a Delta log, but it cannot be read", table=store.uri)


def active_files(
    store: Reader, segment: LogSegment, *, counted: bool = False
) -> Iterator[FileAction]:
    """Yield every file of a version; the checkpoint is not held in memory."""
    state: dict[FileKey, FileAction] = {}
    for version in read_versions(store, range(segment.first, segment.version + 1)):
        for action in sorted(version.files, key=lambda file: file.added):
            state[action.key] = action
    for batch in checkpointed_files(store, segment, counted=counted):
        yield from (file for file in batch.files if file.added and file.key not in state)
    yield from (file for file in state.values() if file.added)


def checkpointed_files(
    store: Reader, segment: LogSegment, *, counted: bool = False
) -> Iterator[LogActions]:
    """Read the files and transactions of a segment's checkpoint, in batches."""
    if segment.checkpoint is not None:
        # A log without checkpoints is read without Arrow.
        from lakebed.deltalog.checkpoint import COLUMNS, COUNTED, read_checkpoint  # noqa: PLC0415

        columns = COUNTED if counted else COLUMNS
        yield from read_checkpoint(store, segment.checkpoint, columns)
