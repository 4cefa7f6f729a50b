"""A source and a table in a bucket behind a proxy, with an oracle of what the table must hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import yaml
from deltalake import DeltaTable
from typer.testing import CliRunner

from blizzard.config import load as blizzard_config
from blizzard.execute.runner import Runner
from lakebed.documents.entry import Entry, decode_entry
from lakebed.layout import entry_sequence
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.cli.app import app as penguin
from tests.support.audits import assert_balanced
from tests.support.builders import ndjson, rows
from tests.support.faulty import Proxy, Request
from tests.support.pipelines import pipeline_of
from tests.support.s3 import options


@dataclass
class Wide:
    """Each file that lands has a partition of its own, and so is a unit and a task of its own."""

    bucket: str
    behind: str
    """The store's own address; executors are given the proxy's."""
    proxy: Proxy
    folder: Path
    landed: dict[str, list[int]] = field(default_factory=dict)
    profile: str = ""
    """The profile of AWS by which the programs find their keys; without one they are told them."""

    def land(self, *partitions: str, count: int = 500) -> None:
        """Let a file land in each of these partitions."""
        for partition in partitions:
            first = 1_000_000 * len(self.landed)
            self.landed[partition] = list(range(first, first + count))
            self._store("in").create(f"p={partition}/a.ndjson", ndjson(rows(count, first)))

    def config(self, master: str = "local[2,4]", conf: Mapping[str, str] | None = None) -> Path:
        """Write one configuration for both programs."""
        access = options(self.proxy.address)
        if self.profile:
            access = {key: value for key, value in access.items() if "ACCESS_KEY" not in key}
            access["AWS_PROFILE"] = self.profile
        table = f"s3://{self.bucket}/table"
        by = {"prefix_template": "p=%s"}
        fields = [
            {"name": "id", "type": "int64", "nullable": False},
            {"name": "name", "type": "string"},
        ]
        document = {
            "source": {"path": f"s3://{self.bucket}/in", "storage_options": access},
            "sink": {"path": table, "storage_options": access, "partition_by": by},
            "schema": {"fields": fields},
            "spark": {"master": master, "conf": dict(conf or {})},
            "tables": {"t": {"table_uri": table, "storage_options": access}},
        }
        file = self.folder / "pipeline.yaml"
        file.write_text(yaml.safe_dump(document))
        return file

    def drain(self, runner: Runner) -> None:
        """Run every batch that there is, here, with this runner."""
        settings = blizzard_config.load([self.config()], [], {}).pipelines[0]
        pipeline = pipeline_of(settings, runner)
        while pipeline.step():
            pass

    def require_rows_once(self) -> None:
        """Let penguin commit; then table, journal and books must agree with what landed."""
        done = CliRunner().invoke(penguin, ["-c", str(self.config()), "--once"])
        assert done.exit_code == 0, done.output
        assert self.ids() == sorted(number for ids in self.landed.values() for number in ids)
        records = [record for entry in self.entries() for record in entry.sources]
        assert sorted(record.path for record in records) == sorted(
            f"p={partition}/a.ndjson" for partition in self.landed
        )
        assert all(record.failure is None for record in records)
        assert all(record.lines == record.rows + record.blank for record in records)
        in_files = sum(file.record_count for entry in self.entries() for file in entry.files)
        assert in_files == sum(record.rows for record in records) == len(self.ids())
        assert_balanced(f"s3://{self.bucket}/table", access=options(self.behind))

    def ids(self) -> list[int]:
        table = DeltaTable(f"s3://{self.bucket}/table", storage_options=options(self.behind))
        found: list[Any] = pa.table(table.scan(["id"]).read_all())["id"].to_pylist()
        return sorted(found)

    def entries(self) -> list[Entry]:
        journal = self._store("table/_blizzard/default/journal")
        names = sorted(facts.path for facts in journal.objects())
        return [
            decode_entry(journal.get(name) or b"", name)
            for name in names
            if entry_sequence(name) is not None
        ]

    def uploaded(self, partition: str) -> set[str]:
        """Return the data files of a partition that are in the store, whoever put them there."""
        return {
            facts.path
            for facts in self._store("table").objects(f"p={partition}")
            if facts.path.endswith(".parquet")
        }

    def named(self, partition: str) -> set[str]:
        """Return the data files of a partition that the journal names."""
        files = [file.filename for entry in self.entries() for file in entry.files]
        return {name for name in files if name.startswith(f"p={partition}/")}

    def reads(self, partition: str) -> list[Request]:
        """Return the requests for the source file of a partition."""
        return [request for request in self.proxy.record if is_read_of(partition)(request)]

    def _store(self, folder: str) -> Store:
        return Store(f"s3://{self.bucket}/{folder}", StorageOptions(options(self.behind)))


def is_read_of(partition: str) -> Callable[[Request], bool]:
    """Return a check for the download of a partition's source file."""
    return lambda asked: (
        asked.kind == "get" and unquote(asked.path).endswith(f"/in/p={partition}/a.ndjson")
    )


def is_look_at_upload(partition: str) -> Callable[[Request], bool]:
    """Return a check for the look that a worker takes at a data file once it is uploaded."""
    return lambda asked: (
        asked.kind == "head"
        and f"/table/p={partition}/" in unquote(asked.path)
        and asked.path.endswith(".parquet")
    )
