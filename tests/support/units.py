"""A place where work units are run with the real decoder, and what became of their files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from blizzard.model.source.file import SourceFile
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.worker.download import OpenedStores
from blizzard.worker.unit import run_unit
from lakebed.documents.records import FailureStage
from lakebed.storage.store import Reader, Store
from tests.support import builders
from tests.support.builders import listed, unit

BAD = b'{"id": 1, "name": "fine"}\n{"id": 2, "name": \n'


@dataclass
class Place:
    """A source folder and a table folder."""

    source: Path
    table: Path

    def run(self, files: tuple[SourceFile, ...] | None = None, **given) -> UnitOutcome:
        stores = given.pop("stores", OpenedStores)
        shared = builders.work(self.source, self.table, **given)
        asked = unit(listed(self.source) if files is None else files)
        outcome = run_unit(asked, shared, stores(shared))
        require_balanced(asked, outcome)
        return outcome

    def ids(self, outcome: UnitOutcome) -> list[Any]:
        """Read the rows that the outcome names: whatever else is in the folder does not count."""
        return [
            number
            for file in outcome.files
            for number in pq.read_table(self.table / file.filename).column("id").to_pylist()
        ]


def require_balanced(work_unit: WorkUnit, outcome: UnitOutcome) -> None:
    """Hold the books of an outcome to what they promise."""
    for each in outcome.sources:
        assert each.lines == each.blank + each.filtered + each.quarantined + each.rows
        assert each.failure is None or each.rows == each.lines == 0
    total = sum(each.rows for each in outcome.sources)
    assert total == sum(file.record_count for file in outcome.files)
    assert [each.key for each in outcome.sources] == [each.key for each in work_unit.files]


def failed(outcome: UnitOutcome) -> dict[str, tuple[FailureStage, str]]:
    return {
        each.path: (each.failure.stage, each.failure.code)
        for each in outcome.sources
        if each.failure is not None
    }


class With:
    """The sources of the batch, and a table of the test's."""

    def __init__(self, shared: Work, sink: Store) -> None:
        self._opened = OpenedStores(shared)
        self._sink = sink

    def source(self, name: str) -> Reader:
        return self._opened.source(name)

    def sink(self) -> Store:
        return self._sink
