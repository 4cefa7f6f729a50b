"""A table with values in `_rescued`, and the promotion of a column from there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from deltalake import DeltaTable

from blizzard.cli.rows.rewriting import schema_check
from blizzard.rewrite.promote import PromotedField, PromotionPlan, promote
from blizzard.rewrite.transaction import RewriteDone
from lakebed.telemetry.events import Event
from lakebed.types import RESCUED
from penguin.config import load as penguin_config
from penguin.delta.table import Log
from penguin.pipeline import TableRun, commit_all
from tests.support.desk import Desk
from tests.support.landing import Landing
from tests.support.runner import InProcessRunner

ID = {"name": "id", "type": "int64"}
PRICE = {"name": "price", "type": "decimal(10,2)"}


class Rescued(Desk):
    """A table whose schema section a test chooses, and changes."""

    def __init__(
        self,
        folder: Path,
        schema: dict[str, Any] | None = None,
        *,
        pipeline: str = "default",
        **sink: Any,
    ) -> None:
        super().__init__(folder)
        self.pipeline = pipeline
        self.file = folder / f"{pipeline}.yaml"
        self.landing = Landing(folder / f"landing-{pipeline}")
        self.landing.folder.mkdir(exist_ok=True)
        self.written = {"path": str(self.table), **sink}
        self.configure(schema or {"fields": [ID]})

    def configure(self, schema: dict[str, Any], **table: Any) -> None:
        """Write the configuration of both programs anew."""
        pipeline = {
            "sources": {"in": {"path": str(self.landing.folder)}},
            "sink": self.written,
            "schema": schema,
        }
        document = {
            "pipelines": {self.pipeline: pipeline},
            "tables": {"t": {"table_uri": str(self.table), **table}},
        }
        self.file.write_text(yaml.safe_dump(document))

    def promote(
        self, field: str, kind: str | None = None, **around: Any
    ) -> RewriteDone[PromotionPlan]:
        """Rewrite files and append the entry, in this process."""
        settings = self.settings
        return promote(
            around.get("store", self.store),
            settings,
            PromotedField(field=field, type=kind),
            schema_check(settings),
            around.get("runner", InProcessRunner()),
            clock=self.clock,
        )

    def events_of_penguin(
        self, kind: type[Event], open_log: Callable[..., Any] = Log
    ) -> list[Event]:
        """Let penguin commit everything; return its events of one kind."""
        (settings,) = penguin_config.load([self.file], [], {}).tables
        events: list[Event] = []
        run = TableRun(
            settings=settings,
            emit=events.append,
            clock=self.clock,
            open_store=lambda: self.store,
            open_log=open_log,
            pause=lambda _seconds: None,
        )
        commit_all(run, None)
        return [one for one in events if isinstance(one, kind)]

    def rows(self, version: int | None = None) -> list[dict[str, Any]]:
        """Read the table in the order of the ids."""
        found = DeltaTable(str(self.table), version=version).to_pyarrow_table().to_pylist()
        return sorted(found, key=lambda row: row["id"])

    def column(self, name: str) -> list[tuple[Any, Any]]:
        """Return a column of all rows, each with what is rescued beside it."""
        return [(row[name], row[RESCUED]) for row in self.rows()]

    @property
    def version(self) -> int:
        return DeltaTable(str(self.table)).version()

    @property
    def active(self) -> set[str]:
        """Name the data files of the table."""
        actions = DeltaTable(str(self.table)).get_add_actions(flatten=True)
        return set(actions.column("path").to_pylist())
