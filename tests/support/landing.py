"""Source files that land, with an oracle of what must be in the table."""

import gzip
import json
import random
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import zstandard

FIELDS = """\
    - {name: id, type: int64, nullable: false}
    - {name: small, type: int32}
    - {name: name, type: string}
    - {name: ratio, type: float32}
    - {name: amount, type: float64}
    - {name: flag, type: boolean}
    - {name: at, type: timestamp}
    - {name: day, type: date}
    - {name: extra, type: json}
    - {name: raw, type: binary}
"""
NAMES = ("plain", "", "ünïcode 😀", "𠀀 above the planes", "x" * 80, 'quote " and \\', "tab\there")


@dataclass
class Landing:
    """A folder where files land; it remembers every record that it wrote."""

    folder: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    def land(self, name: str, count: int) -> list[dict[str, Any]]:
        """Write a file of so many records, compressed as its name says."""
        records = [self._record() for _ in range(count)]
        self.write(name, "".join(json.dumps(line) + "\n" for line, _row in records).encode())
        partition = dict(part.split("=") for part in name.split("/")[:-1] if "=" in part)
        rows = [{**row, **partition} for _line, row in records]
        self.rows += rows
        return rows

    def write(self, name: str, body: bytes) -> Path:
        """Write a file of any content; its rows are not remembered."""
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".gz"):
            half = len(body) // 2
            body = gzip.compress(body[:half]) + gzip.compress(body[half:])
        elif name.endswith(".zst"):
            half = len(body) // 2
            packer = zstandard.ZstdCompressor()
            body = packer.compress(body[:half]) + packer.compress(body[half:])
        target.write_bytes(body)
        return target

    @property
    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.rows)

    def _record(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Make a record as JSON says it and as the table must hold it."""
        chance = self.chance
        number = len(self.rows) + chance.randrange(10**6) * 10**6
        at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(10**14))
        day = date(1960, 1, 1) + timedelta(days=chance.randrange(40_000))
        extra = {"k": [1, {"z": None}]}
        row: dict[str, Any] = {
            "id": number,
            "small": chance.randrange(-100, 100),
            "name": chance.choice(NAMES),
            "ratio": chance.randrange(1000) / 8,
            "amount": chance.random() * 10**6,
            "flag": chance.random() < 0.5,
            "at": at,
            "day": day,
            "extra": json.dumps(extra),
            "raw": b"\x00\xff",
        }
        for name in row:
            if name != "id" and chance.random() < 0.1:
                row[name] = None
        line = {
            **row,
            "at": row["at"] and row["at"].isoformat(),
            "day": row["day"] and row["day"].isoformat(),
            "extra": row["extra"] and extra,
            "raw": row["raw"] and "AP8=",
        }
        return line, row


def config(
    folder: Path,
    *,
    sink: str = "",
    source: str = "",
    table: str = "",
    error_handling: str = "",
    partitioned: bool = False,
) -> Path:
    """Write one configuration for both programs, on `landing` and `table` of a folder."""
    partition = 'partition_by: {prefix_template: "date=%Y-%m-%d"}' if partitioned else ""
    file = folder / "pipeline.yaml"
    file.write_text(
        f"""\
source:
  path: "{folder}/landing"
  {source}
sink:
  path: "{folder}/table"
  {partition}
  {sink}
schema:
  fields:
{FIELDS}
spark:
  master: "local[2,4]"
error_handling:
  max_failures: 0
  {error_handling}
tables:
  t:
    table_uri: "{folder}/table"
    {table}
"""
    )
    return file
