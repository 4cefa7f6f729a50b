"""`blizzard why` on S3: the states that differ from a local disk's, and how little it asks."""

import json
from collections import Counter
from typing import Any

import pytest

from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.fence import identity_of
from blizzard.journal.journal import Journal
from lakebed.clock import Clock
from lakebed.layout import entry_sequence
from tests.support.builders import ndjson, record, rows
from tests.support.faulty import Proxy
from tests.support.s3_lake import Lake

DAY = "date=2024-01-01"
ORPHAN = f"{DAY}/018cc4e5-2200-7000-8000-000000000001.parquet"


class Asked(Lake):
    """A source and a table on S3, and questions whose requests a proxy counts."""

    proxy: Proxy

    def why(self, name: str) -> dict[str, Any]:
        self.proxy.record.clear()
        done = self.blizzard("why", name, "--output", "json")
        assert done.exit_code == 0, done.output
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


@pytest.fixture
def lake(s3, bucket, proxy, tmp_path) -> Asked:
    lake = Asked(bucket, proxy.address, s3, tmp_path)
    lake.proxy = proxy
    return lake


def test_a_file_is_followed_from_its_bucket_into_the_table(lake):
    """And what was not read, or is named by no entry, says why."""
    uri = f"s3://{lake.bucket}/in/{DAY}/a.ndjson"
    assert lake.why(uri)["state"] == "missing"
    lake.land("a.ndjson", ndjson(rows(3)))
    assert lake.why(uri)["state"] == "waiting"
    lake.land("_hidden/a.ndjson", b"{}")
    lake.land("bad.ndjson", b"{nope\n")
    lake.drain()
    assert lake.why(uri)["state"] == "journaled"
    answer = lake.why(f"s3://{lake.bucket}/in/{DAY}/_hidden/a.ndjson")
    assert (answer["state"], answer["reason"]) == ("skipped", "hidden")
    answer = lake.why("bad.ndjson")
    assert (answer["state"], answer["failure"]["line"]) == ("failed", 1)
    lake.commit()
    answer = lake.why(uri)
    assert (answer["state"], answer["read"][0]["version"]) == ("in_table", 1)
    (file,) = answer["data_files"]
    data = lake.why(f"s3://{lake.bucket}/table/{file['path']}")
    assert (data["state"], data["sources"]) == ("in_table", [f"default:{DAY}/a.ndjson"])
    table = lake.store("table")
    table.create(ORPHAN, table.get(file["path"]) or b"")
    assert lake.why(f"s3://{lake.bucket}/table/{ORPHAN}")["state"] == "orphan"
    table.delete(ORPHAN)
    lake.store("in").replace(f"{DAY}/a.ndjson", ndjson(rows(4)))
    assert lake.why(uri)["state"] == "changed"


@pytest.mark.unbalanced("books_differ")
def test_a_long_history_is_not_read_for_one_file(lake):
    """No more requests after 12,000 names than after a few: no scan of entries, and no listing."""
    lake.land("a.ndjson", ndjson(rows(3)))
    lake.drain()
    lake.commit()
    lake.why("a.ndjson")
    few = len(lake.proxy.record)
    store, settings = lake.store("table"), lake.pipeline().settings
    history = read_ledger(store, "default")
    journal = Journal(store, identity_of(settings, "run-2"), history, Clock())
    journal.open_with(lambda: True)
    for number in range(120):
        journal.append(tuple(record(f"{number:04d}-{n:03d}.ndjson") for n in range(100)), ())
        if journal.snapshot_is_due:
            journal.write_snapshot()
    answer = lake.why("a.ndjson")
    assert answer["state"] == "in_table"
    paths = Counter(request.path for request in lake.proxy.record)
    read = [path for path in paths if entry_sequence(path.partition("?")[0]) is not None]
    # The tail since the last snapshot, the entry of the snapshot, and the one that is asked for.
    assert len([path for path in read if "/journal/" in path]) <= 25
    tail = journal.sequence % 50
    assert len(lake.proxy.record) <= few + tail + 10
