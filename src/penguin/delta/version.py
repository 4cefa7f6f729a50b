"""A version of a Delta log as penguin writes it, an action a line. Pure.

What a table's features ask of a version is done here, from what is known of the version before it:
row ids that follow those given out, and a timestamp that is later than the last.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from importlib.metadata import version as version_of
from typing import Any
from urllib.parse import quote

from penguin.delta.log.cache import CachedVersion
from penguin.model.commit import Add
from penguin.model.table import TableFacts

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
    return encoded([told, *_added(adds), *_txns(transactions)])


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
    return encoded([told, *removes, *_added(adds), *_txns(transactions)])


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
            "timestamp": milliseconds(at),
            "operation": operation,
            "operationParameters": parameters or {},
            "readVersion": known.version,
            "isBlindAppend": blind,
            "engineInfo": WRITER,
            **custom_metadata(metadata),
        },
    }


def _added(adds: tuple[Add, ...]) -> Iterator[Action]:
    return (
        {
            "add": {
                # The protocol writes paths as parts of a URI.
                "path": quote(add.path, safe="/="),
                "partitionValues": dict(add.partition_values),
                "size": add.size,
                "modificationTime": add.modification_time,
                "dataChange": True,
                "stats": add.stats,
            }
        }
        for add in adds
    )


def _txns(transactions: Pairs) -> Iterator[Action]:
    # Without a time of its own a transaction never expires.
    return ({"txn": {"appId": app_id, "version": number}} for app_id, number in transactions)


def milliseconds(at: datetime) -> int:
    """Return a time as the log writes it."""
    return int(at.timestamp() * 1000)


def to_json(value: object) -> str:
    """Write JSON on one line, with characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
