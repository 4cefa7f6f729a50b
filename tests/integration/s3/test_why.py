"""`blizzard why` on S3: the states that differ from a local disk's, and how little it asks."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.config import load as blizzard_config
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.fence import identity_of
from blizzard.journal.journal import Journal
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.layout import entry_sequence
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.config import load as penguin_config
from tests.support.builders import ndjson, record, rows
from tests.support.faulty import Proxy
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.s3 import options
from tests.support.tables import commit_table

ORPHAN = "018cc4e5-2200-7000-8000-000000000001.parquet"


@dataclass
class Lake:
    """A source and a table on S3; the questions go through a proxy that counts requests."""

    bucket: str
    address: str
    proxy: Proxy
    folder: Path

    def config(self, address: str) -> Path:
        access = options(address)
        fields = [{"name": "id", "type": "int64"}, {"name": "name", "type": "string"}]
        table = f"s3://{self.bucket}/table"
        document = {
            "source": {"path": f"s3://{self.bucket}/in", "storage_options": access},
            "sink": {"path": table, "storage_options": access},
            "schema": {"fields": fields},
            "tables": {"t": {"table_uri": table, "storage_options": access}},
        }
        file = self.folder / "pipeline.yaml"
        file.write_text(yaml.safe_dump(document))
        return file

    @property
    def settings(self) -> PipelineSettings:
        return blizzard_config.load([self.config(self.address)], [], {}).pipelines[0]

    def store(self, folder: str) -> Store:
        return Store(f"s3://{self.bucket}/{folder}", StorageOptions(options(self.address)))

    def land(self, name: str, body: bytes) -> None:
        self.store("in").replace(name, body)

    def blizzard(self) -> None:
        pipeline = pipeline_of(self.settings, InProcessRunner())
        while pipeline.step():
            pass

    def penguin(self) -> None:
        (table,) = penguin_config.load([self.config(self.address)], [], {}).tables
        commit_table(table, self.store("table"), lambda _event: None, Clock())

    def why(self, name: str) -> dict[str, Any]:
        self.proxy.record.clear()
        command = ["why", name, "-c", str(self.config(self.proxy.address)), "--output", "json"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


@pytest.fixture
def lake(s3, bucket, proxy, tmp_path) -> Lake:
    return Lake(bucket, s3, proxy, tmp_path)


def test_a_file_is_followed_from_its_bucket_into_the_table(lake):
    uri = f"s3://{lake.bucket}/in/a.ndjson"
    assert lake.why(uri)["state"] == "missing"
    lake.land("a.ndjson", ndjson(rows(3)))
    answer = lake.why(uri)
    assert answer["state"] == "waiting"
    lake.blizzard()
    assert lake.why(uri)["state"] == "journaled"
    lake.penguin()
    answer = lake.why(uri)
    assert (answer["state"], answer["read"][0]["version"]) == ("in_table", 1)
    (file,) = answer["data_files"]
    data = lake.why(f"s3://{lake.bucket}/table/{file['path']}")
    assert (data["state"], data["sources"]) == ("in_table", ["default:a.ndjson"])
    lake.land("a.ndjson", ndjson(rows(4)))
    assert lake.why(uri)["state"] == "changed"


def test_what_is_not_read_says_why(lake):
    lake.land("_hidden/a.ndjson", b"{}")
    lake.land("bad.ndjson", b"{nope\n")
    lake.blizzard()
    answer = lake.why(f"s3://{lake.bucket}/in/_hidden/a.ndjson")
    assert (answer["state"], answer["reason"]) == ("skipped", "hidden")
    answer = lake.why("bad.ndjson")
    assert (answer["state"], answer["failure"]["line"]) == ("failed", 1)


def test_a_file_that_no_entry_names_is_an_orphan(lake):
    lake.land("a.ndjson", ndjson(rows(3)))
    lake.blizzard()
    lake.penguin()
    table = lake.store("table")
    (written,) = (one.path for one in table.objects() if one.path.endswith(".parquet"))
    table.create(ORPHAN, table.get(written) or b"")
    assert lake.why(f"s3://{lake.bucket}/table/{ORPHAN}")["state"] == "orphan"


@pytest.mark.unbalanced("books_differ")
def test_a_long_history_is_not_read_for_one_file(lake):
    """No more requests after 12,000 names than after a few: no scan of entries, and no listing."""
    lake.land("a.ndjson", ndjson(rows(3)))
    lake.blizzard()
    lake.penguin()
    lake.why("a.ndjson")
    few = len(lake.proxy.record)
    store, settings = lake.store("table"), lake.settings
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
