"""Rows of a table led back to the records that its journal says they come from."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lakebed.documents.data_file import FinishedFile, Run
from lakebed.documents.entry import Entry
from tests.support.builders import entries


def lines_of(source: Path) -> list[bytes]:
    """Cut a source file into lines, in the simplest way."""
    body = gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes()
    return body.removesuffix(b"\n").split(b"\n")


def id_in(line: bytes) -> int | None:
    """Read the id of a record; None for a line that has none."""
    return json.loads(line).get("id") if line.strip() else None


def first_record(run: Run, lines: Sequence[bytes]) -> int:
    """Find the first record of a run, by its number or from the byte that it names."""
    if run.first is not None:
        return run.first
    assert run.byte is not None
    assert run.nth is not None
    start, before = 0, 0
    for line in lines:
        if start >= run.byte:
            break
        start, before = start + len(line) + 1, before + 1
    return before + run.nth


def hold_to_its_runs(file: FinishedFile, entry: Entry, table: Path) -> Iterator[tuple[str, int]]:
    """Check each row of a data file against its records; yield source and record where known."""
    ids: list[Any] = pq.read_table(table / file.filename, columns=["id"])["id"].to_pylist()
    assert sum(run.rows for run in file.runs) == len(ids) == file.record_count
    assert [*dict.fromkeys(run.source for run in file.runs)] == [*range(len(file.source_files))]
    start = 0
    for run in file.runs:
        source, _, path = file.source_files[run.source].partition(":")
        lines = lines_of(Path(entry.source_uris[source]) / path)
        first = first_record(run, lines)
        found = [id_in(line) for line in lines[first - 1 : first - 1 + run.records]]
        rows = ids[start : start + run.rows]
        start += run.rows
        if run.is_exact:
            assert rows == found
            yield from ((path, number) for number in range(first, first + run.records))
        else:
            assert run.rows < run.records
            left = iter(found)
            assert all(row in left for row in rows), "rows come in the order of their records"


def known_origins(table: Path) -> list[tuple[str, int]]:
    """Check every row of a table; return the records whose numbers are known."""
    return [
        origin
        for entry in entries(table)
        for file in entry.files
        for origin in hold_to_its_runs(file, entry, table)
    ]


def stamped_origins(table: Path) -> list[tuple[str, int]]:
    """Return the records that the columns of the rows name; each has the id of its row."""
    found = []
    for entry in entries(table):
        for file in entry.files:
            rows = pq.read_table(table / file.filename, partitioning=None).to_pylist()
            for row in rows:
                source = Path(row["_file"])
                assert id_in(lines_of(source)[row["_line"] - 1]) == row["id"]
                assert row["_batch"] == f"{entry.pipeline}/{entry.journal}/{entry.sequence}"
                found.append((source.name, row["_line"]))
    return found
