"""Questions about a table by its URI, each answered by its newest version.

A caller with several questions opens the table once (`look_at`), so that all answers are of one
version. Neither Arrow nor deltalake is loaded before a question needs it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from lakebed.deltalog.actions import LogActions, LogHistory
from lakebed.deltalog.files import read_log
from lakebed.deltalog.retention import retention
from lakebed.deltalog.segment import Checkpoint, checkpoints, read_versions, unbroken, versions_in
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.errors import ObjectMissing, TableUnsupported
from lakebed.layout import DELTA_LOG
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader, is_there


def look_at(uri: str, options: StorageOptions) -> Snapshot | None:
    """Return the newest version of a table; None where there is no table."""
    return LogReader(Reader(uri, options)).look() if is_there(uri) else None


def require_writable(uri: str, options: StorageOptions) -> None:
    """Refuse a table that penguin would refuse, in the same words; one may not be there yet."""
    if is_there(uri):
        LogReader(Reader(uri, options)).open()


def replaceable(uri: str, options: StorageOptions) -> Snapshot | None:
    """Return a table of which files can be replaced; None where there is no table.

    Raise where penguin would not commit the replacement of any file.
    """
    table = look_at(uri, options)
    if table is None:
        return None
    table.check_writable()
    why = table.why_no_removal()
    if why is None and table.row_columns is not None:
        unknown = [one.path for one in table.files.values() if one.first_row is None]
        if unknown:
            why = (
                f"it tracks its rows, but {min(unknown)} has no ids for them yet; set "
                "delta.enableRowTracking with Spark once more"
            )
    if why is not None:
        raise TableUnsupported(f"no file of this table can be replaced: {why}", table=uri)
    return table


def last_committed(uri: str, options: StorageOptions, pipeline: str, journal: str) -> int | None:
    """Return the last entry of a journal that the log has; None where it has none."""
    table = look_at(uri, options)
    return None if table is None else table.committed(pipeline, journal)


def file_retention(uri: str, options: StorageOptions) -> timedelta:
    """Return how long a table keeps files that its log does not name, whether it exists or not."""
    table = look_at(uri, options)
    return retention({} if table is None else table.facts.configuration)


def named_files(uri: str, options: StorageOptions) -> frozenset[str]:
    """Name every file that a table's log adds or removes; nothing where there is no log."""
    table = look_at(uri, options)
    return frozenset() if table is None else frozenset(read_log(table.store, table).paths)


HISTORY_COLUMNS = (
    "add.path",
    "add.size",
    "add.partitionValues",
    "add.stats",
    "add.stats_parsed.numRecords",
    "add.deletionVector",
    "remove.path",
    "txn.appId",
    "txn.version",
    "metaData.schemaString",
    "metaData.partitionColumns",
    "metaData.configuration",
)


def whole_log(uri: str, options: StorageOptions) -> LogHistory | None:
    """Return everything that a table's log still says, to be read once; None without one.

    Where the log begins with version 0 that is all of its history. Otherwise it begins with the
    oldest checkpoint from which every later version is there; what came before is known only by
    what that checkpoint holds. No more than a few versions are in memory at once.
    """
    if not is_there(uri):
        return None
    store = Reader(uri, options)
    listed = store.level(DELTA_LOG)[1]
    known, bases = versions_in(listed), checkpoints(listed)
    if not known and not bases:
        return None
    last = max((*known, *(one.version for one in bases)))
    first = unbroken(known, last)
    usable = (one for one in bases if one.version >= first - 1)
    base = min(usable, key=lambda one: one.version, default=None) if first > 0 else None
    if first > 0 and base is None:
        after = max((one.version for one in bases if one.version < first), default=-1)
        gone = tuple(number for number in range(after + 1, last) if number not in known)
        return LogHistory(first=first, last=last, gone=gone, versions=iter(()))
    begins = 0 if base is None else base.version + 1
    versions = _history(store, base, range(begins, last + 1))
    return LogHistory(first=begins, last=last, gone=(), versions=versions)


def _history(
    store: Reader, base: Checkpoint | None, numbers: Iterable[int]
) -> Iterator[LogActions]:
    if base is not None:
        from lakebed.deltalog.checkpoint import read_checkpoint  # noqa: PLC0415 - it loads Arrow

        yield from read_checkpoint(store, base, HISTORY_COLUMNS)
    yield from read_versions(store, numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePreview:
    """What a reader of a table sees: counts, and the first rows."""

    version: int
    files: int
    rows: int
    columns: tuple[str, ...]
    first_rows: tuple[tuple[object, ...], ...]


def preview(uri: str, *, rows: int, options: StorageOptions | None = None) -> TablePreview:
    """Return what a reader sees of the newest version of a table."""
    snapshot = look_at(uri, options or StorageOptions())
    if snapshot is None:
        raise ObjectMissing("there is no Delta table here", path=uri)
    columns = tuple(field["name"] for field in snapshot.facts.schema["fields"])
    files, _bytes, count = snapshot.totals()
    return TablePreview(
        version=snapshot.version,
        files=files,
        rows=count or 0,
        columns=columns,
        first_rows=first_rows(snapshot, columns, rows),
    )


def first_rows(
    table: Snapshot, columns: tuple[str, ...], count: int
) -> tuple[tuple[object, ...], ...]:
    """Read some rows of a version with the library, whichever come first."""
    import pyarrow as pa  # noqa: PLC0415

    from lakebed.deltalog.library import load_table, translated  # noqa: PLC0415

    rows: list[tuple[object, ...]] = []
    with translated(table.store):
        # Not to_pyarrow_table: it can abort a short-lived process at its end.
        for batch in load_table(table.store, table.version).scan(columns=list(columns)):
            part = pa.record_batch(batch).slice(0, count - len(rows))
            rows += [tuple(row[name] for name in columns) for row in part.to_pylist()]
            if len(rows) >= count:
                break
    return tuple(rows)
