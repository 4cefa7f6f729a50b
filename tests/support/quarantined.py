"""Files with good and bad lines, and what is read of the quarantine that an entry names."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lakebed.documents.records import QuarantineFile

BROKEN = b'{"id": '
"""A line that is no JSON."""


def good(number: int) -> bytes:
    return b'{"id":%d}' % number


def bad(number: int) -> bytes:
    """A line whose id is not a number."""
    return b'{"id":"bad %d"}' % number


def text(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def mixed(count: int, every: int) -> list[bytes]:
    """Lines of which each so-many-th is bad, beginning with the last of the first ones."""
    return [(bad if (n + 1) % every == 0 else good)(n) for n in range(count)]


def quarantined_rows(table: Path, files: Iterable[QuarantineFile]) -> list[dict[str, Any]]:
    """Read quarantine files, with the number of each line where the entry gives it."""
    found = []
    for file in files:
        rows = pq.read_table(table / file.filename).to_pylist()
        assert len(rows) == file.record_count == sum(one.lines for one in file.sources)
        for row in rows:
            if row["line"] is None and file.lines_before:
                row["line"] = row["nth"] + file.lines_before
            found.append(row)
    return found


def raws(table: Path, files: Iterable[QuarantineFile]) -> list[bytes]:
    return [row["raw"] for row in quarantined_rows(table, files)]
