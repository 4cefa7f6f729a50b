"""A table whose writers die before or after any call of a store, over every hand-off."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from blizzard.handoff.publish import Publisher
from blizzard.repair.gc import WITH_MARK, collect, find_garbage
from lakebed.clock import Clock
from lakebed.deltalog.files import named_files
from lakebed.storage.store import Store
from lakebed.types import Handoff
from penguin.config import load as penguin_config
from tests.support.dying import Fate, dying
from tests.support.lives import WorkerStores, in_the_log
from tests.support.open_table import OpenTable
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.tables import commit_table

HANDOFFS = {
    "journal": (Handoff.JOURNAL, False),
    "staging": (Handoff.STAGING, False),
    "direct": (Handoff.DIRECT, False),
    "inline": (Handoff.JOURNAL, True),
}
"""Every hand-off, and whether blizzard commits by itself."""


class Mortal(OpenTable):
    """A table whose writers die; each partition is a unit of its own."""

    def __init__(
        self,
        folder: Path,
        schema: dict[str, Any] | None,
        *,
        handoff: Handoff,
        inlined: bool,
        error_handling: dict[str, Any] | None = None,
    ) -> None:
        by = {"prefix_template": "date=%Y-%m-%d"}
        super().__init__(
            folder, schema, error_handling=error_handling, partition_by=by, handoff=handoff.value
        )
        self.inlined = inlined

    def live(self, fate: Fate) -> None:
        settings = self.settings
        pipeline = pipeline_of(
            settings,
            InProcessRunner(lambda work: WorkerStores(work, fate)),
            open_sink=lambda place: dying(Store(place.uri, place.options, make_folder=True), fate),
            publisher=self._publisher(fate),
        )
        while pipeline.step():
            pass
        self._commit(fate)

    def _publisher(self, fate: Fate) -> Publisher:
        handed_off = Publisher(is_committed=partial(in_the_log, self.settings))
        if not self.inlined:
            return handed_off
        return replace(handed_off, commit=lambda: self._commit(fate))

    def _commit(self, fate: Fate) -> int:
        (table,) = penguin_config.load([self.file], [], {}).tables
        store = dying(Store(table.table_uri, table.storage_options), fate)
        return commit_table(table, store, lambda _event: None, Clock())

    def named_by_the_log(self) -> frozenset[str]:
        return named_files(str(self.table), self.sink.storage_options)

    def garbage(self) -> list[str]:
        """Name the data files and quarantine files that nobody names."""
        now = Clock().now()
        found = find_garbage(
            self.store, "default", self.named_by_the_log, now=now, older_than=timedelta(0)
        )  # fmt: skip
        return [one.path for one in found.garbage if one.kind in WITH_MARK]

    def collect(self) -> None:
        collect(
            self.store, "default", self.named_by_the_log, clock=Clock(), older_than=timedelta(0)
        )
