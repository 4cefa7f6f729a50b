"""Files and metas that another program writes: plain Parquet, and the five keys of a meta."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.clock import Clock, uuid7
from lakebed.layout import DELTA_LOG
from lakebed.storage.store import Store
from lakebed.telemetry.events import Event
from penguin.delta.table import Log
from penguin.pipeline import TableRun
from tests.support.builders import NOON, Hands
from tests.support.tables import TableFolder

DAY = "date=2024-01-01"


def name_at(milliseconds: int, salt: int = 0) -> str:
    return f"{uuid7(milliseconds, salt.to_bytes(10, 'big'))}.parquet"


@dataclass
class Directory(TableFolder):
    """A table directory that blizzard has never seen."""

    hands: Hands = field(default_factory=Hands)
    written: int = 0

    # ------------------------------------------------------------------ what others write

    def path(self, folder: str = DAY, *, age: float = 0.0) -> str:
        """Name a new file, given its name so many seconds ago."""
        self.written += 1
        name = name_at(int((self.hands.at - age) * 1000), self.written)
        return f"{folder}/{name}" if folder else name

    def file(
        self,
        *ids: int,
        folder: str = DAY,
        path: str | None = None,
        age: float = 0.0,
        data: pa.Table | None = None,
        modified: float | None = None,
        **options: Any,
    ) -> str:
        """Write a file whole, under its final name."""
        path = path or self.path(folder, age=age)
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        content = data if data is not None else pa.table({"id": list(ids)})
        pq.write_table(content, target, **options)
        if modified is not None:
            os.utime(target, (modified, modified))
        return path

    def meta(self, path: str, **changes: Any) -> Path:
        """Write the meta of a file, with the keys that another program writes and no others."""
        target = self.root / path
        folders = path.split("/")[:-1]
        body = {
            "filename": path,
            "size": target.stat().st_size if target.exists() else 1,
            "record_count": _rows(target),
            "partition_values": dict(part.split("=", 1) for part in folders if "=" in part),
            "source_file": "s3://bucket/input/events.ndjson.gz",
            **changes,
        }
        meta = self.root / "_staging/pending" / f"{Path(path).stem}.meta.json"
        meta.parent.mkdir(parents=True, exist_ok=True)
        meta.write_text(json.dumps(body))
        return meta

    # ------------------------------------------------------------------ what is to be seen

    def ids(self, predicate: str | None = None) -> list[int]:
        return super().ids(predicate) if (self.root / DELTA_LOG).exists() else []

    def metas(self) -> list[str]:
        return sorted(path.name for path in (self.root / "_staging/pending").glob("*.meta.json"))

    def commits(self) -> list[Mapping[str, Any]]:
        """Return the commit infos of all versions, the oldest first."""
        return [
            json.loads(line)["commitInfo"]
            for path in sorted((self.root / DELTA_LOG).glob("*.json"))
            for line in path.read_text().splitlines()
            if "commitInfo" in json.loads(line)
        ]

    def penguin(self, **options: Any) -> "Visitor":
        return Visitor(self, options)


@dataclass
class Visitor:
    """One penguin process on such a directory, with what it told."""

    table: Directory
    options: dict[str, Any] = field(default_factory=dict)
    log: type[Log] = Log
    store: Store | None = None
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        store = self.store or self.table.store
        self.run = TableRun(
            settings=self.table.settings(**self.options),
            emit=self.events.append,
            clock=Clock(self.table.hands.seconds, os.urandom),
            open_store=lambda: store,
            open_log=self.log,
            pause=lambda _seconds: None,
        )

    def drain(self) -> "Visitor":
        while self.run.step():
            pass
        return self

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def _rows(target: Path) -> int:
    try:
        return pq.read_metadata(target).num_rows
    except (OSError, pa.ArrowException):
        return 0


def date_folder(ago: int) -> str:
    return f"{NOON - timedelta(days=ago):date=%Y-%m-%d}"
