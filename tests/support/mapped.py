"""Tables that map their columns, and pipelines that write to them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from blizzard.config import load as blizzard_config
from lakebed.layout import DELTA_LOG
from tests.support.desk import Desk
from tests.support.first_version import write_first
from tests.support.landing import FIELDS, config
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.tables import TableDirectory

DECLARED = """\
    - {name: id, type: int64, nullable: false}
    - {name: name, type: string}
    - {name: who, type: struct, fields: [{name: a, type: int64}, {name: b, type: string}]}
    - {name: list, type: list, items: {type: struct, fields: [{name: c, type: int64}]}}
    - {name: pairs, type: map, values: {type: struct, fields: [{name: d, type: int64}]}}
"""


def row(number: int) -> dict[str, Any]:
    """Return a record with values in every column."""
    return {
        "id": number,
        "name": f"n{number}",
        "who": {"a": number, "b": None},
        "list": [{"c": number}, {"c": None}],
        "pairs": {"k": {"d": number}},
    }


def field(name: str, kind: Any, number: int, physical: str | None = None) -> dict[str, Any]:
    said = {
        "delta.columnMapping.id": number,
        "delta.columnMapping.physicalName": physical or f"col-{number}",
    }
    return {"name": name, "type": kind, "nullable": name != "id", "metadata": said}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


LIST = {"type": "array", "elementType": struct(field("c", "long", 7)), "containsNull": True}
PAIRS = {
    "type": "map",
    "keyType": "string",
    "valueType": struct(field("d", "long", 9)),
    "valueContainsNull": True,
}
COLUMNS = [
    field("id", "long", 1),
    field("name", "string", 2),
    # Somebody renamed `a` to `b` and added another `a`.
    field("who", struct(field("a", "long", 4), field("b", "string", 5, "a")), 3),
    field("list", LIST, 6),
    field("pairs", PAIRS, 8),
    field("date", "date", 10),
]


def added(desk: Desk) -> dict[str, dict[str, Any]]:
    """Return what the log says of every file that is in the table, by its path."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((desk.table / DELTA_LOG).glob("*.json")):
        for action in map(json.loads, path.read_text().splitlines()):
            if "remove" in action:
                found.pop(unquote(action["remove"]["path"]), None)
            elif "add" in action:
                found[unquote(action["add"]["path"])] = action["add"]
    return found


def in_files(desk: Desk) -> list[tuple[Any, ...]]:
    """Return the first two columns of all rows, as the files have them under ids 1 and 2."""
    found = [row for path in added(desk) for row in pq.read_table(desk.table / path).to_pylist()]
    return sorted((row["col-1"], row["col-2"]) for row in found)


NO_MORE: Mapping[str, str] = {}


def make_mapped(
    table: TableDirectory,
    mode: str,
    fields: list[dict[str, Any]] = COLUMNS,
    properties: Mapping[str, str] = NO_MORE,
) -> None:
    """Write version 0 of a table that maps its columns, as another engine would."""
    configuration = {
        "delta.columnMapping.mode": mode,
        "delta.columnMapping.maxColumnId": "10",
        **properties,
    }
    protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
    write_first(table.store, protocol, fields, configuration, partitions=["date"])


class MappedLake:
    """A landing folder, and a table that maps its columns, with both programs at work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = TableDirectory(folder / "table")
        (folder / "landing" / "date=2026-01-01").mkdir(parents=True)

    def land(self, *numbers: int) -> None:
        name = f"landing/date=2026-01-01/{numbers[0]}.ndjson"
        lines = (json.dumps(row(number)) + "\n" for number in numbers)
        (self.folder / name).write_text("".join(lines))

    def write(
        self, declared: str = DECLARED, schema: str = "", timestamp_field: str | None = None
    ) -> None:
        """Run blizzard's batches, in this process."""
        file = config(self.folder, partitioned=True)
        text = file.read_text().replace(FIELDS, declared)
        text = text.replace("schema:\n", f"schema:\n{schema}")
        if timestamp_field is not None:
            text = text.replace('%d"}', f'%d", timestamp_field: {timestamp_field}}}')
        file.write_text(text)
        (settings,) = blizzard_config.load([file], [], {}).pipelines
        pipeline = pipeline_of(settings, InProcessRunner())
        while pipeline.step():
            pass
