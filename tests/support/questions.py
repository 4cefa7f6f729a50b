"""Asking `blizzard why` on a table of both programs."""

import json
from typing import Any

import yaml

from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from tests.support.desk import Desk
from tests.support.landing import config


class Questions(Desk):
    """Both programs on one table, and an operator who asks why."""

    def configure(self, **given: Any) -> None:
        """Configure the pipeline otherwise."""
        self.file = config(self.folder, **given)

    def pattern(self, pattern: str) -> None:
        """Read only the names that a pattern below the landing folder means."""
        text = self.file.read_text()
        self.file.write_text(text.replace('/landing"', f'/landing/{pattern}"'))

    def rewrite(self, name: str, **changes: Any) -> None:
        """Write the configuration in its long form, the pipeline under a name, with changes."""
        document = yaml.safe_load(self.file.read_text())
        parts = ("source", "sink", "schema", "error_handling")
        pipeline = {part: document.pop(part) for part in parts} | changes
        pipeline = {part: given for part, given in pipeline.items() if given is not None}
        self.file.write_text(yaml.safe_dump({"pipelines": {name: pipeline}, **document}))

    def both(self) -> None:
        """Let both programs do whatever there is to do."""
        self.blizzard()
        self.penguin()

    def writes_a_snapshot(self) -> None:
        """Write the names that the journal knows to a segment, as a long journal does."""
        writer = SnapshotWriter(store=self.store, pipeline="default", clock=self.clock)
        writer.write(read_ledger(self.store, "default"))

    def why(self, name: str, *options: str) -> dict[str, Any]:
        """Ask about one file."""
        done = self.cli("why", name, *options, "--output", "json")
        assert done.exit_code == 0, done.output
        (line,) = done.stdout.splitlines()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def state(self, name: str, *options: str) -> str:
        """Return the state of a file."""
        return str(self.why(name, *options)["state"])

    def data_file(self) -> str:
        """Return the only data file of the table."""
        (name,) = (str(found.name) for found in self.table.glob("*.parquet"))
        return name
