"""A version of a Delta log as penguin writes it, an action a line. Pure.

What a table's features ask of a version is done here, from what is known of the version before it:
row ids that follow those given out, and a timestamp that is later than the last.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from importlib.metadata import version as version_of
from typing import Any
from urllib.parse import quote

from lakebed.columns.row_tracking import FIRST_ROW_ID, ROW_VERSION, FirstRow
from lakebed.deltalog.actions import FileAction
from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.latest import CachedVersion
from lakebed.deltalog.table_features import IN_COMMIT_TIMESTAMP, ROW_TRACKING, is_on
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.reading import parse_json
from lakebed.errors import TableUnreadable
from penguin.model.commit import Add

ROWS_DOMAIN = "delta.rowTracking"
LAST_ROW_ID = "rowIdHighWaterMark"
TRACKED = "delta.enableRowTracking"
KEPT = "delta.rowTracking.preserved"
HAS_TIMESTAMPS = "delta.enableInCommitTimestamps"

REPAIR = "FSCK"
"""The operation of a version that takes missing files out."""
WRITER = f"penguin {version_of('blizzard-penguin')}"

Pairs = tuple[tuple[str, int], ...]

Action = dict[str, dict[str, Any]]
"""One line of the log."""


def append(
    known: CachedVersion, adds: tuple[Add, ...], transactions: Pairs, metadata: object, at: datetime
) -> bytes:
    """Write the version after one that adds files, and leaves the table what it is."""
    columns = to_json(list(known.facts.partition_columns))
    told = _commit_info(
        known, "WRITE", metadata, at, {"mode": "Append", "partitionBy": columns}, blind=True
    )
    return encoded([told, *_added(known, adds), *_txns(transactions)])


def evolution(
    known: CachedVersion, after: TableFacts, transactions: Pairs, metadata: object, at: datetime
) -> bytes:
    """Write the version after one that changes what the table is and touches no file."""
    now = known.metadata
    changed: Action = {
        "metaData": {
            "id": known.id,
            "name": now.get("name"),
            "description": now.get("description"),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": to_json(after.schema),
            "partitionColumns": list(after.partition_columns),
            "createdTime": now.get("createdTime"),
            "configuration": dict(after.configuration),
        }
    }
    told = _commit_info(known, "REPLACE COLUMNS", metadata, at)
    return encoded([told, changed, *_txns(transactions)])


def replacement(
    known: CachedVersion,
    removes: Iterable[Action],
    adds: tuple[Add, ...],
    transactions: Pairs,
    metadata: object,
    at: datetime,
) -> bytes:
    """Write the version after one that removes files, and may add others."""
    told = _commit_info(known, "UPDATE" if adds else "DELETE", metadata, at)
    return encoded([told, *removes, *_added(known, adds), *_txns(transactions)])


def rearrangement(
    known: CachedVersion,
    removes: Iterable[Action],
    adds: tuple[Add, ...],
    transactions: Pairs,
    metadata: object,
    at: datetime,
) -> bytes:
    """Write the version after one that puts the same rows into other files."""
    told = _commit_info(known, "OPTIMIZE", metadata, at, {"predicate": "[]", "zOrderBy": "[]"})
    files = _added(known, adds, data_change=False)
    return encoded([told, *removes, *files, *_txns(transactions)])


def repair(
    known: CachedVersion,
    removes: Iterable[Action],
    transactions: Pairs,
    metadata: object,
    at: datetime,
) -> bytes:
    """Write the version after one that takes out files which are gone, as FSCK does."""
    told = _commit_info(known, REPAIR, metadata, at)
    return encoded([told, *removes, *_txns(transactions)])


def note(
    known: CachedVersion,
    operation: str,
    metadata: object,
    at: datetime,
    *,
    parameters: dict[str, str],
    metrics: dict[str, str],
) -> bytes:
    """Write the version after one that changes nothing, and says what was done beside the log."""
    told = _commit_info(known, operation, metadata, at, parameters, blind=True)
    told["commitInfo"]["operationMetrics"] = metrics
    return encoded([told])


def added(add: Add, *, data_change: bool = True) -> Action:
    """Return the action that adds a file."""
    return {
        "add": {
            # The protocol writes paths as parts of a URI.
            "path": quote(add.path, safe="/="),
            "partitionValues": dict(add.partition_values),
            "size": add.size,
            "modificationTime": add.modification_time,
            "dataChange": data_change,
            "stats": add.stats,
        }
    }


def removed(
    path: str,
    file: FinishedFile,
    names: Mapping[str, str],
    at: datetime,
    *,
    data_change: bool,
    told: Mapping[str, Any],
) -> Action:
    """Return the action that takes a file out.

    `path` is as the log writes it, `names` what the log calls the partition columns, and `told`
    what the action that added the file says of its rows.
    """
    values = file.partition_values.items()
    return {
        "remove": {
            "path": path,
            "deletionTimestamp": milliseconds(at),
            "dataChange": data_change,
            "extendedFileMetadata": True,
            "partitionValues": {names.get(key, key): value or None for key, value in values},
            "size": file.size,
            **told,
        }
    }


def repeated(action: FileAction | None) -> dict[str, Any]:
    """Return what a removal repeats of the action that added the file: row ids, the vector."""
    if action is None:
        return {}
    vector = (action.deletion_vector or {}).items()
    written = {name: value for name, value in vector if value is not None}
    return numbered(action.first_row) | ({"deletionVector": written} if written else {})


def numbered(first_row: FirstRow | None) -> dict[str, int]:
    """Return what the action of a file says of the ids of its rows; nothing where none are told."""
    if first_row is None:
        return {}
    return {FIRST_ROW_ID: first_row.id, ROW_VERSION: first_row.version}


def conversion(
    created: Iterable[Action], transactions: Pairs, metadata: object, at: datetime, files: int
) -> list[Action]:
    """Return how a first version begins that makes a table of files that are there already.

    `created` are the actions by which the library creates such a table without files.
    """
    parts = {kind: action for action in created for kind in action}
    apart = to_json(parts["metaData"]["metaData"].get("partitionColumns", []))
    told: Action = {
        "commitInfo": {
            "timestamp": milliseconds(at),
            "operation": "CONVERT",
            "operationParameters": {"numFiles": str(files), "partitionedBy": apart},
            "engineInfo": WRITER,
            **custom_metadata(metadata),
        },
    }
    return [told, parts["protocol"], parts["metaData"], *_txns(transactions)]


def encoded(actions: Iterable[Action]) -> bytes:
    """Write actions as a version of a log."""
    return "".join(f"{to_json(action)}\n" for action in actions).encode()


def custom_metadata(metadata: object) -> dict[str, Any]:
    """Return what a version says of itself in our own words."""
    return {"penguin": metadata, "penguin.writer": WRITER}


def _commit_info(
    known: CachedVersion,
    operation: str,
    metadata: object,
    at: datetime,
    parameters: dict[str, str] | None = None,
    *,
    blind: bool = False,
) -> Action:
    return {
        "commitInfo": {
            **_in_commit_timestamp(known, at),
            "timestamp": milliseconds(at),
            "operation": operation,
            "operationParameters": parameters or {},
            "readVersion": known.version,
            "isBlindAppend": blind,
            "engineInfo": WRITER,
            **_row_ids_kept(known, blind=blind),
            **custom_metadata(metadata),
        },
    }


def _row_ids_kept(known: CachedVersion, *, blind: bool) -> dict[str, Any]:
    """Say that rows which are moved to other files keep their ids, if the table tracks rows."""
    tracked = ROW_TRACKING in known.protocol.features and is_on(known.facts.configuration, TRACKED)
    return {"tags": {KEPT: "true"}} if tracked and not blind else {}


def _in_commit_timestamp(known: CachedVersion, at: datetime) -> dict[str, int]:
    """Return the timestamp of the commit, if the table has them: later than the one before."""
    if not (
        IN_COMMIT_TIMESTAMP in known.protocol.features
        and is_on(known.facts.configuration, HAS_TIMESTAMPS)
    ):
        return {}
    if known.in_commit_timestamp is None:
        raise TableUnreadable(
            f"{HAS_TIMESTAMPS} is set, but the last version has no timestamp", version=known.version
        )
    return {"inCommitTimestamp": max(milliseconds(at), known.in_commit_timestamp + 1)}


def _added(
    known: CachedVersion, adds: tuple[Add, ...], *, data_change: bool = True
) -> Iterator[Action]:
    """Write what is added, and up to which number row ids are given out then."""
    tracked = ROW_TRACKING in known.protocol.features
    last = _last_row_id(known) if tracked else 0
    for add in adds:
        action = added(add, data_change=data_change)
        if tracked:
            action["add"] |= numbered(FirstRow(id=last + 1, version=known.version + 1))
            last += add.rows
        yield action
    if tracked and adds:
        configuration = to_json({LAST_ROW_ID: last, "domainName": ROWS_DOMAIN})
        domain = {"domain": ROWS_DOMAIN, "configuration": configuration, "removed": False}
        yield {"domainMetadata": domain}


def _last_row_id(known: CachedVersion) -> int:
    """Return the highest row id that was given out; -1 where none was."""
    if known.domains is None:
        raise TableUnreadable("the domain metadata of the Delta log could not be read")
    try:
        said = known.domains.get(ROWS_DOMAIN)
        return -1 if said is None else int(parse_json(said)[LAST_ROW_ID])
    except (ValueError, KeyError, TypeError) as cause:
        raise TableUnreadable(f"the domain metadata {ROWS_DOMAIN} cannot be read") from cause


def _txns(transactions: Pairs) -> Iterator[Action]:
    # Without a time of its own a transaction never expires.
    return ({"txn": {"appId": app_id, "version": number}} for app_id, number in transactions)


def milliseconds(at: datetime) -> int:
    """Return a time as the log writes it."""
    return int(at.timestamp() * 1000)


def to_json(value: object) -> str:
    """Write JSON on one line, with characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
