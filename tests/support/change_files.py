"""Files of the change data feed, as another program writes them, in both places that Delta has."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.layout import DELTA_LOG, log_version

IN_FOLDER = "_change_data/cdc-00000-7b1a.c000.snappy.parquet"
BY_PREFIX = "dU/cdc-00000-93f2.c000.snappy.parquet"
"""Where a table with column mapping has them."""
BOTH = (IN_FOLDER, BY_PREFIX)


def write_changes(
    root: Path, rows: Sequence[Mapping[str, Any]], paths: Sequence[str] = BOTH
) -> None:
    """Write files of changes, and the version that names them."""
    changes = [{**row, "_change_type": "update_preimage"} for row in rows]
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": int(time.time() * 1000), "operation": "UPDATE"}}
    ]
    for path in paths:
        target = root / path
        target.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(changes), target)
        size = target.stat().st_size
        cdc = {"path": path, "partitionValues": {}, "size": size, "dataChange": False}
        actions.append({"cdc": cdc})
    last = max(int(one.stem) for one in (root / DELTA_LOG).glob("*.json"))
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (root / log_version(last + 1)).write_text(text)
