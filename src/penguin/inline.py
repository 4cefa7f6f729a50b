"""Committing from within blizzard, in its own process. Delta is loaded when the first commit is."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakebed.clock import Clock
from lakebed.errors import LakeError, SchemaConflict
from lakebed.storage.options import StorageOptions
from lakebed.telemetry.events import Emit
from lakebed.types import Evolution
from penguin.model.settings import TableSettings

if TYPE_CHECKING:
    from lakebed.columns.column_mapping import ColumnMapping
    from lakebed.columns.row_tracking import RowColumns
    from lakebed.deltalog.search import LogSearch
    from lakebed.deltalog.snapshot import FileFacts, Snapshot
    from lakebed.documents.log_version import LogHistory
    from penguin.catalog.registrar import OpenCatalog
    from penguin.pipeline import TableRun


@dataclass(slots=True)
class InlineCommitter:
    """Commits what is waiting for a table, and keeps its catalog told, as a penguin would."""

    settings: TableSettings
    emit: Emit
    clock: Clock
    pipeline: str | None
    open_catalog: "OpenCatalog | None"
    _run: "TableRun | None" = None
    """Kept from batch to batch, so that a pipeline that continues is reported."""

    def __call__(self) -> int:
        """Commit, and return how many commits that took."""
        from penguin.pipeline import commit_all  # noqa: PLC0415

        if self._run is None:
            self._run = self._begun()
        return commit_all(self._run, self.pipeline)

    def finish(self) -> None:
        """End well: wait for what is under way beside the commits, for some seconds at most."""
        if self._run is not None:
            self._run.finish()

    def _begun(self) -> "TableRun":
        from lakebed.storage.store import Store  # noqa: PLC0415
        from penguin.catalog.opening import open_catalog  # noqa: PLC0415
        from penguin.delta.maintenance import beside  # noqa: PLC0415
        from penguin.pipeline import TableRun  # noqa: PLC0415

        store = Store(self.settings.table_uri, self.settings.storage_options)
        return TableRun(
            settings=self.settings,
            emit=self.emit,
            clock=self.clock,
            open_store=lambda: store,
            open_catalog=self.open_catalog or open_catalog,
            begin=beside,
        )


def committer(
    table: TableSettings | None,
    table_uri: str,
    options: StorageOptions,
    *,
    emit: Emit,
    clock: Clock,
    pipeline: str | None = None,
    open_catalog: "OpenCatalog | None" = None,
) -> InlineCommitter:
    """Return what commits whatever is waiting for a table.

    Where `pipeline` is named, errors of the table's other pipelines are reported, not raised.
    """
    settings = table or TableSettings(name=table_uri, table_uri=table_uri, storage_options=options)
    return InlineCommitter(settings, emit, clock, pipeline, open_catalog)


def refused_properties(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return why a table cannot be made with some properties, by the property to blame."""
    from penguin.delta import table  # noqa: PLC0415

    return table.refused_properties(properties)


def pipeline_known(uri: str, options: StorageOptions, pipeline: str) -> bool:
    """Whether a table's log carries a transaction of a pipeline."""
    from lakebed.deltalog import snapshot  # noqa: PLC0415

    return snapshot.pipeline_known(uri, options, pipeline)


def last_committed(uri: str, options: StorageOptions, pipeline: str, journal: str) -> int | None:
    """Return the last entry of a journal that a table's log has, None where it has none."""
    from lakebed.deltalog import snapshot  # noqa: PLC0415

    return snapshot.last_committed(uri, options, pipeline, journal)


def retention(uri: str, options: StorageOptions) -> timedelta:
    """Return how long a table keeps files that its log does not name, whether it exists or not."""
    from lakebed.deltalog import retention as patience  # noqa: PLC0415
    from lakebed.deltalog.snapshot import look_at  # noqa: PLC0415

    table = look_at(uri, options)
    return patience.retention({} if table is None else table.facts.configuration)


def table_columns(uri: str, options: StorageOptions) -> dict[str, Any] | None:
    """Return the schema of a table as Delta writes it; None where there is no table."""
    from lakebed.deltalog.snapshot import look_at  # noqa: PLC0415

    found = look_at(uri, options)
    return None if found is None else dict(found.facts.schema)


def column_mapping(uri: str, options: StorageOptions) -> "Callable[[], ColumnMapping | None]":
    """Return the question how data files hold a table's columns; None where they are not mapped.

    A table that maps none is asked only once: if that changes, a column has another name in files
    only after somebody has changed it, and whoever writes it declares it anew then. A log that
    cannot be read is penguin's to tell of.
    """
    unmapped = False

    def ask() -> "ColumnMapping | None":
        from lakebed.columns.column_mapping import mapping_of  # noqa: PLC0415
        from lakebed.deltalog.latest import read_latest  # noqa: PLC0415
        from lakebed.storage.store import Reader, is_there  # noqa: PLC0415

        nonlocal unmapped
        if unmapped or not is_there(uri):
            return None
        try:
            found = read_latest(Reader(uri, options))
        except LakeError as unread:
            if unread.retryable:
                raise
            return None
        if found is None:
            return None
        columns = mapping_of(found.facts.schema, found.facts.configuration)
        unmapped = columns is None
        return columns

    return ask


def check_writable(uri: str, options: StorageOptions) -> None:
    """Raise if penguin would refuse to write a table, by its own rules and in its own words."""
    from lakebed.deltalog.snapshot import require_writable  # noqa: PLC0415

    require_writable(uri, options)


def check_schema(
    table: TableSettings,
    schema: dict[str, Any],
    partition_columns: tuple[str, ...],
    *,
    mode_is_known: bool = True,
) -> None:
    """Raise if a table would hold every file with these columns back, by penguin's own rules."""
    if reasons := reasons_to_hold(table, schema, partition_columns, mode_is_known=mode_is_known):
        mode = f"with schema_evolution {table.evolution}" if mode_is_known else "in every mode"
        raise SchemaConflict(
            f"the table cannot hold the declared fields, {mode}: {'; '.join(reasons)}. "
            "penguin would hold every file; declare the fields as the table has them, change "
            "schema_evolution, or write to another table",
            table=table.table_uri,
        )


def reasons_to_hold(
    table: TableSettings,
    schema: Mapping[str, Any],
    partition_columns: tuple[str, ...],
    *,
    mode_is_known: bool = True,
) -> tuple[str, ...]:
    """Return why a table would hold every file with these columns back, by penguin's own rules.

    Where it is not known how penguin is configured, only what no mode lets in is refused. A table
    that is not there yet takes any columns; for one without a file nothing is predicted.
    """
    from dataclasses import replace  # noqa: PLC0415

    from lakebed.columns.column_mapping import mapping_of, marked  # noqa: PLC0415
    from lakebed.deltalog.snapshot import look_at  # noqa: PLC0415
    from penguin.model.table import Refused  # noqa: PLC0415
    from penguin.plan.draft import decide_on  # noqa: PLC0415

    found = look_at(table.table_uri, table.storage_options)
    if found is None:
        return ()
    if not mode_is_known:
        table = replace(table, evolution=Evolution.OVERWRITE)
    columns = mapping_of(found.facts.schema, found.facts.configuration)
    # Files are written under the names that the table has for them.
    written = dict(schema) if columns is None else marked(schema, columns)
    decision = decide_on(found.facts, written, partition_columns, table)
    return decision.reasons if isinstance(decision, Refused) and found.paths() else ()


def fates(uri: str, options: StorageOptions, names: Iterable[str]) -> dict[str, int | None]:
    """Return what the log has decided of held files: 0 held, 1 released, 2 gone; None: nothing."""
    from lakebed.deltalog.snapshot import look_at  # noqa: PLC0415

    table = look_at(uri, options)
    return fates_in((lambda _app_id: None) if table is None else table.transaction, names)


def fates_in(
    transaction: Callable[[str], int | None], names: Iterable[str]
) -> dict[str, int | None]:
    """Return what one version of a table has decided of held files."""
    from lakebed.layout import held_transaction  # noqa: PLC0415

    return {name: transaction(held_transaction(name)) for name in names}


def came_back(uri: str, options: StorageOptions, names: Iterable[str]) -> dict[str, str]:
    """Return how files that were given up came into the table again, by their names."""
    from lakebed.deltalog.snapshot import look_at  # noqa: PLC0415
    from lakebed.storage.store import Reader  # noqa: PLC0415
    from penguin.backlog import redo_conflicts  # noqa: PLC0415

    wanted, table = frozenset(names), look_at(uri, options)
    if table is None or not wanted:
        return {}
    return redo_conflicts.came_back(Reader(uri, options), wanted, table.transaction)


def named_files(uri: str, options: StorageOptions) -> frozenset[str]:
    """Name every file that a table's log adds or removes; nothing where there is no log.

    A log that cannot be read whole is an error: what it names would not be known.
    """
    from lakebed.deltalog.files import read_log  # noqa: PLC0415
    from lakebed.deltalog.snapshot import look_at  # noqa: PLC0415
    from lakebed.errors import TableUnreadable  # noqa: PLC0415
    from lakebed.storage.store import Reader  # noqa: PLC0415

    table = look_at(uri, options)
    if table is None:
        return frozenset()
    known = read_log(Reader(uri, options), table)
    if not known.complete:
        raise TableUnreadable(
            "this table has checkpoints of a kind that does not tell which files were removed",
            table=uri,
        )
    return frozenset(known.paths)


def change_files(uri: str, options: StorageOptions, paths: Collection[str]) -> dict[str, datetime]:
    """Return which of some files are of the change data feed, and when they were committed."""
    from lakebed.deltalog.table_files import change_files as find  # noqa: PLC0415
    from lakebed.storage.store import Reader  # noqa: PLC0415

    return find(Reader(uri, options), frozenset(paths)) if paths else {}


def whole_log(uri: str, options: StorageOptions) -> "LogHistory | None":
    """Return everything that a table's log still says, to be read once; None where there is none.

    The library is not asked: it shows what is in a table, and not how it came there.
    """
    from lakebed.deltalog.history import read_whole_log  # noqa: PLC0415
    from lakebed.storage.store import Reader, local_path  # noqa: PLC0415

    folder = local_path(uri)
    there = folder is None or folder.exists()
    return read_whole_log(Reader(uri, options)) if there else None


def log_search(uri: str, options: StorageOptions) -> "LogSearch":
    """Return what answers questions about single entries and files from a table's log."""
    from lakebed.deltalog.search import LogSearch  # noqa: PLC0415
    from lakebed.storage.store import Reader  # noqa: PLC0415

    store = Reader(uri, options)

    def open_table(version: int) -> "Snapshot":
        from lakebed.deltalog.snapshot import LogReader  # noqa: PLC0415

        return LogReader(store).at(version)

    return LogSearch(store, open_table)


def table_files(uri: str, options: StorageOptions) -> "TableFiles | None":
    """Return the files that are in a table, to have them replaced; None where there is no table.

    Raise where penguin would not commit the replacement of any file.
    """
    from lakebed.deltalog.snapshot import look_at  # noqa: PLC0415
    from lakebed.errors import TableUnsupported  # noqa: PLC0415

    table = look_at(uri, options)
    if table is None:
        return None
    table.check_writable()
    why = table.why_no_removal()
    if why is not None:
        raise TableUnsupported(f"no file of this table can be replaced: {why}", table=uri)
    found = _files_of(table)
    unknown = [path for path, file in found.files.items() if file.first_row is None]
    if found.row_columns is not None and unknown:
        raise TableUnsupported(
            f"no file of this table can be replaced: it tracks its rows, but {min(unknown)} has no "
            "ids for them yet; set delta.enableRowTracking with Spark once more",
            table=uri,
        )
    return found


def _files_of(table: "Snapshot") -> "TableFiles":
    from lakebed.columns.column_mapping import mapping_of  # noqa: PLC0415
    from lakebed.columns.row_tracking import row_columns  # noqa: PLC0415
    from lakebed.deltalog.table_features import ROW_TRACKING  # noqa: PLC0415

    facts = table.facts
    return TableFiles(
        schema=dict(facts.schema),
        files=table.file_facts(),
        mapping=mapping_of(facts.schema, facts.configuration),
        row_columns=row_columns(facts.configuration) if ROW_TRACKING in facts.features else None,
        transaction=table.transaction,
    )


def files_to_read(uri: str, options: StorageOptions) -> "TableFiles | None":
    """Return the files that are in a table, to read rows by their places; None without a table."""
    from lakebed.deltalog.snapshot import LogReader  # noqa: PLC0415
    from lakebed.storage.store import Reader, local_path  # noqa: PLC0415

    folder = local_path(uri)
    if folder is not None and not folder.exists():
        return None
    table = LogReader(Reader(uri, options)).open()
    return None if table is None else _files_of(table)


def versions_of(uri: str, options: StorageOptions, names: Collection[str]) -> dict[str, int]:
    """Return the versions that have added files; of one that is too long ago, nothing is known."""
    from lakebed.deltalog.snapshot import LogReader  # noqa: PLC0415
    from lakebed.deltalog.versions import added_in  # noqa: PLC0415
    from lakebed.storage.store import Reader  # noqa: PLC0415

    store = Reader(uri, options)
    table = LogReader(store).look()
    return {} if table is None else added_in(store, table.version, names)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """One version of a table: its schema as Delta writes it, and its files by their names."""

    schema: dict[str, Any]
    files: "Mapping[str, FileFacts]"
    transaction: Callable[[str], int | None]
    """Returns the version of an app transaction that this version of the table has."""
    mapping: "ColumnMapping | None" = None
    """How files hold its columns; None where it maps none."""
    row_columns: "RowColumns | None" = None
    """The columns of files in which rows keep their ids; None where it tracks no rows."""
