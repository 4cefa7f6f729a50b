"""Version 0 of a table, written as another engine would, and files that penguin appends to it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lakebed.layout import TablePath, log_version
from lakebed.storage.store import Store
from penguin.delta.table import Log, WritableTable
from penguin.model.commit import Add
from tests.support.tables import TableDirectory, opened

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long", "nullable": False, "metadata": {}},
    {"name": "name", "type": "string", "nullable": True, "metadata": {}},
    {"name": "date", "type": "date", "nullable": True, "metadata": {}},
]
MAPPED: list[dict[str, Any]] = [
    {
        **field,
        "metadata": {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": field["name"],
        },
    }
    for number, field in enumerate(FIELDS, start=1)
]


def write_first(
    store: Store,
    protocol: Mapping[str, Any],
    fields: Sequence[Mapping[str, Any]],
    configuration: Mapping[str, str] | None = None,
    *,
    info: Mapping[str, Any] | None = None,
    partitions: Sequence[str] = (),
    domains: Iterable[tuple[str, str]] = (),
    adds: Iterable[Mapping[str, Any]] = (),
) -> None:
    """Write version 0 with these actions."""
    metadata = {
        "id": "table",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
        "partitionColumns": list(partitions),
        "configuration": dict(configuration or {}),
        "createdTime": 1,
    }
    actions: list[dict[str, Any]] = [
        *([] if info is None else [{"commitInfo": info}]),
        {"protocol": protocol},
        {"metaData": metadata},
        *(
            {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}
            for name, text in domains
        ),
        *({"add": one} for one in adds),
    ]
    store.create(log_version(0), "".join(f"{json.dumps(one)}\n" for one in actions).encode())


def protocol_of(*features: str, reader: Sequence[str] = ()) -> dict[str, Any]:
    """Return the protocol of a table with features of writers, and of readers and writers."""
    readers = {"minReaderVersion": 3, "readerFeatures": list(reader)}
    return {
        **(readers if reader else {"minReaderVersion": 1}),
        "minWriterVersion": 7,
        "writerFeatures": [*features, *reader],
    }


def add(name: str = "a.parquet", rows: int = 1, **partition_values: str) -> Add:
    """Return a file as a commit adds it; there need be none of its name."""
    return Add(
        path=TablePath(name), size=1, rows=rows, modification_time=1,
        partition_values=partition_values, stats=json.dumps({"numRecords": rows}),
        pipeline="p", sequence=1,
    )  # fmt: skip


def latest(table: TableDirectory) -> WritableTable:
    """Open the newest version of a table."""
    return opened(Log(table.store))
