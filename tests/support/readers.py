"""A table as its readers see it."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakebed.documents.entry import Entry
from tests.support.builders import entries as journal_entries


def rows(table: Path, columns: list[str] | None = None, predicate: str | None = None) -> list[Any]:
    """Read with deltalake's own scan; a table that does not exist yet has no rows."""
    if not (table / "_delta_log").exists():
        return []
    found = pa.table(DeltaTable(str(table)).scan(columns, predicate).read_all())
    return found.to_pylist()


def ids(table: Path, predicate: str | None = None) -> list[int]:
    """Return the ids of all rows, sorted: doubled ones show twice, lost ones are missing."""
    return sorted(row["id"] for row in rows(table, ["id"], predicate))


def polars_ids(table: Path, condition: pl.Expr | None = None) -> list[int]:
    """Return the same with polars."""
    frame = pl.scan_delta(str(table))
    if condition is not None:
        frame = frame.filter(condition)
    return sorted(frame.select("id").collect()["id"].to_list())


def parquet_ids(entries: Iterable[Entry], table: Path) -> list[int]:
    """Return the ids of all rows in the data files that journal entries name."""
    found: list[Any] = []
    for entry in entries:
        for file in entry.files:
            found += pq.read_table(table / file.filename, columns=["id"])["id"].to_pylist()
    return sorted(found)


def journaled_ids(table: Path) -> list[int]:
    """Return the ids of all rows in the data files that the journal of a table names."""
    return parquet_ids(journal_entries(table), table)


def added(table: Path) -> list[str]:
    """Return the path of every file that the log has added, as often as it has."""
    return [
        json.loads(line)["add"]["path"]
        for path in (table / "_delta_log").glob("*.json")
        for line in path.read_text().splitlines()
        if "add" in json.loads(line)
    ]
