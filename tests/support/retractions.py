"""A table, and source files whose rows are taken back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from deltalake import DeltaTable

from blizzard.answers.progress import PipelineEvidence
from blizzard.cli.audit import audit_of
from blizzard.ingest import Ingest
from blizzard.inspect.audit.findings import Audit
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from blizzard.journal.source_names import the_key
from blizzard.model.stores import open_reader, sink_location
from blizzard.rewrite.replace import exchange_of, replace_rows
from blizzard.rewrite.retract import RetractPlan, plan_retraction, retract
from blizzard.rewrite.transaction import RewriteDone
from lakebed.deltalog import tables
from lakebed.storage.options import Location
from lakebed.storage.store import Store
from tests.support.pipelines import pipeline_of
from tests.support.promotions import Rescued
from tests.support.runner import InProcessRunner


def open_sink(place: Location) -> Store:
    """Open a table's directory, which need not be there yet."""
    return Store(place.uri, place.options, make_folder=True)


def overtaken(monkeypatch: Any, happens: Callable[[], object], *, first: bool = False) -> None:
    """Let something happen right after, or before, a command has read the log."""
    opens = tables.replaceable

    def opened(*given: Any) -> Any:
        monkeypatch.setattr(tables, "replaceable", opens)
        if first:
            happens()
        table = opens(*given)
        if table is not None:
            assert table.files is not None
        if not first:
            happens()
        return table

    monkeypatch.setattr(tables, "replaceable", opened)


class Taken(Rescued):
    """A table from which rows are taken back; `more` is set for its pipeline, by section."""

    def __init__(
        self,
        folder: Path,
        *given: Any,
        more: dict[str, Any] | None = None,
        source: dict[str, Any] | None = None,
        **sink: Any,
    ) -> None:
        self.more = more or {}
        self.source = source or {}
        super().__init__(folder, *given, **sink)

    def configure(self, schema: dict[str, Any], **table: Any) -> None:
        """Write the configuration of both programs anew."""
        super().configure(schema, **table)
        document = yaml.safe_load(self.file.read_text())
        pipeline = document["pipelines"][self.pipeline]
        pipeline["sources"]["in"] |= self.source
        for section, settings in self.more.items():
            pipeline[section] = {**pipeline.get(section, {}), **settings}
        self.file.write_text(yaml.safe_dump(document))

    def blizzard(self, **around: Any) -> None:
        """Run batches until nothing is left; `on_change: replace` is done in this process, too."""
        runner = around.get("runner", InProcessRunner())
        emit = around.get("emit", lambda _event: None)
        pipeline = pipeline_of(
            self.settings, runner, emit=emit, open_sink=around.get("open_sink", open_sink)
        )
        while pipeline.step():
            pass

    def retract(self, *names: str, **around: Any) -> RewriteDone[RetractPlan]:
        """Rewrite files and append the entry, in this process."""
        settings = self.settings
        return retract(
            around.get("store", self.store),
            settings,
            self.keys(*names),
            around.get("runner", InProcessRunner()),
            clock=self.clock,
        )

    def replace(self, *names: str, by: str, **around: Any) -> RewriteDone[RetractPlan]:
        """Put the rows of a source file in the place of others, without penguin's commit."""
        settings, store = self.settings, around.get("store", self.store)
        runner = around.get("runner", InProcessRunner())
        ingest = Ingest(settings=settings, runner=runner, of_table=lambda: None, clock=self.clock)
        (new,) = self.keys(by, listing=True)
        old = self.keys(*names, listing=True)
        keys, file = exchange_of(store, settings, old, new, open_reader, now=self.clock.now())
        return replace_rows(store, keys, file, ingest, open_reader)

    def look(self, *names: str) -> RetractPlan:
        """Find what a retraction would take out."""
        return plan_retraction(self.store, self.settings, self.keys(*names))

    def keys(self, *names: str, listing: bool = False) -> tuple[str, ...]:
        """Return the source files that names mean, as the commands take them."""
        scope = PipelineEvidence.read(self.settings, self.clock)
        return tuple(the_key(name, scope, listing=listing) for name in names)

    def take_back(self, *names: str) -> RewriteDone[RetractPlan]:
        """Retract, and let penguin commit it."""
        done = self.retract(*names)
        self.penguin()
        return done

    def audited(self) -> Audit:
        """Audit the table, footers included."""
        return audit_of(sink_location(self.settings), deep=True)

    def amounts(self) -> dict[str, int]:
        """Return the rows of a table by where they are; nothing differs from its books."""
        audit = self.audited()
        assert audit.is_balanced, audit.differences
        return {p.value: amount.rows for p, amount in audit.places.amounts.items() if amount.rows}

    def ids(self, version: int | None = None) -> list[Any]:
        """Return the ids of all rows, in their order."""
        return [row["id"] for row in self.rows(version)]

    def writes_a_snapshot(self) -> None:
        """Write the names that the journal knows to a segment, as a long journal does."""
        writer = SnapshotWriter(store=self.store, pipeline=self.pipeline, clock=self.clock)
        writer.write(read_ledger(self.store, self.pipeline))

    def optimize(self) -> None:
        """Rewrite the files of the table, as another program does."""
        DeltaTable(str(self.table)).optimize.compact()
