"""Both programs with everything in one store: source and table, and an oracle of the rows."""

import os
from base64 import b64encode
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from deltalake import DeltaTable

from blizzard.pipeline import Pipeline
from lakebed.clock import Clock
from lakebed.storage.remote import for_delta
from lakebed.storage.store import Reader, Store
from lakebed.types import Handoff
from penguin.pipeline import TableRun
from tests.support.audits import assert_balanced
from tests.support.builders import AtEveryStep, ndjson, rows
from tests.support.dying import Fate
from tests.support.lives import Programs, WorkerStores, in_the_log
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.servers_reached import Contestant
from tests.support.waits import at_once

ROWS_PER_FILE = 3


def random_text(size: int) -> str:
    """Return a text whose entropy has so many bytes."""
    return b64encode(os.urandom(size)).decode()


Retry = Mapping[str, Any] | None
"""How often a request is sent; None for the usual."""


@dataclass
class Lake:
    """A source and a table in one store, and what was landed there."""

    contestant: Contestant
    folder: Path
    """Where the configuration is written."""
    handoff: Handoff = Handoff.JOURNAL
    address: str = ""
    """Where the programs are to reach the store: at a proxy, or at its own address."""
    sink: Mapping[str, Any] = field(default_factory=dict)
    """More keys of the configuration's section `sink`."""
    landed: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.uri = self.contestant.fresh()
        self.table = f"{self.uri}/table"
        self.source = self.store("in")
        self.programs = Programs(self.config())

    def config(self) -> Path:
        """Write the configuration of both programs."""
        access = self.contestant.options(self.address)
        document = {
            "source": {"path": f"{self.uri}/in", "storage_options": access},
            "sink": {
                "path": self.table,
                "storage_options": access,
                "partition_by": {"prefix_template": "date=%Y-%m-%d"},
                "handoff": self.handoff.value,
                **self.sink,
            },
            "schema": {
                "fields": [
                    {"name": "id", "type": "int64", "nullable": False},
                    {"name": "name", "type": "string"},
                ]
            },
            "tables": {"t": {"table_uri": self.table, "storage_options": access}},
        }
        file = self.folder / "pipeline.yaml"
        file.write_text(yaml.safe_dump(document))
        return file

    def store(self, folder: str) -> Store:
        """Open a folder at the store itself."""
        return self.contestant.open(f"{self.uri}/{folder}")

    def land(self, *names: str) -> None:
        """Let files of a few rows arrive."""
        first = len(self.landed)
        bodies = [
            ndjson(rows(ROWS_PER_FILE, first + number * ROWS_PER_FILE))
            for number in range(len(names))
        ]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.source.create, names, bodies))
        self.landed += range(first, first + ROWS_PER_FILE * len(names))

    def land_large(self, name: str, size: int) -> None:
        """Let a file of two rows arrive that no compression makes smaller than so many bytes."""
        first = len(self.landed)
        texts = [random_text(size // 2) for _row in range(2)]
        body = ndjson([{"id": first + at, "name": text} for at, text in enumerate(texts)])
        self.source.create(name, body)
        self.landed += range(first, first + 2)

    def life(self, fate: Fate) -> None:
        """Run both programs until there is nothing more to do, or until they die."""
        self.programs.blizzard(fate)
        self.programs.penguin(fate)

    def blizzard(self, *, retry: Retry = None, clock: Clock | None = None) -> Pipeline:
        """Start a blizzard that is asked for one step after the other."""
        (settings,) = self.programs.pipelines
        begun = pipeline_of(
            settings,
            InProcessRunner(lambda work: WorkerStores(work, Fate.none(), retry)),
            open_source=lambda place: Reader(place.uri, place.options, retry=retry),
            open_sink=lambda place: Store(place.uri, place.options, make_folder=True, retry=retry),
            is_committed=partial(in_the_log, settings),
            clock=clock,
        )
        return replace(begun, pace=AtEveryStep(drain=True))

    def penguin(self, *, retry: Retry = None, clock: Clock | None = None) -> TableRun:
        """Start a penguin that is asked for one step after the other."""
        (settings,) = self.programs.tables
        return TableRun(
            settings=settings,
            emit=lambda _event: None,
            clock=clock or Clock(),
            open_store=lambda: Store(settings.table_uri, settings.storage_options, retry=retry),
            pause=at_once,
        )

    def two_penguins(self) -> None:
        """Let two penguins commit at the same time."""
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(self.programs.penguin, Fate.none()) for _ in range(2)]
            for each in both:
                each.result()

    def ids(self) -> list[int]:
        """Read the table as another program does."""
        access = for_delta(self.contestant.options(), uri=self.table)
        table = DeltaTable(self.table, storage_options=access)
        found: list[Any] = pa.table(table.scan(["id"]).read_all())["id"].to_pylist()
        return sorted(found)

    def rows(self) -> int:
        """Count the rows of the table, by its log: cheaper than to read them."""
        access = for_delta(self.contestant.options(), uri=self.table)
        added = DeltaTable(self.table, storage_options=access).get_add_actions(flatten=True)
        counts: list[Any] = pa.table(added)["num_records"].to_pylist()
        return sum(counts)

    def balances(self) -> None:
        """Assert that every landed row is in the table once, and that the books say so."""
        assert self.ids() == self.landed
        assert_balanced(self.table, access=self.contestant.options())
