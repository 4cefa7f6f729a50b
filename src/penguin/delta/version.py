"""Compose a version of a Delta log, an action per line. Pure.

Requirements of table features are met here, from the snapshot before: consecutive row ids, and a
timestamp later than the last.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version as version_of
from typing import Any
from urllib.parse import quote

from lakebed.deltalog.actions import FileAction
from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.snapshot import Snapshot
from lakebed.deltalog.table_features import IN_COMMIT_TIMESTAMP, ROW_TRACKING, is_on
from lakebed.documents.reading import parse_json
from lakebed.documents.records import FIRST_ROW_ID, ROW_VERSION, FirstRow
from lakebed.errors import TableUnreadable
from penguin.model.commit import Add

ROWS_DOMAIN = "delta.rowTracking"
LAST_ROW_ID = "rowIdHighWaterMark"
TRACKED = "delta.enableRowTracking"
KEPT = "delta.rowTracking.preserved"
HAS_TIMESTAMPS = "delta.enableInCommitTimestamps"

REPAIR = "FSCK"
"""The operation of a version that removes missing files."""
WRITER = f"penguin {version_of('blizzard-penguin')}"

Pairs = tuple[tuple[str, int], ...]

Action = dict[str, dict[str, Any]]
"""One line of the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextVersion:
    """The content of the version after a snapshot."""

    operation: str
    metadata: object
    """Our commit metadata."""
    at: datetime
    adds: tuple[Add, ...] = ()
    removes: tuple[Action, ...] = ()
    transactions: Pairs = ()
    after: TableFacts | None = None
    """The table after it; None if unchanged."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    data_change: bool = True
    """Whether rows change; if not, rows only move to other files."""
    blind: bool = False
    """Whether it is valid after any commits of others."""

    def body(self, known: Snapshot) -> bytes:
        """Encode the version after a snapshot."""
        actions = (
            self._commit_info(known),
            *(() if self.after is None else (_changed(known, self.after),)),
            *self.removes,
            *_added(known, self.adds, data_change=self.data_change),
            *_txns(self.transactions),
        )
        return encoded(actions)

    def _commit_info(self, known: Snapshot) -> Action:
        tracked = ROW_TRACKING in known.facts.features and is_on(known.facts.configuration, TRACKED)
        # Rows that are moved to other files keep their ids.
        tags = {"tags": {KEPT: "true"}} if tracked and not self.blind else {}
        return {
            "commitInfo": {
                **_in_commit_timestamp(known, self.at),
                "timestamp": milliseconds(self.at),
                "operation": self.operation,
                "operationParameters": dict(self.parameters),
                **({"operationMetrics": dict(self.metrics)} if self.metrics else {}),
                "readVersion": known.version,
                "isBlindAppend": self.blind,
                "engineInfo": WRITER,
                **tags,
                **custom_metadata(self.metadata),
            },
        }


def _changed(known: Snapshot, after: TableFacts) -> Action:
    return {
        "metaData": {
            "id": known.id,
            "name": known.metadata.get("name"),
            "description": known.metadata.get("description"),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": to_json(after.schema),
            "partitionColumns": list(after.partition_columns),
            "createdTime": known.metadata.get("createdTime"),
            "configuration": dict(after.configuration),
        }
    }


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


def removed(file: FileAction, at: datetime, *, data_change: bool = True) -> Action:
    """Return the action that removes a file; it repeats the log's facts of its rows."""
    vector = (file.deletion_vector or {}).items()
    written = {name: value for name, value in vector if value is not None}
    return {
        "remove": {
            "path": file.written,
            "deletionTimestamp": milliseconds(at),
            "dataChange": data_change,
            "extendedFileMetadata": True,
            "partitionValues": dict(file.partition_values),
            "size": file.size or 0,
            **numbered(file.first_row),
            **({"deletionVector": written} if written else {}),
        }
    }


def numbered(first_row: FirstRow | None) -> dict[str, int]:
    """Return the row id fields of a file's action; none without row ids."""
    if first_row is None:
        return {}
    return {FIRST_ROW_ID: first_row.id, ROW_VERSION: first_row.version}


def conversion(
    created: Iterable[Action], transactions: Pairs, metadata: object, at: datetime, files: int
) -> list[Action]:
    """Return the first actions of a version that converts existing files to a table.

    `created` are the actions by which the library creates such a table without files.
    """
    parts = {kind: action for action in created for kind in action}
    apart = to_json(parts["metaData"]["metaData"].get("partitionColumns", []))
    info: Action = {
        "commitInfo": {
            "timestamp": milliseconds(at),
            "operation": "CONVERT",
            "operationParameters": {"numFiles": str(files), "partitionedBy": apart},
            "engineInfo": WRITER,
            **custom_metadata(metadata),
        },
    }
    return [info, parts["protocol"], parts["metaData"], *_txns(transactions)]


def encoded(actions: Iterable[Action]) -> bytes:
    """Encode actions as a version of a log."""
    return "".join(f"{to_json(action)}\n" for action in actions).encode()


def custom_metadata(metadata: object) -> dict[str, Any]:
    """Return our commit metadata as the log has it."""
    return {"penguin": metadata, "penguin.writer": WRITER}


def _in_commit_timestamp(known: Snapshot, at: datetime) -> dict[str, int]:
    """Return the timestamp of the commit, if the table has them: later than the one before."""
    if not (
        IN_COMMIT_TIMESTAMP in known.facts.features
        and is_on(known.facts.configuration, HAS_TIMESTAMPS)
    ):
        return {}
    if known.in_commit_timestamp is None:
        raise TableUnreadable(
            f"{HAS_TIMESTAMPS} is set, but the last version has no timestamp", version=known.version
        )
    return {"inCommitTimestamp": max(milliseconds(at), known.in_commit_timestamp + 1)}


def _added(known: Snapshot, adds: tuple[Add, ...], *, data_change: bool = True) -> Iterator[Action]:
    """Yield the add actions, and the new row id high-water mark."""
    tracked = ROW_TRACKING in known.facts.features
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


def _last_row_id(known: Snapshot) -> int:
    """Return the highest row id assigned so far; -1 without one."""
    try:
        stored = known.domains.get(ROWS_DOMAIN)
        return -1 if stored is None else int(parse_json(stored)[LAST_ROW_ID])
    except (ValueError, KeyError, TypeError) as cause:
        raise TableUnreadable(f"the domain metadata {ROWS_DOMAIN} cannot be read") from cause


def _txns(transactions: Pairs) -> Iterator[Action]:
    # Without a time of its own a transaction never expires.
    return ({"txn": {"appId": app_id, "version": number}} for app_id, number in transactions)


def milliseconds(at: datetime) -> int:
    """Return a time in milliseconds, as in the log."""
    return int(at.timestamp() * 1000)


def to_json(value: object) -> str:
    """Encode JSON on one line, without escaping non-ASCII characters."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
