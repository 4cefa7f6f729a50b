"""blizzard's commands on a configuration of one pipeline, in this process, 80 columns wide."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner, Result

import blizzard.cli.app
import penguin.cli.app
from blizzard.cli.app import app
from blizzard.cli.surroundings import Surroundings
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.storage.store import Store
from penguin.pipeline import InlineCommitter
from tests.support.builders import Bench, no_options, pipeline_settings
from tests.support.readers import ids
from tests.support.runner import inside
from tests.support.waits import hurried

WIDTH = 80
PROGRAMS: dict[str, Any] = {"blizzard": blizzard.cli.app, "penguin": penguin.cli.app}
FIELDS = "{name: id, type: int64, nullable: false}, {name: name, type: string}"


@dataclass
class Desk:
    """A source folder, a table and an operator's terminal."""

    root: Path
    sink: str = ""
    source: str = ""

    @property
    def landing(self) -> Path:
        return self.root / "in"

    @property
    def table(self) -> Path:
        return self.root / "table"

    def settings(self, **given: Any) -> PipelineSettings:
        return pipeline_settings(self.landing, self.table, **given)

    def bench(self, **given: Any) -> Bench:
        return Bench(self.settings(**given))

    @property
    def store(self) -> Store:
        return Store(str(self.table), no_options())

    def commit(self, pipeline: str | None = None) -> int:
        """Commit what waits, as blizzard does where it commits inline."""
        commit = InlineCommitter.of(
            None,
            str(self.table),
            no_options(),
            emit=lambda _event: None,
            clock=Clock(),
            pipeline=pipeline,
        )
        return commit()

    def ids(self) -> list[int]:
        """Return the ids of all rows in the table, sorted."""
        return ids(self.table)

    def config(self, *names: str) -> Path:
        """Write the configuration that `settings` stands for, under each of these names."""
        file = self.root / "blizzard.yaml"
        pipelines = "".join(
            f"""
  {name}:
    source: {{path: "{self.landing if name == "default" else self.root / name}", {self.source}}}
    sink: {{path: "{self.table}", {self.sink}}}
    schema: {{fields: [{FIELDS}]}}"""
            for name in names or ("default",)
        )
        file.write_text(f"pipelines:{pipelines}\n")
        return file

    def run(
        self,
        *arguments: str,
        config: Path | None = None,
        clock: Clock | None = None,
        width: int = WIDTH,
    ) -> Result:
        """Run a command; whatever it prints must fit the terminal, where it is a table."""
        file = config or self.config()
        done = CliRunner().invoke(
            app,
            [*arguments, "-c", str(file)],
            env={"COLUMNS": str(width), "NO_COLOR": "1"},
            obj=Surroundings(make_runner=inside, clock=clock or hurried()),
        )
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done


def recorded(shown: str) -> dict[str, Any]:
    """Return what `journal show` prints of an entry."""
    found: dict[str, Any] = yaml.safe_load(f"format:{shown.partition(chr(10) + 'format:')[2]}")
    return found


def told(done: Result) -> list[dict[str, Any]]:
    """Read what a command printed with `--output json`."""
    return [json.loads(line) for line in done.stdout.splitlines()]
