"""What was read of footers is kept, and found again for the very same files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakebed.documents.data_file import ColumnStatistics
from lakebed.errors import DocumentUnreadable
from lakebed.layout import TablePath
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.adopt.working_state import (
    KnownFiles,
    SegmentWriter,
    decode,
    delete_state,
    encode,
    schema_key,
)
from penguin.model.adoption import FileRecord, Trouble
from penguin.model.foreign_file import Candidate, ForeignFile

AT = datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
FIELD = {"name": "größe", "type": "long", "nullable": True, "metadata": {}}
SCHEMA = {"type": "struct", "fields": [FIELD]}


def candidate(path: str, *, size: int = 7, etag: str | None = "e") -> Candidate:
    return Candidate(path=TablePath(path), size=size, etag=etag, modified=AT)


def record(path: str, rows: int = 3, *, size: int = 7) -> FileRecord:
    found = candidate(path, size=size)
    facts = {"größe": ColumnStatistics(null_count=1, minimum=-5, maximum="\U0010ffff")}
    file = ForeignFile(found=found, rows=rows, schema=SCHEMA, statistics=facts)
    return FileRecord(found=found, file=file, schema_key=schema_key(SCHEMA))


def unfit(path: str) -> FileRecord:
    trouble = Trouble(file=path, code="file_unfit", reason="why", skippable=True)
    return FileRecord(found=candidate(path), trouble=trouble)


def test_what_is_kept_is_read_back_as_it_was():
    records = [record("a/ü.parquet"), unfit("b.parquet"), record("c.parquet", 0)]
    assert decode(encode(records), "here") == records


@pytest.mark.parametrize("body", [b"", b"{}", encode([])[:-9], encode([]).replace(b"\x1f", b"x")])
def test_what_cannot_be_read_back_is_an_error(body):
    with pytest.raises(DocumentUnreadable, match="delete it"):
        decode(body, "here")


def test_runs_are_read_side_by_side_and_only_the_same_file_is_known(tmp_path: Path):
    store = Store(str(tmp_path), StorageOptions())
    for run, paths in {"1": ["a", "c", "e"], "2": ["b", "c", "f"]}.items():
        writer = SegmentWriter(store, run, 2)
        for path in paths:
            # The second run found another file in the place of c.
            writer.add(record(path, size=9 if (run, path) == ("2", "c") else 7))
        writer.flush()
    known = KnownFiles([store])
    found = {path: known.of(candidate(path)) for path in "abcdef"}
    assert {path for path, one in found.items() if one is not None} == {*"abcef"}
    again = KnownFiles([store])
    other = [
        again.of(candidate("a", size=8)),
        again.of(candidate("b", etag="other")),
        again.of(candidate("c", size=9)),
    ]
    assert [one is not None for one in other] == [False, False, True]
    later = Candidate(path=TablePath("e"), size=7, etag="e", modified=AT + timedelta(seconds=1))
    assert again.of(later) is None
    delete_state(store)
    assert KnownFiles([store]).of(candidate("a")) is None
