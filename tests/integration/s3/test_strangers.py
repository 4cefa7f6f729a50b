"""Other programs' files on S3: listed by start-after, footers by range."""

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.clock import Clock, uuid7
from lakebed.deltalog.tables import preview
from lakebed.documents.parquet_footer import TAIL
from lakebed.errors import ObjectChanged
from lakebed.listing.lookback import Window
from lakebed.storage.options import StorageOptions
from lakebed.telemetry.events import Event
from penguin.events.backlog import FilesLeftOut
from penguin.model.settings import TableSettings
from penguin.pipeline import TableRun
from tests.support.s3 import options, put_key, store


def parquet(*ids: int, **given: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": list(ids)}), sink, **given)
    return sink.getvalue()


def name_at(seconds: float) -> str:
    return f"{uuid7(int(seconds * 1000), Clock().randomness(10))}.parquet"


def visiting(
    s3: str, bucket: str, *, address: str | None = None, window: Window | None = None
) -> tuple[TableRun, list[Event]]:
    """Let a penguin look at a table's directory to its end; it may be asked to look again."""
    uri, events = f"s3://{bucket}/table", list[Event]()
    given = StorageOptions(options(address or s3))
    run = TableRun(
        settings=TableSettings(
            name="t", table_uri=uri, storage_options=given, partition_filter=window
        ),
        emit=events.append,
        clock=Clock(),
        open_store=lambda: store(address or s3, uri),
    )
    drain(run)
    return run, events


def drain(run: TableRun) -> None:
    while run.step():
        pass


def rows_of(s3: str, bucket: str) -> int:
    return preview(f"s3://{bucket}/table", rows=1, options=StorageOptions(options(s3))).rows


def test_scanned_files_and_bare_metas_reach_a_table_on_s3_once(s3, bucket, proxy):
    """HOLES L07, D01, L09"""
    opened = store(s3, f"s3://{bucket}/table")
    now = Clock().seconds()
    folder = "date=2024-01-01"
    big = parquet(*range(100, 50_100), compression="none", use_dictionary=False)
    first = f"{folder}/{name_at(now)}"
    opened.create(first, big)
    asked = f"{folder}/{name_at(now)}"
    opened.create(asked, parquet(2))
    meta = {
        "filename": asked,
        "size": len(parquet(2)),
        "record_count": 1,
        "partition_values": {"date": "2024-01-01"},
        "source_file": None,
    }
    pending = f"_staging/pending/{asked.rpartition('/')[2].removesuffix('.parquet')}.meta.json"
    opened.create(pending, json.dumps(meta).encode())
    run, _events = visiting(s3, bucket, address=proxy.address)
    assert rows_of(s3, bucket) == 50_001
    assert opened.get(pending) is None
    (read,) = [one for one in proxy.kinds("get") if first.rpartition("/")[2] in one.path]
    assert read.method == "GET", "one ranged read of the footer"
    # One that got its name earlier and arrives later.
    opened.create(f"{folder}/{name_at(now - 60)}", parquet(3))
    drain(run)
    assert (rows_of(s3, bucket), run.totals.version) == (50_002, 2)
    assert len(big) > TAIL


def test_a_part_of_an_object_that_was_replaced_is_refused_by_its_etag(s3, bucket):
    opened = store(s3, f"s3://{bucket}/table")
    opened.replace("x", b"0123456789")
    facts = opened.head("x")
    assert facts is not None
    assert opened.part("x", 4, 10, etag=facts.etag) == b"456789"
    opened.replace("x", b"abcdefghij")
    with pytest.raises(ObjectChanged):
        opened.part("x", 4, 10, etag=facts.etag)


def test_markers_of_folders_are_neither_files_nor_left_out(s3, bucket):
    """W47: such as a bucket's console makes them; they sort among the names of other folders."""
    opened = store(s3, f"s3://{bucket}/table")
    for number, folder in enumerate(("date=2024-01-01", "date=2024-01-01-a")):
        opened.create(f"{folder}/{name_at(Clock().seconds())}", parquet(number))
    for marker in ("", "date=2024-01-01/", "date=2024-01-01-a/", "date=2024-01-02/"):
        put_key(s3, bucket, f"table/{marker}")
    _run, events = visiting(s3, bucket)
    assert rows_of(s3, bucket) == 2
    assert not [one for one in events if isinstance(one, FilesLeftOut)]


ODD = {
    "/q.parquet": "/",
    "a\tb.parquet": r"a\x09b.parquet",
    "date=2024-01-01//x.parquet": "date=2024-01-01//",
    "date=2024-01-01/./x.parquet": "date=2024-01-01/./",
    "date=2024-01-01/t\x01.parquet": r"date=2024-01-01/t\x01.parquet",
}
UNTOLD = ("_temporary//x.parquet", "date=2024-01-01/t\x01.txt")


@pytest.mark.parametrize("window", [None, Window.parse("date=%Y-%m-%d", 10_000)])
def test_keys_that_cannot_be_used_are_told_and_the_others_go_in(s3, bucket, window):
    """HOLES W23: one of them failed every listing of the table's folders."""
    opened = store(s3, f"s3://{bucket}/table")
    now = Clock().seconds()
    for number, folder in enumerate(("date=2024-01-01", "date=2024-01-02", "date=2024-01-03")):
        opened.create(f"{folder}/{name_at(now)}", parquet(number))
    for key in (*ODD, *UNTOLD):
        put_key(s3, bucket, f"table/{key}", b"x")
    run, events = visiting(s3, bucket, window=window)
    assert rows_of(s3, bucket) == 3
    left = [one for one in events if isinstance(one, FilesLeftOut)]
    told = {path: one.code for one in left for path in one.paths}
    assert told == dict.fromkeys(ODD.values(), "name_unusable")
    opened.create(f"date=2024-01-03/{name_at(now + 1)}", parquet(7))
    drain(run)
    assert rows_of(s3, bucket) == 4
