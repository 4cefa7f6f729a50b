"""A Delta log from the oldest version that can be read to its newest, a version at a time.

Where the log begins with version 0 that is all of its history. Otherwise it begins with the oldest
checkpoint from which every later version is there; what came before is known only by what that
checkpoint holds. No more than a few versions are in memory at once.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from lakebed.columns.column_mapping import mapping_of
from lakebed.deltalog.actions import CommitInfo, LogActions, lines_of, read_versions
from lakebed.deltalog.checkpoint import read_checkpoint
from lakebed.deltalog.segment import Checkpoint, checkpoints, unbroken, versions_in
from lakebed.documents.log_version import (
    LoggedFile,
    LogHistory,
    LogVersion,
    RemovedFile,
    SettledEntries,
    TableShape,
)
from lakebed.documents.reading import parse_json
from lakebed.layout import ADOPTION_STEP, DELTA_LOG, log_version
from lakebed.storage.store import Reader

DROPPED_PROPERTY = "penguin.droppedColumns"
"""The table property that holds what files have and the schema does not show, as a schema."""
COLUMNS = (
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
    for part in () if base is None else read_checkpoint(store, base, COLUMNS):
        yield log_version_of(part, store.describe(log_version(part.version)))
    for actions in read_versions(store, numbers):
        yield log_version_of(actions, store.describe(log_version(actions.version)))


def log_version_of(actions: LogActions, where: str) -> LogVersion:
    """Return what an audit needs of a version, or of a part of a checkpoint. Pure."""
    info = actions.info
    mode = info.parameters.get("mode")
    with lines_of(where):
        shape = None if actions.metadata is None else _shape(actions.metadata)
    return LogVersion(
        version=actions.version,
        is_checkpoint=actions.is_checkpoint,
        operation=info.operation,
        writer=info.writer,
        is_ours=info.is_ours,
        overwrites=isinstance(mode, str) and mode.strip('"').lower() == "overwrite",
        settles=tuple(_settled(info)),
        adopts=info.note.get("step") == ADOPTION_STEP,
        replays=_replayed(info.note),
        rows_deleted=_rows_deleted(info),
        adds=tuple(
            LoggedFile(
                name=one.path,
                written=unquote(one.written),
                size=one.size or 0,
                rows=one.rows,
                deleted=0 if one.vector is None else one.vector.rows,
                # Sorted: versions and checkpoints write the columns in any order.
                partition_values=tuple(sorted(one.partition_values)),
                data_change=one.data_change,
            )
            for one in actions.adds
        ),
        removes=tuple(
            RemovedFile(name=one.path, data_change=one.data_change) for one in actions.removes
        ),
        transactions=actions.transactions,
        shape=shape,
    )


def _shape(metadata: Mapping[str, Any]) -> TableShape:
    properties: dict[str, Any] = metadata.get("configuration") or {}
    dropped = properties.get(DROPPED_PROPERTY)
    try:
        hidden = parse_json(dropped)["fields"] if dropped else ()
    except (ValueError, KeyError, TypeError):
        hidden = ()
    parsed = parse_json(metadata["schemaString"])
    columns = mapping_of(parsed, properties) or {}
    apart = tuple(metadata.get("partitionColumns") or ())
    return TableShape(
        schema=parsed,
        partition_columns=apart,
        hidden=frozenset(one["name"] for one in hidden),
        names={name: columns[name,].name for name in apart if (name,) in columns},
    )


def _settled(info: CommitInfo) -> Iterator[SettledEntries]:
    note = info.note
    for pipeline, told in info.entries:
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


def _replayed(note: Mapping[str, Any]) -> int | None:
    match note.get("replayed"):
        case {"restore": int(version)}:
            return version
    return None


def _rows_deleted(info: CommitInfo) -> int | None:
    """Return the rows that a MERGE deleted, as Spark or delta-rs spells it."""
    if info.operation != "MERGE":
        return None
    told = info.metrics.get("numTargetRowsDeleted", info.metrics.get("num_target_rows_deleted"))
    return int(told) if isinstance(told, int | str) and str(told).isdigit() else None
