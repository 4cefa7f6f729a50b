"""Folders of a bucket become tables."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.clock import Clock
from lakebed.deltalog.tables import preview
from lakebed.documents.parquet_footer import TAIL
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.adopt.adoption import Adopter
from penguin.adopt.folder import AdoptOptions
from penguin.model.settings import TableSettings
from tests.support.s3 import options, put_key, store

FILES = 9


def parquet(*ids: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": list(ids)}), sink, compression="none", use_dictionary=False)
    return sink.getvalue()


def adopter(opened: Store, **wanted: Any) -> Adopter:
    return Adopter(
        settings=TableSettings(name="t", table_uri=opened.uri),
        wanted=AdoptOptions(**wanted),
        store=opened,
        clock=Clock(),
    )


def test_a_bucket_is_read_by_one_range_a_file_and_listed_twice(s3, bucket, proxy):
    uri = f"s3://{bucket}/table"
    opened = store(s3, uri)
    for number in range(FILES - 1):
        opened.create(f"date=2024-01-0{1 + number % 3}/part-{number}.parquet", parquet(number))
    large = parquet(*range(100, 50_100))
    opened.create("date=2024-01-01/large.parquet", large)
    opened.create("_temporary/0/part.parquet", b"unfinished")
    put_key(s3, bucket, "table/date=2024-01-02/")
    found = adopter(store(proxy.address, uri), partition_types={"date": "date"}).adopt()
    assert (found.version, found.totals.files, found.totals.rows) == (0, FILES, 50_008)
    assert set(found.hidden) == {"_temporary/", "date=2024-01-02"}
    reads = [one.path for one in proxy.kinds("get") if "2024" in one.path]
    assert len(reads) == len(set(reads)) == FILES
    assert len(large) > 2 * TAIL
    seen = preview(uri, rows=1, options=StorageOptions(options(s3)))
    assert (seen.version, seen.files, seen.rows) == (0, FILES, 50_008)
    assert list(opened.objects("_staging")) == []
