"""One version of a Delta table, read from its log; its data files are read on demand.

Of the checkpoint only the columns are read that are not about files, so that opening a table costs
the same however many files it has. A version of a log is written once: while the object of the last
one is the same and none follows it, everything that was read holds, and a version that follows is
added to it if it leaves the table what it is. In any other case the log is read anew.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar, Self

from lakebed import errors, layout
from lakebed.columns.column_mapping import ColumnMapping, mapping_of
from lakebed.columns.row_tracking import ROW_IDS, ROW_VERSIONS, RowColumns, row_columns
from lakebed.deltalog import table_features
from lakebed.deltalog.actions import (
    TABLE_KINDS,
    FileAction,
    LogActions,
    Protocol,
    lines_of,
    read_actions,
)
from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.segment import (
    LogSegment,
    find_segment,
    has_log,
    is_empty_log,
    whole_segment,
)
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.reading import parse_json
from lakebed.storage.ahead import ahead
from lakebed.storage.store import ObjectFacts, Reader
from lakebed.units import plural

MOST_VERSIONS = 10
"""Versions that are added one by one; to read the log anew costs less than more of them."""
ATTEMPTS = 3
"""Times that a log is read while other writers replace its checkpoint or clean up."""
KINDS = (*TABLE_KINDS, "commitInfo")


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """One version of a table."""

    store: Reader = field(compare=False, repr=False)
    version: int
    facts: TableFacts
    protocol: Protocol = field(default_factory=Protocol)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The metadata of the table as the log writes it."""
    transactions: Mapping[str, int] = field(default_factory=dict)
    """All app transactions but those of single files of other programs, which may be many."""
    domains: Mapping[str, str] = field(default_factory=dict)
    """The configuration of each domain of metadata."""
    in_commit_timestamp: int | None = None
    """The timestamp that the version carries; None where it carries none."""
    last: ObjectFacts | None = None
    """The object of the version, as it was read."""
    _files: Mapping[str, FileAction] | None = field(default=None, compare=False, repr=False)

    def after(self, body: bytes, last: ObjectFacts) -> Self | None:
        """Advance by one version; None where the table is, or may be, another one then. Pure."""
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
            transactions={**self.transactions, **_without_strangers(actions)},
            domains=_joined(self.domains, actions.domains),
            in_commit_timestamp=actions.info.in_commit_timestamp,
            last=last,
            _files=None,
        )

    def still_stands(self) -> bool:
        """Whether the object of the version is the one that was read."""
        return (
            self.last is not None
            and self.last.etag is not None
            and self.store.head(layout.log_version(self.version)) == self.last
        )

    @property
    def id(self) -> str:
        """Return the table's id; one that was in its place before had another."""
        return str(self.metadata.get("id"))

    def transaction(self, app_id: str) -> int | None:
        """Return the version of an app transaction, None where the log has none."""
        return self.transactions.get(app_id)

    def committed(self, pipeline: str, journal: str) -> int | None:
        """Return the last entry of a journal that this version has; None where it has none."""
        return self.transaction(layout.journal_transaction(pipeline, journal))

    def knows(self, pipeline: str) -> bool:
        """Whether it has a transaction of a pipeline, of any journal."""
        return self.transaction(layout.pipeline_transaction(pipeline)) is not None

    def fates(self, names: Iterable[str]) -> dict[str, int | None]:
        """Return what is decided of held files: 0 held, 1 released, 2 gone; None: nothing."""
        return {name: self.transaction(layout.held_transaction(name)) for name in names}

    @property
    def mapping(self) -> ColumnMapping | None:
        """Return how files hold the columns; None where the table maps none."""
        return mapping_of(self.facts.schema, self.facts.configuration)

    @property
    def row_columns(self) -> RowColumns | None:
        """Return the columns of files in which rows keep their ids; None if rows are untracked."""
        tracked = table_features.ROW_TRACKING in self.facts.features
        return row_columns(self.facts.configuration) if tracked else None

    @property
    def files(self) -> Mapping[str, FileAction]:
        """Return the actions that added the files of the table, by the files' names."""
        if self._files is None:
            from lakebed.deltalog.checkpoint import COUNTED, active_files  # noqa: PLC0415 - Arrow

            segment = whole_segment(self.store, self.version)
            found = {one.path: one for one in active_files(self.store, segment, COUNTED)}
            if segment.version != self.version or not (self.last is None or self.still_stands()):
                raise self.overtaken()
            self._files = found
        return self._files

    def let_go(self) -> None:
        """Free the list of files; it is read again where it is asked for."""
        self._files = None

    def overtaken(self) -> errors.CommitUnconfirmed:
        """Return the error of a log that is no longer the one that was read."""
        return errors.CommitUnconfirmed(
            "the log has changed since it was looked at", table=self.store.uri
        )

    def changed(self, files: Iterable[FinishedFile]) -> tuple[str, ...]:
        """Name the files that left the table, or of which other rows are deleted than before."""
        there = self.files
        return tuple(
            one.filename
            for one in files
            if one.filename not in there or there[one.filename].key[1] != one.vector
        )

    def why_no_removal(self) -> str | None:
        """Return why no file may be removed from the table as a whole; None if one may be."""
        if table_features.is_on(self.facts.configuration, table_features.APPEND_ONLY):
            return f"{table_features.APPEND_ONLY} is set: nothing may be removed from the table"
        if table_features.ROW_TRACKING in self.facts.features and self.row_columns is None:
            return (
                "the table tracks its rows, but does not say in which columns of a file rows keep "
                f"the ids that they have ({ROW_IDS}, {ROW_VERSIONS}): set delta.enableRowTracking "
                "with Spark, or use its DELETE or OPTIMIZE on this table"
            )
        return None

    def why_not_replaced(self, files: Iterable[FinishedFile]) -> str | None:
        """Return why files with the same rows cannot take the place of some; None if they can."""
        gone = self.changed(files)
        if gone:
            return (
                f"{plural(len(gone), 'file')} to be replaced, such as {min(gone)}, "
                f"{'is' if len(gone) == 1 else 'are'} no longer in the table as before: OPTIMIZE, "
                "DELETE or another rewrite came first"
            )
        return self.why_no_removal()

    def totals(self) -> tuple[int, int, int | None]:
        """Return the files, their bytes and their rows; None where a file has no count of its rows.

        Rows that a deletion vector deletes are not counted.
        """
        files = self.files.values()
        rows = [one.visible_rows for one in files]
        counted = [one for one in rows if one is not None]
        return (
            len(rows),
            sum(one.size or 0 for one in files),
            sum(counted) if len(counted) == len(rows) else None,
        )

    def check_writable(self) -> None:
        """Refuse, by name, a table that requires of its writers what penguin does not do."""
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
    """The last version of a log that was read. It makes the next look cheaper, nothing else."""

    known: Snapshot | None = None

    def catch_up(self, store: Reader) -> Snapshot | None:
        """Bring what is known up to the log's last version; None where it must be read anew."""
        known = None if self.known is None else replace(self.known, store=store, _files=None)
        self.known = self._caught_up(known)
        return self.known

    def _caught_up(self, known: Snapshot | None) -> Snapshot | None:
        for _ in range(MOST_VERSIONS):
            if known is None:
                return None
            following = known.store.fetch(layout.log_version(known.version + 1))
            # In this order: what was there before the very same object was seen again follows it,
            # and is not of another table that has taken the place of this one.
            if not known.still_stands():
                return None
            if following is None:
                return known
            known = known.after(*following)
        return None


class LogReader:
    """A table's log."""

    opened: ClassVar[type[Snapshot]] = Snapshot
    """The class of an opened version."""

    def __init__(self, store: Reader, cache: LogCache | None = None) -> None:
        self.store = store
        self._cache = cache or LogCache()

    def open(self) -> Snapshot | None:
        """Open the latest version; None where there is no log at all, never for an unreadable one.

        A table that penguin cannot write safely is refused here, before anything is written.
        """
        snapshot = self.look()
        if snapshot is not None:
            snapshot.check_writable()
        return snapshot

    def look(self) -> Snapshot | None:
        """Open the latest version of any table, also of one that penguin could not write."""
        found = self._cache.catch_up(self.store)
        if found is None:
            found = self._cache.known = self._read(None)
        return found

    def at(self, version: int) -> Snapshot:
        """Open a version that was there before; what cannot be read is an error."""
        found = self._read(version)
        if found is None or found.version != version:
            raise _unreadable(self.store)
        return found

    def _read(self, version: int | None) -> Snapshot | None:
        """Read a version, or the newest; None where there is no log."""
        for _ in range(ATTEMPTS):
            segment = find_segment(self.store, version)
            if segment is None and not has_log(self.store):
                return None
            try:
                found = None if segment is None else _read_segment(self.store, segment, self.opened)
            except (errors.ObjectChanged, errors.ObjectMissing):
                continue  # Another writer replaces the same checkpoint now, or cleans up.
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
    """Read what a version of a table is; None where another log has taken its place meanwhile."""
    if segment.missing is not None:
        raise errors.TableUnreadable(
            "a version of the Delta log is missing", version=segment.missing, table=store.uri
        )
    # First the last version, and its object again in the end: what is read in between is of the
    # same log, and not of another that has taken its place.
    path = layout.log_version(segment.version)
    newest = store.fetch(path) if segment.version in segment.objects else None
    found = _folded(store, _parts(store, segment, newest and newest[0]), kind)
    if newest is None:
        return None if segment.version in segment.objects else found
    now = store.head(path)
    if now is not None and now.etag is None:
        return found  # Nothing can be bound to an object without an e-tag.
    found.last = newest[1]
    return found if now == found.last else None


def _parts(store: Reader, segment: LogSegment, newest: bytes | None) -> Iterator[LogActions]:
    """Yield the actions that are not about files: the checkpoint's, then each version's."""
    if segment.checkpoint is not None:
        # Only here is Arrow needed: a log without checkpoints is read without it.
        from lakebed.deltalog.checkpoint import read_checkpoint  # noqa: PLC0415

        yield from read_checkpoint(store, segment.checkpoint, TABLE_KINDS, sidecars=False)
    numbers = range(segment.first, segment.version)
    older = ahead(lambda each: store.get(layout.log_version(each)), numbers)
    last = [(segment.version, newest)] if segment.version in segment.objects else []
    for number, body in chain(older, last):
        where = store.describe(layout.log_version(number))
        if body is None:
            raise errors.ObjectMissing("a version of the Delta log is gone", path=where)
        if number > 0 and (not body or body.isspace()):
            yield LogActions(version=number)  # A power cut can leave it so; its writer tries again.
        elif number >= segment.first:
            yield read_actions(number, body, where, kinds=KINDS)
        else:  # The rest of it is in the checkpoint, and its timestamp in the first line.
            first = body.partition(b"\n")[0]
            yield read_actions(number, first, where, kinds=("commitInfo",))


def _folded(store: Reader, parts: Iterator[LogActions], kind: type[Snapshot]) -> Snapshot:
    whole = LogActions(version=-1)
    for part in parts:
        whole.version = part.version
        whole.protocol = part.protocol or whole.protocol
        whole.metadata = part.metadata or whole.metadata
        whole.transactions |= _without_strangers(part)
        whole.domains |= part.domains
        whole.info = part.info
    if whole.protocol is None or whole.metadata is None:
        raise _unreadable(store)
    with lines_of(store.describe(layout.log_version(whole.version))):
        facts = _facts(whole.version, whole.protocol, whole.metadata)
    return kind(
        store=store,
        version=whole.version,
        facts=facts,
        protocol=whole.protocol,
        metadata=whole.metadata,
        transactions=whole.transactions,
        domains=_joined({}, whole.domains),
        in_commit_timestamp=whole.info.in_commit_timestamp,
    )


def _facts(version: int, protocol: Protocol, metadata: Mapping[str, Any]) -> TableFacts:
    schema: dict[str, Any] = parse_json(metadata["schemaString"])
    if schema.get("type") != "struct" or not isinstance(schema.get("fields"), list):
        raise ValueError("the schema of a table is not a struct")
    return TableFacts(
        version=version,
        schema=schema,
        partition_columns=tuple(metadata.get("partitionColumns") or ()),
        configuration=dict(metadata.get("configuration") or {}),
        features=protocol.features,
    )


def _without_strangers(actions: LogActions) -> dict[str, int]:
    """Return the transactions but those of single files of other programs: they may be many."""
    found = actions.transactions.items()
    return {
        app_id: number for app_id, number in found if not layout.is_stranger_transaction(app_id)
    }


def _joined(before: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the domains of metadata once some were set anew, or removed."""
    after = {**before, **changes}
    return {domain: said for domain, said in after.items() if said is not None}


def _unreadable(store: Reader) -> errors.TableUnreadable:
    return errors.TableUnreadable("there is a Delta log, but it cannot be read", table=store.uri)
