"""A bucket with a source, a table and a queue, and both programs at work on them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from deltalake import DeltaTable
from typer.testing import CliRunner, Result

from blizzard.cli import app as blizzard_cli
from blizzard.cli.surroundings import Surroundings as BlizzardSurroundings
from blizzard.config import load as blizzard_config
from blizzard.execute.runner import Runner
from blizzard.pipeline import Pipeline
from lakebed.clock import Clock
from lakebed.layout import entry_sequence
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.cli import app as penguin_cli
from penguin.cli.run import PenguinSurroundings
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner, inside
from tests.support.s3 import options
from tests.support.waits import Hurry, hurried

TOKEN = "canary-session-token"


@dataclass
class Lake:
    """A bucket with a source, a table and a queue, and the configuration that names them."""

    bucket: str
    address: str
    behind: str
    """The store's own address, where the programs may be given a proxy's."""
    folder: Path
    sink: dict[str, Any] = field(default_factory=dict)
    error_handling: dict[str, Any] = field(default_factory=dict)
    spelled: Callable[[str], str] = str.upper

    @property
    def config(self) -> Path:
        given = options(self.address, AWS_SESSION_TOKEN=TOKEN)
        access = {self.spelled(name): value for name, value in given.items()}
        file = self.folder / "pipeline.yaml"
        document = {
            "source": {"path": f"s3://{self.bucket}/in", "storage_options": access},
            "sink": {
                "path": f"s3://{self.bucket}/table",
                "storage_options": access,
                "partition_by": {"prefix_template": "date=%Y-%m-%d"},
                **self.sink,
            },
            "schema": {
                "fields": [
                    {"name": "id", "type": "int64", "nullable": False},
                    {"name": "name", "type": "string"},
                ]
            },
            "error_handling": self.error_handling,
            "tables": {"t": {"table_uri": f"s3://{self.bucket}/table", "storage_options": access}},
        }
        file.write_text(yaml.safe_dump(document))
        return file

    def store(self, folder: str = "") -> Store:
        """Open the bucket at the store itself."""
        uri = f"s3://{self.bucket}/{folder}".rstrip("/")
        return Store(uri, StorageOptions(options(self.behind)))

    def land(self, name: str, body: bytes) -> None:
        self.store("in").create(f"date=2024-01-01/{name}", body)

    def pipeline(self, runner: Runner | None = None, *, hours: float = 0.0) -> Pipeline:
        settings = blizzard_config.load([self.config], [], {})
        clock = hurried(hours=hours) if runner is None else Clock()
        return pipeline_of(settings.pipelines[0], runner or InProcessRunner(), clock=clock)

    def drain(self, runner: Runner | None = None) -> None:
        pipeline = self.pipeline(runner)
        while pipeline.step():
            pass

    def blizzard(self, *arguments: str) -> Result:
        """Run the command line, with units run in this process instead of on Spark."""
        around = BlizzardSurroundings(make_runner=inside, stop=Hurry(), listen=lambda *_given: None)
        command = ["-c", str(self.config), *arguments]
        return CliRunner().invoke(blizzard_cli.app, command, obj=around)

    def penguin(self, *arguments: str) -> Result:
        around = PenguinSurroundings(stop=Hurry())
        command = ["-c", str(self.config), *arguments]
        return CliRunner().invoke(penguin_cli.app, command, obj=around)

    def drains_later(self) -> None:
        """Let blizzard come again after files that failed have rested."""
        later = self.pipeline(hours=2)
        while later.step():
            pass

    def commit(self) -> None:
        done = self.penguin("--once")
        assert done.exit_code == 0, done.output

    def ids(self) -> list[int]:
        table = DeltaTable(f"s3://{self.bucket}/table", storage_options=options(self.behind))
        found: list[Any] = pa.table(table.scan(["id"]).read_all())["id"].to_pylist()
        return sorted(found)

    def letters(self) -> list[dict[str, Any]]:
        """Read the dead letters that entries name, the way another program would."""
        found = []
        journal = self.store("table/_blizzard/default/journal")
        for facts in sorted(journal.objects(), key=lambda each: each.path):
            if entry_sequence(facts.path) is None:
                continue
            for uri in json.loads(journal.get(facts.path) or b"").get("dlq", ()):
                body = self.store().get(uri.removeprefix(f"s3://{self.bucket}/"))
                assert body is not None
                found += [json.loads(line) for line in body.splitlines()]
        return found
