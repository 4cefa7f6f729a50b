"""Lives of both programs on one table, each of which may end before or after any call of a store.

The process is the pipeline with the in-process runner and penguin on the same table. Once dead it
answers nothing any more, as a killed process does; the restart finds what the store really holds.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from blizzard.config import load as blizzard_config
from blizzard.model.settings import PipelineSettings
from blizzard.model.work import Work
from lakebed.clock import Clock
from lakebed.deltalog.tables import last_committed
from lakebed.documents.entry import Entry
from lakebed.storage.store import Reader, Store
from penguin.config import load as penguin_config
from tests.support.dying import Died, Fate, dying
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.tables import commit_table


class WorkerStores:
    """The worker's stores, of which the sink may die."""

    def __init__(self, work: Work, fate: Fate, retry: Mapping[str, Any] | None = None) -> None:
        self.work = work
        self.fate = fate
        self.retry = retry

    def source(self, name: str) -> Reader:
        place = self.work.sources[name]
        return Reader(place.uri, place.options, retry=self.retry)

    def sink(self) -> Store:
        place = self.work.sink
        return dying(Store(place.uri, place.options, retry=self.retry), self.fate)


class Programs:
    """Both programs, as one configuration has them; it is read once for all of their lives."""

    def __init__(self, file: Path) -> None:
        self.pipelines = blizzard_config.load([file], [], {}).pipelines
        self.tables = penguin_config.load([file], [], {}).tables

    def blizzard(self, fate: Fate) -> None:
        for each in self.pipelines:
            pipeline = pipeline_of(
                each,
                InProcessRunner(lambda work: WorkerStores(work, fate)),
                open_sink=lambda place: dying(
                    Store(place.uri, place.options, make_folder=True), fate
                ),
                is_committed=partial(in_the_log, each),
            )
            while pipeline.step():
                pass

    def penguin(self, fate: Fate) -> None:
        for table in self.tables:
            store = dying(Store(table.table_uri, table.storage_options), fate)
            commit_table(table, store, lambda _event: None, Clock())


def survives(life: Callable[[Fate], None], fate: Fate) -> bool:
    """Whether a life came to its end."""
    try:
        life(fate)
    except Died:
        return False
    return not fate.died


def in_the_log(settings: PipelineSettings, entry: Entry) -> bool:
    sink = settings.sink
    last = last_committed(sink.table_uri, sink.storage_options, entry.pipeline, entry.journal)
    return last is not None and last >= entry.sequence
