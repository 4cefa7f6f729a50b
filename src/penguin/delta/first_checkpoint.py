"""The checkpoint of a first version that names many files, written from its lines.

The library would hold every file of the table in memory for it. A first version has no past: each
of its actions is one of the checkpoint, so they are copied, some thousand at a time.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.deltalog.actions import lines_of
from lakebed.documents.reading import parse_json
from lakebed.layout import DELTA_LOG

AT_A_TIME = 8192
TEXTS = pa.map_(pa.string(), pa.string())
NAMES = pa.list_(pa.field("element", pa.string()))
FORMAT = pa.struct([("provider", pa.string()), ("options", TEXTS)])
SCHEMA = pa.schema(
    [
        pa.field("txn", pa.struct([("appId", pa.string()), ("version", pa.int64())])),
        pa.field(
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", TEXTS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                ]
            ),
        ),
        pa.field(
            "remove",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("deletionTimestamp", pa.int64()),
                    ("dataChange", pa.bool_()),
                ]
            ),
        ),
        pa.field(
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", FORMAT),
                    ("schemaString", pa.string()),
                    ("partitionColumns", NAMES),
                    ("createdTime", pa.int64()),
                    ("configuration", TEXTS),
                ]
            ),
        ),
        pa.field(
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", NAMES),
                    ("writerFeatures", NAMES),
                ]
            ),
        ),
    ]
)


def write_first_checkpoint(lines: Iterable[bytes], file: Path) -> bytes:
    """Write the checkpoint of a first version to a file, and return the note that names it."""
    actions = files = 0
    with pq.ParquetWriter(file, SCHEMA, compression="snappy") as writer:
        rest = _actions(lines)
        while some := list(islice(rest, AT_A_TIME)):
            actions += len(some)
            files += sum("add" in action for action in some)
            writer.write_batch(pa.RecordBatch.from_pylist(some, schema=SCHEMA))
    note = {
        "version": 0,
        "size": actions,
        "sizeInBytes": file.stat().st_size,
        "numOfAddFiles": files,
    }
    return json.dumps(note, separators=(",", ":")).encode()


def _actions(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    with lines_of(DELTA_LOG):
        for line in lines:
            action = parse_json(line)
            if "commitInfo" not in action:
                yield {kind: _row(body) for kind, body in action.items()}


def _row(body: dict[str, Any]) -> dict[str, Any]:
    """Return an action with its maps as Arrow takes them."""
    return {
        name: [*value.items()] if name in ("partitionValues", "configuration") else _nested(value)
        for name, value in body.items()
    }


def _nested(value: object) -> object:
    if isinstance(value, dict):
        return {**value, "options": [*value.get("options", {}).items()]}
    return value
