"""A Delta log from the oldest version that can be read to its newest, a version at a time.

Where the log begins with version 0 that is all of its history. Otherwise it begins with the oldest
checkpoint from which every later version is there; what came before is known only by what that
checkpoint holds. No more than a few versions are in memory at once.
"""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from lakebed.columns.column_mapping import mapping_of
from lakebed.deltalog.checkpoint import checkpoint_batches, pairs_of, rows_of
from lakebed.deltalog.file import lines_of
from lakebed.deltalog.file_names import Naming, naming
from lakebed.deltalog.segment import Checkpoint, checkpoints, unbroken, versions_in
from lakebed.documents.log_version import (
    LoggedFile,
    LogHistory,
    LogVersion,
    PartitionValues,
    RemovedFile,
    SettledEntries,
    TableShape,
)
from lakebed.documents.reading import parse_json
from lakebed.errors import StoreUnavailable
from lakebed.layout import ADOPTION_STEP, DELTA_LOG, log_version
from lakebed.storage.ahead import ahead
from lakebed.storage.store import Reader

DROPPED_PROPERTY = "penguin.droppedColumns"
"""The table property that holds what files have and the schema does not show, as a schema."""
COLUMNS = (
    "add.path",
    "add.size",
    "add.partitionValues",
    "add.stats",
    "add.stats_parsed.numRecords",
    "add.deletionVector.cardinality",
    "remove.path",
    "txn.appId",
    "txn.version",
    "metaData.schemaString",
    "metaData.partitionColumns",
    "metaData.configuration",
)


def read_whole_log(store: Reader) -> LogHistory | None:
    """Return the history of a log as far as it is there; None where there is no log."""
    _, listed = store.level(DELTA_LOG)
    known, bases = versions_in(listed), checkpoints(listed)
    if not known and not bases:
        return None
    last = max((*known, *(one.version for one in bases)))
    first = unbroken(known, last)
    base = min(
        (one for one in bases if one.version >= first - 1),
        key=lambda one: one.version,
        default=None,
    )
    if first > 0 and base is None:
        after = max((one.version for one in bases if one.version < first), default=-1)
        gone = tuple(number for number in range(after + 1, last) if number not in known)
        return LogHistory(first=first, last=last, gone=gone, versions=iter(()))
    if first == 0:
        base = None
    begins = 0 if base is None else base.version + 1
    return LogHistory(
        first=begins, last=last, gone=(), versions=_read(store, base, range(begins, last + 1))
    )


def _read(store: Reader, base: Checkpoint | None, numbers: Iterable[int]) -> Iterator[LogVersion]:
    named = naming(store)
    for batch in () if base is None else checkpoint_batches(store, base, COLUMNS):
        yield _part(batch, base.version if base else 0, named)
    for number, body in ahead(lambda each: store.get(log_version(each)), numbers):
        if body is None:
            # Cleaned up between the listing and the reading: the next look finds the new state.
            raise StoreUnavailable(
                "versions of the Delta log vanished while they were read", path=store.uri
            )
        yield parse_version(number, body, store.describe(log_version(number)), named)


def parse_version(number: int, body: bytes, path: str, named: Naming = str) -> LogVersion:
    """Read one version; one that cannot be read is an error, never an empty one. Pure."""
    info: dict[str, Any] = {}
    adds: list[LoggedFile] = []
    removes: list[RemovedFile] = []
    transactions: dict[str, int] = {}
    shape: TableShape | None = None
    with lines_of(path):
        for line in body.splitlines():
            match parse_json(line) if line.strip() else None:
                case {"add": {"path": str(written), "size": int(size)} as add}:
                    vector = add.get("deletionVector")
                    written = unquote(written)
                    adds.append(
                        LoggedFile(
                            name=named(written),
                            written=written,
                            size=size,
                            rows=_rows(add.get("stats")),
                            deleted=vector.get("cardinality", 0) if vector else 0,
                            partition_values=_values(add.get("partitionValues")),
                            data_change=add.get("dataChange", True),
                        )
                    )
                case {"remove": {"path": str(written)} as remove}:
                    change = remove.get("dataChange", True)
                    removes.append(RemovedFile(name=named(unquote(written)), data_change=change))
                case {"txn": {"appId": str(app_id), "version": int(told)}}:
                    transactions[app_id] = told
                case {"metaData": {"schemaString": str(schema)} as table}:
                    properties = table.get("configuration")
                    shape = _shape(schema, table.get("partitionColumns"), properties)
                case {"commitInfo": dict(found)}:
                    info = found
    ours = info.get("penguin")
    note = ours if isinstance(ours, dict) else {}
    parameters = info.get("operationParameters")
    mode = parameters.get("mode") if isinstance(parameters, dict) else None
    return LogVersion(
        version=number,
        operation=_text(info.get("operation")),
        writer=_text(info.get("penguin.writer")) or _text(info.get("engineInfo")),
        is_ours=isinstance(ours, dict),
        overwrites=isinstance(mode, str) and mode.strip('"').lower() == "overwrite",
        settles=tuple(_settled(note)),
        adopts=note.get("step") == ADOPTION_STEP,
        replays=_replayed(note),
        adds=tuple(adds),
        removes=tuple(removes),
        transactions=transactions,
        shape=shape,
    )


def _part(batch: pa.RecordBatch, version: int, named: Naming) -> LogVersion:
    tables = [
        _shape(row["schemaString"], row.get("partitionColumns"), row.get("configuration"))
        for row in rows_of(batch, "metaData")
        if row.get("schemaString")
    ]
    return LogVersion(
        version=version,
        is_checkpoint=True,
        adds=tuple(
            LoggedFile(
                name=named(unquote(row["path"])),
                written=unquote(row["path"]),
                size=row["size"],
                rows=_checkpointed_rows(row),
                deleted=(row.get("deletionVector") or {}).get("cardinality") or 0,
                partition_values=_values(row.get("partitionValues")),
            )
            for row in rows_of(batch, "add")
        ),
        removes=tuple(
            RemovedFile(name=named(unquote(row["path"]))) for row in rows_of(batch, "remove")
        ),
        transactions={row["appId"]: row["version"] for row in rows_of(batch, "txn")},
        shape=tables[-1] if tables else None,
    )


def _checkpointed_rows(row: dict[str, Any]) -> int | None:
    told = _rows(row.get("stats"))
    return told if told is not None else (row.get("stats_parsed") or {}).get("numRecords")


def _rows(stats: object) -> int | None:
    try:
        told = parse_json(stats).get("numRecords") if isinstance(stats, str) else None
    except (ValueError, AttributeError):
        return None
    return told if isinstance(told, int) else None


def _values(written: Any) -> PartitionValues:  # noqa: ANN401 - JSON or Arrow
    # Delta takes an empty string for null.
    return tuple(sorted((name, value or None) for name, value in pairs_of(written)))


def _shape(
    schema: str,
    partition_columns: list[str] | None,
    configuration: Any,  # noqa: ANN401 - JSON or Arrow
) -> TableShape:
    properties: dict[str, Any] = dict(pairs_of(configuration))
    dropped = properties.get(DROPPED_PROPERTY)
    try:
        hidden = parse_json(dropped)["fields"] if dropped else ()
    except (ValueError, KeyError, TypeError):
        hidden = ()
    parsed = parse_json(schema)
    columns = mapping_of(parsed, properties) or {}
    apart = tuple(partition_columns or ())
    return TableShape(
        schema=parsed,
        partition_columns=apart,
        hidden=frozenset(one["name"] for one in hidden),
        names={name: columns[name,].name for name in apart if (name,) in columns},
    )


def _settled(note: dict[str, Any]) -> Iterator[SettledEntries]:
    entries = note.get("entries")
    for pipeline, told in entries.items() if isinstance(entries, dict) else ():
        match told:
            case {"journal": str(journal), "first": int(first), "last": int(last)}:
                forgotten = _range(note.get("forgotten"), pipeline)
                remembered = _range(note.get("remembered"), pipeline)
                starts = [first, *(one[0] for one in (forgotten, remembered) if one)]
                yield SettledEntries(
                    pipeline=pipeline,
                    journal=journal,
                    first=min(starts),
                    last=last,
                    forgotten=forgotten,
                )


def _range(told: object, pipeline: str) -> tuple[int, int] | None:
    match told.get(pipeline) if isinstance(told, dict) else None:
        case [int(first), int(last)]:
            return first, last
    return None


def _replayed(note: dict[str, Any]) -> int | None:
    match note.get("replayed"):
        case {"restore": int(version)}:
            return version
    return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
