"""A Delta table as deltalake reads it: one version, and the log that it is opened from.

Never use this module in a forked process.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lakebed.columns.column_mapping import ColumnMapping, mapping_of
from lakebed.columns.row_tracking import ROW_IDS, ROW_VERSIONS, FirstRow, RowColumns, row_columns
from lakebed.deltalog.actions import FileAction, Protocol
from lakebed.deltalog.delta_types import DeltaSchema, TableFacts
from lakebed.deltalog.file_names import naming
from lakebed.deltalog.latest import CachedVersion
from lakebed.deltalog.library import NoTable, load_table, translated
from lakebed.deltalog.segment import has_log, is_empty_log
from lakebed.deltalog.table_features import (
    APPEND_ONLY,
    DELETION_VECTORS,
    ROW_TRACKING,
    is_on,
    unsafe_features,
    unsafe_fields,
    unsafe_properties,
    unsafe_protocol,
)
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.deletion_vector import DeletionVector
from lakebed.errors import CommitFailed, TableUnreadable, TableUnsupported
from lakebed.layout import held_transaction, journal_transaction
from lakebed.storage.store import Reader
from lakebed.units import plural

if TYPE_CHECKING:
    from deltalake import DeltaTable


ELSEWHERE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
"""How the name of a file begins that is not relative to the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """What a log says of a file that is in the table."""

    size: int
    rows: int | None
    """All rows in it, deleted ones included."""
    partition_values: Mapping[str, str | None]
    first_row: FirstRow | None = None
    """What its rows are numbered from, where the table tracks its rows."""
    vector: DeletionVector | None = None
    """Which of its rows are deleted."""


class Snapshot:
    """One version of a table, to be read only."""

    def __init__(self, of: "DeltaTable | CachedVersion", store: Reader) -> None:
        self._store = store
        self._loaded = None if isinstance(of, CachedVersion) else of
        self._actions: Mapping[str, FileAction] | None = None
        self.known = of if isinstance(of, CachedVersion) else _read(of, store)

    @property
    def _handle(self) -> "DeltaTable":
        """Return the library's table of this very version, opened now where it was recalled."""
        if self._loaded is None:
            try:
                with translated(self._store, unreadable=True):
                    loaded = load_table(self._store, self.version)
            except NoTable as cause:
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
        self._loaded = self._actions = None

    def _require_the_same(self) -> None:
        """Check that what is recalled and what is opened are of the same log."""
        if not self.known.still_stands(self._store):
            raise self._changed()

    def _changed(self) -> CommitFailed:
        return CommitFailed("the log has changed since it was looked at", table=self._store.uri)

    @property
    def id(self) -> str:
        """Return the table's id; one that stood in its place before had another."""
        return self.known.id

    @property
    def facts(self) -> TableFacts:
        """Return what the table is."""
        return self.known.facts

    @property
    def version(self) -> int:
        """Return the version of the snapshot."""
        return self.known.version

    def transaction(self, app_id: str) -> int | None:
        """Return the version of an app transaction, None where the log has none."""
        answers = self.known.answers
        if not self.known.answers_for(app_id):
            with translated(self._store):
                answers[app_id] = self._handle.transaction_version(app_id)
        return answers.get(app_id)

    def committed(self, pipeline: str, journal: str) -> int | None:
        """Return the last entry of a journal that this version has; None where it has none."""
        return self.transaction(journal_transaction(pipeline, journal))

    def fates(self, names: Iterable[str]) -> dict[str, int | None]:
        """Return what is decided of held files: 0 held, 1 released, 2 gone; None: nothing."""
        return {name: self.transaction(held_transaction(name)) for name in names}

    @property
    def mapping(self) -> ColumnMapping | None:
        """Return how files hold the columns; None where the table maps none."""
        return mapping_of(self.facts.schema, self.facts.configuration)

    @property
    def row_columns(self) -> RowColumns | None:
        """Return the columns of files in which rows keep their ids; None if rows are untracked."""
        tracked = ROW_TRACKING in self.facts.features
        return row_columns(self.facts.configuration) if tracked else None

    def paths(self) -> tuple[str, ...]:
        """Name the files that are in the table, as the log writes them."""
        with translated(self._store):
            actions = self._handle.get_add_actions(flatten=True)
            return tuple(str(path) for path in actions.column("path").to_pylist())

    def files(self) -> frozenset[str]:
        """Name the files that are in the table, as they are in the store."""
        return frozenset(self._written())

    def file_facts(self) -> dict[str, FileFacts]:
        """Return what the log says of the files that are in the table's directory, by their names.

        A table may have others: those of a shallow clone are in the directory of another table.
        """
        import pyarrow as pa  # noqa: PLC0415 - only whoever asks for rows or files needs it

        named, actions = naming(self._store), self._in_log()
        with translated(self._store):
            rows = pa.table(self._handle.get_add_actions(flatten=True)).to_pylist()
        return {
            name: FileFacts(
                size=row["size_bytes"],
                rows=row.get("num_records"),
                partition_values={
                    name: _as_written(row[f"partition.{name}"])
                    for name in self.facts.partition_columns
                },
                first_row=None if action is None else action.first_row,
                vector=None if action is None else action.vector,
            )
            for row in rows
            if not ELSEWHERE.match(name := named(unquote(row["path"])))
            for action in [actions.get(name)]
        }

    def _in_log(self) -> Mapping[str, FileAction]:
        """Return the files as the log adds them; none if it says no more than the library shows."""
        if self._actions is None:
            self._actions = {}
            if not self.facts.features.isdisjoint((ROW_TRACKING, DELETION_VECTORS)):
                from lakebed.deltalog.table_files import files_at  # noqa: PLC0415 - it loads Arrow

                self._actions = files_at(self._store, self.version)
        return self._actions

    def changed(self, files: Iterable[FinishedFile]) -> tuple[str, ...]:
        """Name the files that left the table, or of which other rows are deleted than before."""
        there, actions = self.files(), self._in_log()
        vectors = {name: one.vector.key for name, one in actions.items() if one.vector is not None}
        return tuple(
            one.filename
            for one in files
            if one.filename not in there or vectors.get(one.filename) != one.vector
        )

    def _written(self) -> dict[str, str]:
        """Return the files that are in the table as the log writes them, by their names."""
        named = naming(self._store)
        return {named(unquote(path)): path for path in self.paths()}

    def why_no_removal(self) -> str | None:
        """Return why no file may be removed from the table as a whole; None if one may be."""
        if is_on(self.facts.configuration, APPEND_ONLY):
            return f"{APPEND_ONLY} is set: nothing may be removed from the table"
        if ROW_TRACKING in self.facts.features and self.row_columns is None:
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

    def counts(self) -> tuple[int, int]:
        """Count the files and the rows."""
        with translated(self._store):
            return len(self._handle.file_uris()), self._handle.count() - self._deleted()

    def totals(self) -> tuple[int, int, int | None]:
        """Return the files, their bytes and their rows; None where a file has no count of its rows.

        Rows that a deletion vector deletes are not counted.
        """
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        with translated(self._store):
            files = pa.table(self._handle.get_add_actions())
        rows = files.column("num_records") if "num_records" in files.column_names else None
        counted = rows is not None and not rows.null_count
        return (
            files.num_rows,
            pc.sum(files.column("size_bytes")).as_py() or 0,
            (pc.sum(rows).as_py() or 0) - self._deleted() if counted else None,
        )

    def _deleted(self) -> int:
        """Count the rows that deletion vectors delete, which the library counts."""
        return sum(one.vector.rows for one in self._in_log().values() if one.vector is not None)

    def first_rows(self, columns: tuple[str, ...], count: int) -> tuple[tuple[object, ...], ...]:
        """Read some rows, whichever come first."""
        import pyarrow as pa  # noqa: PLC0415

        rows: list[tuple[object, ...]] = []
        with translated(self._store):
            # Not to_pyarrow_table: it can abort a short-lived process at its end.
            for batch in self._handle.scan(columns=list(columns)):
                part = pa.record_batch(batch).slice(0, count - len(rows))
                rows += [tuple(row[name] for name in columns) for row in part.to_pylist()]
                if len(rows) >= count:
                    break
        return tuple(rows)

    def check_writable(self) -> None:
        """Refuse, by name, a table that requires of its writers what penguin does not do."""
        protocol = self.known.protocol
        reasons = [
            *unsafe_protocol(protocol.reader, protocol.writer),
            *unsafe_features(protocol.features),
            *unsafe_properties(self.facts.configuration),
            *unsafe_fields(self.facts.schema["fields"], self.facts.configuration),
        ]
        if reasons:
            raise TableUnsupported(
                f"penguin cannot write this table safely: {'; '.join(reasons)}",
                table=self._store.uri,
            )


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

    def at(self, version: int) -> Snapshot:
        """Open a version that was there before; what cannot be read is an error."""
        try:
            with translated(self.store, unreadable=True):
                return Snapshot(load_table(self.store, version), self.store)
        except NoTable as cause:
            raise _unreadable(self.store) from cause

    def schema_at(self, version: int) -> DeltaSchema:
        """Return the schema that an earlier version had."""
        with translated(self.store, unreadable=True):
            schema: DeltaSchema = json.loads(load_table(self.store, version).schema().to_json())
            return schema

    def _handle(self) -> "DeltaTable | None":
        found = self._open()
        if found is not None or not has_log(self.store):
            return found
        # Somebody may have created the table between the two looks. The library also says "no
        # table" of a folder that it may not read, and says it again.
        found = self._open()
        if found is None:
            raise _unreadable(self.store)
        return found

    def _open(self) -> "DeltaTable | None":
        try:
            with translated(self.store, unreadable=True):
                return load_table(self.store)
        except NoTable:
            return None
        except TableUnreadable:
            if is_empty_log(self.store):
                raise TableUnreadable(
                    "version 0 of the Delta log is empty, as a power cut can leave it, and there "
                    "is no other; penguin fsck --repair --yes removes it",
                    table=self.store.uri,
                ) from None
            raise


def _read(handle: "DeltaTable", store: Reader) -> CachedVersion:
    """Read what a table is."""
    with translated(store, unreadable=True):
        metadata, said = handle.metadata(), handle.protocol()
        schema = json.loads(handle.schema().to_json())
        version = handle.version()
    protocol = Protocol(
        reader=said.min_reader_version,
        writer=said.min_writer_version,
        reader_features=frozenset(said.reader_features or ()),
        writer_features=frozenset(said.writer_features or ()),
    )
    return CachedVersion(
        version=version,
        id=str(metadata.id),
        facts=TableFacts(
            version=version,
            schema=schema,
            partition_columns=tuple(metadata.partition_columns),
            configuration=dict(metadata.configuration),
            features=protocol.features,
        ),
        protocol=protocol,
        metadata={
            "name": metadata.name,
            "description": metadata.description,
            "createdTime": metadata.created_time,
        },
    )


def _as_written(value: object) -> str | None:
    """Return a partition value as the Delta protocol writes it."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case datetime():
            at = value if value.tzinfo is None else value.astimezone(UTC)
            return at.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        case date():
            return value.isoformat()
        case _:
            return str(value)


def _unreadable(store: Reader) -> TableUnreadable:
    return TableUnreadable("there is a Delta log, but it cannot be read", table=store.uri)
